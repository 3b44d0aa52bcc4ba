// Imports a file: which file, how it is written, where its rows go.
import { useEffect, useState } from "preact/hooks";
import { Columns } from "../design/columns";
import { ChangeDialog } from "../design/change";
import { type Draft, type DraftColumn, newTableOf } from "../design/draft";
import { words as tableWords } from "../design/words";
import { SelectField, TextField } from "../manage/parts";
import { loadTables, tables } from "../schema";
import { holder, route } from "../session";
import { texts } from "../texts";
import { Button, Icon, Problem, Spinner, useLoad, useTitle } from "../ui";
import { type IntoProps, IntoTable } from "./mapping";
import { guessReading, readFault, type Reading } from "./read";
import { Run } from "./run";
import type { Target } from "./send";
import { draftFor, type Survey, surveyOf } from "./survey";
import { words } from "./words";

/** The page `#/import/<database>/<table>`; without a table, the rows go to a new one. */
export default function ImportPage() {
  const [database = "", table] = route.value.parts;
  const [file, setFile] = useState<File | null>(null);
  /** Changes with each choice, also of the same file. */
  const [nth, setNth] = useState(0);
  const [isOver, setOver] = useState(false);
  useTitle(words.import);
  const take = (list: FileList | null | undefined) => {
    const [first] = list ?? [];
    if (!first) return;
    setFile(first);
    setNth((last) => last + 1);
  };
  return (
    <div
      class="manage import"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => event.currentTarget.contains(event.relatedTarget as Node) || setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      {table === undefined ? <h1>{words.importInto(database)}</h1> : <h2>{words.import}</h2>}
      <div class="row">
        <span class="button file">
          <Icon name="upload" />
          {file ? words.another : words.choose}
          <input
            type="file"
            accept=".csv,.tsv,.ndjson,.jsonl,.txt,.gz"
            aria-label={words.choose}
            onChange={(event) => take(event.currentTarget.files)}
          />
        </span>
        {file ? <strong class="cut">{file.name}</strong> : <span class="dim">{words.drop}</span>}
      </div>
      {file && <FileImport key={nth} file={file} database={database} table={table} />}
      {isOver && <p class="drop">{words.drop}</p>}
    </div>
  );
}

function FileImport({ file, database, table }: { file: File; database: string; table: string | undefined }) {
  const [reading, setReading] = useState<Reading | null>(null);
  const [started, setStarted] = useState<Target | null>(null);
  const [made, setMade] = useState<Draft>();
  useEffect(() => void guessReading(file).then(setReading), []);
  const survey = useLoad(async () => reading && (await surveyOf(file, reading)), [reading]);
  if (!reading) return <Spinner label={words.reading} />;
  if (started) return <Run file={file} reading={reading} target={started} onAgain={() => setStarted(null)} />;
  return (
    <>
      <ReadingFields
        reading={reading}
        onChange={(reading) => {
          setReading(reading);
          setMade(undefined);
        }}
      />
      {survey.error ? (
        <Problem error={readFault(survey.error)} />
      ) : !survey.value ? (
        <Spinner label={words.reading} />
      ) : survey.value.rows === 0 ? (
        <p role="status">{words.empty}</p>
      ) : (
        <>
          <Into
            key={JSON.stringify(reading)}
            file={file}
            survey={survey.value}
            database={database}
            table={table}
            last={made}
            onStart={(target, made) => {
              setStarted(target);
              setMade(made);
            }}
          />
          <Preview survey={survey.value} />
        </>
      )}
    </>
  );
}

function ReadingFields({ reading, onChange }: { reading: Reading; onChange: (reading: Reading) => void }) {
  const select = (label: string, name: keyof Reading, options: [string, string][]) => (
    <SelectField
      label={label}
      value={reading[name]}
      options={options}
      onChange={(value) => onChange({ ...reading, [name]: value } as Reading)}
    />
  );
  return (
    <div class="row">
      {select(words.form, "form", Object.entries(words.forms))}
      {reading.form === "csv" && select(words.delimiter, "delimiter", Object.entries(words.delimiters))}
      {select(
        words.encoding,
        "encoding",
        words.encodings.map((name) => [name, name]),
      )}
    </div>
  );
}

const Preview = ({ survey: { columns, preview, rows, isWhole } }: { survey: Survey }) => (
  <section class="stack">
    <h2>
      {words.preview} <span class="dim">{words.seen(rows, isWhole)}</span>
    </h2>
    <div class="scroll" tabIndex={0} role="region" aria-label={words.preview}>
      <table class="list">
        <thead>
          <tr>
            {columns.map((name, at) => (
              <th scope="col" key={at}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {preview.map((cells, at) => (
            <tr key={at}>
              {columns.map((_, at) => (
                <td key={at}>
                  <span class={cells[at] == null ? "look-null" : "cut preview-cell"}>
                    {cells[at] ?? texts.record.null}
                  </span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </section>
);

/** Where the rows go: to a new table or to one that is there. */
function Into(props: IntoProps) {
  const { database, table } = props;
  const mayCreate = holder.value.access === "full";
  const list = tables.value[database]?.filter(({ kind, methods }) => kind !== "view" && methods.includes("POST"));
  const [chosen, setChosen] = useState(table ?? "");
  useEffect(() => {
    // The side bar tells of errors.
    if (!list) void loadTables(database).catch(() => undefined);
  }, []);
  return (
    <>
      <label>
        {words.target}
        <select value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
          {(mayCreate || chosen === "") && (
            <option value="">{mayCreate ? words.newTable : texts.webhooks.chooseTable}</option>
          )}
          {list?.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {chosen !== "" ? <IntoTable {...props} key={chosen} table={chosen} /> : mayCreate && <IntoNew {...props} />}
    </>
  );
}

const isBoolean = ({ type }: DraftColumn) => /^\s*(?:bool(?:ean)?|tinyint\s*\(1\))\s*$/i.test(type);

function IntoNew({ file, survey, database, last, onStart }: IntoProps) {
  const [draft, setDraft] = useState<Draft>(() => last ?? draftFor(survey, file.name));
  const [isAsking, setAsking] = useState(false);
  const edit = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const table = draft.name.trim();
  /** The field of each column of the file, as far as it was not removed. */
  const fields = survey.columns.map((_, at) => draft.columns.find(({ id }) => id === at)?.name.trim() ?? null);
  const booleans = survey.columns.map((_, at) => draft.columns.some((column) => column.id === at && isBoolean(column)));
  const { columns, reading } = survey;
  return (
    <>
      <p class="dim">
        {words.newColumns} {words.refusals}
      </p>
      <form
        class="design new"
        onSubmit={(event) => {
          event.preventDefault();
          setAsking(true);
        }}
      >
        <TextField
          label={tableWords.name}
          value={draft.name}
          required
          maxLength={64}
          isCode
          onChange={(name) => edit({ name })}
        />
        <Columns draft={draft} onChange={edit} />
        <Button type="submit" look="main" label={words.create} />
      </form>
      {isAsking && (
        <ChangeDialog
          heading={tableWords.change.createHeading}
          database={database}
          table={table}
          change={{ create: newTableOf(draft) }}
          losses={() => []}
          onDone={() =>
            onStart(
              { database, table, form: reading.form, columns, fields, booleans, onConflict: "", isNew: true },
              draft,
            )
          }
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}
