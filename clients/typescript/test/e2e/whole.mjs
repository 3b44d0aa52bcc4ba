// Reads whole lists by `pages`, by `stream` and in batches, and files, and prints them by the list's name.
import { createClient } from "@selkie/client";

const {
  SELKIE_URL: url,
  SELKIE_KEY: key,
  SELKIE_DATABASE: database,
  SELKIE_READS: reads,
  SELKIE_FOLDER: folder,
} = process.env;
const selkie = createClient({ url, key });
const LIMIT = 3;

/** Reads parts by `offset`, for as long as the list says that more follow. */
async function parts(list) {
  const all = [];
  for (;;) {
    const part = await list({ limit: LIMIT, offset: all.length });
    all.push(...part);
    if (!part.more || !part.length) return all;
  }
}

const whole = { files: await parts((part) => selkie.media.list({ folder, order: "name", ...part })) };
for (const {
  name,
  table,
  options: { selectFields, ...rest },
} of JSON.parse(reads)) {
  const options = { ...rest, ...(selectFields && { select: selectFields }) };
  const of = selkie.table(`${database}.${table}`);
  const [pages, pagesFrom, stream, streamTo] = [[], [], [], []];
  for await (const page of of.pages({ ...options, limit: LIMIT })) pages.push(...page);
  for await (const page of of.pages({ ...options, limit: LIMIT, page: 2 })) pagesFrom.push(...page);
  for await (const record of of.stream(options)) stream.push(record);
  for await (const record of of.stream({ ...options, limit: 6 })) streamTo.push(record);
  const one = (part) => (batch) => [batch.table(`${database}.${table}`).list({ ...options, ...part })];
  const batch = await parts(async (part) => (await selkie.batch(one(part)))[0]);
  whole[name] = { pages, pagesFrom, stream, streamTo, batch };
}
console.log(JSON.stringify(whole));
