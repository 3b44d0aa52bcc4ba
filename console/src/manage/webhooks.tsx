// The webhooks of the project: their endpoints and whether these take what is sent; create one.
import { isSelkieError } from "@selkie/client";
import { useEffect, useState } from "preact/hooks";
import { api, keep, kept, route, to } from "../session";
import { texts } from "../texts";
import { Button, Problem, useAttempt, useLoad, useTitle } from "../ui";
import { at, everyPage } from "./keys";
import { type Column, List, Loaded, ShownOnce, TextField } from "./parts";
import { emptyDraft, type Draft, hasCondition, SubscriptionFields, subscriptionOf } from "./subscription";
import { Failing, OneWebhook, stateOf, UrlField, type Webhook } from "./webhook";

const words = texts.webhooks;
/** The name under which the tab keeps a webhook that is not created yet. */
const DRAFT = "webhook";
const NOTHING: { name: string; url: string; drafts?: Draft[] } = { name: "", url: "" };

export default function Webhooks() {
  const [name] = route.value.parts;
  useTitle(words.heading);
  return <div class="manage">{name === undefined ? <All /> : <OneWebhook name={name} />}</div>;
}

function All() {
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const webhooks = useLoad(() => everyPage<Webhook>("webhooks", ({ name }) => name), []);
  const onCreated = (created: Webhook) => {
    setAdding(false);
    setSecret(created.secret ?? null);
    webhooks.again();
  };
  const toggle = () => {
    setAdding(!isAdding);
    setSecret(null);
  };
  return (
    <>
      <div class="row">
        <h1>{words.heading}</h1>
        <span class="grow" />
        <Button icon="plus" label={words.add} expanded={isAdding} onClick={toggle} />
      </div>
      <p class="dim">{words.hint}</p>
      {isAdding && <Create onCreated={onCreated} />}
      {secret && <ShownOnce text={secret} hint={words.created} copy={words.copy} onDone={() => setSecret(null)} />}
      <Loaded load={webhooks}>
        {(list) => (
          <>
            {list.length === 0 && <p class="dim">{words.none}</p>}
            {list.map((webhook) => (
              <Failing key={webhook.name} webhook={webhook} />
            ))}
            {list.length > 0 && (
              <List
                label={words.heading}
                rows={list}
                columns={COLUMNS}
                keyOf={({ name }) => name}
                isOver={({ paused }) => paused}
              />
            )}
          </>
        )}
      </Loaded>
    </>
  );
}

const COLUMNS: Column<Webhook>[] = [
  { head: words.name, isName: true, of: ({ name }) => <a href={to("webhooks", [name])}>{name}</a> },
  { head: words.url, of: ({ url }) => url },
  { head: words.state, of: stateOf, class: ({ failingSince, paused }) => (failingSince && !paused ? "fault" : "") },
  { head: words.deliveredAt, of: ({ deliveredAt }) => (deliveredAt ? at(deliveredAt) : words.never) },
  { head: words.createdAt, of: ({ createdAt }) => at(createdAt) },
];

function Create({ onCreated }: { onCreated: (created: Webhook) => void }) {
  const [name, setName] = useState(() => kept(DRAFT, NOTHING).name);
  const [url, setUrl] = useState(() => kept(DRAFT, NOTHING).url);
  const [drafts, setDrafts] = useState(() => kept(DRAFT, NOTHING).drafts ?? [emptyDraft()]);
  const [isWrong, setWrong] = useState(false);
  const [error, attempt] = useAttempt();
  const submit = async (event: Event) => {
    event.preventDefault();
    const areConditions = drafts.every(hasCondition);
    setWrong(!areConditions);
    if (!areConditions) return;
    const body = { name, url, subscriptions: drafts.map(subscriptionOf) };
    await attempt(async () => {
      const created = await api().request<Webhook>("POST", "webhooks", { body, retries: 0 });
      keep(DRAFT, undefined);
      onCreated(created);
    });
  };
  // What was entered is there again when the form is opened again.
  useEffect(() => keep(DRAFT, { name, url, drafts }), [name, url, drafts]);
  const change = (at: number, to: Partial<Draft>) =>
    setDrafts(drafts.map((draft, index) => (index === at ? { ...draft, ...to } : draft)));
  return (
    <form onSubmit={(event) => void submit(event)}>
      <TextField
        label={words.name}
        value={name}
        required
        placeholder={words.nameHint}
        maxLength={100}
        onChange={setName}
      />
      <UrlField url={url} onChange={setUrl} />
      <fieldset class="wide stack">
        <legend>{words.tables}</legend>
        {drafts.map((draft, at) => (
          <SubscriptionFields
            key={at}
            draft={draft}
            isWrong={isWrong && !hasCondition(draft)}
            onChange={(to) => change(at, to)}
          >
            {drafts.length > 1 && (
              <Button
                icon="trash"
                bare
                label={words.removeTable(at + 1)}
                onClick={() => setDrafts(drafts.filter((_, index) => index !== at))}
              />
            )}
          </SubscriptionFields>
        ))}
        <div>
          <Button icon="plus" label={words.addTable} onClick={() => setDrafts([...drafts, emptyDraft()])} />
        </div>
      </fieldset>
      <Button type="submit" look="main" icon="plus" label={words.create} />
      {isWrong && (
        <p class="fault wide" role="alert">
          {words.notCondition}
        </p>
      )}
      {error !== null && <Problem error={error} />}
      {isSelkieError(error) && error.message.includes("to which webhooks are not delivered") && (
        <p class="wide">{words.privateAddress}</p>
      )}
    </form>
  );
}
