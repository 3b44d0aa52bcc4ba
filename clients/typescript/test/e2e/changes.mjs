// Changes and live lists against a running service, in Node, in a browser and in a worker: nothing here is of one of them
// only.
import { same } from "./calls.mjs";

/** Numbers from 0 to below `most`, the same in each run. */
function randoms(seed) {
  let state = seed;
  return (most) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * most);
  };
}

/** Waits until the live list is what a read gives after all writes. */
async function settled(list, read, what) {
  const expected = JSON.stringify(await read());
  const late = setTimeout(() => list.close(), 20_000);
  for await (const records of list) if (JSON.stringify(records) === expected) break;
  clearTimeout(late);
  same(list.records, JSON.parse(expected), what);
}

/** A `fetch` whose event streams break when `cut` is called. */
function breakable() {
  const open = new Set();
  return {
    open,
    cut: () => {
      for (const stream of open) stream.abort(new Error("the network broke"));
    },
    fetch: async (address, init) => {
      const response = await fetch(address, init);
      if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
      const control = new AbortController();
      open.add(control);
      const through = new TransformStream();
      response.body
        .pipeTo(through.writable, { signal: control.signal })
        .catch(() => {})
        .finally(() => open.delete(control));
      return new Response(through.readable, response);
    },
  };
}

/** A `fetch` of a runtime that can't stream bodies. */
async function whole(address, init) {
  if (init.headers.accept !== "text/event-stream") return fetch(address, init);
  const response = await fetch(address, init);
  await response.body.cancel();
  return new Response(null, response);
}

async function iterate({ createClient, isSelkieError }, options, database) {
  const selkie = createClient(options);
  const table = selkie.table(`${database}.messages`);
  const [room, other] = ["changes", "other"];
  const seen = [];
  let began;
  const ready = new Promise((resolve) => {
    began = resolve;
  });
  const select = ["id", "text", "stars"];
  const follow = (async () => {
    for await (const change of table.changes({ select, where: { room }, onReady: began }))
      if (seen.push(change) === 6) return;
  })();
  const start = await ready;
  const [a, b] = await table.insert([
    { room, text: "one" },
    { room, text: "two" },
  ]);
  await table.update(a, { stars: 3 });
  await table.update(a, { room: other });
  await table.update(a, { room });
  await table.remove(b);
  await follow;
  const shown = seen.map(({ position: _, at: __, next: ___, ...change }) => change);
  const [one, two] = [
    { id: a, text: "one", stars: 0 },
    { id: b, text: "two", stars: 0 },
  ];
  same(
    shown,
    [
      { type: "insert", key: a, record: one },
      { type: "insert", key: b, record: two, end: true },
      { type: "update", key: a, record: { ...one, stars: 3 }, changed: ["stars"], end: true },
      { type: "delete", key: a, left: true, end: true },
      { type: "insert", key: a, record: { ...one, stars: 3 }, entered: true, end: true },
      { type: "delete", key: b, record: two, end: true },
    ],
    "the changes",
  );
  // Again, from the beginning and from the middle of a transaction. A token names where in the log reading begins, which
  // another reader's position moves: the same change may have two tokens.
  const untokened = (changes) => changes.map(({ next: _, ...change }) => change);
  for (const [since, from] of [
    [start, 0],
    [seen[0].next, 1],
    [seen[3].next, 4],
  ]) {
    const again = [];
    for await (const change of table.changes({ select, where: { room }, since }))
      if (again.push(change) === 6 - from) break;
    same(untokened(again), untokened(seen.slice(from)), `the changes since ${from}`);
  }
  const snapshot = [];
  for await (const change of table.changes({ select, where: { room }, snapshot: true })) {
    snapshot.push(change);
    break;
  }
  same(snapshot, [{ type: "insert", snapshot: true, key: a, record: { ...one, stars: 3 } }], "the snapshot");
  const refused = async (promise) => promise.catch((error) => isSelkieError(error) && error.code);
  same(await refused(table.changes({ where: { nothing: 1 } }).next()), "unknown_field", "the refused changes");
  same(await refused(table.live({ where: { nothing: 1 } }).ready), "unknown_field", "the refused list");
  await table.remove({ where: { room } });
}

async function follow({ createClient }, options, database, { cut } = {}) {
  const selkie = createClient(options);
  const writer = createClient({ ...options, fetch: undefined }).table(`${database}.messages`);
  const table = selkie.table(`${database}.messages`);
  const room = "live";
  const where = { room };
  const forms = [
    { where, order: "id" },
    { where, order: "-id", limit: 5 },
    { where, order: ["-stars", "id"], limit: 4, select: ["id", "text"] },
    { where: { room, stars: { gte: 2 } }, order: { at: "desc", id: "asc" }, limit: 6 },
    { where, order: ["text", "id"], limit: 5 },
    { where, order: ["price", "-id"], omit: ["price", "at"] },
  ];
  const random = randoms(7);
  const row = () => ({
    room,
    text: ["a", "B", "ä", "Z", "é"][random(5)],
    stars: random(4),
    price: `${random(30)}.5`,
    at: `2026-01-0${1 + random(5)} 10:00:00`,
  });
  const ids = await writer.insert(Array.from({ length: 12 }, row));
  const lists = forms.map((form) => table.live(form));
  await Promise.all(lists.map(({ ready }) => ready));
  for (const [at, form] of forms.entries())
    same(lists[at].records, await writer.list(form), `the list ${JSON.stringify(form)}`);
  for (let round = 0; round < 40; round += 1) {
    const id = ids[random(ids.length)];
    const what = random(4);
    if (what === 0) ids.push(await writer.insert(row()));
    else if (what === 1) await writer.remove(id);
    else await writer.update(id, row());
    if (round % 15 === 10) cut?.();
  }
  for (const [at, form] of forms.entries())
    await settled(lists[at], () => writer.list(form), `the list ${JSON.stringify(form)}`);
  const later = table.live({ where: { room, stars: 3 }, order: "id" });
  await later.ready;
  await writer.insert({ ...row(), stars: 3 });
  for (const [at, form] of [...forms, { where: { room, stars: 3 }, order: "id" }].entries())
    await settled([...lists, later][at], () => writer.list(form), `the list ${JSON.stringify(form)} later`);
  for (const list of [...lists, later]) list.close();
  await writer.remove({ where });
}

/** Follows changes and keeps lists: with event streams, with ones that break, and with long polls. */
export async function changes({ client, url, key, database }) {
  await iterate(client, { url, key }, database);
  const network = breakable();
  await follow(client, { url, key, fetch: network.fetch }, database, network);
  while (network.open.size) await new Promise((resolve) => setTimeout(resolve, 10));
  await follow(client, { url, key, fetch: whole }, database);
}
