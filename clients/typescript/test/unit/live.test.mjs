// Live lists against a service in memory: each state must be one that a read gave at some moment.
import assert from "node:assert/strict";
import test from "node:test";
import { Service } from "./feed.mjs";

const turns = async (until) => {
  while (!until()) await new Promise(setImmediate);
};

/** Waits until the list is what a read gives. */
async function settled(service, list, read) {
  const wanted = () => JSON.stringify(service.list(read));
  for await (const records of list) if (JSON.stringify(records) === wanted()) return;
}

/** Numbers from 0 to below `most`, the same in each run. */
function randoms(seed) {
  let state = seed;
  return (most) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * most);
  };
}

const LISTS = [
  {},
  { order: "-views" },
  { order: { views: "desc" }, limit: 3 },
  { order: ["-at", "price"], limit: 2, select: ["id", "title"] },
  { order: "price", limit: 4, where: { views: 1 } },
  { order: "title", limit: 3 },
  { order: ["title", "-views"] },
  { where: { title: "b" }, select: ["views"], limit: 1 },
];
/** The same in the API's words. */
const READS = [
  {},
  {
    order: [
      { field: "views", strategy: "DESC" },
      { field: "id", strategy: "DESC" },
    ],
  },
  {
    order: [
      { field: "views", strategy: "DESC" },
      { field: "id", strategy: "DESC" },
    ],
    limit: 3,
  },
  { order: [{ field: "at", strategy: "DESC" }, { field: "price" }], limit: 2, selectFields: ["id", "title"] },
  { order: [{ field: "price" }], limit: 4, query: { views: 1 } },
  { order: [{ field: "title" }], limit: 3 },
  { order: [{ field: "title" }, { field: "views", strategy: "DESC" }, { field: "id", strategy: "DESC" }] },
  { query: { title: "b" }, selectFields: ["views"], limit: 1 },
];

test("each state of a live list is one that a read gave, in their order", async () => {
  for (let seed = 1; seed <= 12; seed += 1) {
    const service = new Service();
    service.isSlow = true;
    const random = randoms(seed);
    const row = () => ({
      views: random(4) || random(1_000),
      title: "aAbBc"[random(5)],
      price: `${random(20)}.${random(2)}0`,
      at: `2026-01-0${1 + random(4)} 00:00:00`,
    });
    const write = () =>
      service.write(
        Object.fromEntries(
          Array.from({ length: 1 + random(2) }, () => [1 + random(9), random(3) ? row() : null]).filter(
            ([id, one]) => one || service.rows.has(id),
          ),
        ),
      );
    for (let index = 0; index < 6; index += 1) write();
    const { selkie } = service;
    const lists = LISTS.map((options) => selkie.table("shop.posts").live(options));
    const states = READS.map((read) => [JSON.stringify(service.list(read))]);
    const seen = lists.map(() => 0);
    const faults = [];
    for (const [at, list] of lists.entries())
      list.subscribe((records) => {
        const found = states[at].indexOf(JSON.stringify(records), seen[at]);
        if (found < 0) faults.push([seed, LISTS[at], records, states[at].slice(seen[at])]);
        seen[at] = Math.max(found, 0);
      });
    await Promise.all(lists.map((list) => list.ready));
    for (let round = 0; round < 40; round += 1) {
      write();
      for (const [at, read] of READS.entries()) states[at].push(JSON.stringify(service.list(read)));
      for (let pauses = random(6); pauses > 0; pauses -= 1) await new Promise(setImmediate);
      if (round === 15) for (const stream of service.streams) stream.end();
      if (round === 30) for (const stream of service.streams) stream.put("resync", { reason: "truncated" });
    }
    await Promise.all(lists.map((list, at) => settled(service, list, READS[at])));
    assert.deepEqual(faults, []);
    assert.equal(service.streams.size, 1);
    for (const list of lists) list.close();
    assert.equal(service.streams.size, 0);
  }
});

test("a list by numbers and dates is read once, and a list by texts again", async () => {
  const service = new Service();
  for (let id = 1; id <= 9; id += 1) service.write({ [id]: { views: id } });
  const table = service.selkie.table("shop.posts");
  const list = table.live({ order: "-views", limit: 3 });
  await list.ready;
  for (let id = 10; id <= 30; id += 1) service.write({ [id]: { views: id } });
  for (let id = 30; id > 28; id -= 1) service.write({ [id]: null });
  await settled(service, list, { order: [{ field: "views", strategy: "DESC" }], limit: 3 });
  assert.deepEqual(
    list.records.map(({ id }) => id),
    [28, 27, 26],
  );
  assert.equal(service.count("snapshot"), 1);
  const words = table.live({ order: "title", limit: 2 });
  await words.ready;
  service.write({ 40: { title: "B" }, 41: { title: "a" } });
  service.write({ 1: { title: "c" } });
  await settled(service, words, { order: [{ field: "title" }], limit: 2 });
  assert.deepEqual([service.count("events"), service.count("snapshot") > 2], [1, true]);
  list.close();
  words.close();
});

test("a list that the role cuts has no record beyond the cut", async () => {
  const service = new Service();
  service.maxRows = 3;
  service.write(Object.fromEntries([1, 2, 3, 4, 5].map((id) => [id, { views: id }])));
  const table = service.selkie.table("shop.posts");
  const [all, some] = [table.live(), table.live({ limit: 2 })];
  await Promise.all([all.ready, some.ready]);
  const ids = (list) => list.records.map(({ id }) => id);
  service.write({ 6: {}, 5: { views: 9 }, 1: { views: 8 } });
  await turns(() => all.records[0].views === 8 && some.records[0].views === 8);
  assert.deepEqual(
    [ids(all), ids(some)],
    [
      [1, 2, 3],
      [1, 2],
    ],
  );
  service.write({ 1: null });
  await turns(() => ids(all).includes(4) && ids(some).includes(3));
  assert.deepEqual(
    [ids(all), ids(some)],
    [
      [2, 3, 4],
      [2, 3],
    ],
  );
  all.close();
  some.close();
});

test("lists of one client share a stream, and equal ones a subscription", async () => {
  const service = new Service();
  const { selkie } = service;
  const table = selkie.table("shop.posts");
  const lists = [table.live(), table.live({ where: { views: 1 } }), table.live({ limit: 1 })];
  await Promise.all(lists.map((list) => list.ready));
  assert.deepEqual([service.count("events"), service.requests[0].subscriptions.length], [1, 2]);
  const later = table.live({ where: { views: 2 } });
  await later.ready;
  assert.deepEqual([service.count("events"), service.streams.size], [2, 1]);
  service.write({ 1: { views: 2 } });
  await turns(() => later.records.length === 1 && lists[0].records.length === 1);
  assert.deepEqual(lists[1].records, []);
  lists[0].close();
  service.write({ 2: { views: 2 } });
  await turns(() => later.records.length === 2);
  assert.equal(lists[0].records.length, 1);
  later.close();
  const again = table.live({ where: { views: 2 } });
  await again.ready;
  assert.deepEqual([service.count("events"), again.records.length], [2, 2]);
  for (const list of [...lists, again]) list.close();
  assert.equal(service.streams.size, 0);
});

test("a list that is refused ends alone", async () => {
  const service = new Service();
  service.refuses.add("secrets");
  const { selkie } = service;
  const [good, bad] = ["posts", "secrets"].map((name) => selkie.table(`shop.${name}`).live());
  await assert.rejects(bad.ready, { code: "table_not_found" });
  assert.equal(bad.error.code, "table_not_found");
  await assert.rejects(async () => {
    for await (const _ of bad);
  }, bad.error);
  await good.ready;
  service.write({ 1: {} });
  await turns(() => good.records.length === 1);
  good.close();
});

test("a list lasts through failures that pass", async () => {
  const service = new Service();
  service.failures = 3;
  const list = service.selkie.table("shop.posts").live();
  await list.ready;
  service.failures = 2;
  for (const stream of service.streams) stream.put("resync", { reason: "failover" });
  await turns(() => service.failures < 0 && service.streams.size > 0);
  service.write({ 1: {} });
  await turns(() => list.records.length === 1);
  list.close();
});

test("what an old stream still has is of no new stream", async () => {
  const service = new Service();
  const table = service.selkie.table("shop.posts");
  const first = table.live({ where: { views: 1 } });
  await first.ready;
  let second;
  first.subscribe(() => {
    second ??= table.live({ where: { views: 2 } });
  });
  const streams = [...service.streams];
  service.streams.clear();
  for (let id = 1; id <= 200; id += 1) service.write({ [id]: { views: 1 } });
  for (const stream of streams) {
    service.streams.add(stream);
    stream.send();
  }
  await turns(() => second);
  await second.ready;
  await turns(() => first.records.length === 200);
  assert.deepEqual(second.records, []);
  first.close();
  second.close();
});

test("a list ends by its signal and by close, and tells its listeners", async () => {
  const service = new Service();
  const control = new AbortController();
  const table = service.selkie.table("shop.posts");
  const list = table.live({ signal: control.signal });
  control.abort(new Error("enough"));
  await assert.rejects(list.ready, { message: "enough" });
  const other = table.live();
  const states = (async () => {
    const all = [];
    for await (const records of other) all.push(records.length);
    return all;
  })();
  await other.ready;
  service.write({ 1: {} });
  await turns(() => other.records.length === 1);
  await new Promise(setImmediate);
  for await (const records of other) {
    assert.equal(records.length, 1);
    break;
  }
  let calls = 0;
  other.subscribe(() => {
    calls += 1;
  });
  other.close();
  assert.deepEqual([await states, calls, other.error], [[0, 1], 1, undefined]);
});
