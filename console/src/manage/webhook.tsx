// One webhook: its state, what may be done with it, and its deliveries.
import { useEffect, useState } from "preact/hooks";
import { api, to } from "../session";
import { texts } from "../texts";
import { Button, Confirm, Icon, Problem, Spinner, useAttempt } from "../ui";
import { jsonText } from "../values";
import { Deliveries, type Delivery, Response } from "./deliveries";
import { at, everyPage } from "./keys";
import { ShownOnce, TextField } from "./parts";

const words = texts.webhooks;
/** For how long an endpoint fails before the page warns of it. */
const FAILING_TOLD_AFTER_MS = 24 * 60 * 60 * 1000;

interface Subscription {
  id?: string;
  database: string;
  table: string;
  query?: unknown;
  types?: string[];
}

export interface Webhook {
  name: string;
  url: string;
  subscriptions: Subscription[];
  paused: boolean;
  pauseReason?: string;
  /** Why changes can't be read now. */
  fault?: string;
  createdAt: string;
  deliveredAt: string | null;
  failingSince: string | null;
  /** In the answers that make or renew it. */
  secret?: string;
}

interface Attempt {
  delivered: boolean;
  status: number | null;
  response: string;
  millis: number;
}

export function stateOf({ paused, pauseReason, fault, failingSince }: Webhook): string {
  if (paused) return words.paused(pauseReason);
  if (fault) return fault;
  return failingSince ? words.failing(at(failingSince)) : words.delivering;
}

/** Warns of an endpoint that has failed for long. */
export function Failing({ webhook: { name, paused, failingSince } }: { webhook: Webhook }) {
  if (paused || !failingSince || Date.now() - Date.parse(failingSince) < FAILING_TOLD_AFTER_MS) return null;
  return (
    <p class="notice danger" role="alert">
      {words.failingLong(name, at(failingSince))}
    </p>
  );
}

export const UrlField = ({ url, onChange }: { url: string; onChange: (url: string) => void }) => (
  <TextField
    label={words.url}
    class="grow"
    type="url"
    value={url}
    required
    placeholder="https://example.com/hook"
    maxLength={2048}
    onChange={onChange}
  />
);

export function OneWebhook({ name }: { name: string }) {
  const [webhook, setWebhook] = useState<Webhook | null>(null);
  const [deliveries, setDeliveries] = useState<Delivery[]>([]);
  const [secret, setSecret] = useState<string | null>(null);
  const [tested, setTested] = useState<Attempt | "waiting" | null>(null);
  const [asking, setAsking] = useState<"renewal" | "removal" | null>(null);
  const [isSaved, setSaved] = useState(false);
  const [error, tryTo] = useAttempt();
  const path = `webhooks/${encodeURIComponent(name)}`;
  const attempt = async (work: () => Promise<void>) => {
    setSaved(false);
    setAsking(null);
    await tryTo(work);
  };
  const read = () =>
    attempt(async () => {
      const [own, list] = await Promise.all([
        api().request<Webhook>("GET", path),
        everyPage<Delivery>(`${path}/deliveries`, ({ id }) => String(id)),
      ]);
      setWebhook(own);
      setDeliveries(list);
    });
  useEffect(() => void read(), []);
  const set = (change: Partial<Webhook>) =>
    attempt(async () => {
      const { url, subscriptions, paused } = { ...webhook!, ...change };
      setWebhook(await api().request<Webhook>("PUT", path, { body: { url, subscriptions, paused } }));
      setSaved(true);
    });
  const renew = () =>
    attempt(async () => setSecret((await api().request<Webhook>("POST", `${path}/secret`, { retries: 0 })).secret!));
  const remove = () =>
    attempt(async () => {
      await api().request("DELETE", path);
      location.hash = to("webhooks");
    });
  const test = () =>
    attempt(async () => {
      setTested("waiting");
      const sending = api().request<Attempt>("POST", `${path}/test`, { retries: 0 });
      setTested(await sending.catch(() => null));
      await sending;
    });
  return (
    <>
      <a href={to("webhooks")}>{words.all}</a>
      <h1>{name}</h1>
      {error !== null && (webhook ? <Problem error={error} /> : <Problem error={error} again={() => void read()} />)}
      {!webhook && error === null && <Spinner label={texts.table.loading} />}
      {webhook && (
        <>
          <Failing webhook={webhook} />
          <p>
            {words.state}: <strong>{stateOf(webhook)}</strong>
          </p>
          <Url key={webhook.url} url={webhook.url} onSave={(url) => void set({ url })} />
          <Subscriptions list={webhook.subscriptions} />
          <div class="row">
            <Button
              icon={webhook.paused ? "play" : "stop"}
              label={webhook.paused ? words.resume : words.pause}
              onClick={() => void set({ paused: !webhook.paused })}
            />
            <Button icon="arrow" label={words.test} disabled={tested === "waiting"} onClick={() => void test()} />
            <Button icon="key" label={words.renew} onClick={() => setAsking("renewal")} />
            <Button icon="trash" look="danger" label={words.remove} onClick={() => setAsking("removal")} />
            {isSaved && (
              <span class="note" role="status">
                {words.saved}
              </span>
            )}
          </div>
          {webhook.paused && <p class="dim">{words.pauseHint}</p>}
          {secret && <ShownOnce text={secret} hint={words.renewed} copy={words.copy} onDone={() => setSecret(null)} />}
          {tested === "waiting" && <Spinner label={words.testing} />}
          {tested && tested !== "waiting" && (
            <div class={tested.delivered ? "notice tested" : "notice tested danger"} role="status">
              <p>{words.tested(tested.delivered, tested.status, tested.millis)}</p>
              <Response text={tested.response} />
            </div>
          )}
          <Deliveries path={path} list={deliveries} isPaused={webhook.paused} onReload={() => void read()} />
          {asking === "renewal" && (
            <Confirm
              label={words.renew}
              text={words.confirmRenewal(name)}
              look="main"
              onYes={() => void renew()}
              onClose={() => setAsking(null)}
            />
          )}
          {asking === "removal" && (
            <Confirm
              label={words.remove}
              text={words.confirmRemoval(name)}
              onYes={() => void remove()}
              onClose={() => setAsking(null)}
            />
          )}
        </>
      )}
    </>
  );
}

function Url({ url, onSave }: { url: string; onSave: (url: string) => void }) {
  const [wanted, setWanted] = useState(url);
  const submit = (event: Event) => {
    event.preventDefault();
    onSave(wanted);
  };
  return (
    <form onSubmit={submit}>
      <UrlField url={wanted} onChange={setWanted} />
      <Button type="submit" label={words.saveUrl} disabled={wanted === url} />
    </form>
  );
}

const Subscriptions = ({ list }: { list: Subscription[] }) => (
  <section class="stack">
    <h2>{words.tables}</h2>
    <ul>
      {list.map(({ id, database, table, query, types }, index) => (
        <li key={id ?? index}>
          <span class="tag">{id ?? index}</span>
          <a href={to("data", [database, table])}>
            <Icon name="table" /> {database}.{table}
          </a>
          {query !== undefined && <code> {jsonText(query)}</code>}
          {types && <span class="dim"> {types.map((type) => words.types[type]).join(", ")}</span>}
        </li>
      ))}
    </ul>
  </section>
);
