// Writes origin/src/query/sql/spellings.txt: reads, each in the notations that client libraries produce.
//
// The file is committed; this runs only to add a read or to look at a newer library, with qs and axios installed where
// node finds them and PHP 8 at hand:  npm install --no-save qs axios && PHP=php node tools/spellings.mjs
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "spellings.js"));
const qs = require("qs");
const axios = require("axios");
const target = process.argv[2] ?? "origin/src/query/sql/spellings.txt";

const numbers = Array.from({ length: 45 }, (_, index) => index * 3);

/** Reads without null, which only JSON and qs with strictNullHandling can write. */
const READS = {
  "A page in one order": { limit: 10, offset: 20, order: { field: "views", strategy: "DESC" } },
  "A page by its number": { limit: 10, page: 3, order: [{ field: "views", strategy: "desc" }, { field: "id" }] },
  "A list of fields": { selectFields: ["id", "title", "price"], order: { field: "id" } },
  "One field": { selectFields: ["title"] },
  "Fields left out": { omitFields: ["raw", "meta", "place"] },
  "Equalities of every type": {
    query: { id: 5, title: "two words", price: "12.50", ratio: 0.25, at: "2026-11-20 08:36:16" },
  },
  "Text that a URL must encode": {
    query: { title: { value: "100% a+b & c=d #1 [x] ü 🦭", equality: "!=" } },
  },
  "Text that looks like JSON": { query: { title: { value: ["[1]", '{"a":1}', '"q"', "null", "true"] } } },
  "Empty text": { query: { title: "" } },
  "A field whose name needs quoting": { selectFields: ["a`b"], query: { "a`b": "x" } },
  "Any of two conditions": {
    query: { views: { value: 5000, equality: ">" }, title: { value: "sea", equality: "CONTAINS" } },
    searchOperator: "OR",
  },
  "Conditions turned round": {
    query: { id: { value: [1, 2, 3], not: true }, views: { value: 7, not: false, equality: ">=" } },
  },
  "Lists of values": {
    query: {
      id: [4, 8, 15],
      views: { value: [10, 20], equality: "BETWEEN" },
      title: { value: ["a%", "%z"], equality: "LIKE", operator: "AND" },
    },
  },
  "A list past twenty values": { query: { id: { value: numbers, equality: "IN" } } },
  "A list of one value": { query: { id: { value: [7], equality: "NOT IN" } } },
  "Groups in groups": {
    query: {
      views: { value: 5, equality: ">" },
      either: {
        __query: {
          title: { value: "x" },
          deeper: { __query: { id: [1, 2], views: { equality: "IS NULL" } } },
        },
        operator: "OR",
      },
    },
  },
  "Two conditions on one field": {
    query: {
      from: { fieldName: "views", value: 5, equality: ">=" },
      to: { fieldName: "views", value: 9, equality: "<=" },
    },
  },
  "Aliases and aggregates": {
    selectFields: [
      "title",
      { fieldName: "views", aggregate: "AVG", alias: "mean" },
      { aggregate: "COUNT", alias: "n" },
    ],
    group: ["title"],
    order: [{ field: "mean", strategy: "DESC" }, { field: "title" }],
    limit: 5,
  },
  "Rows told apart, and counted": { distinct: true, count: true, selectFields: ["title", "views"], limit: 5 },
  "What is not asked for": { distinct: false, count: false, limit: 1 },
  "A search": {
    fullTextSearch: { fields: ["title"], searchTerm: "kelp +forest", mode: "boolean", scoreAlias: "score" },
    limit: 3,
  },
  "Joins, one in an object": {
    selectFields: ["id"],
    join: [
      {
        tableName: "links",
        joinType: "LEFT JOIN",
        match: [
          { source: "id", target: "post_id" },
          { source: { tableName: "links", fieldName: "state" }, targetLiteral: "live" },
        ],
        selectFields: ["state"],
      },
      {
        tableName: "users",
        alias: "author",
        joinType: "INNER JOIN",
        match: { source: { tableName: "links", fieldName: "user_id" }, target: "id" },
        selectFields: ["name", { fieldName: "boss_id", alias: "boss" }],
        nest: true,
      },
    ],
    query: { name: { tableName: "author", value: "Ann" }, "links.state": "live" },
    order: [{ field: "author.name" }, { field: "post_id", tableName: "links", strategy: "DESC" }],
  },
};

/** Reads that contain null. */
const WITH_NULL = {
  "A field without a value": { query: { title: null, views: 5 } },
  "Null inside a condition": { query: { views: { value: null, equality: "!=" } } },
};

const plain = (value) => typeof value !== "object";
const lists = (value) =>
  plain(value) || value === null
    ? []
    : [...(Array.isArray(value) ? [value] : []), ...Object.values(value).flatMap(lists)];
const ofObjects = (options) => lists(options).some((list) => !list.every(plain));
const longest = (options) => Math.max(0, ...lists(options).map((list) => list.length));

const json = (options) =>
  Object.entries(options)
    .map(([name, value]) => `${name}=${encodeURIComponent(plain(value) ? value : JSON.stringify(value))}`)
    .join("&");
const form = (options) =>
  new URLSearchParams(
    Object.entries(options).map(([name, value]) => [name, plain(value) ? String(value) : JSON.stringify(value)]),
  ).toString();
const axiosUrl = (options, paramsSerializer) =>
  axios.getUri({ url: "/", params: options, paramsSerializer }).slice("/?".length);
const php = (options, encoding) =>
  execFileSync(
    process.env.PHP ?? "php",
    ["-n", "-r", `echo http_build_query(json_decode(stream_get_contents(STDIN), true), "", "&", ${encoding});`],
    { input: JSON.stringify(options), encoding: "utf8" },
  );
const comma = (options) => {
  const named = (name, value) => /^(select|omit)Fields$/.test(name) && Array.isArray(value) && value.every(plain);
  return Object.entries(options)
    .map(([name, value]) => (named(name, value) ? `${name}=${value.join(",")}` : json({ [name]: value })))
    .join("&");
};

function spellings(options) {
  const lines = [
    ["twin", JSON.stringify(options)],
    ["json", json(options)],
    ["form", form(options)],
    ["comma", comma(options)],
    ["qs", qs.stringify(options)],
    ["qs-values", qs.stringify(options, { encodeValuesOnly: true })],
    ["qs-form", qs.stringify(options, { format: "RFC1738" })],
  ];
  if (!ofObjects(options)) {
    lines.push(["qs-brackets", qs.stringify(options, { arrayFormat: "brackets" })]);
  }
  lines.push(
    ["axios", axiosUrl(options)],
    ["axios-indexes", axiosUrl(options, { indexes: true })],
    ["php", php(options, "PHP_QUERY_RFC1738")],
    ["php-raw", php(options, "PHP_QUERY_RFC3986")],
  );
  return lines;
}

const names = { selectFields: ["id", "title"], order: ["-views", "id"], count: true };

/** Reads in notations that only some libraries have. */
const SPELT = {
  "Lists as one parameter an item, and an order by names": [
    ["twin", JSON.stringify(names)],
    ["twin", JSON.stringify({ ...names, order: [{ field: "views", strategy: "DESC" }, { field: "id" }] })],
    ["qs-repeat", qs.stringify(names, { arrayFormat: "repeat" })],
    ["qs-comma", qs.stringify(names, { arrayFormat: "comma" })],
    ["axios-plain", axiosUrl(names, { indexes: null })],
    ["requests", "selectFields=id&selectFields=title&order=-views&order=id&count=True"],
  ],
  "An empty map": [
    ["twin", '{"query":{},"limit":5}'],
    ["php-json", "query=%5B%5D&limit=5"],
  ],
};

const REFUSED = {
  "A list inside of an option that is the same parameter again": [
    ["qs-repeat", qs.stringify({ query: { id: { value: [1, 2] } } }, { arrayFormat: "repeat" })],
  ],
  "Objects in a list without numbers": [
    ["qs-brackets", qs.stringify({ order: READS["A page by its number"].order }, { arrayFormat: "brackets" })],
    ["qs-brackets", qs.stringify({ join: READS["Joins, one in an object"].join }, { arrayFormat: "brackets" })],
  ],
  "Objects in a comma list": [
    ["qs-comma", qs.stringify({ order: READS["A page by its number"].order }, { arrayFormat: "comma" })],
  ],
  "Dots instead of brackets": [
    ["qs-dots", qs.stringify({ order: { field: "id" } }, { allowDots: true })],
    ["axios-dots", axiosUrl({ order: { field: "id" } }, { dots: true })],
  ],
  "Objects that became text": [["url", new URLSearchParams({ order: { field: "id" } }).toString()]],
};

const version = (name) => JSON.parse(readFileSync(require.resolve(`${name}/package.json`), "utf8")).version;
const phpVersion = execFileSync(process.env.PHP ?? "php", ["-n", "-r", "echo PHP_VERSION;"], { encoding: "utf8" });
const blocks = [
  `# Reads, each in every spelling that callers' libraries give it: all of a block become the same SQL, or are all
# refused. Written by tools/spellings.mjs with qs ${version("qs")}, axios ${version("axios")} and PHP ${phpVersion}.
#
# twin: the body of the POST twin. json: one JSON value a parameter, encoded by encodeURIComponent; form: by
# URLSearchParams; comma: with lists of names as a,b. qs: its default; -values: with encodeValuesOnly; -form: RFC 1738;
# -brackets: arrayFormat brackets; -nulls: strictNullHandling. axios: its default; -indexes: with indexes.
# php: http_build_query; -raw: RFC 3986; -json: json_encode. qs-repeat, -comma: these arrayFormats. axios-plain: without
# indexes. requests: Python's.`,
];
const block = (title, lines) => [`# ${title}`, ...lines.map((line) => line.join(" "))].join("\n");
for (const [title, options] of Object.entries(READS)) {
  blocks.push(block(title, spellings(options)));
}
for (const [title, options] of Object.entries(WITH_NULL)) {
  blocks.push(
    block(title, [
      ["twin", JSON.stringify(options)],
      ["json", json(options)],
      ["form", form(options)],
      ["qs-nulls", qs.stringify(options, { strictNullHandling: true })],
    ]),
  );
}
for (const [title, lines] of Object.entries(SPELT)) {
  blocks.push(block(title, lines));
}
for (const [title, lines] of Object.entries(REFUSED)) {
  blocks.push(block(`Refused: ${title}`, lines));
}
writeFileSync(target, `${blocks.join("\n\n")}\n`);
console.log(`${target}: ${Object.keys(READS).length} reads, longest list ${longest(READS)}`);
