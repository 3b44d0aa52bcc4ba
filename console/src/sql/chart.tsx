// Shows a result as a chart: one column on the x axis, one column of numbers on the y axis.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { texts } from "../texts";
import { label, type Row } from "../values";

const HEIGHT_PX = 320;
/** Maximum points of a chart: a screen can't show more. */
const POINTS_MAX = 5_000;

const isNumber = (value: unknown) => value !== null && value !== "" && Number.isFinite(Number(value));

export default function Chart({ rows, fields }: { rows: Row[]; fields: string[] }) {
  const own = useRef<HTMLDivElement>(null);
  const numbers = useMemo(
    () =>
      fields.filter(
        (field) =>
          rows.some((row) => isNumber(row[field])) && rows.every((row) => row[field] === null || isNumber(row[field])),
      ),
    [rows],
  );
  const [x, setX] = useState(fields.find((field) => !numbers.includes(field)) ?? fields[0] ?? "");
  const [y, setY] = useState(numbers.find((field) => field !== x) ?? numbers[0] ?? "");
  const [bars, setBars] = useState(true);
  useEffect(() => {
    const box = own.current;
    if (!box || !y) return;
    const shown = rows.slice(0, POINTS_MAX);
    const isScale =
      numbers.includes(x) && shown.every((row, at) => at === 0 || Number(row[x]) >= Number(shown[at - 1]![x]));
    const xs = shown.map((row, at) => (isScale ? Number(row[x]) : at));
    const ys = shown.map((row) => (row[y] === null ? null : Number(row[y])));
    const style = getComputedStyle(document.documentElement);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const [ink, line, accent] = dark ? ["#9aa7ab", "#2b3438", "#4fc2b6"] : ["#586469", "#dfe3e4", "#0f6b64"];
    const axis = {
      stroke: ink,
      grid: { stroke: line, width: 1 },
      ticks: { stroke: line, width: 1 },
      font: `12px ${style.fontFamily || "sans-serif"}`,
    };
    const names = {
      ...axis,
      values: (_: uPlot, splits: number[]) =>
        splits.map((at) => (Number.isInteger(at) && shown[at] ? label(shown[at]![x]).slice(0, 14) : "")),
    };
    const chart = new uPlot(
      {
        width: box.clientWidth,
        height: HEIGHT_PX,
        scales: {
          x: { time: false, range: (_, least, most) => (bars ? [least - 0.6, most + 0.6] : [least, most]) },
          // A bar that does not begin at zero shows a wrong proportion.
          y: bars ? { range: (_, least, most) => [Math.min(0, least * 1.05), Math.max(0, most * 1.05)] } : {},
        },
        axes: [isScale ? axis : names, { ...axis, size: 64 }],
        series: [
          {
            label: x,
            ...(isScale ? {} : { value: (_: uPlot, at: number | null) => (at === null ? "" : label(shown[at]?.[x])) }),
          },
          {
            label: y,
            stroke: accent,
            width: 2,
            fill: bars ? accent : `${accent}22`,
            ...(bars ? { paths: uPlot.paths.bars!({ size: [0.7, 60] }), points: { show: false } } : {}),
          },
        ],
      },
      [xs, ys],
      box,
    );
    const resized = new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height: HEIGHT_PX }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      chart.destroy();
    };
  }, [rows, x, y, bars]);
  if (numbers.length === 0) return <p class="dim pad">{texts.sql.noChart}</p>;
  return (
    <div class="chart">
      <div class="row">
        <label>
          {texts.sql.x}{" "}
          <select value={x} onChange={(event) => setX(event.currentTarget.value)}>
            {fields.map((field) => (
              <option key={field}>{field}</option>
            ))}
          </select>
        </label>
        <label>
          {texts.sql.y}{" "}
          <select value={y} onChange={(event) => setY(event.currentTarget.value)}>
            {numbers.map((field) => (
              <option key={field}>{field}</option>
            ))}
          </select>
        </label>
        <label>
          {texts.sql.form}{" "}
          <select value={String(bars)} onChange={(event) => setBars(event.currentTarget.value === "true")}>
            <option value="true">{texts.sql.chart2}</option>
            <option value="false">{texts.sql.chart1}</option>
          </select>
        </label>
      </div>
      <div ref={own} role="img" aria-label={`${texts.sql.chart}: ${y}, ${x}`} />
    </div>
  );
}
