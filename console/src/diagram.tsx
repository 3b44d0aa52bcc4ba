// The tables of a database and the foreign keys between them, laid out by dagre.
import { Graph, layout } from "@dagrejs/dagre";
import { useMemo, useState } from "preact/hooks";
import { loadTables, type Schema, schemaOf, tables } from "./schema";
import { route, to } from "./session";
import { texts } from "./texts";
import { Button, Problem, Spinner, useLoad, useTitle } from "./ui";

const words = texts.diagram;
const WIDTH_PX = 210;
const HEAD_PX = 30;
const FIELD_PX = 20;
/** Maximum fields of a table that are shown; keys come first. */
const FIELDS_MAX = 10;

interface Entry {
  name: string;
  schema: Schema;
}

export default function Diagram() {
  const database = route.value.parts[0] ?? "";
  const list = tables.value[database];
  const [zoom, setZoom] = useState(1);
  useTitle(words.heading(database));
  const { value, error, again } = useLoad(async () => {
    if (list)
      return Promise.all(
        list.map(async ({ name }): Promise<Entry> => ({ name, schema: await schemaOf(database, name) })),
      );
    await loadTables(database);
    return undefined;
  }, [database, list]);
  const drawn = useMemo(() => (value ? draw(value) : null), [value]);
  return (
    <div class="diagram">
      <div class="head">
        <h1>{words.heading(database)}</h1>
        <span class="grow" />
        <Button label={words.zoomOut} onClick={() => setZoom(Math.max(0.3, zoom / 1.2))} />
        <Button label={words.zoomIn} onClick={() => setZoom(Math.min(2, zoom * 1.2))} />
      </div>
      {error ? (
        <Problem error={error} again={again} />
      ) : !drawn ? (
        <Spinner label={words.loading} />
      ) : drawn.nodes.length === 0 ? (
        <p class="pad">{words.empty}</p>
      ) : (
        <div class="canvas" tabIndex={0} role="group" aria-label={words.label}>
          <svg viewBox={`0 0 ${drawn.width} ${drawn.height}`} width={drawn.width * zoom} height={drawn.height * zoom}>
            <defs>
              <marker
                id="head"
                viewBox="0 0 10 10"
                refX="9"
                refY="5"
                markerWidth="7"
                markerHeight="7"
                orient="auto-start-reverse"
              >
                <path d="M0 0L10 5L0 10z" class="arrow" />
              </marker>
            </defs>
            {drawn.edges.map(({ id, path, label }) => (
              <path key={id} d={path} class="edge" marker-end="url(#head)">
                <title>{label}</title>
              </path>
            ))}
            {drawn.nodes.map(({ entry, x, y, height, fields, more }) => (
              <a key={entry.name} href={to("structure", [database, entry.name])}>
                <g transform={`translate(${x} ${y})`}>
                  <rect width={WIDTH_PX} height={height} rx="7" class="box" />
                  <path d={`M0 ${HEAD_PX}H${WIDTH_PX}`} class="rule" />
                  <text x="10" y="20" class="name">
                    {entry.name}
                  </text>
                  {fields.map((field, at) => (
                    <text
                      key={field.name}
                      x="10"
                      y={HEAD_PX + 15 + at * FIELD_PX}
                      class={field.primaryKey ? "field key" : field.references ? "field link" : "field"}
                    >
                      {field.name}
                      <tspan x={WIDTH_PX - 10} text-anchor="end" class="type">
                        {(field.jsonType ?? field.type).replace(/\(.*/, "")}
                      </tspan>
                    </text>
                  ))}
                  {more > 0 && (
                    <text x="10" y={HEAD_PX + 15 + fields.length * FIELD_PX} class="type">
                      {words.more(more)}
                    </text>
                  )}
                </g>
              </a>
            ))}
          </svg>
        </div>
      )}
    </div>
  );
}

function draw(entries: Entry[]) {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 36, ranksep: 90, marginx: 20, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  const boxes = entries.map((entry) => {
    const rank = (field: Schema["schema"][number]) => (field.primaryKey ? 0 : field.references ? 1 : 2);
    const sorted = [...entry.schema.schema].sort((one, other) => rank(one) - rank(other));
    const fields = sorted.slice(0, FIELDS_MAX);
    const more = sorted.length - fields.length;
    const height = HEAD_PX + (fields.length + (more ? 1 : 0)) * FIELD_PX + 8;
    graph.setNode(entry.name, { width: WIDTH_PX, height });
    return { entry, fields, more, height };
  });
  const names = new Set(entries.map(({ name }) => name));
  for (const { name, schema } of entries) {
    for (const relation of schema.relations) {
      if (relation.kind === "one" && relation.table !== name && names.has(relation.table)) {
        graph.setEdge(
          name,
          relation.table,
          { label: `${name}.${relation.fields.join(", ")} → ${relation.table}.${relation.references.join(", ")}` },
          relation.name,
        );
      }
    }
  }
  layout(graph);
  const placed = boxes.map((box) => {
    const { x, y } = graph.node(box.entry.name) as unknown as { x: number; y: number };
    return { ...box, x: x - WIDTH_PX / 2, y: y - box.height / 2 };
  });
  // The relation of a table to itself is drawn here, since dagre would draw it across other tables.
  const loops = placed.flatMap(({ entry, x, y }) =>
    entry.schema.relations
      .filter(({ kind, table }) => kind === "one" && table === entry.name)
      .map((relation) => ({
        id: `${entry.name} ${relation.name}`,
        label: `${entry.name}.${relation.fields.join(", ")} → ${entry.name}.${relation.references.join(", ")}`,
        path: `M${x + WIDTH_PX} ${y + 44}h18v-30h-18`,
      })),
  );
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    nodes: placed,
    edges: loops.concat(
      graph.edges().map((edge) => {
        const { points, label } = graph.edge(edge) as unknown as { points: { x: number; y: number }[]; label: string };
        return { id: `${edge.v} ${edge.name}`, label, path: smooth(points) };
      }),
    ),
  };
}

/** Returns a path through the points, with round corners. */
function smooth(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first || rest.length === 0) return "";
  const parts = rest.slice(0, -1).map((point, at) => {
    const next = rest[at + 1]!;
    const isLast = at === rest.length - 2;
    return `Q${point.x} ${point.y} ${isLast ? next.x : (point.x + next.x) / 2} ${isLast ? next.y : (point.y + next.y) / 2}`;
  });
  const last = rest.at(-1)!;
  return `M${first.x} ${first.y}${parts.join("") || `L${last.x} ${last.y}`}`;
}
