// One record beside the grid: every field with its editor and errors, and links to related records.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { type Field, kindOf, type Relation, type Schema } from "../schema";
import { tableOf } from "../session";
import { texts } from "../texts";
import { Button, Icon, useLoad } from "../ui";
import { jsonText, label, type Row, show } from "../values";
import type { Edits } from "./edits";
import { Conflict } from "./edits-bar";
import { FieldInput } from "./input";
import type { Labels } from "./labels";
import { linkTo, type Query } from "./query";
import type { May } from "./view";

interface Props {
  database: string;
  table: string;
  schema: Schema;
  edits: Edits;
  labels: Labels;
  may: May;
  id: string;
  row: Row | undefined;
  focus: string | undefined;
  query: Query;
  setQuery: (query: Query) => void;
  onDuplicate: ((row: Row) => void) | undefined;
  onClose: () => void;
}

export function RecordPanel({
  database,
  table,
  schema,
  edits,
  labels,
  may,
  id,
  row: shown,
  focus,
  query,
  setQuery,
  onDuplicate,
  onClose,
}: Props) {
  const own = useRef<HTMLElement>(null);
  const edit = edits.byId.value.get(id);
  const isNew = id.startsWith("new:");
  // A record that was opened from the list of changes, or after a reload, is known by its edit until it is read.
  const isUnread = !shown && !isNew && may.read && edit !== undefined;
  const read = useLoad(
    async () => (isUnread ? ((await tableOf(`${database}.${table}`).get(edit.key)) as Row | null) : null),
    [id, isUnread],
  );
  const row = shown ?? (read.value && edit ? { ...read.value, ...edit.before } : undefined);
  const base: Row =
    row ?? (edit ? { ...Object.fromEntries(edits.keys.map((name, at) => [name, edit.key[at]])), ...edit.before } : {});
  const record: Row = isNew ? (edit?.data ?? {}) : { ...base, ...(edit?.kind === "update" ? edit.data : {}) };
  useLayoutEffect(() => {
    if (!focus) own.current?.querySelector<HTMLElement>("h2")?.focus();
    else
      own.current
        ?.querySelector<HTMLElement>(`[data-field="${CSS.escape(focus)}"] :is(input, select, textarea)`)
        ?.focus();
  }, [id, focus]);
  useEffect(() => labels.want([record]), [id, row]);
  void labels.version.value;
  useEffect(() => {
    if ((isNew || !row) && !edit) onClose();
  }, [isNew, !row, !edit]);
  const change = (field: Field, value: unknown) => {
    if (isNew) edits.changeNew(id, field.name, value);
    else if (value !== undefined) edits.change(base, field.name, value);
  };
  const isAllowed = isNew ? may.insert : may.update && edit?.kind !== "delete";
  const fields = isNew
    ? schema.schema.filter(({ writable }) => writable)
    : schema.schema.filter(({ name }) =>
        row === undefined ? name in base : name in row || edit?.data[name] !== undefined,
      );
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    onClose();
    document.querySelector<HTMLElement>(".grid")?.focus();
  };
  return (
    <aside
      class="record"
      ref={own}
      aria-label={isNew ? texts.record.adding : texts.record.heading}
      onKeyDown={onKeyDown}
    >
      <div class="record-head">
        <h2 tabIndex={-1}>
          {isNew
            ? texts.record.adding
            : `${table} ${edits.keys.map((name) => label(base[name] ?? edit?.key[edits.keys.indexOf(name)])).join(", ")}`}
        </h2>
        {row && !isNew && onDuplicate && (
          <Button icon="copy" bare label={texts.rows.duplicate} onClick={() => onDuplicate(row)} />
        )}
        {!isNew && may.remove && edit?.kind !== "delete" && (
          <Button icon="trash" bare label={texts.record.remove} look="danger" onClick={() => edits.remove(base)} />
        )}
        {edit && (
          <Button
            icon="undo"
            bare
            label={isNew ? texts.edits.drop : texts.record.reset}
            onClick={() => edits.drop(id)}
          />
        )}
        <Button icon="close" bare label={texts.record.close} look="quiet" onClick={onClose} />
      </div>
      {edit?.kind === "delete" && <p class="notice danger">{texts.record.removed}</p>}
      {edit?.theirs !== undefined && <Conflict edits={edits} edit={edit} />}
      {edit?.faults
        ?.filter(({ field }) => !field)
        .map((fault) => (
          <p class="fault" role="alert" key={fault.message}>
            {fault.message} {fault.hint}
          </p>
        ))}
      <div class="fields">
        {fields.map((field) => {
          const faults = edit?.faults?.filter((fault) => fault.field === field.name) ?? [];
          const isChanged = edit !== undefined && edit.kind === "update" && field.name in edit.data;
          const canEdit = isAllowed && field.writable;
          return (
            <div class={`field ${isChanged ? "changed" : ""}`} key={field.name} data-field={field.name}>
              <div class="field-head">
                <span class="field-name">{field.name}</span>
                {isNew && field.required && <span class="required">{texts.record.required}</span>}
                <span class="dim small">{field.type.length > 40 ? field.type.replace(/\(.*/, "") : field.type}</span>
                <span class="grow" />
                {field.references && record[field.name] !== null && record[field.name] !== undefined && (
                  <a
                    href={linkTo(database, field.references.table, [[field.references.field, record[field.name]]])}
                    aria-label={texts.table.follow(field.references.table)}
                    title={texts.table.follow(field.references.table)}
                  >
                    <Icon name="link" />
                  </a>
                )}
                {!isNew && typeof record[field.name] !== "object" && (
                  <Button
                    icon="filter"
                    bare
                    look="quiet"
                    label={`${texts.record.filterBy}: ${field.name}`}
                    onClick={() =>
                      setQuery({
                        ...query,
                        filters: [
                          ...query.filters,
                          { field: field.name, operator: "eq", value: label(record[field.name]) },
                        ],
                      })
                    }
                  />
                )}
              </div>
              {canEdit ? (
                <FieldInput
                  field={field}
                  value={record[field.name]}
                  labels={labels}
                  onChange={(value) => change(field, value)}
                  label={field.name}
                  focused={field.name === focus}
                  describedBy={faults.length ? `fault-${field.name}` : undefined}
                  invalid={faults.length > 0}
                />
              ) : (
                <p class={`plain look-${show(record[field.name], kindOf(field)).look}`}>
                  {labels.of(field, record[field.name])} {whole(record[field.name], field)}
                </p>
              )}
              {faults.length > 0 && (
                <p class="fault" role="alert" id={`fault-${field.name}`}>
                  {faults.map(({ message, hint }) => [message, hint].filter(Boolean).join(" ")).join(" ")}
                </p>
              )}
              {field.comment && <p class="dim small">{field.comment}</p>}
            </div>
          );
        })}
      </div>
      {!isNew && <Related database={database} relations={schema.relations} record={base} />}
    </aside>
  );
}

function whole(value: unknown, field: Field): string {
  if (value !== null && (typeof value === "object" || kindOf(field) === "json")) return jsonText(value, 2);
  return typeof value === "string" && value !== "" && kindOf(field) !== "bytes"
    ? value
    : show(value, kindOf(field)).text;
}

/** Links to the records that refer to this record by foreign keys, or through link tables. */
function Related({ database, relations, record }: { database: string; relations: Relation[]; record: Row }) {
  const many = relations.filter(
    ({ kind, fields }) =>
      kind === "many" && fields.every((field) => record[field] !== null && record[field] !== undefined),
  );
  if (many.length === 0) return null;
  return (
    <section class="related">
      <h3>{texts.record.related}</h3>
      <ul>
        {many.map((relation) => {
          // If the relation has a link table, `references` are fields of the link table.
          const values = relation.references.map((field, at): [string, unknown] => [
            field,
            record[relation.fields[at]!],
          ]);
          return (
            <li key={relation.name}>
              <a href={linkTo(database, relation.through ?? relation.table, values)}>
                <Icon name="link" />
                {relation.name}
              </a>
              {relation.through && (
                <span class="dim small">
                  {" "}
                  {texts.structure.through} {relation.through}
                </span>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
