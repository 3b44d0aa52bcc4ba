// The webhooks of the project: their endpoints and whether these take what is sent; create one.
import { useState } from "preact/hooks";
import { api, holder, route, to } from "../session";
import { texts } from "../texts";
import { Button, Problem, Spinner, useLoad, useTitle } from "../ui";
import { at, everyPage } from "./keys";
import { emptyDraft, type Draft, hasCondition, SubscriptionFields, subscriptionOf } from "./subscription";
import { Failing, OneWebhook, Secret, stateOf, type Webhook } from "./webhook";

const words = texts.webhooks;

export default function Webhooks() {
  const [name] = route.value.parts;
  useTitle(words.heading);
  if (holder.value.access !== "full") return <p class="pad">{texts.keys.full}</p>;
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
      {secret && <Secret text={secret} hint={words.created} onDone={() => setSecret(null)} />}
      {webhooks.error ? (
        <Problem error={webhooks.error} again={webhooks.again} />
      ) : !webhooks.value ? (
        <Spinner label={texts.table.loading} />
      ) : webhooks.value.length === 0 ? (
        <p class="dim">{words.none}</p>
      ) : (
        <List webhooks={webhooks.value} />
      )}
    </>
  );
}

function List({ webhooks }: { webhooks: Webhook[] }) {
  return (
    <>
      {webhooks.map((webhook) => (
        <Failing key={webhook.name} webhook={webhook} />
      ))}
      <div class="scroll" tabIndex={0} role="region" aria-label={words.heading}>
        <table class="list">
          <thead>
            <tr>
              {[words.name, words.url, words.state, words.deliveredAt, words.createdAt].map((name) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {webhooks.map((webhook) => (
              <tr key={webhook.name} class={webhook.paused ? "over" : ""}>
                <th scope="row">
                  <a href={to("webhooks", [webhook.name])}>{webhook.name}</a>
                </th>
                <td>{webhook.url}</td>
                <td class={webhook.failingSince && !webhook.paused ? "fault" : ""}>{stateOf(webhook)}</td>
                <td>{webhook.deliveredAt ? at(webhook.deliveredAt) : words.never}</td>
                <td>{at(webhook.createdAt)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Create({ onCreated }: { onCreated: (created: Webhook) => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [drafts, setDrafts] = useState(() => [emptyDraft()]);
  const [isWrong, setWrong] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const areConditions = drafts.every(hasCondition);
    setWrong(!areConditions);
    if (!areConditions) return;
    setError(null);
    try {
      const body = { name, url, subscriptions: drafts.map(subscriptionOf) };
      onCreated(await api().request("POST", "webhooks", { body, retries: 0 }));
    } catch (refused) {
      setError(refused);
    }
  };
  const change = (at: number, to: Partial<Draft>) =>
    setDrafts(drafts.map((draft, index) => (index === at ? { ...draft, ...to } : draft)));
  return (
    <form onSubmit={(event) => void submit(event)}>
      <label>
        {words.name}
        <input
          value={name}
          required
          placeholder={words.nameHint}
          maxLength={100}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label class="grow">
        {words.url}
        <input
          type="url"
          value={url}
          required
          placeholder="https://example.com/hook"
          maxLength={2048}
          onInput={(event) => setUrl(event.currentTarget.value)}
        />
      </label>
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
    </form>
  );
}
