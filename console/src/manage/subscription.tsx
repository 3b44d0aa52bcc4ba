// The fields of a form for one subscription of a webhook: table, condition, types of changes.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { databases, loadTables, tables } from "../schema";
import { texts } from "../texts";
import { parsed } from "../values";
import { claimsOf } from "./keys";
import { TextField } from "./parts";

const words = texts.webhooks;
const TYPES = Object.keys(words.types);

/** A subscription as it is entered. */
export interface Draft {
  database: string;
  table: string;
  condition: string;
  types: string[];
}

export const emptyDraft = (): Draft => ({
  database: databases.value?.[0] ?? "",
  table: "",
  condition: "",
  types: TYPES,
});

export const hasCondition = ({ condition }: Draft): boolean => claimsOf(condition.trim()) !== undefined;

/** Returns the subscription that the API takes. */
export const subscriptionOf = ({ database, table, condition, types }: Draft) => ({
  database,
  table,
  ...(condition.trim() ? { query: parsed(condition, "json") } : {}),
  ...(types.length < TYPES.length ? { types } : {}),
});

export function SubscriptionFields({
  draft,
  isWrong,
  onChange,
  children,
}: {
  draft: Draft;
  isWrong: boolean;
  onChange: (to: Partial<Draft>) => void;
  children?: ComponentChildren;
}) {
  const { database, table, condition, types } = draft;
  const isKnown = database in tables.value;
  useEffect(() => {
    // A table can't be chosen until they are read; the side bar tells of errors.
    if (database && !isKnown) void loadTables(database).catch(() => undefined);
  }, [database]);
  return (
    <div class="row subscription">
      <label>
        {words.database}
        <select value={database} onChange={(event) => onChange({ database: event.currentTarget.value, table: "" })}>
          {databases.value?.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        {words.table}
        <select value={table} required onChange={(event) => onChange({ table: event.currentTarget.value })}>
          <option value="">{words.chooseTable}</option>
          {tables.value[database]
            ?.filter(({ kind }) => kind !== "view")
            .map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
        </select>
      </label>
      <TextField
        label={words.condition}
        class="grow"
        isCode
        value={condition}
        placeholder='{"status": "paid"}'
        title={words.conditionHint}
        isWrong={isWrong}
        onChange={(condition) => onChange({ condition })}
      />
      {TYPES.map((type) => (
        <label class="check" key={type}>
          <input
            type="checkbox"
            checked={types.includes(type)}
            onChange={({ currentTarget: { checked } }) =>
              onChange({ types: TYPES.filter((other) => (other === type ? checked : types.includes(other))) })
            }
          />
          {words.types[type]}
        </label>
      ))}
      {children}
    </div>
  );
}
