// The first page: what to do next, figures of the project, and all tables. Each part is left out if the key may not read it.
import { useState } from "preact/hooks";
import { everyPage } from "./manage/keys";
import { type Column, Find, List } from "./manage/parts";
import { databases, loadTables, tables } from "./schema";
import { api, holder, remember, remembered, to } from "./session";
import { texts } from "./texts";
import { Button, Icon, Popup, useLoad, useTitle } from "./ui";
import { sizeOf } from "./values";

const words = texts.home;
/** Tables of one list; a search finds the others. */
const SHOWN_TABLES = 300;
const BACKED_UP = "backed up";

interface Size {
  records: number;
  bytes: number;
}

interface Overview {
  keys: { role: string | null; state: string }[];
  roles: unknown[];
  issuers: unknown[];
  webhooks: { failingSince: string | null; paused: boolean }[];
  status: { figures: { requests: number; refused: number; failed: number }[] };
  /** Of each table such as `shop.orders`, by MariaDB's estimate. */
  sizes: Map<string, Size>;
}

const count = (number: number): string => number.toLocaleString("en");

/** Reads what only full keys may: undefined for each part that can't be read. */
async function overview(): Promise<Partial<Overview>> {
  if (holder.value.access !== "full") return {};
  const parts: { [Part in keyof Overview]: Promise<Overview[Part]> } = {
    keys: everyPage<Overview["keys"][number] & { id: string }>("keys", ({ id }) => id),
    roles: everyPage<{ name: string }>("roles", ({ name }) => name),
    issuers: api().request("GET", "issuers"),
    webhooks: everyPage<Overview["webhooks"][number] & { name: string }>("webhooks", ({ name }) => name),
    status: api().request("GET", "status"),
    sizes: sizes(),
  };
  const read = await Promise.all(
    Object.entries<Promise<unknown>>(parts).map(async ([name, part]) => [name, await part.catch(() => undefined)]),
  );
  return Object.fromEntries(read);
}

async function sizes(): Promise<Map<string, Size>> {
  const rows = await api().sql<{ name: string; records: unknown; bytes: unknown }[]>`
    SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) AS name, TABLE_ROWS AS records, DATA_LENGTH + INDEX_LENGTH AS bytes
    FROM information_schema.TABLES WHERE TABLE_SCHEMA <> 'information_schema' AND TABLE_ROWS IS NOT NULL`;
  return new Map(rows.map(({ name, records, bytes }) => [name, { records: Number(records), bytes: Number(bytes) }]));
}

export function Home() {
  const { value: found = {} } = useLoad(overview, [databases.value]);
  useTitle();
  return (
    <div class="home manage">
      <h1>{words.heading(holder.value.project)}</h1>
      <Steps {...found} />
      <Figures {...found} />
      <Tables sizes={found.sizes ?? new Map()} />
    </div>
  );
}

function Steps({ keys, roles, webhooks, issuers = [] }: Partial<Overview>) {
  const [isBackedUp, setBackedUp] = useState(() => remembered(BACKED_UP, false));
  if (!keys || !roles) return null;
  const isEmpty = databases.value?.every((database) => tables.value[database]?.length === 0);
  const hasAppKey = issuers.length > 0 || keys.some(({ role, state }) => role !== null && state === "live");
  const isFailing = webhooks?.some(({ failingSince, paused }) => failingSince && !paused);
  const steps = [
    isEmpty && (["table", to("sql")] as const),
    roles.length === 0 && (["role", to("roles", ["+"])] as const),
    !hasAppKey && (["key", to("keys")] as const),
    isFailing && (["webhook", to("webhooks")] as const),
    !isBackedUp && (["backup", undefined] as const),
  ].filter((step) => step !== false && step !== undefined);
  if (steps.length === 0) return null;
  return (
    <section class="stack">
      <h2>{words.next}</h2>
      <ul class="figures">
        {steps.map(([name, link]) => {
          const [title, why] = words.steps[name]!;
          return (
            <li class="figure" key={name}>
              {link ? <a href={link}>{title}</a> : <span>{title}</span>}
              <p class="dim">{why}</p>
              {name === "backup" && (
                <Button
                  label={words.backupDone}
                  onClick={() => {
                    remember(BACKED_UP, true);
                    setBackedUp(true);
                  }}
                />
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Figures({ keys, roles, webhooks, status, sizes }: Partial<Overview>) {
  const known = Object.values(tables.value).flat();
  const live = keys?.filter(({ state }) => state === "live");
  const ill = webhooks?.filter(({ failingSince, paused }) => failingSince || paused).length ?? 0;
  const total = (of: (size: Size) => number) => [...(sizes?.values() ?? [])].reduce((sum, size) => sum + of(size), 0);
  const sum = (of: "requests" | "refused" | "failed") => status?.figures.reduce((all, one) => all + one[of], 0) ?? 0;
  const shown = [
    [words.tables, count(known.filter(({ kind }) => kind === "table").length), words.withoutViews],
    sizes && [words.records, count(total(({ records }) => records)), words.estimate],
    sizes && [words.size, sizeOf(total(({ bytes }) => bytes)), words.sizeHint],
    live && [words.keys, count(live.length), words.ofRoles(live.filter(({ role }) => role !== null).length)],
    roles && [words.roles, count(roles.length)],
    webhooks && [words.webhooks, count(webhooks.length), ill > 0 && words.failing(ill)],
    status && [words.requests, count(sum("requests")), words.inMinutes(sum("refused") + sum("failed"))],
  ].filter((figure) => figure !== undefined);
  return (
    <section class="figures" aria-label={words.figures}>
      {shown.map(([name, value, more]) => (
        <p class="figure" key={String(name)}>
          {name}
          <strong>{value}</strong>
          {more && <span class="dim">{more}</span>}
        </p>
      ))}
    </section>
  );
}

/** Leads to the page of a new table; asks for the database if there are several. */
function NewTable() {
  const [first, ...others] = databases.value ?? [];
  if (first === undefined) return null;
  if (others.length === 0)
    return (
      <a class="button" href={to("create", [first])}>
        <Icon name="plus" />
        <span>{texts.side.create}</span>
      </a>
    );
  return (
    <Popup icon="plus" label={texts.side.create}>
      {() => (
        <ul>
          {databases.value?.map((database) => (
            <li key={database}>
              <a href={to("create", [database])}>{database}</a>
            </li>
          ))}
        </ul>
      )}
    </Popup>
  );
}

interface Line extends Partial<Size> {
  database: string;
  name: string;
  kind: string;
  comment: string;
}

function Tables({ sizes }: { sizes: Map<string, Size> }) {
  const [wanted, setWanted] = useState("");
  const [sort, setSort] = useState("name");
  const word = wanted.trim().toLowerCase();
  const lines = (databases.value ?? [])
    .flatMap((database) =>
      (tables.value[database] ?? []).map(
        (entry): Line => ({
          ...entry,
          database,
          ...sizes.get(`${database}.${entry.name}`),
        }),
      ),
    )
    .filter(({ database, name, comment }) => `${database}.${name} ${comment}`.toLowerCase().includes(word));
  if (sort !== "name") {
    const of = sort === "records" ? "records" : "bytes";
    lines.sort((one, other) => (other[of] ?? -1) - (one[of] ?? -1));
  }
  const unread = databases.value?.filter((database) => !tables.value[database]) ?? [];
  const columns: Column<Line>[] = [
    {
      head: words.table,
      isName: true,
      of: ({ database, name, kind }) => (
        <>
          <a href={to("data", [database, name])}>{name}</a>{" "}
          {kind === "view" && <span class="dim small">{texts.side.view}</span>}
        </>
      ),
    },
    {
      head: words.database,
      of: ({ database }) => (
        <>
          {database}{" "}
          <a
            href={to("diagram", [database])}
            title={texts.side.diagram}
            aria-label={`${texts.side.diagram}: ${database}`}
          >
            <Icon name="diagram" />
          </a>
        </>
      ),
    },
    ...(sizes.size > 0
      ? [
          {
            head: words.records,
            class: "right",
            of: ({ records }: Line) => (records === undefined ? "" : count(records)),
          },
          { head: words.size, class: "right", of: ({ bytes }: Line) => (bytes === undefined ? "" : sizeOf(bytes)) },
        ]
      : []),
    { head: words.comment, of: ({ comment }) => comment },
  ];
  return (
    <section class="stack">
      <div class="row">
        <h2>{words.tables}</h2>
        {holder.value.access === "full" && <NewTable />}
        <Find label={words.find} value={wanted} onChange={setWanted} />
        {sizes.size > 0 && (
          <select aria-label={words.sort} value={sort} onChange={(event) => setSort(event.currentTarget.value)}>
            {Object.entries(words.sorts).map(([name, text]) => (
              <option key={name} value={name}>
                {words.sort} {text}
              </option>
            ))}
          </select>
        )}
      </div>
      {databases.value?.length === 0 && <p>{texts.side.noDatabases}</p>}
      {word && lines.length === 0 && <p class="dim">{words.none}</p>}
      {lines.length > 0 && (
        <List
          label={words.tables}
          class="tables"
          rows={lines.slice(0, SHOWN_TABLES)}
          columns={columns}
          keyOf={({ database, name }) => `${database}.${name}`}
        />
      )}
      {lines.length > SHOWN_TABLES && <p class="dim">{words.more(lines.length - SHOWN_TABLES)}</p>}
      {unread.length > 0 && (
        <div>
          <Button
            icon="table"
            label={words.others(unread.length)}
            onClick={() => void Promise.allSettled(unread.map(loadTables))}
          />
        </div>
      )}
    </section>
  );
}
