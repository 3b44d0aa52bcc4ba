// The databases of the project: create, change the collation, delete. By SQL, as full keys may.
import { useState } from "preact/hooks";
import { loadDatabases } from "../schema";
import { api, holder, to } from "../session";
import { texts } from "../texts";
import { Button, Confirm, Dialog, Problem, useAttempt, useLoad, useTitle } from "../ui";
import { sizeOf } from "../values";
import { type Column, List, Loaded, TextField } from "./parts";

const words = texts.databases;
const DEFAULT_COLLATION = "utf8mb4_unicode_ci";

interface Database {
  name: string;
  collation: string;
  tables: number;
  records: number;
  bytes: number;
  comment: string;
}

const quoted = (name: string): string => `\`${name.replaceAll("`", "``")}\``;
const run = (query: string) => api().request("POST", "sql", { body: { query }, retries: 0 });

async function read(): Promise<{ list: Database[]; collations: string[] }> {
  const [rows, collations] = await Promise.all([
    api().sql<Record<keyof Database, unknown>[]>`
      SELECT s.SCHEMA_NAME AS name, s.DEFAULT_COLLATION_NAME AS collation, s.SCHEMA_COMMENT AS comment,
        SUM(t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')) AS tables, SUM(t.TABLE_ROWS) AS records, SUM(t.DATA_LENGTH + t.INDEX_LENGTH) AS bytes
      FROM information_schema.SCHEMATA AS s LEFT JOIN information_schema.TABLES AS t ON t.TABLE_SCHEMA = s.SCHEMA_NAME
      WHERE s.SCHEMA_NAME <> 'information_schema' GROUP BY s.SCHEMA_NAME ORDER BY s.SCHEMA_NAME`,
    api().sql<{ name: string }[]>`
      SELECT CONCAT(IF(COLLATION_NAME LIKE CONCAT(CHARACTER_SET_NAME, '%'), '', CONCAT(CHARACTER_SET_NAME, '_')), COLLATION_NAME) AS name
      FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY
      WHERE CHARACTER_SET_NAME IN ('utf8mb4', 'ascii', 'latin1', 'binary') ORDER BY CHARACTER_SET_NAME = 'utf8mb4' DESC, name`,
  ]);
  const list = rows.map(({ name, collation, tables, records, bytes, comment }) => ({
    name: String(name),
    collation: String(collation),
    comment: String(comment),
    tables: Number(tables ?? 0),
    records: Number(records ?? 0),
    bytes: Number(bytes ?? 0),
  }));
  return { list, collations: collations.map(({ name }) => name) };
}

export default function Databases() {
  const databases = useLoad(read, []);
  const [changing, setChanging] = useState<Database | null>(null);
  const [dropping, setDropping] = useState<Database | null>(null);
  const [typed, setTyped] = useState("");
  const [error, attempt] = useAttempt();
  useTitle(words.heading);
  const change = (query: string) =>
    attempt(async () => {
      setChanging(null);
      setDropping(null);
      setTyped("");
      await run(query);
      databases.again();
      await loadDatabases();
    });
  const columns: Column<Database>[] = [
    { head: words.name, isName: true, of: ({ name }) => <a href={to("diagram", [name])}>{name}</a> },
    { head: words.tables, class: "right", of: ({ tables }) => tables.toLocaleString("en") },
    { head: words.records, class: "right", of: ({ records }) => records.toLocaleString("en") },
    { head: words.size, class: "right", of: ({ bytes }) => sizeOf(bytes) },
    {
      head: words.collation,
      of: (database) => (
        <button
          type="button"
          class="link"
          aria-label={`${words.change(database.name)}: ${database.collation}`}
          onClick={() => setChanging(database)}
        >
          {database.collation}
        </button>
      ),
    },
    { head: words.comment, of: ({ comment }) => comment },
    {
      head: "",
      of: (database) => (
        <Button
          icon="trash"
          bare
          look="danger"
          label={words.dropLabel(database.name)}
          onClick={() => setDropping(database)}
        />
      ),
    },
  ];
  return (
    <div class="manage">
      <h1>{words.heading}</h1>
      <p class="dim">{words.hint}</p>
      {error !== null && <Problem error={error} />}
      <Loaded load={databases}>
        {({ list, collations }) => (
          <>
            <Create collations={collations} onCreate={(query) => void change(query)} />
            {list.length === 0 ? (
              <p class="dim">{words.none}</p>
            ) : (
              <List label={words.heading} rows={list} columns={columns} keyOf={({ name }) => name} />
            )}
            {changing && (
              <Dialog label={words.change(changing.name)} onClose={() => setChanging(null)}>
                <Collation
                  database={changing}
                  collations={collations}
                  onSave={(collation) => void change(`ALTER DATABASE ${quoted(changing.name)} ${collate(collation)}`)}
                  onClose={() => setChanging(null)}
                />
              </Dialog>
            )}
          </>
        )}
      </Loaded>
      {dropping && (
        <Confirm
          label={words.drop}
          text={words.confirm(dropping.name, dropping.tables)}
          isReady={typed === dropping.name}
          onYes={() => void change(`DROP DATABASE ${quoted(dropping.name)}`)}
          onClose={() => setDropping(null)}
        >
          <TextField label={words.typed} value={typed} onChange={setTyped} />
        </Confirm>
      )}
    </div>
  );
}

const collate = (collation: string): string =>
  `CHARACTER SET ${quoted(collation.split("_", 1)[0]!)} COLLATE ${quoted(collation)}`;

function CollationField({
  value,
  collations,
  onChange,
}: {
  value: string;
  collations: readonly string[];
  onChange: (collation: string) => void;
}) {
  return (
    <label title={words.collationHint}>
      {words.collation}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {!collations.includes(value) && <option>{value}</option>}
        {collations.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function Create({ collations, onCreate }: { collations: readonly string[]; onCreate: (query: string) => void }) {
  const prefix = `${holder.value.project ?? ""}_`;
  const [name, setName] = useState("");
  const [collation, setCollation] = useState(DEFAULT_COLLATION);
  const submit = (event: Event) => {
    event.preventDefault();
    const whole = name.startsWith(prefix) ? name : prefix + name;
    onCreate(`CREATE DATABASE ${quoted(whole)} ${collate(collation)}`);
    setName("");
  };
  return (
    <form onSubmit={submit}>
      <TextField
        label={words.name}
        value={name}
        required
        placeholder={words.nameHint}
        title={words.prefix(prefix)}
        maxLength={64}
        onChange={setName}
      />
      <CollationField value={collation} collations={collations} onChange={setCollation} />
      <Button type="submit" look="main" icon="plus" label={words.create} />
      <p class="dim wide">{words.prefix(prefix)}</p>
    </form>
  );
}

function Collation({
  database,
  collations,
  onSave,
  onClose,
}: {
  database: Database;
  collations: readonly string[];
  onSave: (collation: string) => void;
  onClose: () => void;
}) {
  const [collation, setCollation] = useState(database.collation);
  return (
    <div class="stack">
      <CollationField value={collation} collations={collations} onChange={setCollation} />
      <p class="dim">{words.changeHint}</p>
      <div class="row">
        <Button
          look="main"
          label={words.save}
          disabled={collation === database.collation}
          onClick={() => onSave(collation)}
        />
        <Button label={texts.cancel} onClick={onClose} />
      </div>
    </div>
  );
}
