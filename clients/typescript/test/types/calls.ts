// Types of calls and their answers: it must compile, and each @ts-expect-error must be an error. It is never run.
import {
  createClient,
  isSelkieError,
  type SchemaChange,
  type SqlChange,
  type UploadedFile,
  verifyWebhook,
} from "@selkie/client";
import type { Database } from "./database.js";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Fails to compile unless `value` has exactly the type `T`. */
declare function is<T>(): <V>(value: V, ...same: Equal<V, T> extends true ? [] : [expected: T, got: V]) => void;

const selkie = createClient<Database>({ url: "http://localhost", key: async (expired) => (expired ? "new" : "old") });
const orders = selkie.table("shop.orders");
const lines = selkie.table("shop.order_lines");
type Order = Database["shop"]["orders"]["row"];
type Line = Database["shop"]["order_lines"]["row"];

// Names
// @ts-expect-error: no such table
selkie.table("shop.order");

// Reads
is<Order | null>()(await orders.get(7));
is<{ id: number; total: string } | null>()(await orders.get(7, { select: ["id", "total"] }));
is<{ id: number; name: string } | undefined>()((await selkie.table("shop.customers").list({ omit: ["email"] }))[0]);
const list = await orders.list({
  select: ["id", "total"],
  where: { status: "open", total: { gt: "10" } },
  order: { id: "desc" },
  limit: 20,
  include: { customer: { select: ["name"] }, order_lines: true },
});
is<{ id: number; total: string; customer: { name: string } | null; order_lines: Line[] }>()(list[0]!);
is<string | undefined>()(list.next);
is<number | undefined>()(list.count);
is<number>()(await orders.count({ where: { note: null } }));
for await (const page of orders.pages({ select: ["id"], limit: 500 })) is<{ id: number }>()(page[0]!);
for await (const order of orders.stream({ select: ["note"] })) is<{ note: string | null }>()(order);

// Related records
const nested = await orders.get(7, {
  select: ["id"],
  include: [
    "customer",
    { order_lines: { as: "first", limit: 1, select: ["product"], include: { order: { select: ["at"] } } } },
    { order_lines: { as: "cheap", where: { amount: { lt: 3 } }, order: "-amount", select: ["line"] } },
  ],
});
is<{ product: string; order: { at: string } | null }[]>()(nested!.first);
is<{ line: number }[]>()(nested!.cheap);
is<{ id: number; name: string; email: string | null } | null>()(nested!.customer);

// Aggregates and further fields
const [sums] = await orders.list({
  select: [
    "status",
    { aggregate: "COUNT", fieldName: "id", alias: "orders" },
    { aggregate: "MAX", fieldName: "at" },
    { fieldName: "note", alias: "why" },
  ],
  group: "status",
});
is<{ status: "open" | "paid"; orders: number; max_at: string | null; why: string | null }>()(sums!);
await orders.list({
  select: ["status", { aggregate: "SUM", fieldName: "total", alias: "sum" }],
  group: "status",
  order: "-sum",
});
const [yearly] = await orders.list({
  select: [
    { fieldName: "at", part: "year" },
    { fieldName: "at", part: "month", alias: "in" },
    { expression: "total * (1 - 0.1)", aggregate: "SUM", alias: "net" },
  ],
  group: [{ fieldName: "at", part: "year" }, { fieldName: "at", part: "month" }, "status"],
  order: "-net",
});
is<{ year_at: number | null; in: number | null; net: string | number | null }>()(yearly!);
await orders.list({
  select: [{ aggregate: "COUNT", fieldName: "id" }, "status"],
  group: "status",
  order: ["-count_id", { status: "asc" }],
});
await orders.list({
  fullTextSearch: { fields: ["note"], searchTerm: "gift", scoreAlias: "score" },
  order: { score: "desc" },
});
// @ts-expect-error: neither a field nor an alias
await orders.list({ select: [{ aggregate: "COUNT", fieldName: "id", alias: "orders" }], order: "-order" });
const [scored] = await orders.list({
  select: ["id"],
  fullTextSearch: { fields: ["note"], searchTerm: "gift", scoreAlias: "score" },
});
is<{ id: number; score: number }>()(scored!);
const [joined] = await orders.list({
  select: ["id"],
  join: [{ tableName: "customers", match: { source: "customer_id", target: "id" } }],
});
is<any>()(joined!.name);

// Conditions
await orders.list({
  where: {
    or: [{ status: "paid" }, { and: [{ views: { gte: 3, lt: 9 } }, { note: { not: { contains: "gift" } } }] }],
    id: [1, 2, 3],
    at: { between: [new Date(0), new Date()] },
    total: { value: "3", equality: "<=>" },
    order_lines: { some: { amount: { gt: 2 } } },
    customer: { every: { name: { startsWith: "A" } } },
    "customers.name": "Ann",
  },
  order: ["-at", "id", { note: "asc" }, { tableName: "customers", field: "name" }],
});
// @ts-expect-error: no such field
await orders.list({ where: { stat: "open" } });
// @ts-expect-error: not a value of the field
await orders.list({ where: { status: "lost" } });
// @ts-expect-error: no such operator
await orders.list({ where: { total: { above: "3" } } });
// @ts-expect-error: a condition on a field of the related table that it lacks
await orders.list({ where: { order_lines: { some: { name: "x" } } } });
// @ts-expect-error: no such option
await orders.list({ limt: 3 });
// @ts-expect-error: no such field
await orders.list({ select: ["id", "totl"] });
// @ts-expect-error: no such relation
await orders.list({ include: { customer: true, lines: true } });
// @ts-expect-error: no such relation
await orders.list({ include: ["lines"] });
// @ts-expect-error: no such option of a relation
await orders.list({ include: { customer: { fields: ["name"] } } });
// @ts-expect-error: no such relation of the related table
await orders.list({ include: { customer: { include: { invoices: true } } } });
// @ts-expect-error: a field that was not selected
list[0]!.note;
// @ts-expect-error: no such order
await orders.list({ order: "-totl" });

// Writes
is<number>()(await orders.insert({ total: "3.20" }));
await orders.insert({ total: 3.2, at: new Date(), views: 9007199254740993n, customer_id: 7n, note: null });
is<number[]>()(await orders.insert([{ total: "3.20" }, { total: "4", note: null }]));
is<number | null>()(await orders.insert({ total: "3" }, { onConflict: "ignore" }));
is<Order>()(await orders.insert({ total: "3" }, { returning: "*" }));
is<{ id: number; at: string }[]>()(await orders.insert([{ total: "3" }], { returning: ["id", "at"] }));
is<number>()(await orders.insert({ total: "3" }, { dryRun: true }));
is<number>()(await orders.update(7, { status: "paid", views: { $add: 1 } }));
is<number>()(await orders.update({ where: { status: "open" } }, { status: "paid" }, { maxAffected: 9 }));
is<Order | null>()(await orders.update(7, { note: null }, { returning: "*", ifMatch: '"tag"' }));
is<{ id: number }[]>()(await orders.remove({ where: { id: [1, 2] } }, { returning: ["id"] }));
is<number>()(await lines.remove([7, 1]));
is<number>()(await lines.remove("7,1"));
// @ts-expect-error: a field that an insert needs
await orders.insert({ note: "gift" });
// @ts-expect-error: no such field
await orders.insert({ total: "3", totl: "3" });
// @ts-expect-error: no such field
await orders.update(7, { stat: "paid" });
// @ts-expect-error: the wrong type
await orders.update(7, { status: 3 });
// @ts-expect-error: no key
await orders.remove({ id: 7 });

// Changes and live lists
for await (const change of orders.changes({ select: ["id", "note"], where: { status: "open" } })) {
  if (change.type === "update") is<{ id: number; note: string | null }>()(change.record);
  if (change.type === "delete") is<{ id: number; note: string | null } | undefined>()(change.record);
  is<number>()(change.key);
  is<"insert" | "update" | "delete">()(change.type);
}
for await (const change of orders.changes({ snapshot: true, onReady: (next) => is<string>()(next) }))
  if (change.type === "resync") is<string>()(change.reason);
// @ts-expect-error: changes have no order
orders.changes({ order: "id" });
const latest = orders.live({ omit: ["note"], where: { status: "open" }, order: ["-at", "id"], limit: 20 });
is<readonly Omit<Order, "note">[]>()(latest.records);
for await (const records of latest) is<readonly Omit<Order, "note">[]>()(records);
is<() => void>()(latest.subscribe((records) => is<string | undefined>()(records[0]?.total)));
// @ts-expect-error: no such field
orders.live({ order: "totals" });

// Batches
const answers = await selkie.batch((batch) => {
  const customer = batch.table("shop.customers").insert({ name: "Ann" });
  const order = batch.table("shop.orders").insert({ customer_id: customer.id, total: "9" }, { returning: ["id"] });
  const some = batch.table("shop.order_lines").insert([{ order_id: order.id, line: 1, product: "tea" }]);
  return [
    customer,
    order,
    some,
    batch.table("shop.orders").get(order.id, { select: ["at"], include: { customer: true } }),
    batch.table("shop.orders").list({ select: ["id"], limit: 3 }),
  ];
});
is<number>()(answers[0]);
is<{ id: number }>()(answers[1]);
is<string[]>()(answers[2]);
is<string>()(answers[3].at);
is<number>()(answers[4][0]!.id);
is<(boolean | undefined)[]>()([answers.more, answers.limited, answers[4].more]);

// SQL
is<Record<string, any>[]>()(await selkie.sql`SELECT ${1}`);
is<{ id: number }[]>()(await selkie.sql<{ id: number }[]>`SELECT id FROM orders WHERE id IN (${[1, 2]})`);
is<SqlChange>()(await selkie.sql({ database: "shop" })<SqlChange>`DELETE FROM orders WHERE at < ${new Date()}`);
// @ts-expect-error: no value of SQL
await selkie.sql`SELECT ${{ a: 1 }}`;

// Schemas
is<SchemaChange>()(await selkie.schema.alter("shop.orders", { dropColumns: ["a"] }, { dryRun: true }));
is<string>()((await selkie.schema.table("shop.orders")).create);
// @ts-expect-error: a column needs a type
await selkie.schema.create("shop.new", { columns: [{ name: "id" }] });
// What `table` returns can be sent back.
await selkie.schema.create("shop.copy", { columns: (await selkie.schema.table("shop.orders")).columns });

// Media
is<UploadedFile>()(
  await selkie.media.upload(new Blob(["a"]), {
    name: "a.txt",
    folder: "notes",
    onProgress: ({ sent, total }) => sent / total,
  }),
);
is<string>()((await selkie.media.sign(3, { expiresIn: 60 })).url);
const files = await selkie.media.list({ folder: "notes", limit: 3, count: true });
is<(boolean | undefined)[]>()([files.more, files.limited]);

// Errors
try {
  await orders.get(7);
} catch (error) {
  if (isSelkieError(error, "duplicate_key", "deadlock")) {
    is<"duplicate_key" | "deadlock">()(error.code);
    is<string | undefined>()(error.details.constraint);
    // @ts-expect-error: not one of the codes
    if (error.code === "rate_limited") throw error;
  }
}

// Without generated types
const untyped = createClient({ url: "http://localhost", key: "key" });
const anything = await untyped.table("shop.orders").list({
  select: ["id"],
  where: { status: "open", total: { gt: 3 }, lines: { some: { amount: 1 } } },
  order: { id: "desc" },
  include: { customer: { select: ["name"] } },
});
is<any>()(anything[0]);
is<any>()(await untyped.table("any.table").get("key"));
is<any>()(await untyped.table("any.table").insert({ a: 1 }));
is<any>()(await untyped.table("any.table").update(1, { a: 1 }, { returning: ["a"] }));
// @ts-expect-error: no name of a table
untyped.table("orders");

// Webhooks
const delivery = await verifyWebhook("{}", new Headers(), ["whsec_AA=="], { toleranceSeconds: 60 });
await verifyWebhook("{}", { "webhook-id": "a", cookie: ["b"], host: undefined }, "whsec_AA==");
is<string>()(delivery.changes[0]!.subscription);
is<{ reason: string; since: string } | undefined>()(delivery.resync);
is<true | undefined>()(delivery.test);
// @ts-expect-error: parsed already
await verifyWebhook({ changes: [] }, {}, "whsec_AA==");
