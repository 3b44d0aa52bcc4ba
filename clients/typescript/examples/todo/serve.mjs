// Serves the example, and stands for its log-in: whoever gives a name gets a token in that name.
//   node serve.mjs keys     writes a key pair: key.pem and jwks.json
//   node serve.mjs          serves the page on http://localhost:3000
// SELKIE_URL is the address of the edge or the origin.
import { createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const {
  SELKIE_URL = "http://127.0.0.1:8787",
  TODO_DATABASE = "default_todo",
  TODO_KEYS = ".",
  PORT = 3000,
} = process.env;
const issuer = process.env.TODO_ISSUER ?? `http://localhost:${PORT}`;
const pem = `${TODO_KEYS}/key.pem`;

if (process.argv[2] === "keys") {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  writeFileSync(pem, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  writeFileSync(
    `${TODO_KEYS}/jwks.json`,
    JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "todo", alg: "EdDSA" }] }),
  );
  process.exit();
}

/** Returns a token that is valid for ten minutes. */
function tokenOf(sub) {
  const part = (json) => Buffer.from(JSON.stringify(json)).toString("base64url");
  const claims = { iss: issuer, aud: "todo", sub, exp: Math.floor(Date.now() / 1000) + 600 };
  const message = `${part({ alg: "EdDSA", kid: "todo", typ: "JWT" })}.${part(claims)}`;
  return `${message}.${sign(null, Buffer.from(message), createPrivateKey(readFileSync(pem))).toString("base64url")}`;
}

const file = (path) => readFileSync(new URL(path, import.meta.url));
const pages = {
  "/": () => ["text/html", file("index.html")],
  "/todo.js": () => ["text/javascript", file("todo.js")],
  "/client.js": () => ["text/javascript", file("../../dist/index.js")],
  "/config.json": () => ["application/json", JSON.stringify({ url: SELKIE_URL, database: TODO_DATABASE })],
  "/login": (name) => ["text/plain", tokenOf(name)],
};
if (!existsSync(pem)) throw new Error(`There is no ${pem}: run "node serve.mjs keys" first.`);
const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, issuer);
  const [type, content] = pages[pathname]?.(searchParams.get("name")) ?? [];
  response.writeHead(type ? 200 : 404, { "content-type": type ?? "text/plain" }).end(content);
});
server.listen(PORT, "127.0.0.1", () => console.log(`http://localhost:${server.address().port}`));
