// Leads to the tables with unsaved edits, from any view.
import { to } from "./session";
import { unsaved } from "./table/unsaved";
import { texts } from "./texts";
import { Popup } from "./ui";

export const UnsavedTables = ({ onChoose }: { onChoose?: () => void }) => (
  <ul>
    {[...unsaved.value].map(([table, count]) => {
      const [database = "", ...rest] = table.split(".");
      return (
        <li key={table}>
          <a href={to("data", [database, rest.join(".")])} onClick={onChoose}>
            {table}
          </a>{" "}
          <span class="dim">{texts.edits.count(count)}</span>
        </li>
      );
    })}
  </ul>
);

export function Unsaved() {
  if (unsaved.value.size === 0) return null;
  const total = [...unsaved.value.values()].reduce((sum, count) => sum + count, 0);
  return (
    <Popup icon="file" label={texts.edits.unsaved} badge={total}>
      {(close) => <UnsavedTables onChoose={close} />}
    </Popup>
  );
}
