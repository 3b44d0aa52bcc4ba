// The side bar: databases and tables by name, and the other views.
import { useState } from "preact/hooks";
import { databases, loadTables, tables } from "./schema";
import { holder, route, to } from "./session";
import { texts } from "./texts";
import { Button, Icon, type IconName, Spinner } from "./ui";

export function SideBar({ reload }: { reload: () => void }) {
  const [filter, setFilter] = useState("");
  const words = filter.trim().toLowerCase();
  const { view, parts } = route.value;
  const found = databases.value?.map((database) => ({
    database,
    list: tables.value[database]?.filter(({ name }) => name.toLowerCase().includes(words)),
  }));
  const link = (name: string, icon: IconName, label: string) => (
    <a href={to(name)} class="side-link" aria-current={view === name ? "page" : undefined}>
      <Icon name={icon} />
      {label}
    </a>
  );
  const icon = (name: string, icon: IconName, label: string, database: string) => (
    <a
      href={to(name, [database])}
      title={label}
      aria-label={`${label}: ${database}`}
      aria-current={view === name && parts[0] === database ? "page" : undefined}
    >
      <Icon name={icon} />
    </a>
  );
  return (
    <nav class="side" aria-label={texts.side.label}>
      <div class="side-views">
        {holder.value.access === "full" && link("sql", "sql", texts.side.sql)}
        {link("media", "media", texts.side.media)}
        {holder.value.access === "full" && (
          <>
            {link("keys", "key", texts.side.keys)}
            {link("roles", "lock", texts.side.roles)}
            {link("issuers", "user", texts.issuers.heading)}
            {link("webhooks", "hook", texts.side.webhooks)}
            {link("databases", "database", texts.databases.heading)}
            {link("activity", "chart", texts.side.activity)}
          </>
        )}
      </div>
      <div class="side-filter">
        <input
          type="search"
          placeholder={texts.side.filter}
          aria-label={texts.side.filter}
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <Button icon="reload" bare label={texts.side.refresh} look="quiet" onClick={reload} />
      </div>
      <div class="side-tables">
        {!found && <Spinner label={texts.table.loading} />}
        {found?.length === 0 && <p class="dim pad">{texts.side.noDatabases}</p>}
        {words && found?.every(({ list }) => list?.length === 0) && <p class="dim pad">{texts.side.none}</p>}
        {found
          ?.filter(({ database, list }) => !words || (list ? list.length > 0 : database.toLowerCase().includes(words)))
          .map(({ database, list }) => (
            <section key={database}>
              <h2>
                <span class="grow cut">{database}</span>
                {holder.value.access === "full" && (
                  <>
                    {icon("create", "plus", texts.side.create, database)}
                    {icon("code", "code", texts.side.code, database)}
                  </>
                )}
                {icon("diagram", "diagram", texts.side.diagram, database)}
              </h2>
              <ul>
                {list?.map(({ name, kind }) => {
                  const isCurrent =
                    parts[0] === database &&
                    parts[1] === name &&
                    ["data", "structure", "edit", "import"].includes(view);
                  return (
                    <li key={name}>
                      <a
                        href={to("data", [database, name])}
                        class="side-link"
                        aria-current={isCurrent ? "page" : undefined}
                      >
                        <Icon name={kind === "view" ? "view" : "table"} />
                        <span class="cut">{name}</span>
                        {kind === "view" && <span class="dim small">{texts.side.view}</span>}
                      </a>
                    </li>
                  );
                })}
              </ul>
              {!list && (
                <Button icon="table" look="quiet" label={texts.side.show} onClick={() => void loadTables(database)} />
              )}
              {list?.length === 0 && <p class="dim pad">{texts.side.noTables}</p>}
            </section>
          ))}
      </div>
    </nav>
  );
}
