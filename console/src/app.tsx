// The frame of the page: the signed-in user, the side bar, and the view that the address names.
import { effect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { Home } from "./home";
import { answer } from "./oidc";
import { client, endTest, holder, isTesting, key, link, refusedKey, route, signOut } from "./session";
import { databases, forget, loadDatabases, tables } from "./schema";
import { SideBar } from "./sidebar";
import { LinkSignIn, SignIn } from "./signin";
import { Again, IssuerSignIn } from "./signin-issuer";
import { Keys } from "./manage/keys";
import { Media } from "./media";
import { unsaved } from "./table/unsaved";
import { TableView } from "./table/view";
import { texts } from "./texts";
import { Unsaved, UnsavedTables } from "./unsaved";
import { Button, Confirm, Icon, Lazy, Problem } from "./ui";

effect(() => {
  if (client.value) return;
  databases.value = null;
  tables.value = {};
  forget();
});

export function App() {
  if (answer.value) return <IssuerSignIn options={answer.value} />;
  if (link.value) return <LinkSignIn token={link.value} />;
  return key.value ? <Frame /> : <SignIn />;
}

function Frame() {
  const [error, setError] = useState<unknown>(null);
  const [isOpen, setOpen] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const load = () => {
    setError(null);
    forget();
    loadDatabases(route.value.parts[0]).catch(setError);
  };
  useEffect(load, [key.value]);
  useEffect(() => setOpen(false), [route.value]);
  const { access, project, name, issuer } = holder.value;
  // A user's token ends as a matter of course, and `Again` gets another one.
  const isRefused = refusedKey.value === key.value && !issuer;
  const leave = () => (unsaved.value.size > 0 ? setLeaving(true) : signOut());
  return (
    <div class={isOpen ? "frame open" : "frame"}>
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("content")?.focus();
        }}
      >
        {texts.skip}
      </a>
      <header class="top">
        <Button
          icon="menu"
          label={texts.side.menu}
          bare
          expanded={isOpen}
          class="menu"
          onClick={() => setOpen(!isOpen)}
        />
        <a class="brand" href="#/">
          <img src="/console/icon.svg" alt="" width="22" height="22" />
          {texts.title}
        </a>
        <span class="grow" />
        <a class="docs" href="/docs" target="_blank" rel="noopener">
          {texts.docs}
        </a>
        <Unsaved />
        <span class="who">
          <Icon name="key" />
          {[project, ...(issuer ? [name, texts.who.user[access]] : [texts.who.named(access, name)])]
            .filter(Boolean)
            .join(" · ")}
        </span>
        <Again />
        {isTesting() ? (
          <Button icon="undo" label={texts.roles.endTest} look="main" onClick={() => void endTest()} />
        ) : (
          <Button icon="out" label={texts.signOut} look="quiet" onClick={leave} />
        )}
      </header>
      {isLeaving && (
        <Confirm
          label={texts.signOut}
          text={texts.edits.leaving}
          onYes={() => signOut()}
          onClose={() => setLeaving(false)}
        >
          <UnsavedTables onChoose={() => setLeaving(false)} />
        </Confirm>
      )}
      {isRefused || <SideBar reload={load} />}
      <main id="content" tabIndex={-1}>
        {isRefused ? (
          <div class="problem" role="alert">
            <strong>{texts.refusedKey}</strong>
            <div class="row">
              {isTesting() || <Button icon="key" look="main" label={texts.otherKey} onClick={leave} />}
              <Button
                icon="reload"
                label={texts.error.again}
                onClick={() => {
                  refusedKey.value = null;
                  load();
                }}
              />
            </div>
          </div>
        ) : error ? (
          <Problem error={error} again={load} />
        ) : (
          <View />
        )}
      </main>
    </div>
  );
}

/** Views that need a full key. */
const MANAGING = ["keys", "roles", "issuers", "webhooks", "databases", "activity"];

function View() {
  const { view, parts } = route.value;
  const [database = "", table = ""] = parts;
  if (view === "data" || view === "structure" || view === "edit" || (view === "import" && table))
    return <TableView key={`${database}.${table}`} database={database} table={table} tab={view} />;
  if (view === "sql") return <Lazy key="sql" load={() => import("./sql/view")} />;
  if (view === "create") return <Lazy key={`create ${database}`} load={() => import("./design/editor")} />;
  if (view === "code") return <Lazy key={`code ${database}`} load={() => import("./design/code")} />;
  if (view === "import") return <Lazy key={`import ${database}`} load={() => import("./transfer/import")} />;
  if (view === "diagram") return <Lazy key={`diagram ${database}`} load={() => import("./diagram")} />;
  if (view === "media") return <Media />;
  if (MANAGING.includes(view) && holder.value.access !== "full") return <p class="pad">{texts.keys.full}</p>;
  if (view === "keys") return <Keys />;
  if (view === "roles") return <Lazy key={`roles ${database}`} load={() => import("./manage/roles")} />;
  if (view === "webhooks") return <Lazy key={`webhooks ${database}`} load={() => import("./manage/webhooks")} />;
  if (view === "issuers") return <Lazy key="issuers" load={() => import("./manage/issuers")} />;
  if (view === "databases") return <Lazy key="databases" load={() => import("./manage/databases")} />;
  if (view === "activity") return <Lazy key="activity" load={() => import("./manage/activity")} />;
  return <Home />;
}
