// Chooses the field of a table for each column of a file.
import { useState } from "preact/hooks";
import type { Draft } from "../design/draft";
import { Loaded, SelectField } from "../manage/parts";
import { kindOf, type Schema, schemaOf } from "../schema";
import { Button, useLoad } from "../ui";
import type { Target } from "./send";
import { mapped, type Survey } from "./survey";
import { words } from "./words";

export interface IntoProps {
  file: File;
  survey: Survey;
  database: string;
  table: string | undefined;
  /** What was entered for a new table, which was removed since, so that its import can be tried again. */
  last?: Draft | undefined;
  onStart: (target: Target, made?: Draft) => void;
}

export function IntoTable(props: IntoProps & { table: string }) {
  const { database, table } = props;
  const schema = useLoad(() => schemaOf(database, table), [database, table]);
  return <Loaded load={schema}>{(schema) => <Mapping {...props} schema={schema} />}</Loaded>;
}

function Mapping({ survey, database, table, schema, onStart }: IntoProps & { table: string; schema: Schema }) {
  const { columns, reading } = survey;
  const names = schema.schema.filter(({ writable }) => writable).map(({ name }) => name);
  const [fields, setFields] = useState(() => mapped(columns, names));
  const [onConflict, setOnConflict] = useState("");
  const given = fields.filter((field) => field !== null);
  const twice = given.find((field, at) => given.indexOf(field) < at);
  const fault = twice !== undefined ? words.twice(twice) : given.length === 0 ? words.none : "";
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const booleans = fields.map((name) =>
          schema.schema.some((field) => field.name === name && kindOf(field) === "boolean"),
        );
        onStart({ database, table, form: reading.form, columns, fields, booleans, onConflict });
      }}
    >
      <fieldset class="wide mapping">
        <legend>{words.mapHint}</legend>
        {columns.map((column, at) => (
          <label key={at}>
            {column}
            <select
              aria-label={words.field(column)}
              value={fields[at] ?? ""}
              onChange={({ currentTarget: { value } }) => setFields(fields.with(at, value === "" ? null : value))}
            >
              <option value="">{words.leftOut}</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        ))}
      </fieldset>
      <SelectField
        label={words.conflict}
        value={onConflict}
        options={Object.entries(words.conflicts)}
        onChange={setOnConflict}
      />
      <Button type="submit" look="main" icon="upload" label={words.start} disabled={fault !== ""} />
      <p class="dim">{words.refusals}</p>
      {fault && (
        <p class="fault wide" role="alert">
          {fault}
        </p>
      )}
    </form>
  );
}
