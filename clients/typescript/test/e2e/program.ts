// A program of another project, which has the client from its package and its database's types beside.
import { createClient, type SelkieError } from "@selkie/client";
import type { Database } from "./database.js";

declare const process: { env: Record<string, string> };
const { SELKIE_URL: url = "", SELKIE_KEY: key = "", SELKIE_DATABASE: name } = process.env;
const selkie = createClient<Database>({ url, key });
// Under the name that the database has in this run.
const orders = selkie.table(`${name}.orders` as "shop.orders");

const id: number = await orders.insert({ total: "3.20", note: "from a program" });
const order: { total: string; customer: { name: string } | null } | null = await orders.get(id, {
  select: ["total"],
  include: { customer: { select: ["name"] } },
});
const code: string = await orders.insert({ total: "x" }).then(
  () => "none",
  (error: SelkieError) => error.code,
);
console.log(JSON.stringify([order, code, await orders.remove(id)]));
