// The controls above a table: filters, search, columns, and the request as code.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { kindOf, type Schema } from "../schema";
import { Saved } from "../saved";
import { texts } from "../texts";
import { Button, Copy, Popup } from "../ui";
import { label } from "../values";
import { chooseLabel, chosenLabel, guessedLabel, type Labels } from "./labels";
import { asClient, asCurl, type Filter, isComplete, operatorOf, operatorsOf, type Query } from "./query";
import { ReferenceInput } from "./reference";
import { Search, textFields } from "./search";

const SHOWN_LIMIT = 100;
/** Stands for the guessed label in a list of fields, none of which can have this name. */
const GUESS = " ";

interface Props {
  database: string;
  table: string;
  schema: Schema;
  query: Query;
  keys: string[];
  labels: Labels;
  setQuery: (query: Query) => void;
}

export function ToolBar({ children, ...props }: Props & { children: ComponentChildren }) {
  const { schema, query } = props;
  const isSearchable = (schema.fullText ?? []).length > 0 || textFields(schema).length > 0;
  return (
    <div class="toolbar" role="toolbar" aria-label={props.table}>
      <Popup icon="filter" label={texts.table.filter} badge={query.filters.filter(isComplete).length || undefined} wide>
        {(close) => <Filters {...props} close={close} />}
      </Popup>
      {isSearchable && (
        <Popup icon="search" label={texts.table.search} badge={query.search ? 1 : undefined}>
          {(close) => <Search {...props} close={close} />}
        </Popup>
      )}
      <Popup icon="columns" label={texts.table.columns} badge={query.columns?.length}>
        {() => <Columns {...props} />}
      </Popup>
      <Saved
        label={texts.views.label}
        storedAs={`views:${props.database}.${props.table}`}
        nameLabel={texts.views.name}
        hint={texts.views.none}
        present={() => ({ query })}
        onChoose={(one) => props.setQuery(one.query)}
        describe={(one) => <code>{summaryOf(one.query)}</code>}
      />
      <Popup icon="code" label={texts.table.code} wide bare>
        {() => <Code {...props} />}
      </Popup>
      {children}
    </div>
  );
}

const summaryOf = ({ filters, search, order }: Query): string =>
  [
    ...filters.map(({ field, operator, value }) => `${field} ${operatorOf(operator).label} ${value}`),
    ...(search ? [search.searchTerm] : []),
    ...order.map(({ field, strategy }) => `${field} ${strategy}`),
  ].join(", ") || texts.views.all;

type PanelProps = Props & { close: () => void };

function Filters({ schema, query, labels, setQuery, close }: PanelProps) {
  const first = schema.schema[0]!.name;
  const blank = (field = first): Filter => ({ field, operator: operatorsOf(kind(field))[0]!.name, value: "" });
  const kind = (name: string) => {
    const field = schema.schema.find((one) => one.name === name);
    return field ? kindOf(field) : "text";
  };
  const [filters, setFilters] = useState<Filter[]>(query.filters.length ? query.filters : [blank()]);
  const [any, setAny] = useState(query.any);
  const change = (at: number, part: Partial<Filter>) =>
    setFilters(filters.map((one, index) => (index === at ? { ...one, ...part } : one)));
  const submit = (event: Event) => {
    event.preventDefault();
    // In a text field, an empty input means the empty text; in other fields it means that the value is still missing.
    const hasValue = ({ field, operator, value }: Filter) =>
      value !== "" || operatorOf(operator).values === "none" || ["text", "long", "enum"].includes(kind(field));
    setQuery({ ...query, filters: filters.filter((filter) => isComplete(filter) && hasValue(filter)), any });
    close();
  };
  return (
    <form class="filters" onSubmit={submit}>
      <label class="inline">
        {texts.table.match}{" "}
        <select value={String(any)} onChange={(event) => setAny(event.currentTarget.value === "true")}>
          <option value="false">{texts.table.all}</option>
          <option value="true">{texts.table.any}</option>
        </select>
      </label>
      {filters.map((filter, at) => {
        const operators = operatorsOf(kind(filter.field));
        const { values } = operatorOf(filter.operator);
        const field = schema.schema.find(({ name }) => name === filter.field);
        const members = field?.values;
        const isOfRecord = field && ["eq", "ne"].includes(filter.operator) && labels.isReference(field);
        return (
          <div class="filter" key={at}>
            <select
              aria-label={`${texts.table.field} ${at + 1}`}
              value={filter.field}
              onChange={(event) => change(at, { ...blank(event.currentTarget.value), value: filter.value })}
            >
              {schema.schema.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
            <select
              aria-label={`${texts.table.operator} ${at + 1}`}
              value={filter.operator}
              onChange={(event) => change(at, { operator: event.currentTarget.value })}
            >
              {operators.map(({ name, label }) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </select>
            {isOfRecord ? (
              <ReferenceInput
                field={field}
                value={filter.value === "" ? undefined : filter.value}
                labels={labels}
                label={`${texts.table.value} ${at + 1}`}
                onChange={(value) => change(at, { value: value === undefined || value === null ? "" : label(value) })}
              />
            ) : values !== "none" ? (
              <input
                aria-label={`${texts.table.value} ${at + 1}`}
                value={filter.value}
                list={members ? `members-${at}` : undefined}
                placeholder={values === "list" ? texts.table.listHint : values === "two" ? texts.table.twoHint : ""}
                onInput={(event) => change(at, { value: event.currentTarget.value })}
              />
            ) : (
              <span class="grow" />
            )}
            {members && (
              <datalist id={`members-${at}`}>
                {members.map((member) => (
                  <option key={member} value={member} />
                ))}
              </datalist>
            )}
            <Button
              icon="close"
              bare
              look="quiet"
              label={texts.table.removeFilter}
              onClick={() => setFilters(filters.filter((_, index) => index !== at))}
            />
          </div>
        );
      })}
      <div class="row">
        <Button icon="plus" label={texts.table.addFilter} onClick={() => setFilters([...filters, blank()])} />
        <span class="grow" />
        <Button
          label={texts.table.clear}
          onClick={() => {
            setQuery({ ...query, filters: [], any: false });
            close();
          }}
        />
        <Button type="submit" look="main" label={texts.table.apply} />
      </div>
    </form>
  );
}

function Columns({ database, table, schema, query, setQuery }: Props) {
  const [called, setCalled] = useState(() => chosenLabel(database, table));
  const call = (field: string | undefined) => {
    chooseLabel(database, table, field);
    setCalled(field);
  };
  const names = schema.schema.map(({ name }) => name);
  const visible = query.columns ?? schema.schema.filter(({ invisible }) => !invisible).map(({ name }) => name);
  const toggle = (name: string, isOn: boolean) => {
    const next = names.filter((one) => (one === name ? isOn : visible.includes(one)));
    if (next.length > 0) setQuery({ ...query, columns: next.length === names.length ? null : next });
  };
  return (
    <div class="stack">
      <fieldset>
        <legend>{texts.table.columns}</legend>
        {names.map((name) => (
          <label class="check" key={name}>
            <input
              type="checkbox"
              checked={visible.includes(name)}
              onChange={(event) => toggle(name, event.currentTarget.checked)}
            />
            {name}
          </label>
        ))}
      </fieldset>
      <Button label={texts.table.showAll} onClick={() => setQuery({ ...query, columns: null })} />
      <label class="stack">
        {texts.reference.label}
        <select
          value={called ?? GUESS}
          title={texts.reference.labelHint}
          onChange={({ currentTarget: { value } }) => call(value === GUESS ? undefined : value)}
        >
          <option value={GUESS}>{texts.reference.guess(guessedLabel(schema))}</option>
          <option value="">{texts.reference.key}</option>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Code({ database, table, query, keys }: Props) {
  const [form, setForm] = useState<"curl" | "client">("curl");
  const text = (form === "curl" ? asCurl : asClient)(database, table, query, keys, SHOWN_LIMIT);
  return (
    <div class="stack">
      <div class="row">
        <Button label={texts.table.curl} pressed={form === "curl"} onClick={() => setForm("curl")} />
        <Button label={texts.table.client} pressed={form === "client"} onClick={() => setForm("client")} />
        <span class="grow" />
        <Copy text={text} label={texts.table.copy} done={texts.table.copied} />
      </div>
      <pre class="code" tabIndex={0}>
        {text}
      </pre>
    </div>
  );
}
