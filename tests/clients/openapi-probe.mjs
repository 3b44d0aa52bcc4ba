// Holds a service to its OpenAPI document: sends requests that the document allows and requests that it forbids, both
// drawn from its schemas, and prints a line for each broken promise. The end-to-end suite runs it:
//
//   node openapi-probe.mjs <base URL> <database> <seed> <rounds>
//
// SELKIE_KEY is the key. The same seed draws the same requests from the same document.
import Ajv from "ajv/dist/2020.js";
import formats from "ajv-formats";

const [base, database, seed, rounds] = process.argv.slice(2);
const api = `${base}/api/v1`;
const authorization = `Bearer ${process.env.SELKIE_KEY}`;
const scope = `database=${encodeURIComponent(database)}`;
const ATTEMPTS_MAX = 5;

/** Sends a request. Repeats a read that an origin on a busy machine did not answer in time, as clients do. */
async function ask(url, init) {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await fetch(url, init);
    const text = await answer.text();
    if (answer.status !== 504 || init.method !== "GET" || attempt === ATTEMPTS_MAX) return { answer, text };
  }
}

const { text } = await ask(`${api}/openapi.json?${scope}`, { method: "GET", headers: { authorization } });
const document = JSON.parse(text);

const ajv = new Ajv({ strict: false, allErrors: false, validateSchema: false });
formats(ajv);
ajv.addSchema({ ...document, $id: "https://document.test/" });
const compiled = new Map();

function check(pointer, value) {
  if (!compiled.has(pointer)) {
    const fragment = pointer.split("/").map(encodeURIComponent).join("/");
    compiled.set(pointer, ajv.compile({ $ref: `https://document.test/#${fragment}` }));
  }
  const validate = compiled.get(pointer);
  return validate(value) ? null : ajv.errorsText(validate.errors);
}

const segment = (text) => text.replaceAll("~", "~0").replaceAll("/", "~1");

// mulberry32
let state = Number(seed) >>> 0;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];
const chance = (probability) => random() < probability;

function follow(schema) {
  while (schema?.$ref) {
    schema = schema.$ref
      .slice(2)
      .split("/")
      .reduce((part, name) => part[name.replaceAll("~1", "/")], document);
  }
  return schema;
}

/** Draws a value that the schema allows, as far as its keywords tell. `names` are the fields of the table. */
function draw(schema, names, depth = 0) {
  schema = follow(schema);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return pick(schema.enum);
  if (schema.examples && chance(0.9)) return pick(schema.examples);
  if (schema.anyOf && !schema.properties) return draw(pick(schema.anyOf), names, depth);
  const type = pick([schema.type ?? ["string", "integer", "null", "object"]].flat());
  switch (type) {
    case "null":
      return null;
    case "boolean":
      return chance(0.5);
    case "integer": {
      const low = Math.max(schema.minimum ?? -5, -1000);
      return low + below(Math.min(schema.maximum ?? 1000, 1000) - low + 1);
    }
    case "number":
      return Math.round(random() * 1000) / 8;
    case "string": {
      if (schema.contentEncoding) return Buffer.from("sea").toString("base64");
      if (schema.pattern) return String(below(100));
      const text = pick(["", "sea", "Ærø", "O'Brien", "a b", "日本", '"', "100%"]);
      return schema.minLength && !text ? "x" : text.slice(0, schema.maxLength ?? 20);
    }
    case "array": {
      const most = depth > 2 ? 1 : 3;
      const count = Math.min(schema.maxItems ?? most, Math.max(schema.minItems ?? 0, below(most + 1)));
      return Array.from({ length: count }, () => (schema.items ? draw(schema.items, names, depth + 1) : 1));
    }
    default: {
      if (schema.required?.includes("coordinates") || schema === follow({ $ref: "#/components/schemas/GeoJson" })) {
        return { type: "Point", coordinates: [below(90), below(90)] };
      }
      const value = {};
      for (const [name, part] of Object.entries(schema.properties ?? {})) {
        const keep = schema.required?.includes(name) || chance(depth > 2 ? 0.1 : 0.6);
        if (keep) value[name] = drawNamed(name, part, names, depth);
      }
      if (schema.anyOf) Object.assign(value, required(pick(schema.anyOf), schema, names, depth));
      if (schema.additionalProperties && depth < 3)
        value[pick(names)] = draw(schema.additionalProperties, names, depth + 1);
      if (schema.minProperties && !Object.keys(value).length) {
        const name = pick(Object.keys(schema.properties ?? { x: {} }));
        value[name] = draw(schema.properties?.[name] ?? {}, names, depth + 1);
      }
      return value;
    }
  }
}

const required = (alternative, schema, names, depth) =>
  Object.fromEntries(
    (alternative.required ?? []).map((name) => [name, draw(schema.properties[name], names, depth + 1)]),
  );

/** Draws a value for an option that names fields or an operator, of which arbitrary texts would tell little. */
function drawNamed(name, schema, names, depth) {
  if (["field", "key", "fieldName", "source", "target"].includes(name)) return pick(names);
  if (["fields", "group", "omitFields"].includes(name)) return [pick(names)];
  if (["selectFields", "select"].includes(name))
    return chance(0.5) ? names.slice(0, 1 + below(3)) : draw(schema, names, depth + 1);
  if (name === "order") return chance(0.5) ? pick(names) : draw(schema, names, depth + 1);
  if (name === "equality") return pick(["=", "!=", ">", "<=", "LIKE", "IN", "IS NULL", "CONTAINS"]);
  return draw(schema, names, depth + 1);
}

/** Returns a value as a query writes it. */
function inQuery(parameter, value) {
  if (parameter.schema.contentSchema) return JSON.stringify(value);
  return Array.isArray(value) ? value.join(",") : String(value);
}

/** Draws values that break the schema of a parameter. */
function wrongText(schema) {
  schema = follow(schema);
  if (schema.enum) return "nonsense";
  if (schema.type === "integer") return pick(["many", "-3", "1.5"]);
  if (schema.type === "boolean") return "maybe";
  if (schema.type === "object" || schema.anyOf) return pick(["17", "[[[", '{"a":'].slice(1));
  return null;
}

/** Changes a valid body so that it may break the schema. The validator decides whether it does. */
function spoil(body) {
  const spoiled = structuredClone(body);
  const into =
    Array.isArray(spoiled?.batchData) && spoiled.batchData[0]
      ? spoiled.batchData[0]
      : spoiled?.data && chance(0.7)
        ? spoiled.data
        : spoiled;
  if (into === null || typeof into !== "object") return [17];
  const names = Object.keys(into);
  switch (below(3)) {
    case 0:
      into[pick(["no_such_part", "Id ", "$where"])] = 1;
      break;
    case 1:
      if (names.length) delete into[pick(names)];
      break;
    default:
      if (names.length)
        into[pick(names)] = pick([["a", 1], { a: { b: 1 } }, "not \u0001 of this type", null, true, 1.5]);
  }
  return spoiled;
}

const failures = [];
let sent = 0;
const seen = new Map();

async function send(operation, pointer, request, expectation) {
  sent += 1;
  const { method, path, query, headers, body } = request;
  const url = `${api}${path}${query.length ? `?${new URLSearchParams(query)}` : ""}`;
  const described = `${operation.operationId}: ${method} ${url.slice(api.length)} ${body === undefined ? "" : JSON.stringify(body).slice(0, 400)}`;
  const init = { method, headers: { authorization, ...headers } };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers["content-type"] = "application/json";
  }
  const { answer, text } = await ask(url, init);
  const status = String(answer.status);
  seen.set(status, (seen.get(status) ?? 0) + 1);
  const fail = (why) => failures.push(`${why}\n    ${described}\n    ${status} ${text.slice(0, 300)}`);
  if (answer.status >= 500) return fail("the service failed");
  if (!operation.responses[status]) return fail("the document has no such status");
  // MariaDB judges lengths and ranges when it finds a record to change.
  const changesNothing = /"payload":(0|null|\[\])[,}]/.test(text);
  if (expectation === "taken" && answer.status >= 400) return fail("the service refused what the document allows");
  if (expectation === "refused" && answer.status < 400 && !changesNothing)
    return fail("the service took what the document forbids");
  const reference = operation.responses[status].$ref;
  const at = reference ? reference.slice(1) : `${pointer}/responses/${status}`;
  const content = follow(operation.responses[status]).content;
  if (!content) return;
  const type = answer.headers.get("content-type").split(";")[0];
  if (!content[type]) return fail(`the document has no ${type}`);
  const value = JSON.parse(text);
  if (value.error && !follow(operation.responses[status]).description.split(", ").includes(value.error.code))
    return fail("the response has no such code");
  // The document describes whole records: a read that selects fields answers less of them.
  if (answer.status === 200 && !request.isWhole && isRead(operation)) return;
  const fault = check(`${at}/content/${segment(type)}/schema`, value);
  if (fault) fail(`the answer is not of its schema: ${fault}`);
}

const isRead = ({ operationId }) => /\.(list|get|query)$/.test(operationId);

const SHAPING = ["selectFields", "select", "omitFields", "join", "include", "group", "fullTextSearch"];
/** What changes more than this database, or asks others. */
const LEFT_OUT = ["databases", "sql", "upload", "deleteFile", "signFile", "files", "file"];

/** Operations of a batch, and whether the service takes them: the document says the same of each. */
const BATCHED = [
  [{ method: "GET", path: `${database}/tags?limit=1` }, true],
  [{ method: "GET", path: `/api/v1/crud/${database}/kinds/1/` }, true],
  [{ method: "GET", path: `${database}/tags/_schema` }, false],
  [{ method: "POST", path: `${database}/tags/query`, body: { limit: 1 } }, true],
  [{ method: "POST", path: `${database}/tags/1`, body: { name: "salt" } }, false],
  [{ method: "PATCH", path: `${database}/tags/1?dryRun=true`, body: { name: "rye" } }, true],
  [{ method: "PATCH", path: `${database}/tags/_schema?dryRun=true`, body: { name: "rye" } }, false],
  [{ method: "DELETE", path: `${database}/kinds/1?dryRun=true` }, true],
  [{ method: "DELETE", path: `${database}/tags/_schema/` }, false],
];
const batch = document.paths["/batch"]?.post;
// Only a full key may do all of these.
if (batch && document.paths["/sql"]) {
  for (const [operation, isTaken] of BATCHED) {
    const request = { method: "POST", path: "/batch", query: [], headers: {}, body: { operations: [operation] } };
    const fault = check("/paths/~1batch/post/requestBody/content/application~1json/schema", request.body);
    if ((fault === null) !== isTaken) failures.push(`the document of ${JSON.stringify(operation)}: ${fault}`);
    await send(batch, "/paths/~1batch/post", request, isTaken ? "taken" : "refused");
  }
}

for (const [path, item] of Object.entries(document.paths)) {
  for (const [method, operation] of Object.entries(item)) {
    if (!operation.responses || LEFT_OUT.includes(operation.operationId)) continue;
    const pointer = `/paths/${segment(path)}/${method}`;
    const name = operation.operationId.replace(/\.[^.]*$/, "");
    const schemas = document.components.schemas;
    const fields = Object.keys(schemas[name]?.properties ?? schemas[`${name}.insert`]?.properties ?? { id: {} });
    const parameters = [...(operation.parameters ?? []), ...(item.parameters ?? [])].map(follow);
    for (let round = 0; round < Number(rounds); round += 1) {
      const build = () => {
        const query =
          operation.operationId === "openapi" || operation.operationId === "types" ? [["database", database]] : [];
        const headers = {};
        let filled = path;
        let isWhole = true;
        for (const parameter of parameters) {
          if (parameter.in === "path") {
            filled = filled.replace(
              `{${parameter.name}}`,
              chance(0.7) ? String(1 + below(4)) : encodeURIComponent(String(draw(parameter.schema, fields)) || "0"),
            );
          } else if (parameter.in === "query" && parameter.name !== "database" && chance(0.15)) {
            const schema = parameter.schema.contentSchema ?? parameter.schema;
            const value = ["order", "group", "selectFields", "select", "omitFields", "returning"].includes(
              parameter.name,
            )
              ? [pick(fields)]
              : draw(schema, fields);
            query.push([parameter.name, inQuery(parameter, value)]);
            if (SHAPING.includes(parameter.name)) isWhole = false;
          } else if (parameter.in === "header" && chance(0.1)) {
            headers[parameter.name] = parameter.name === "Prefer" ? "return=representation" : `"${below(1e9)}"`;
          }
        }
        const body = operation.requestBody
          ? draw(operation.requestBody.content["application/json"].schema, fields)
          : undefined;
        if (body && SHAPING.some((option) => option in body)) isWhole = false;
        return { method: method.toUpperCase(), path: filled, query, headers, body, isWhole };
      };
      const valid = build();
      await send(operation, pointer, valid, "any");

      const wrong = build();
      wrong.query = wrong.query.filter(([name]) => name === "database");
      wrong.headers = {};
      const checked = parameters.filter(
        (parameter) => parameter.in === "query" && parameter.schema && wrongText(parameter.schema),
      );
      if (operation.requestBody && chance(0.7)) {
        wrong.body = spoil(wrong.body);
        if (!check(`${pointer}/requestBody/content/application~1json/schema`, wrong.body)) continue;
      } else if (checked.length && chance(0.5)) {
        const parameter = pick(checked);
        wrong.query.push([parameter.name, wrongText(parameter.schema)]);
      } else {
        wrong.query.push([pick(["no_such_option", "limits", "Query"]), "1"]);
      }
      await send(operation, pointer, wrong, "refused");
    }
  }
}

console.log(`${sent} requests, seed ${seed}: ${JSON.stringify(Object.fromEntries([...seen].sort()))}`);
for (const failure of failures.slice(0, 20)) console.log(`BROKEN ${failure}`);
process.exitCode = failures.length ? 1 : 0;
