// Which calls are repeated after which failures, and how calls end. Retries wait in the mocked time of node:test.
import assert from "node:assert/strict";
import test from "node:test";
import { isSelkieError, SelkieError } from "../../dist/index.js";
import { broken, failure, serve, success } from "./server.mjs";

const overloaded = failure(503, "overloaded", { retryable: true });
const lost = failure(503, "database_unavailable", { retryable: true });
const deadlock = failure(409, "deadlock", { retryable: true });
const gateway = () => new Response("<html>", { status: 502 });
const duplicate = failure(409, "duplicate_key");

const READS = { get: (t) => t.get(1), list: (t) => t.list(), count: (t) => t.count(), insert: (t) => t.insert({}) };
const WRITES = {
  update: (t) => t.update(1, { a: 1 }),
  remove: (t) => t.remove(1),
  "insert without a key": (t) => t.insert({}, { idempotencyKey: false }),
};
const sql = (_, selkie) => selkie.sql`SELECT 1`;

/** Runs a call whose first answer is `first`, with pauses of no time, and returns how many requests it sent. */
async function attempts(t, call, first, options) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { selkie, sent } = serve([first, success([], { count: 0 })], { timeout: 0, ...options });
  let over = false;
  const done = Promise.resolve(call(selkie.table("a.b"), selkie))
    .catch((error) => assert.ok(error instanceof SelkieError))
    .finally(() => (over = true));
  while (!over) {
    await new Promise(setImmediate);
    t.mock.timers.tick(60_000);
  }
  await done;
  t.mock.timers.reset();
  return sent.length;
}

test("reads and inserts are repeated after all that may pass", async (t) => {
  for (const [name, call] of Object.entries(READS)) {
    for (const first of [overloaded, lost, deadlock, broken, gateway])
      assert.equal(await attempts(t, call, first), 2, name);
    assert.equal(await attempts(t, call, duplicate), 1, name);
  }
});

test("other writes are repeated only if nothing was done", async (t) => {
  for (const [name, call] of Object.entries(WRITES)) {
    for (const first of [overloaded, deadlock]) assert.equal(await attempts(t, call, first), 2, name);
    for (const first of [lost, broken, gateway]) assert.equal(await attempts(t, call, first), 1, name);
  }
  assert.equal(await attempts(t, sql, overloaded), 2);
  for (const first of [deadlock, lost, broken]) assert.equal(await attempts(t, sql, first), 1);
  assert.equal(await attempts(t, (table) => table.remove(1, { repeatable: true }), broken), 2);
});

test("retries are bounded, and can be turned off", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { selkie, sent } = serve(Array(9).fill(overloaded), { timeout: 0 });
  let error;
  selkie
    .table("a.b")
    .list()
    .catch((reason) => (error = reason));
  while (!error) {
    await new Promise(setImmediate);
    t.mock.timers.tick(60_000);
  }
  assert.equal(sent.length, 4);
  t.mock.timers.reset();
  assert.equal(await attempts(t, READS.list, overloaded, { retries: 0 }), 1);
});

test("Retry-After is kept to, and a long one ends the retries", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const busy = failure(429, "rate_limited", { retryable: true, headers: { "retry-after": "7" } });
  const { selkie, sent } = serve([busy, success([])], { timeout: 0 });
  const done = selkie.table("a.b").list();
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  t.mock.timers.tick(6_999);
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  assert.equal(sent.length, 1);
  t.mock.timers.tick(10_000);
  await done;
  assert.equal(sent.length, 2);
  t.mock.timers.reset();
  const long = failure(429, "rate_limited", { retryable: true, headers: { "retry-after": "3600" } });
  assert.equal(await attempts(t, READS.list, long), 1);
});

test("a repeated insert has the same key and body, another insert another key", async (t) => {
  const { selkie, sent } = serve([broken, success(1), success(2)], { timeout: 0 });
  t.mock.method(Math, "random", () => 0);
  await selkie.table("a.b").insert({ a: 1 });
  await selkie.table("a.b").insert({ a: 1 });
  const keys = sent.map(({ headers }) => headers["idempotency-key"]);
  assert.match(keys[0], /^[0-9a-f]{32}$/);
  assert.deepEqual([keys[1] === keys[0], keys[2] === keys[0]], [true, false]);
  assert.deepEqual(sent[1].body, sent[0].body);
});

test("a table that can't keep idempotency keys gets inserts without", async () => {
  const refused = failure(400, "invalid_query_option", {
    message: 'The header Idempotency-Key can\'t be kept to with "b".',
  });
  const { selkie, sent } = serve([refused, success(1), success(2)]);
  const table = selkie.table("a.b");
  assert.deepEqual([await table.insert({}), await table.insert({})], [1, 2]);
  assert.deepEqual(
    sent.map(({ headers }) => "idempotency-key" in headers),
    [true, false, false],
  );
  await assert.rejects(serve([refused]).selkie.table("a.b").insert({}, { idempotencyKey: "mine" }), {
    code: "invalid_query_option",
  });
});

test("an expired key is asked for once more", async () => {
  const expired = failure(401, "expired_key");
  const asked = [];
  const key = async (renew) => `key ${asked.push(renew)}`;
  const { selkie, sent } = serve([expired, success(3), expired, expired], { key });
  assert.equal(await selkie.table("a.b").update(1, { a: 1 }), 3);
  assert.deepEqual(asked, [false, true]);
  assert.deepEqual(
    sent.map(({ headers }) => headers.authorization),
    ["Bearer key 1", "Bearer key 2"],
  );
  await assert.rejects(selkie.table("a.b").list(), { code: "expired_key" });
  await assert.rejects(serve([expired]).selkie.table("a.b").list(), { code: "expired_key" });
});

test("an abort ends a request, a pause and a stream with the signal's reason", async () => {
  const reason = new Error("enough");
  const hanging = (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  for (const answer of [hanging, failure(503, "overloaded", { retryable: true, headers: { "retry-after": "20" } })]) {
    const control = new AbortController();
    const done = serve([answer]).selkie.table("a.b").list({ signal: control.signal });
    setImmediate(() => setImmediate(() => control.abort(reason)));
    await assert.rejects(done, reason);
  }
  const { selkie, sent } = serve([]);
  await assert.rejects(selkie.table("a.b").list({ signal: AbortSignal.abort(reason) }), reason);
  assert.deepEqual(sent, []);
});

test("a timeout is a retryable error", async () => {
  const hanging = (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const done = serve([hanging]).selkie.table("a.b").update(1, {}, { timeout: 5 });
  await assert.rejects(done, { name: "SelkieError", code: "timeout", status: 0, retryable: true });
});

test("errors carry what the answer says", async () => {
  const error = {
    code: "invalid_value",
    message: "Too long.",
    hint: "Shorten it.",
    details: { field: "a", row: 1 },
    retryable: false,
    requestId: "r",
  };
  const answer = () => Response.json({ success: false, payload: null, error, errors: [error, error] }, { status: 422 });
  const caught = await serve([answer])
    .selkie.table("a.b")
    .insert({})
    .catch((reason) => reason);
  assert.ok(isSelkieError(caught) && isSelkieError(caught, "invalid_value") && !isSelkieError(caught, "deadlock"));
  const { message, code, hint, details, requestId, retryable, status, errors } = caught;
  assert.deepEqual({ message, code, hint, details, requestId, retryable }, error);
  assert.deepEqual([status, errors.length], [422, 2]);
  await assert.rejects(
    serve([() => new Response("hello")])
      .selkie.table("a.b")
      .list(),
    { code: "invalid_answer", status: 200 },
  );
  await assert.rejects(
    serve([() => new Response("<html>", { status: 404 })])
      .selkie.table("a.b")
      .get(1),
    { code: "invalid_answer", status: 404 },
  );
});

test("a missing record is null, a missing table an error", async () => {
  assert.equal(
    await serve([failure(404, "record_not_found")])
      .selkie.table("a.b")
      .get(1),
    null,
  );
  await assert.rejects(
    serve([failure(404, "table_not_found")])
      .selkie.table("a.b")
      .get(1),
    { code: "table_not_found" },
  );
});
