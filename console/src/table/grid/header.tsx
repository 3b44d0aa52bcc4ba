// The head of a column of the grid: sorts by the column, and changes its width.
import type { Field } from "../../schema";
import { texts } from "../../texts";
import { Icon } from "../../ui";
import type { Query } from "../query";
import type { Widths } from "./widths";

interface Props {
  field: Field;
  column: number;
  query: Query;
  setQuery: (query: Query) => void;
  widths: Widths;
}

export function ColumnHeader({ field, column, query, setQuery, widths }: Props) {
  const order = query.order.find((one) => one.field === field.name)?.strategy;
  const sort = (isMore: boolean) => {
    const others = isMore ? query.order.filter((one) => one.field !== field.name) : [];
    const strategy = order ? "DESC" : "ASC";
    setQuery({ ...query, order: order === "DESC" ? others : [...others, { field: field.name, strategy }] });
  };
  const drag = (event: PointerEvent) => {
    event.preventDefault();
    const from = event.clientX;
    const width = widths.of(field);
    const onMove = (moved: PointerEvent) => widths.resize(field, width + moved.clientX - from);
    const stop = () => {
      removeEventListener("pointermove", onMove);
      removeEventListener("pointerup", stop);
    };
    addEventListener("pointermove", onMove);
    addEventListener("pointerup", stop);
  };
  return (
    <div
      class="cell"
      role="columnheader"
      aria-colindex={column + 2}
      aria-sort={order === "ASC" ? "ascending" : order === "DESC" ? "descending" : "none"}
    >
      <button
        type="button"
        class="sort"
        title={`${field.name} ${field.type}${field.comment ? `\n${field.comment}` : ""}`}
        aria-label={texts.table.sort(field.name)}
        onClick={(event) => sort(event.shiftKey)}
      >
        <span class="cut">{field.name}</span>
        {field.primaryKey && <Icon name="key" />}
        {order && <Icon name={order === "ASC" ? "up" : "down"} />}
      </button>
      <span class="grip" aria-hidden="true" onPointerDown={drag} />
    </div>
  );
}
