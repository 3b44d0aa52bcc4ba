// The deliveries of a webhook: how they went; one delivery's request and response; send it again.
import { useState } from "preact/hooks";
import { api } from "../session";
import { texts } from "../texts";
import { Button, Dialog, Problem, useAttempt } from "../ui";
import { jsonText } from "../values";
import { type Column, List } from "./parts";

const words = texts.webhooks;

export interface Delivery {
  id: number;
  messageId: string;
  state: string;
  changes: number;
  attempts: number;
  status: number | null;
  response: string;
  millis: number;
  attemptedAt: string;
  nextAttemptAt: string | null;
  /** In the answer for one delivery, unless it was too long to be kept. */
  request?: unknown;
}

const second = (time: string): string => time.slice(0, 19).replace("T", " ");
const statusOf = ({ status }: Delivery): string => (status === null ? words.noAnswer : String(status));
const tookOf = ({ millis }: Delivery): string => `${millis.toLocaleString("en")} ms`;
const nextOf = ({ state, nextAttemptAt }: Delivery, isPaused: boolean): string =>
  state === "waiting" && nextAttemptAt && !isPaused ? second(nextAttemptAt) : "";

export const Response = ({ text }: { text: string }) =>
  text ? (
    <pre class="code wire" tabIndex={0}>
      {text}
    </pre>
  ) : (
    <p class="dim">{words.emptyResponse}</p>
  );

export function Deliveries({
  path,
  list,
  isPaused,
  onReload,
}: {
  path: string;
  list: Delivery[];
  isPaused: boolean;
  onReload: () => void;
}) {
  const [open, setOpen] = useState<Delivery | null>(null);
  const [error, attempt] = useAttempt();
  const one = (method: "GET" | "POST", id: number) =>
    attempt(async () => setOpen(await api().request<Delivery>(method, `${path}/deliveries/${id}`, { retries: 0 })));
  const again = async (id: number) => {
    await one("POST", id);
    onReload();
  };
  const columns: Column<Delivery>[] = [
    {
      head: words.id,
      isName: true,
      of: ({ id }) => (
        <button type="button" class="link" aria-label={words.open(id)} onClick={() => void one("GET", id)}>
          {id}
        </button>
      ),
    },
    {
      head: words.state,
      of: ({ state }) => words.states[state] ?? state,
      class: ({ state }) => (state === "delivered" ? "" : "fault"),
    },
    { head: words.changes, of: ({ changes }) => changes.toLocaleString("en"), class: "right" },
    { head: words.attempts, of: ({ attempts }) => attempts, class: "right" },
    { head: words.status, of: statusOf },
    { head: words.took, of: tookOf, class: "right" },
    { head: words.attemptedAt, of: ({ attemptedAt }) => second(attemptedAt) },
    { head: words.nextAttemptAt, of: (delivery) => nextOf(delivery, isPaused) },
  ];
  return (
    <section class="stack">
      <div class="row">
        <h2>{words.deliveries}</h2>
        <Button icon="reload" label={words.reload} onClick={onReload} />
      </div>
      <p class="dim">{words.deliveriesHint}</p>
      {!open && error !== null && <Problem error={error} />}
      {list.length === 0 ? (
        <p class="dim">{words.noDeliveries}</p>
      ) : (
        <List label={words.deliveries} class="deliveries" rows={list} columns={columns} keyOf={({ id }) => id} />
      )}
      {open && (
        <Dialog label={words.delivery(open.id)} onClose={() => setOpen(null)}>
          <One
            delivery={open}
            isPaused={isPaused}
            error={error}
            onAgain={() => void again(open.id)}
            onClose={() => setOpen(null)}
          />
        </Dialog>
      )}
    </section>
  );
}

function One({
  delivery,
  isPaused,
  error,
  onAgain,
  onClose,
}: {
  delivery: Delivery;
  isPaused: boolean;
  error: unknown;
  onAgain: () => void;
  onClose: () => void;
}) {
  const facts = [
    [words.messageId, delivery.messageId],
    [words.state, words.states[delivery.state] ?? delivery.state],
    [words.attempts, delivery.attempts],
    [words.status, statusOf(delivery)],
    [words.took, tookOf(delivery)],
    [words.attemptedAt, second(delivery.attemptedAt)],
    [words.nextAttemptAt, nextOf(delivery, isPaused) || "–"],
  ];
  const isKept = delivery.request !== undefined;
  return (
    <div class="stack">
      <h2>{words.delivery(delivery.id)}</h2>
      <dl>
        {facts.map(([name, value]) => (
          <div class="fact" key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <h3>{words.request}</h3>
      {isKept ? (
        <pre class="code wire" tabIndex={0}>
          {jsonText(delivery.request, 2)}
        </pre>
      ) : (
        <p class="dim">{words.notKept}</p>
      )}
      <h3>{words.response}</h3>
      <Response text={delivery.response} />
      {error !== null && <Problem error={error} />}
      <div class="row">
        {isKept && <Button icon="undo" label={words.again} onClick={onAgain} />}
        <Button label={words.close} onClick={onClose} />
      </div>
    </div>
  );
}
