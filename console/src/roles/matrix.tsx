// A role as a matrix of tables and actions, and the parts of the role that are not of a table.
import { useState } from "preact/hooks";
import { type Column, Find, List, TextField } from "../manage/parts";
import { databases, loadTables, tables } from "../schema";
import { texts } from "../texts";
import { Button } from "../ui";
import { literalOf, literalText } from "./rules";
import { ACTIONS, entryFor, isObject, levelOf, type Members, tablesOf, withMember, withRule } from "./file";
import { TableRule } from "./table";

const words = texts.roles;

interface Props {
  role: Members;
  onChange: (role: Members) => void;
}

interface Line {
  name: string;
  hint?: string | undefined;
}

/** Returns the tables of the project, the patterns that stand for several of them, and what else the role names. */
function linesOf(role: Members): Line[] {
  const known = (databases.value ?? []).flatMap((database) => [
    { name: `${database}.*`, hint: words.allOf },
    ...(tables.value[database] ?? []).map(({ name, kind }) => ({
      name: `${database}.${name}`,
      hint: kind === "view" ? texts.side.view : undefined,
    })),
  ]);
  const lines: Line[] = [{ name: "*", hint: words.everything }, ...known];
  const isUnread = (name: string) =>
    databases.value?.includes(name.split(".", 1)[0]!) && !tables.value[name.split(".", 1)[0]!];
  const others = Object.keys(tablesOf(role)).filter((name) => !lines.some((line) => line.name === name));
  return [
    ...lines,
    ...others.map((name) => ({ name, hint: isUnread(name) || name === "*.*" ? undefined : words.unknown })),
  ];
}

export function Matrix({ role, onChange }: Props) {
  const [open, setOpen] = useState<string | null>(null);
  const [wanted, setWanted] = useState("");
  if (open !== null)
    return <TableRule key={open} role={role} name={open} onChange={onChange} onClose={() => setOpen(null)} />;
  const word = wanted.trim().toLowerCase();
  const lines = linesOf(role).filter(({ name }) => name.toLowerCase().includes(word));
  const columns: Column<Line>[] = [
    {
      head: words.table,
      isName: true,
      of: ({ name, hint }) => (
        <>
          <button type="button" class="link" aria-label={words.open(name)} onClick={() => setOpen(name)}>
            {name}
          </button>{" "}
          {hint && <span class="dim small">{hint}</span>}
        </>
      ),
    },
    ...ACTIONS.map(
      (action): Column<Line> => ({
        head: words.actions[action]!,
        of: ({ name }) => {
          const level = levelOf(entryFor(role, name)?.entry[action]);
          return (
            <label class="check">
              <input
                type="checkbox"
                aria-label={words.may(action, name)}
                checked={level !== "none"}
                onChange={({ currentTarget: { checked } }) =>
                  onChange(withRule(role, name, action, checked || undefined))
                }
              />
              {level === "limited" && <span class="dim">{words.limited}</span>}
            </label>
          );
        },
      }),
    ),
    {
      head: words.counts,
      of: ({ name }) => {
        const found = entryFor(role, name);
        const text = found ? (found.name === name ? words.own : words.from(found.name)) : words.denied;
        return <span class={found?.name === name ? "" : "dim"}>{text}</span>;
      },
    },
  ];
  const unread = databases.value?.filter((database) => !tables.value[database]) ?? [];
  return (
    <section class="stack">
      <div class="row">
        <h2>{words.tables}</h2>
        <Find label={words.find} value={wanted} onChange={setWanted} />
      </div>
      {lines.length === 0 ? (
        <p class="dim">{words.noTable}</p>
      ) : (
        <List label={words.tables} class="matrix" rows={lines} columns={columns} keyOf={({ name }) => name} />
      )}
      {unread.map((database) => (
        <div key={database}>
          <Button
            icon="table"
            look="quiet"
            label={words.showTables(database)}
            onClick={() => void loadTables(database).catch(() => undefined)}
          />
        </div>
      ))}
    </section>
  );
}

/** The limits of the whole role, and whether it may read by SQL. */
export function Limits({ role, onChange }: Props) {
  const set = (name: string, value: unknown) => onChange(withMember(role, name, value));
  const textOf = (name: string) => (role[name] === undefined || isObject(role[name]) ? "" : literalText(role[name]));
  return (
    <fieldset class="row limits">
      <legend>{words.limits}</legend>
      <TextField
        label={words.maxRows}
        value={textOf("maxRows")}
        placeholder="500"
        onChange={(text) => set("maxRows", text ? literalOf(text, "", true) : undefined)}
      />
      <TextField
        label={words.timeout}
        value={textOf("timeout")}
        placeholder="5s"
        onChange={(text) => set("timeout", text || undefined)}
      />
      <TextField
        label={words.rateLimit}
        value={textOf("rateLimit")}
        placeholder="100/1s"
        onChange={(text) => set("rateLimit", text || undefined)}
      />
      <label class="check" title={words.sqlHint}>
        <input
          type="checkbox"
          checked={role.sql === "read"}
          onChange={({ currentTarget: { checked } }) => set("sql", checked ? "read" : undefined)}
        />
        {words.sql}
      </label>
    </fieldset>
  );
}
