// Tests how an owner manages webhooks in the console, with an endpoint that receives and verifies them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { verifyWebhook } from "@selkie/client";

/** Milliseconds that a delivery may take to be seen, with the five seconds before its second attempt. */
const SEEN_MAX_MS = 60_000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** An endpoint that answers as `answer` says. */
class Receiver {
  answer = { status: 200 };
  #requests = [];
  #server = createServer(async (request, response) => {
    const { url, headers } = request;
    const { status, headers: own, body } = this.answer;
    this.#requests.push({ url, headers, body: await text(request) });
    response.writeHead(status, own).end(body);
    this.#server.emit("received");
  });

  async listen() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.address = `http://127.0.0.1:${this.#server.address().port}/hook`;
    return this;
  }

  /** Returns the next request, and its body if it is signed with each of the secrets. */
  async next(...secrets) {
    while (!this.#requests.length) await once(this.#server, "received", { signal: AbortSignal.timeout(SEEN_MAX_MS) });
    const { url, headers, body } = this.#requests.shift();
    const [verified] = await Promise.all(secrets.map((secret) => verifyWebhook(body, headers, secret)));
    return { url, id: headers["webhook-id"], body: verified };
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export async function manageWebhooks(tab, { database, call }) {
  const receiver = await new Receiver().listen();
  try {
    await manage(tab, receiver, { database, call });
  } finally {
    receiver.close();
  }
}

async function manage(tab, receiver, { database, call }) {
  const added = [];
  const add = async (name) => added.push(await call("POST", `crud/${database}/authors`, { name }));
  const secretShown = () => tab.page.$eval(".created pre", (pre) => pre.innerText);
  /** Reloads the deliveries until the text is seen. */
  const reloadUntil = async (text, within) => {
    for (const last = Date.now() + SEEN_MAX_MS; Date.now() < last; ) {
      await tab.press("Reload");
      const shown = await tab.page.$$eval(within, (list) => list.map((one) => one.innerText).join("\n"));
      if (shown.includes(text)) return;
    }
    assert.fail(`"${text}" is not seen in ${within}`);
  };

  await tab.press("Webhooks", "link");
  await tab.sees("This project has no webhook yet.", ".manage");
  await tab.press("New webhook");
  await tab.fill("Name", "library", ".manage form");
  await tab.fill("URL", "http://10.0.0.1/hook", ".manage form");
  await tab.select(".subscription select", database);
  await tab.select(".subscription select[required]:has(option + option)", "authors");
  await tab.fill("Condition", "id < 5", ".subscription");
  await tab.press("Create webhook");
  await tab.sees("must be a JSON object", "form [role=alert]");
  await tab.isAccessible("new webhook", ["dark", "light"]);
  await tab.fill("Condition", '{"id": {"value": 9007199254740993, "equality": "<"}}', ".subscription");
  await tab.press("updates", "checkbox");
  await tab.press("Create webhook");
  await tab.sees("a network to which webhooks are not delivered", "form [role=alert]");
  await tab.sees("It is a private or loopback address.", ".manage form");
  await tab.press("Roles", "link");
  await tab.press("Webhooks", "link");
  await tab.press("New webhook");
  await tab.sees("Condition", ".subscription");
  const entered = await tab.page.$$eval(".manage form input:not([type=checkbox])", (list) =>
    list.map(({ value }) => value),
  );
  assert.deepEqual(entered, [
    "library",
    "http://10.0.0.1/hook",
    '{"id": {"value": 9007199254740993, "equality": "<"}}',
  ]);
  await tab.fill("URL", receiver.address, ".manage form");
  await tab.press("Add table");
  await tab.press("Remove table 2");
  await tab.press("Create webhook");
  await tab.sees("shown only now", ".created");
  const secret = await secretShown();
  await tab.isAccessible("secret", ["dark", "light"]);
  await tab.press("Done");
  await tab.sees("delivering", ".list");
  assert.ok(!(await tab.page.content()).includes(secret), "a secret is shown once");
  await tab.isAccessible("webhooks");

  await tab.press("library", "link");
  await tab.sees("9007199254740993", ".manage");
  await tab.sees("inserts, deletes", ".manage");
  await tab.press("Send a test");
  await tab.sees("Delivered: status 200", ".tested");
  assert.deepEqual((await receiver.next(secret)).body, { changes: [], test: true });

  receiver.answer = { status: 200, body: "thank you" };
  await add("Hrabal");
  const first = await receiver.next(secret);
  assert.deepEqual(
    first.body.changes.map(({ type, record }) => [type, record.name]),
    [["insert", "Hrabal"]],
  );
  await reloadUntil("delivered", ".deliveries tbody");
  await tab.isAccessible("webhook", ["dark", "light"]);
  await tab.focus(".deliveries .link");
  await tab.keys("Enter");
  await tab.sees(first.id, "dialog");
  await tab.sees("Hrabal", "dialog");
  await tab.sees("thank you", "dialog");
  await tab.isAccessible("delivery", ["dark", "light"]);
  receiver.answer = { status: 200, body: "thanks again" };
  await tab.press("Send again");
  await tab.sees("thanks again", "dialog");
  assert.equal((await receiver.next(secret)).id, first.id, "the same delivery");
  await tab.keys("Escape");
  await tab.gone("dialog");

  receiver.answer = { status: 410 };
  await add("Kundera");
  await receiver.next(secret);
  await reloadUntil("paused: The endpoint has answered 410", ".manage strong");
  await tab.isAccessible("paused webhook");
  receiver.answer = { status: 503, headers: { "retry-after": "3600" }, body: "closed" };
  await tab.press("Resume");
  const kundera = await receiver.next(secret);
  assert.equal(kundera.body.changes[0].record.name, "Kundera");
  await reloadUntil("503", ".deliveries tbody");
  await tab.sees("waits", ".deliveries");
  await tab.sees("failing since", ".manage strong");
  await tab.page.evaluate((ms) => {
    globalThis.realNow = Date.now;
    Date.now = () => globalThis.realNow() + ms;
  }, DAY_MS);
  await tab.press("All webhooks", "link");
  await tab.sees("for more than a day", ".manage [role=alert]");
  await tab.isAccessible("failing webhooks", ["dark", "light"]);
  await tab.press("library", "link");
  await tab.sees("for more than a day", ".manage [role=alert]");
  await tab.page.evaluate(() => {
    Date.now = globalThis.realNow;
  });

  await tab.press("Pause");
  await tab.sees("changes wait in the binary log", ".manage");
  receiver.answer = { status: 204 };
  await tab.fill("URL", `${receiver.address}/other`, ".manage form");
  await tab.press("Save URL");
  await tab.sees("Saved.", ".manage .note");
  await tab.press("Renew secret");
  await tab.isAccessible("renewal");
  await tab.click("dialog .main");
  await tab.sees("The new secret is shown only now.", ".created");
  const renewed = await secretShown();
  await tab.press("Done");
  await tab.press("Send a test");
  await tab.sees("Delivered: status 204", ".tested");
  const { url } = await receiver.next(secret, renewed);
  assert.equal(url, "/hook/other");

  await tab.press("Delete webhook");
  await tab.isAccessible("deletion");
  await tab.click("dialog .danger");
  await tab.sees("This project has no webhook yet.", ".manage");
  for (const id of added) await call("DELETE", `crud/${database}/authors/${id}`);
}
