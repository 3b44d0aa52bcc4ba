// Calls the API by openapi-fetch with the types that openapi-typescript makes of the OpenAPI document. The end-to-end
// suite writes the name of its database in place of DATABASE, compiles this file, and runs it.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { env: Record<string, string> };
const client = createClient<paths>({
  baseUrl: `${process.env.SELKIE_URL}/api/v1`,
  headers: { authorization: `Bearer ${process.env.SELKIE_KEY}` },
});

const { data, error } = await client.GET("/crud/DATABASE/posts", {
  params: { query: { limit: 2, order: ["-views"], query: JSON.stringify({ price: { value: 0, equality: ">" } }) } },
});
if (!data) throw new Error(error.error.message);
const first: components["schemas"]["DATABASE.posts"] = data.payload[0]!;
const { title, price, secret_note }: { title: string; price: string; secret_note: string | null } = first;
const state: "draft" | "out" | 'it\'s "off"' = first.state;
const more: [string | undefined, boolean | undefined, boolean | undefined] = [data.next, data.more, data.limited];
// @ts-expect-error: no such field
first.titel;
// @ts-expect-error: a DECIMAL is a string
const number: number = first.price;
// @ts-expect-error: a field that an insert needs
client.POST("/crud/DATABASE/posts", { body: { author_id: 1 } }).catch;

const one = await client.GET("/crud/DATABASE/posts/{id}", {
  params: { path: { id: 2 }, query: { selectFields: ["id", "title"] } },
});
const nested = await client.POST("/crud/DATABASE/posts/query", { body: { query: { id: [1] }, include: "author" } });
const inserted = await client.POST("/crud/DATABASE/tags", { body: { name: "pepper" } });
const refused = await client.POST("/crud/DATABASE/tags", { body: { batchData: [{ name: "salt" }] } });
const batch = await client.POST("/batch", {
  body: {
    operations: [
      { method: "GET", path: "DATABASE/tags/1" },
      { method: "PATCH", path: "DATABASE/tags/1", body: { name: "sugar" } },
    ],
  },
});
// @ts-expect-error: a GET takes no body
client.POST("/batch", { body: { operations: [{ method: "GET", path: "a/b", body: {} }] } }).catch;
const key = await client.POST("/keys", { body: { access: "read", expires: "1d" } });
await client.DELETE("/keys/{keyId}", { params: { path: { keyId: key.data!.payload.id } } });
console.log(
  JSON.stringify([
    title,
    price,
    secret_note,
    state,
    typeof more[0],
    one.data?.payload,
    nested.data?.payload[0]?.author?.name,
    inserted.data?.payload,
    refused.error?.error.code,
    refused.error?.error.details?.constraint,
    batch.data?.payload.length,
  ]),
);
