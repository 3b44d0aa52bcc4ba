// Reads whole lists by `pages` and by `stream`, and prints their records by the list's name.
import { createClient } from "@selkie/client";

const { SELKIE_URL: url, SELKIE_KEY: key, SELKIE_DATABASE: database, SELKIE_READS: reads } = process.env;
const selkie = createClient({ url, key });
const whole = {};
for (const {
  name,
  table,
  options: { selectFields, ...rest },
} of JSON.parse(reads)) {
  const options = { ...rest, ...(selectFields && { select: selectFields }) };
  const of = selkie.table(`${database}.${table}`);
  const [pages, pagesFrom, stream, streamTo] = [[], [], [], []];
  for await (const page of of.pages({ ...options, limit: 3 })) pages.push(...page);
  for await (const page of of.pages({ ...options, limit: 3, page: 2 })) pagesFrom.push(...page);
  for await (const record of of.stream(options)) stream.push(record);
  for await (const record of of.stream({ ...options, limit: 6 })) streamTo.push(record);
  whole[name] = { pages, pagesFrom, stream, streamTo };
}
console.log(JSON.stringify(whole));
