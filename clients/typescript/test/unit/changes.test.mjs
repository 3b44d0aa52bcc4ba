// Iterators of changes: tokens, reconnects, resyncs, and long polls where nothing streams.
import assert from "node:assert/strict";
import test from "node:test";
import { Service } from "./feed.mjs";

/** Follows changes until `count` have come; `ready` resolves when they are followed. */
function follow(service, count, options = {}) {
  const changes = [];
  let began;
  const ready = new Promise((resolve) => {
    began = resolve;
  });
  const done = (async () => {
    const table = service.selkie.table("shop.posts");
    for await (const change of table.changes({ onReady: began, ...options })) if (changes.push(change) === count) break;
    return changes;
  })();
  return { changes, ready, done };
}

test("changes have their record, token and transaction", async () => {
  const service = new Service();
  const { ready, done } = follow(service, 4, { select: ["id", "views"], where: { title: "a" } });
  assert.equal(await ready, "t0");
  service.write({ 1: { title: "a" }, 2: { title: "b" }, 3: { title: "a", views: 5 } });
  service.write({ 1: { title: "b" } });
  service.write({ 3: null });
  const common = { at: "2026" };
  assert.deepEqual(await done, [
    { type: "insert", record: { id: 1, views: 0 }, key: 1, position: "gtid:0-1-1", ...common, next: "t0" },
    { type: "insert", record: { id: 3, views: 5 }, key: 3, position: "gtid:0-1-1", ...common, end: true, next: "t1" },
    { type: "delete", left: true, key: 1, position: "gtid:0-1-2", ...common, end: true, next: "t2" },
    { type: "delete", record: { id: 3, views: 5 }, key: 3, position: "gtid:0-1-3", ...common, end: true, next: "t3" },
  ]);
  assert.equal(service.streams.size, 0);
  const { subscriptions } = service.requests[0];
  assert.deepEqual(subscriptions, [
    { database: "shop", table: "posts", selectFields: ["id", "views"], query: { title: "a" } },
  ]);
});

test("a snapshot that the role cuts is limited", async () => {
  for (const streaming of [true, false]) {
    const service = new Service();
    service.streaming = streaming;
    service.maxRows = 1;
    service.write({ 1: {}, 2: {} });
    let isLimited;
    const onReady = (_, limited) => {
      isLimited = limited;
      service.write({ 3: {} });
    };
    await follow(service, 2, { snapshot: true, onReady }).done;
    assert.equal(isLimited, true);
  }
});

test("a stream that breaks goes on from its last token", async () => {
  const service = new Service();
  const { ready, done, changes } = follow(service, 2);
  await ready;
  service.write({ 1: {} });
  while (!changes.length) await new Promise(setImmediate);
  for (const stream of service.streams) stream.end();
  service.write({ 2: {} });
  assert.deepEqual(
    (await done).map(({ key }) => key),
    [1, 2],
  );
  assert.deepEqual(
    service.requests.map(({ since }) => since),
    [undefined, "t1"],
  );
});

test("a gap is an error, or a resync before a snapshot", async () => {
  const service = new Service();
  service.write({ 1: {} });
  service.gone = true;
  await assert.rejects(follow(service, 1, { since: "t0" }).done, {
    code: "resync_required",
    status: 409,
    details: { reason: "log_purged" },
  });
  service.gone = true;
  const { ready, done } = follow(service, 3, { since: "t0", snapshot: true });
  await ready;
  service.write({ 2: {} });
  const [first, second, third] = await done;
  assert.deepEqual(first, { type: "resync", reason: "log_purged" });
  assert.deepEqual([second.key, second.snapshot, third.key, third.snapshot], [1, true, 2, undefined]);
  const streamed = follow(service, 1);
  await streamed.ready;
  for (const stream of service.streams) stream.put("resync", { reason: "truncated" });
  await assert.rejects(streamed.done, { code: "resync_required", details: { reason: "truncated" } });
});

test("a snapshot that was cut short begins again", async () => {
  const service = new Service();
  service.write({ 1: {}, 2: {} });
  const answer = service.answer.bind(service);
  service.answer = async (url, init) => {
    service.answer = answer;
    const data = JSON.stringify({ type: "insert", snapshot: true, key: 1, record: {} });
    await answer(url, init);
    return new Response(`event: change\ndata: ${data}\n\n`);
  };
  const changes = await follow(service, 4, { snapshot: true }).done;
  assert.deepEqual(
    changes.map(({ type, key }) => key ?? type),
    [1, "resync", 1, 2],
  );
});

test("an error that does not pass ends the changes, and so does an abort", async () => {
  const service = new Service();
  service.refuses.add("posts");
  await assert.rejects(follow(service, 1).done, { code: "table_not_found" });
  service.refuses.clear();
  const control = new AbortController();
  const { ready, done } = follow(service, 1, { signal: control.signal });
  await ready;
  control.abort(new Error("enough"));
  await assert.rejects(done, { message: "enough" });
  assert.equal(service.streams.size, 0);
});

test("where a body does not stream, changes are polled", async (t) => {
  const service = new Service();
  service.streaming = false;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  service.write({ 1: {} });
  const { ready, done } = follow(service, 2, { snapshot: true });
  while (service.count("events") === 0) await new Promise(setImmediate);
  for (let turn = 0; service.count("page") === 0; turn += 1) {
    t.mock.timers.tick(1_000);
    await new Promise(setImmediate);
    assert.ok(turn < 1_000);
  }
  await ready;
  service.write({ 2: {} });
  assert.deepEqual(
    (await done).map(({ key }) => key),
    [1, 2],
  );
  assert.equal(service.count("events"), 1);
  assert.equal(service.requests.at(-1).wait, "20s");
});
