// Figures of the last minutes, and the last requests: read again every few seconds while the page is seen.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { api } from "../session";
import { texts } from "../texts";
import { Button, Problem, Spinner, useLoad, useTitle } from "../ui";
import { sizeOf } from "../values";
import { everyPage } from "./keys";
import { type Column, Find, List } from "./parts";

const words = texts.activity;
const HEIGHT_PX = 170;
const SHOWN_SECONDS = 300;
/** Figures are of the last periods that ended, as many as these. */
const PERIODS_OF_NOW = 2;

interface Figure {
  at: number;
  requests: number;
  refused: number;
  failed: number;
  totalMicros: number;
  slowestMicros: number;
}

interface Status {
  periodSeconds: number;
  figures: Figure[];
  connections: { open: number; inUse: number; waiting: number };
}

interface Request {
  id: string;
  at: number;
  method: string;
  route: string;
  status: number;
  code: string | null;
  key: string | null;
  rows: number;
  bytes: number;
  cut: boolean;
  dbMicros: number;
  totalMicros: number;
}

const ms = (micros: number): string =>
  micros < 100_000 ? (micros / 1000).toFixed(1) : Math.round(micros / 1000).toLocaleString("en");
const rate = (count: number, seconds: number): string =>
  (count / seconds).toLocaleString("en", { maximumFractionDigits: 1 });

/** Returns a figure for each period of the last minutes; the service leaves out periods without requests. */
function filled({ figures, periodSeconds }: Status, now: number): Figure[] {
  const last = now - (now % periodSeconds) - periodSeconds;
  const known = new Map(figures.map((figure) => [figure.at, figure]));
  const none = { requests: 0, refused: 0, failed: 0, totalMicros: 0, slowestMicros: 0 };
  return Array.from({ length: SHOWN_SECONDS / periodSeconds }, (_, at) => {
    const begin = last - SHOWN_SECONDS + (at + 1) * periodSeconds;
    return known.get(begin) ?? { at: begin, ...none };
  });
}

export default function Activity() {
  const [status, setStatus] = useState<Status | null>(null);
  const [requests, setRequests] = useState<Request[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [isPaused, setPaused] = useState(false);
  const [round, setRound] = useState(0);
  useTitle(words.heading);
  useEffect(() => {
    if (isPaused) return;
    let timer: ReturnType<typeof setTimeout>;
    const control = new AbortController();
    const read = async () => {
      try {
        if (!document.hidden) {
          const [figures, last] = await Promise.all([
            api().request<Status>("GET", "status", { signal: control.signal }),
            api().request<Request[]>("GET", "requests", { signal: control.signal }),
          ]);
          setStatus(figures);
          setRequests(last);
          setError(null);
        }
        timer = setTimeout(() => void read(), (status?.periodSeconds ?? 5) * 1000);
      } catch (refused) {
        if (!control.signal.aborted) setError(refused);
      }
    };
    void read();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [isPaused, round]);
  return (
    <div class="manage">
      <div class="row">
        <h1>{words.heading}</h1>
        <span class="grow" />
        <Button
          icon={isPaused ? "play" : "stop"}
          label={isPaused ? words.go : words.pause}
          pressed={isPaused}
          onClick={() => setPaused(!isPaused)}
        />
      </div>
      <p class="dim">{words.hint}</p>
      {error !== null && <Problem error={error} again={() => setRound(round + 1)} />}
      {status ? <Figures status={status} /> : error === null && <Spinner label={texts.table.loading} />}
      {status && <Last requests={requests} />}
    </div>
  );
}

function Figures({ status }: { status: Status }) {
  const { periodSeconds, connections } = status;
  const figures = filled(status, Math.floor(Date.now() / 1000));
  const now = figures.slice(-PERIODS_OF_NOW);
  const sum = (of: (figure: Figure) => number) => now.reduce((total, figure) => total + of(figure), 0);
  const count = sum(({ requests }) => requests);
  const seconds = now.length * periodSeconds;
  const errors = sum(({ refused, failed }) => refused + failed);
  const shown = [
    [words.requests, rate(count, seconds)],
    [words.errors, rate(errors, seconds)],
    [words.mean, count ? `${ms(sum(({ totalMicros }) => totalMicros) / count)} ms` : "–"],
    [words.slowest, count ? `${ms(Math.max(...now.map(({ slowestMicros }) => slowestMicros)))} ms` : "–"],
    [words.connections, connections.inUse, words.ofOpen(connections.open, connections.waiting)],
  ];
  const xs = figures.map(({ at }) => at);
  const mean = ({ requests, totalMicros }: Figure) => (requests ? totalMicros / requests / 1000 : null);
  return (
    <>
      <div class="figures">
        {shown.map(([name, value, more]) => (
          <p class="figure" key={name}>
            {name}
            <strong>{value}</strong>
            {more && <span class="dim">{more}</span>}
          </p>
        ))}
      </div>
      <div class="charts">
        <Lines
          label={words.perSecond}
          names={[words.all, words.refused, words.failed]}
          xs={xs}
          lines={[
            figures.map(({ requests }) => requests / periodSeconds),
            figures.map(({ refused }) => refused / periodSeconds),
            figures.map(({ failed }) => failed / periodSeconds),
          ]}
        />
        <Lines
          label={words.times}
          names={[words.mean, words.slowest]}
          xs={xs}
          lines={[
            figures.map(mean),
            figures.map(({ requests, slowestMicros }) => (requests ? slowestMicros / 1000 : null)),
          ]}
        />
      </div>
    </>
  );
}

function Lines({
  label,
  names,
  xs,
  lines,
}: {
  label: string;
  names: string[];
  xs: number[];
  lines: (number | null)[][];
}) {
  const own = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  useEffect(() => {
    const box = own.current!;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const [ink, line] = dark ? ["#9aa7ab", "#2b3438"] : ["#586469", "#dfe3e4"];
    const colours = dark ? ["#4fc2b6", "#e0b252", "#f28b82"] : ["#0f6b64", "#9a6700", "#b3261e"];
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    chart.current = new uPlot(
      {
        width: box.clientWidth,
        height: HEIGHT_PX,
        legend: { live: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        // UTC, as in the list of requests.
        axes: [
          { ...axis, values: (_, splits) => splits.map((at) => new Date(at * 1000).toISOString().slice(11, 16)) },
          { ...axis, size: 56 },
        ],
        series: [
          {},
          ...names.map((name, at) => ({
            label: name,
            stroke: colours[at]!,
            width: 1.5,
            fill: at === 0 ? `${colours[0]}22` : undefined!,
            points: { show: false },
          })),
        ],
      },
      [xs, ...lines],
      box,
    );
    const resized = new ResizeObserver(() => chart.current?.setSize({ width: box.clientWidth, height: HEIGHT_PX }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      chart.current?.destroy();
    };
  }, []);
  useEffect(() => chart.current?.setData([xs, ...lines]), [xs, lines]);
  return (
    <section>
      <h2>{label}</h2>
      <div ref={own} role="img" aria-label={label} />
    </section>
  );
}

/** Returns whether the request may have changed something: a POST may also be a read. */
const isChange = ({ method, route }: Request): boolean =>
  !["GET", "HEAD", "OPTIONS"].includes(method) && !/\/(?:query|changes|sign)$/.test(route);

const columnsOf = (names: ReadonlyMap<string, string>): Column<Request>[] => [
  { head: words.time, of: ({ at }) => new Date(at).toISOString().slice(11, 23) },
  { head: words.request, of: ({ method, route }) => <code>{`${method} ${route}`}</code>, isName: true },
  {
    head: words.status,
    of: ({ status, code, cut }) => [status, code, cut && words.cut].filter(Boolean).join(" "),
    class: ({ status }) => (status >= 400 ? "fault" : ""),
  },
  { head: words.took, of: ({ totalMicros }) => `${ms(totalMicros)} ms`, class: "right" },
  { head: words.database, of: ({ dbMicros }) => `${ms(dbMicros)} ms`, class: "right" },
  { head: words.rows, of: ({ rows }) => rows.toLocaleString("en"), class: "right" },
  { head: words.size, of: ({ bytes }) => sizeOf(bytes), class: "right" },
  {
    head: words.key,
    of: ({ key }) =>
      key &&
      (names.get(key) ? <span title={key}>{names.get(key)}</span> : <code title={key}>{key.slice(0, 13)}…</code>),
  },
  { head: words.id, of: ({ id }) => <code>{id}</code> },
];

function Last({ requests }: { requests: Request[] }) {
  const [wanted, setWanted] = useState("");
  const [onlyChanges, setOnlyChanges] = useState(false);
  // A key without a name, or of a user, is shown by its id.
  const keys = useLoad(() => everyPage<{ id: string; name: string }>("keys", ({ id }) => id), []);
  const names = new Map(keys.value?.map(({ id, name }) => [id, name]));
  const word = wanted.trim().toLowerCase();
  const shown = requests.filter(
    (request) => request.id.toLowerCase().includes(word) && (!onlyChanges || isChange(request)),
  );
  return (
    <section class="stack">
      <div class="row">
        <h2>{words.last}</h2>
        <Find label={words.find} value={wanted} onChange={setWanted} />
        <label class="check">
          <input
            type="checkbox"
            checked={onlyChanges}
            onChange={(event) => setOnlyChanges(event.currentTarget.checked)}
          />
          {words.onlyChanges}
        </label>
      </div>
      {shown.length === 0 ? (
        <p class="dim">{word ? words.notFound : onlyChanges ? words.noChanges : words.empty}</p>
      ) : (
        <List
          label={words.last}
          class="requests"
          rows={shown}
          columns={columnsOf(names)}
          keyOf={({ id, at, route }) => `${id} ${at} ${route}`}
        />
      )}
    </section>
  );
}
