// Which triggers and views mention columns that a change renames or drops. MariaDB makes the change all the same, and
// what uses such a column fails from then on.
import { api, to } from "../session";
import { Problem, useLoad } from "../ui";
import { words } from "./words";

interface Program {
  kind: "trigger" | "view";
  name: string;
  /** The trigger's table; empty of a view. */
  table: string;
  text: string;
}

/** Returns whether the text has the name as a word. */
const has = (text: string, name: string) =>
  new RegExp(`(?<![\\w$])${name.replace(/[^\w\s]/g, "\\$&")}(?![\\w$])`, "i").test(text);

const programs = (database: string) => api().sql<Program[]>`
  SELECT 'trigger' AS kind, TRIGGER_NAME AS name, EVENT_OBJECT_TABLE AS \`table\`, ACTION_STATEMENT AS text
  FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ${database}
  UNION ALL SELECT 'view', TABLE_NAME, '', VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ${database}`;

interface Props {
  database: string;
  table: string;
  columns: readonly string[];
}

export function Mentions({ database, table, columns }: Props) {
  const { value, error } = useLoad(async () => (columns.length > 0 ? programs(database) : []), []);
  if (error) return <Problem error={error} />;
  const found = value?.flatMap((program) => {
    const isOfTable = program.table === table || has(program.text, table);
    const named = columns.filter((column) => isOfTable && has(program.text, column));
    return named.length > 0 ? [{ ...program, named }] : [];
  });
  return (
    <>
      {found?.map(({ kind, name, named }) => (
        <p class="notice danger" key={`${kind} ${name}`}>
          <a href={to("code", [database, kind, name])}>{words.code.called(words.code.one[kind], name)}</a>{" "}
          {words.change.mentions(named.join(", "))}
        </p>
      ))}
    </>
  );
}
