// Searches the whole table: words by a full-text index, or a text within the text fields.
import { useState } from "preact/hooks";
import { kindOf, type Schema } from "../schema";
import { tableOf } from "../session";
import { texts } from "../texts";
import { Button, useLoad } from "../ui";
import type { Query } from "./query";

const words = texts.table;
/** Maximum fields that a search without an index reads. */
const FIELDS_MAX = 16;
/** The panel warns of a search without an index in a table of more records. */
const LARGE_RECORDS = 100_000;
const WITHOUT_INDEX = "";

/** Returns the fields that a search without an index reads. */
export const textFields = ({ schema }: Schema): string[] =>
  schema
    .filter((field) => ["text", "long"].includes(kindOf(field)))
    .slice(0, FIELDS_MAX)
    .map(({ name }) => name);

interface Props {
  database: string;
  table: string;
  schema: Schema;
  query: Query;
  keys: string[];
  setQuery: (query: Query) => void;
  close: () => void;
}

export function Search({ database, table, schema, query, keys, setQuery, close }: Props) {
  const indexes = schema.fullText ?? [];
  const own = textFields(schema);
  const present = query.search && (query.search.mode === "contains" ? WITHOUT_INDEX : query.search.fields.join());
  const [where, setWhere] = useState(present ?? indexes[0]?.join() ?? WITHOUT_INDEX);
  const [term, setTerm] = useState(query.search?.searchTerm ?? "");
  const isPlain = where === WITHOUT_INDEX;
  const isLarge = useLoad(async () => {
    if (!isPlain) return false;
    const select = keys.length ? keys : own.slice(0, 1);
    return (await tableOf(`${database}.${table}`).list({ select, limit: 1, offset: LARGE_RECORDS })).length > 0;
  }, [isPlain]);
  const submit = (event: Event) => {
    event.preventDefault();
    const searchTerm = term.trim();
    const fields = isPlain ? own : indexes.find((index) => index.join() === where)!;
    const mode = isPlain ? "contains" : /[+\-*"<>~]/.test(term) ? "boolean" : "natural";
    setQuery({ ...query, search: searchTerm ? { fields, searchTerm, mode } : null });
    close();
  };
  const choice = (value: string, label: string) => (
    <label class="check" key={value}>
      <input type="radio" name="index" checked={value === where} onChange={() => setWhere(value)} />
      {label}
    </label>
  );
  return (
    <form class="stack" onSubmit={submit}>
      <input
        type="search"
        aria-label={words.searchHint}
        placeholder={words.searchHint}
        value={term}
        onInput={(event) => setTerm(event.currentTarget.value)}
      />
      <fieldset>
        <legend>{words.searchIn}</legend>
        {indexes.map((index) => choice(index.join(), words.searchIndex(index.join(", "))))}
        {own.length > 0 && choice(WITHOUT_INDEX, words.searchPlain(own.join(", ")))}
      </fieldset>
      {isPlain ? (
        isLarge.value && (
          <p class="notice danger" role="alert">
            {words.searchLarge(LARGE_RECORDS)}
          </p>
        )
      ) : (
        <p class="dim small">{words.searchSigns}</p>
      )}
      <div class="row">
        <span class="grow" />
        <Button
          label={words.clear}
          onClick={() => {
            setQuery({ ...query, search: null });
            close();
          }}
        />
        <Button type="submit" look="main" label={words.search} />
      </div>
    </form>
  );
}
