// How calls are written as requests.
import assert from "node:assert/strict";
import test from "node:test";
import { serve, success } from "./server.mjs";

/** Returns the body of the read that these options make. */
async function bodyOf(options) {
  const { selkie, sent } = serve([success([])]);
  await selkie.table("shop.orders").list(options);
  assert.equal(`${sent[0].method} ${sent[0].path}`, "POST crud/shop/orders/query");
  return sent[0].body;
}

const WHERE = [
  [
    { status: "open", note: null, id: [1, 2] },
    { status: "open", note: null, id: [1, 2] },
  ],
  [{ views: { gte: 1, lt: 9 } }, { views: { gte: 1, lt: 9 } }],
  [{ note: { not: { contains: "a" } } }, { note: { __query: { note: { contains: "a" } }, not: true } }],
  [
    { note: { startsWith: "a", not: { contains: "b" } } },
    {
      note: {
        operator: "AND",
        __query: {
          0: { __query: { note: { startsWith: "a" } } },
          1: { __query: { note: { contains: "b" } }, not: true },
        },
      },
    },
  ],
  [
    { or: [{ a: 1 }, { b: { lt: 2 }, c: 3 }] },
    {
      or: {
        operator: "OR",
        __query: {
          0: { operator: "AND", __query: { a: 1 } },
          1: { operator: "AND", __query: { b: { lt: 2 }, c: 3 } },
        },
      },
    },
  ],
  [{ or: [1, 2] }, { or: [1, 2] }],
  [{ lines: { some: { amount: { gt: 2 } }, none: {} } }, { lines: { some: { amount: { gt: 2 } }, none: {} } }],
  [{ meta: { value: { a: 1 } } }, { meta: { value: { a: 1 } } }],
  [{ "customers.name": "Ann" }, { "customers.name": "Ann" }],
  [{ at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
  [{ id: 9007199254740993n }, { id: "9007199254740993" }],
];

test("conditions become the API's", async () => {
  for (const [where, query] of WHERE) assert.deepEqual((await bodyOf({ where })).query, query);
});

test("an undefined condition is refused before anything is sent", async () => {
  const { selkie, sent } = serve([]);
  const orders = selkie.table("shop.orders");
  await assert.rejects(orders.list({ where: { owner: undefined } }), /The condition owner is undefined/);
  await assert.rejects(
    orders.remove({ where: { owner: { eq: undefined } } }),
    /operator eq of the condition owner is undefined/,
  );
  await assert.rejects(orders.remove({ where: undefined }), TypeError);
  assert.deepEqual(sent, []);
});

test("orders become the API's", async () => {
  const orders = [
    ["id", [{ field: "id" }]],
    ["-id", [{ field: "id", strategy: "DESC" }]],
    [
      { a: "asc", b: "desc" },
      [
        { field: "a", strategy: "ASC" },
        { field: "b", strategy: "DESC" },
      ],
    ],
    [
      ["-a", { b: "asc" }],
      [
        { field: "a", strategy: "DESC" },
        { field: "b", strategy: "ASC" },
      ],
    ],
    [{ field: "name", tableName: "customers" }, [{ field: "name", tableName: "customers" }]],
    [{ field: "desc" }, [{ field: "field", strategy: "DESC" }]],
  ];
  for (const [order, expected] of orders) assert.deepEqual((await bodyOf({ order })).order, expected);
});

test("included relations become the API's", async () => {
  const include = {
    customer: { select: ["name"] },
    lines: { as: "first", where: { amount: { gt: 1 } }, order: "-id", limit: 1, include: { product: true } },
    skipped: undefined,
    tags: true,
  };
  const expected = [
    { relation: "customer", selectFields: ["name"] },
    {
      relation: "lines",
      as: "first",
      query: { amount: { gt: 1 } },
      order: [{ field: "id", strategy: "DESC" }],
      limit: 1,
      include: ["product"],
    },
    "tags",
  ];
  assert.deepEqual((await bodyOf({ include })).include, expected);
  assert.deepEqual((await bodyOf({ include: ["tags", { customer: true }] })).include, ["tags", "customer"]);
  // The API's own name would be `lines`.
  assert.deepEqual((await bodyOf({ include: ["lines.order_id"] })).include, [
    { relation: "lines.order_id", as: "lines.order_id" },
  ]);
  assert.deepEqual((await bodyOf({ include: { "lines.order_id": { as: "all" } } })).include, [
    { relation: "lines.order_id", as: "all" },
  ]);
});

test("the other options keep their names", async () => {
  const options = {
    limit: 1,
    offset: 2,
    count: true,
    group: "a",
    distinct: true,
    join: [{ tableName: "t" }],
    fullTextSearch: { fields: ["a"] },
  };
  assert.deepEqual(await bodyOf({ ...options, select: ["a"], timeout: 9, headers: {} }), {
    ...options,
    selectFields: ["a"],
  });
});

test("keys and names are encoded as parts of a path", async () => {
  const keys = [
    [7, "7"],
    ["a/b?c,d", "a%2Fb%3Fc%2Cd"],
    [[4, "x,y"], "4,x%2Cy"],
    [10n, "10"],
    ["$ref:0", "%24ref%3A0"],
  ];
  for (const [key, path] of keys) {
    const { selkie, sent } = serve([success({})]);
    await selkie.table("my shop.or/ders.old").get(key);
    assert.equal(sent[0].path, `crud/my%20shop/or%2Fders.old/${path}`);
  }
  for (const key of ["", ".", "..", undefined, null, { id: 7 }]) {
    await assert.rejects(serve([]).selkie.table("a.b").get(key), /A record has no key/);
  }
  for (const name of ["orders", ".a", "a."]) assert.throws(() => serve([]).selkie.table(name), /is no name of a table/);
});

test("options of a record and of writes stand in the URL", async () => {
  const { selkie, sent } = serve([success({}), success(1), success([]), success(0), success(1)]);
  const orders = selkie.table("shop.orders");
  await orders.get(7, { select: ["id", "note"], include: { customer: true } });
  await orders.insert([{ a: 1 }], { returning: ["id", "a"], onConflict: "update", idempotencyKey: "mine" });
  await orders.update({ where: { a: { lt: 3 } } }, { b: { $add: 1 } }, { returning: "*", maxAffected: 2 });
  await orders.remove({ where: { a: 1 } }, { dryRun: true });
  await orders.update(7, { a: 1 }, { ifMatch: '"t"' });
  const [get, insert, update, remove, match] = sent;
  assert.equal(decodeURIComponent(get.path), 'crud/shop/orders/7?selectFields=["id","note"]&include=["customer"]');
  assert.deepEqual(
    [insert.path, insert.body],
    ["crud/shop/orders?returning=id%2Ca&onConflict=update", { batchData: [{ a: 1 }] }],
  );
  assert.equal(insert.headers["idempotency-key"], "mine");
  assert.equal(
    `${update.method} ${decodeURIComponent(update.path)}`,
    "PATCH crud/shop/orders?returning=*&maxAffected=2",
  );
  assert.deepEqual(update.body, { query: { a: { lt: 3 } }, data: { b: { $add: 1 } } });
  assert.deepEqual(
    [remove.method, remove.path, remove.body],
    ["DELETE", "crud/shop/orders?dryRun=true", { query: { a: 1 } }],
  );
  assert.equal(match.headers["if-match"], '"t"');
});

test("values of SQL become parameters, and lists several", async () => {
  const { selkie, sent } = serve([success([]), success([])], { database: "shop" });
  await selkie.sql`SELECT * FROM a WHERE b = ${"x'; DROP TABLE a"} AND c IN (${[1, 2n]}) AND d < ${new Date(0)}`;
  await selkie.sql({ database: "other" })`SELECT 1`;
  assert.deepEqual(sent[0].body, {
    query: "SELECT * FROM a WHERE b = ? AND c IN (?, ?) AND d < ?",
    params: ["x'; DROP TABLE a", 1, "2", "1970-01-01 00:00:00.000"],
    database: "shop",
  });
  assert.deepEqual(sent[1].body, { query: "SELECT 1", params: [], database: "other" });
});

test("changes of tables are one request each", async () => {
  const { selkie, sent } = serve([success({}), success({}), success({}), success({}), success({}), success({})]);
  await selkie.schema.create("shop.a b", { columns: [{ name: "id", type: "int" }] });
  await selkie.schema.alter("shop.orders", { primaryKey: null }, { dryRun: true });
  await selkie.schema.truncate("shop.orders");
  await selkie.schema.drop("shop.orders", { dryRun: false });
  await selkie.schema.table("shop.a b");
  await selkie.schema.database("shop");
  assert.deepEqual(
    sent.map(({ method, path, body }) => [method, path, body]),
    [
      ["POST", "schema", { database: "shop", table: "a b", create: { columns: [{ name: "id", type: "int" }] } }],
      ["POST", "schema?dryRun=true", { database: "shop", table: "orders", alter: { primaryKey: null } }],
      ["POST", "schema", { database: "shop", table: "orders", truncate: true }],
      ["POST", "schema?dryRun=false", { database: "shop", table: "orders", drop: true }],
      ["GET", "schema/shop/a%20b", undefined],
      ["GET", "schema/shop", undefined],
    ],
  );
});

test("operations of a batch refer to new records by their place in the list", async () => {
  const { selkie, sent } = serve([success([1, [2, 3], 1, {}, 1])]);
  await selkie.batch((batch) => {
    const author = batch.table("d.authors").insert({ name: "Ann" });
    const posts = batch.table("d.posts").insert([{ author: author.id }, { author: author.id }]);
    const first = batch.table("d.posts").update(posts.row(0), { title: "a" }, { ifMatch: "*" });
    const tag = batch.table("d.post_tags").get([posts.row(1), 17]);
    return [author, posts, first, tag, batch.table("d.posts").remove({ where: { author: { ne: author.id } } })];
  });
  assert.deepEqual(sent[0].body.operations, [
    { method: "POST", path: "d/authors", body: { name: "Ann" } },
    { method: "POST", path: "d/posts", body: { batchData: [{ author: { $ref: 0 } }, { author: { $ref: 0 } }] } },
    { method: "PATCH", path: "d/posts/$ref:1:0", body: { title: "a" }, ifMatch: "*" },
    { method: "GET", path: "d/post_tags/$ref:1:1,17" },
    { method: "DELETE", path: "d/posts", body: { query: { author: { ne: { $ref: 0 } } } } },
  ]);
  const lost = selkie.batch((batch) => [
    batch.table("d.posts").insert({ author: batch.table("d.authors").insert({}).id }),
  ]);
  await assert.rejects(lost, /refers to an operation that is not in its list/);
});
