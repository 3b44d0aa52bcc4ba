// What full keys see of a table's structure beside its fields, and what they do with the table as a whole.
import type { SchemaChange, TableDefinition } from "@selkie/client";
import { useState } from "preact/hooks";
import { Loaded } from "../manage/parts";
import { api, route, to } from "../session";
import { texts } from "../texts";
import { Button, Copy, Icon, useLoad } from "../ui";
import { ChangeDialog } from "./change";
import { foreignKeyText } from "./foreign-keys";
import { columnsOf } from "./indexes";
import { words } from "./words";

/** For the table of the address. */
export default function Definition() {
  const [database = "", table = ""] = route.value.parts;
  const load = useLoad(() => api().schema.table(`${database}.${table}`), [database, table]);
  return (
    <Loaded load={load}>
      {(made) => (
        <>
          {made.kind === "table" && <Keys database={database} made={made} />}
          <section>
            <h2>{words.definition}</h2>
            <pre class="code wire" tabIndex={0}>
              {made.create}
            </pre>
            <Actions database={database} table={table} made={made} onEmptied={load.again} />
          </section>
        </>
      )}
    </Loaded>
  );
}

const Keys = ({ database, made }: { database: string; made: TableDefinition }) => (
  <>
    <Indexes made={made} />
    <section>
      <h2>{words.foreignKeys}</h2>
      {made.foreignKeys.length === 0 && <p class="dim">{words.foreignKey.none}</p>}
      <ul>
        {made.foreignKeys.map((key) => (
          <li key={key.name}>
            {key.name} <code>{foreignKeyText(key)}</code>
          </li>
        ))}
      </ul>
    </section>
    <Triggers database={database} made={made} />
  </>
);

const Indexes = ({ made }: { made: TableDefinition }) => (
  <section>
    <h2>{words.indexes}</h2>
    <table>
      <thead>
        <tr>
          <th scope="col">{texts.structure.name}</th>
          <th scope="col">{texts.structure.fields}</th>
          <th scope="col">{texts.structure.kind}</th>
        </tr>
      </thead>
      <tbody>
        {made.primaryKey.length > 0 && (
          <tr>
            <th scope="row">PRIMARY</th>
            <td>
              <code>{made.primaryKey.join(", ")}</code>
            </td>
            <td>{texts.structure.primary}</td>
          </tr>
        )}
        {made.indexes.map((index) => (
          <tr key={index.name}>
            <th scope="row">{index.name}</th>
            <td>
              <code>{columnsOf(index)}</code>
            </td>
            <td>{words.index.kinds[index.kind] ?? index.kind}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);

const Triggers = ({ database, made }: { database: string; made: TableDefinition }) => (
  <section>
    <h2>{words.triggers}</h2>
    {made.triggers.length === 0 && <p class="dim">{words.noTriggers}</p>}
    <ul>
      {made.triggers.map(({ name, timing, event }) => (
        <li key={name}>
          <a href={to("code", [database, "trigger", name])}>{name}</a>{" "}
          <span class="dim">
            {timing} {event}
          </span>
        </li>
      ))}
    </ul>
    <p class="row">
      <a href={to("code", [database, "trigger"])}>
        <Icon name="plus" /> {words.code.add(words.code.one.trigger)}
      </a>
      <a href={to("code", [database])}>
        <Icon name="code" /> {words.code.heading(database)}
      </a>
    </p>
  </section>
);

function Actions({
  database,
  table,
  made,
  onEmptied,
}: {
  database: string;
  table: string;
  made: TableDefinition;
  onEmptied: () => void;
}) {
  const [asking, setAsking] = useState<"truncate" | "drop" | null>(null);
  const losses = ({ rows, bytes }: SchemaChange) => [
    (asking === "truncate" ? words.change.losesRecords : words.change.losesTable)(rows, bytes),
  ];
  const done = () => {
    setAsking(null);
    if (asking === "drop") location.hash = to("");
    else onEmptied();
  };
  return (
    <div class="row actions">
      <Copy text={made.create} label={texts.table.copy} done={texts.table.copied} />
      {made.kind === "view" ? (
        <a class="button" href={to("code", [database, "view", table])}>
          <Icon name="code" />
          {words.asText}
        </a>
      ) : (
        <>
          <a class="button" href={to("edit", [database, table])}>
            <Icon name="columns" />
            {words.edit}
          </a>
          <Button icon="close" look="danger" label={words.truncate} onClick={() => setAsking("truncate")} />
          <Button icon="trash" look="danger" label={words.drop} onClick={() => setAsking("drop")} />
        </>
      )}
      {asking && (
        <ChangeDialog
          heading={asking === "truncate" ? words.truncate : words.drop}
          database={database}
          table={table}
          change={asking === "truncate" ? { truncate: true } : { drop: true }}
          losses={losses}
          onDone={done}
          onClose={() => setAsking(null)}
        />
      )}
    </div>
  );
}
