// The widths of the grid's columns, which the tab keeps for each table.
import { useState } from "preact/hooks";
import type { Field } from "../../schema";
import { keep, kept } from "../../session";
import { widthOf } from "../../values";

const WIDTH_MIN_PX = 56;

export interface Widths {
  /** In pixels. */
  of: (field: Field) => number;
  resize: (field: Field, width: number) => void;
}

export function useWidths(table: string): Widths {
  const [widths, setWidths] = useState<Record<string, number>>(() => kept(`widths:${table}`, {}));
  const resize = (field: Field, width: number) => {
    const next = { ...widths, [field.name]: Math.max(WIDTH_MIN_PX, width) };
    setWidths(next);
    keep(`widths:${table}`, next);
  };
  return { of: (field) => widths[field.name] ?? widthOf(field), resize };
}
