// Calls of the client against a running service, in Node and in a browser: nothing here is of one of them only.

/** Fails unless both are the same JSON. */
export function same(actual, expected, what = "") {
  const [a, e] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== e) throw new Error(`${what} is ${a}, not ${e}`);
}

async function refused(promise, code) {
  const error = await promise.then(
    () => undefined,
    (reason) => reason,
  );
  same([error?.name, error?.code], ["SelkieError", code], "the error");
  return error;
}

async function all(items) {
  const list = [];
  for await (const item of items) list.push(item);
  return list;
}

/**
 * Makes every kind of call that a role may be allowed. `client` is the package, `fullKey` is only given where the service
 * takes one, and `folder` is of this run.
 */
export async function calls({ client, url, key, fullKey, database, folder }) {
  const { createClient, etagOf } = client;
  const selkie = createClient({ url, key: async () => key });
  const table = (name) => selkie.table(`${database}.${name}`);
  const [customers, orders, lines, words] = ["customers", "orders", "order_lines", "words"].map(table);

  // Writes
  const [ann, bob] = await customers.insert([{ name: "Ann", email: "ann@example.org" }, { name: "Bob" }]);
  const first = await orders.insert({ customer_id: ann, total: "993.10", note: "gift", views: 9007199254740993n });
  const written = await orders.insert(
    { customer_id: bob, total: "10.50", at: new Date("2026-01-02T03:04:05Z") },
    { returning: "*" },
  );
  same(written.at, "2026-01-02 03:04:05", "a Date");
  same(
    await lines.insert([
      { order_id: first, line: 1, product: "tea", amount: 3 },
      { order_id: first, line: 2, product: "cup" },
    ]),
    [`${first},1`, `${first},2`],
  );
  const duplicate = await refused(customers.insert({ name: "Eve", email: "ann@example.org" }), "duplicate_key");
  same([duplicate.status, duplicate.retryable, typeof duplicate.requestId], [409, false, "string"], "the error");
  same(await customers.insert({ name: "Anna", email: "ann@example.org" }, { onConflict: "update" }), ann, "the upsert");
  same(
    await customers.insert({ name: "x", email: "ann@example.org" }, { onConflict: "ignore" }),
    null,
    "the ignored insert",
  );
  same(
    (await refused(orders.insert([{ total: 1 }, { total: "much" }]), "invalid_value")).details,
    { field: "total", row: 1 },
    "the details",
  );

  // One record
  const order = await orders.get(first);
  same([order.views, order.total, order.note], ["9007199254740993", "993.10", "gift"], "the record");
  same(await orders.get(999_999), null, "a missing record");
  same(
    await orders.get(first, {
      select: ["id"],
      include: { customer: { select: ["name"] }, order_lines: { select: ["product"], order: "-line", limit: 1 } },
    }),
    { id: first, customer: { name: "Anna" }, order_lines: [{ product: "cup" }] },
    "the record with related ones",
  );
  await words.insert([{ word: "a/b, c%?" }, { word: "ü#&" }]);
  same(await words.get("a/b, c%?"), { word: "a/b, c%?" }, "a key that needs encoding");
  same((await lines.get([first, 2])).product, "cup", "a composite key");
  same((await lines.get(`${first},2`)).product, "cup", "a composite key as text");
  same(
    await orders.update(first, { views: { $add: -1 } }, { returning: ["views"] }),
    { views: "9007199254740992" },
    "$add",
  );
  await refused(orders.update(first, { note: "b" }, { ifMatch: order }), "precondition_failed");
  const fresh = await orders.get(first);
  same(typeof etagOf(fresh), "string", "the ETag");
  const changed = await orders.update(first, { note: "box" }, { ifMatch: fresh, returning: "*" });
  same(await orders.update(first, { note: "gift" }, { ifMatch: changed }), 1, "the update of what returning gave");

  // Conditions, order, lists
  const ids = async (where) => (await orders.list({ select: ["id"], where, order: "id" })).map(({ id }) => id);
  for (const [where, expected] of [
    [{ note: "gift" }, [first]],
    [{ note: null }, [written.id]],
    [{ note: { ne: null } }, [first]],
    [{ total: { gt: "10", lte: 10.5 } }, [written.id]],
    [{ id: [first, written.id] }, [first, written.id]],
    [{ id: { notIn: [first] } }, [written.id]],
    [{ total: { between: [10, 11] } }, [written.id]],
    [{ at: { lt: new Date("2026-01-03") } }, [written.id]],
    [{ note: { startsWith: "gi" } }, [first]],
    [{ note: { contains: "if", endsWith: "t", like: "g_ft", regexp: "^g" } }, [first]],
    [{ id: { not: { eq: first } } }, [written.id]],
    [{ id: { not: { gte: first, lte: first } } }, [written.id]],
    [{ or: [{ note: "gift" }, { total: { gt: 10 }, status: "open" }] }, [first, written.id]],
    [{ and: [{ note: "gift" }, { or: [{ id: first }] }] }, [first]],
    [{ order_lines: { some: { amount: { gt: 2 } } } }, [first]],
    [{ or: [{ order_lines: { none: {} } }, { customer: { some: { name: { like: "B%" } } } }] }, [written.id]],
    [{ id: { value: first, equality: "<=>" } }, [first]],
  ])
    same(await ids(where), expected, JSON.stringify(where));
  await refused(orders.list({ where: { nte: 1 } }), "unknown_field");
  same(await orders.list({ select: ["id"], order: { total: "desc" }, limit: 1 }), [{ id: first }], "the order");
  same(await orders.count({ where: { note: "gift" } }), 1, "the count");
  const counted = await orders.list({ select: ["id"], limit: 1, count: true });
  same([counted.length, counted.count, typeof counted.next], [1, 2, "string"], "the list");
  same(
    await orders.list({
      select: ["id"],
      join: [{ tableName: "customers", match: { source: "customer_id", target: "id" }, selectFields: ["name"] }],
      where: { name: "Bob" },
      order: { tableName: "customers", field: "name" },
    }),
    [{ id: written.id, name: "Bob" }],
    "the join",
  );
  same(
    await lines.list({
      select: [
        "order_id",
        { aggregate: "SUM", fieldName: "amount" },
        { aggregate: "COUNT", fieldName: "line", alias: "lines" },
      ],
      group: "order_id",
    }),
    [{ order_id: first, sum_amount: "4", lines: 2 }],
    "the group",
  );

  // Many records
  await words.insert(Array.from({ length: 2_500 }, (_, index) => ({ word: `w${String(index).padStart(4, "0")}` })));
  const where = { word: { startsWith: "w" } };
  const pages = await all(words.pages({ where, limit: 1_000 }));
  same(
    pages.map((page) => page.length),
    [1_000, 1_000, 500],
    "the pages",
  );
  same(
    (await all(words.stream({ where, order: "-word" }))).map(({ word }) => word),
    pages
      .flat()
      .map(({ word }) => word)
      .reverse(),
    "the stream",
  );
  for await (const { word } of words.stream({ where, order: "word" })) if (word === "w0002") break;
  const reason = new Error("enough");
  same(
    await words.update({ where: { word: "w0001" } }, { word: "x0001" }, { returning: "*" }),
    [{ word: "x0001" }],
    "the update of many",
  );
  await refused(words.remove({ where }, { maxAffected: 10 }), "too_many_affected");
  same(await words.remove({ where }, { dryRun: true }), 2_499, "the dry run");
  same(await words.remove({ where }), 2_499, "the removal of many");
  same(await words.remove("x0001", { returning: ["word"] }), { word: "x0001" }, "the removal");

  // A batch
  const [customer, orderIds, , joined] = await selkie.batch((batch) => {
    const one = batch.table(`${database}.customers`).insert({ name: "Cleo" }, { returning: ["id"] });
    const two = batch.table(`${database}.orders`).insert([
      { customer_id: one.id, total: 1 },
      { customer_id: one.id, total: 2 },
    ]);
    const three = batch.table(`${database}.order_lines`).insert({ order_id: two.row(1), line: 1, product: "pot" });
    const back = batch
      .table(`${database}.orders`)
      .get(two.row(1), { select: ["total"], include: { customer: true, order_lines: { select: ["product"] } } });
    return [one, two, three, back];
  });
  same(orderIds.length, 2, "the batch's ids");
  same(
    joined,
    { total: "2.00", customer: { id: customer.id, name: "Cleo", email: null }, order_lines: [{ product: "pot" }] },
    "the batch's read",
  );
  const failed = await refused(
    selkie.batch((batch) => [
      batch.table(`${database}.customers`).insert({ name: "Dan" }),
      batch.table(`${database}.customers`).insert({ name: "Dan", email: "ann@example.org" }),
    ]),
    "duplicate_key",
  );
  same(failed.details.operation, 1, "the failed operation");
  same(await customers.count({ where: { name: "Dan" } }), 0, "what the batch left");

  // A lost answer: the insert is sent again, and inserts once
  let losses = 1;
  const flaky = createClient({
    url,
    key,
    fetch: async (...request) => {
      const response = await fetch(...request);
      if (losses-- > 0) throw new TypeError("the connection broke");
      return response;
    },
  });
  const once = await flaky.table(`${database}.customers`).insert({ name: "Once" });
  same(
    (await customers.list({ where: { name: "Once" } })).map(({ id }) => id),
    [once],
    "the repeated insert",
  );
  losses = 1;
  await refused(flaky.table(`${database}.customers`).update(once, { name: "Twice" }), "network_error");
  same((await customers.get(once)).name, "Twice", "the update whose answer was lost");
  const notes = table("notes");
  same([await notes.insert({ text: "a" }), await notes.insert({ text: "b" })], [1, 2], "inserts without transactions");
  const control = new AbortController();
  const slow = createClient({
    url,
    key,
    fetch: (address, init) => {
      control.abort(reason);
      return fetch(address, init);
    },
  });
  same(
    await slow
      .table(`${database}.words`)
      .list({ signal: control.signal })
      .catch((error) => error.message),
    "enough",
    "the abort",
  );
  same(
    (await orders.schema()).relations.map(({ name }) => name),
    ["customer", "order_lines"],
    "the schema",
  );
  same((await selkie.request("GET", `crud/${database}`)).length, 6, "the tables");

  // Files
  const { media } = selkie;
  const text = await media.upload(new Blob(["Low water at six."], { type: "text/plain" }), {
    name: "tides of May.txt",
    folder,
  });
  same((await media.get(text.id)).size, 17, "the file");
  same(await (await fetch(media.url(text, { download: "May.txt" }))).text(), "Low water at six.", "the file's bytes");
  await refused(media.upload(new Blob(["x"]), { name: "tides of May.txt", folder }), "media_exists");
  const content = new Uint8Array(12_000_000).map((_, index) => (index * 31) % 251);
  const interrupt = new AbortController();
  let upload;
  const options = {
    name: "whale song.bin",
    folder: `${folder}/media/p`,
    private: true,
    onStart: (address) => {
      upload = address;
    },
  };
  const half = media.upload(content, {
    ...options,
    signal: interrupt.signal,
    onProgress: ({ sent }) => sent >= 5_000_000 && interrupt.abort(reason),
  });
  same(await half.catch((error) => error.message), "enough", "the interrupted upload");
  const progress = [];
  const large = await media.upload(content, {
    ...options,
    resume: upload,
    onProgress: ({ sent }) => progress.push(sent),
  });
  same([progress[0] >= 5_000_000, progress.at(-1)], [true, 12_000_000], "the progress");
  same([large.name, large.folder], ["whale song.bin", options.folder], "the large file");
  const { size, private: isPrivate } = await media.get(large.id);
  same([size, isPrivate], [12_000_000, true], "what is known of the large file");
  const signed = await media.sign(large.id, { expiresIn: 60 });
  const bytes = new Uint8Array(await (await fetch(signed.url)).arrayBuffer());
  same(
    [bytes.length, bytes.every((byte, index) => byte === content[index])],
    [12_000_000, true],
    "the large file's bytes",
  );
  const files = await media.list({ folder, order: { field: "size" }, count: true });
  same([files.map(({ id }) => id), files.count, files.more], [[text.id], 1, undefined], "the files");
  same(await media.remove(large.id), { id: large.id }, "the removed file");
  same(await media.get(large.id), null, "a missing file");

  if (fullKey) {
    const full = createClient({ url, key: fullKey, database });
    const word = "x' OR '1'='1";
    await full.sql`INSERT INTO words VALUES (${word})`;
    same(
      await full.sql`SELECT word FROM words WHERE word IN (${[word, "y"]}) AND ${1} = 1`,
      [{ word }],
      "the statement's rows",
    );
    const none = await full.sql({ database })`DELETE FROM words WHERE word = ${"nothing"}`;
    same(none.affectedRows, 0, "the statement without rows");
    await refused(full.sql`SELEC 1`, "sql_error");
  }
}
