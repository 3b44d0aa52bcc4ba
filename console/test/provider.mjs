// A small OpenID Connect provider: discovery, a page to log in, and the exchange of codes (with PKCE) for signed tokens.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";

const LIFETIME_SECONDS = 600;
const base64url = (value) => Buffer.from(value).toString("base64url");

export class Provider {
  #keys = generateKeyPairSync("ed25519");
  #codes = new Map();
  #server = createServer((request, response) => this.#answer(request, response));
  clientId = "console";
  /** The claims of the user who logs in. */
  claims = { sub: "ann", name: "Ann" };
  /** Replaces the nonce of the tokens. */
  nonce = undefined;

  async listen(redirectUri) {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.host = `127.0.0.1:${this.#server.address().port}`;
    this.url = `http://${this.host}`;
    this.redirectUri = redirectUri + createHash("sha256").update(this.url).digest("hex").slice(0, 16);
    return this;
  }

  get jwks() {
    return { keys: [{ ...this.#keys.publicKey.export({ format: "jwk" }), kid: "a" }] };
  }

  #token(aud, nonce) {
    const exp = Math.floor(Date.now() / 1000) + LIFETIME_SECONDS;
    const parts = [
      { alg: "EdDSA", kid: "a", typ: "JWT" },
      { iss: this.url, aud, exp, nonce, ...this.claims },
    ];
    const message = parts.map((part) => base64url(JSON.stringify(part))).join(".");
    return `${message}.${base64url(sign(null, Buffer.from(message), this.#keys.privateKey))}`;
  }

  async #answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.url);
    const json = (status, body) =>
      response
        .writeHead(status, { "content-type": "application/json", "access-control-allow-origin": "*" })
        .end(JSON.stringify(body));
    if (pathname === "/.well-known/openid-configuration")
      return json(200, {
        issuer: this.url,
        authorization_endpoint: `${this.url}/authorize`,
        token_endpoint: `${this.url}/token`,
      });
    if (pathname === "/authorize") return response.setHeader("content-type", "text/html").end(this.#page(searchParams));
    if (pathname === "/token") {
      const given = Object.fromEntries(new URLSearchParams(await text(request)));
      const asked = this.#codes.get(given.code);
      this.#codes.delete(given.code);
      const isProven =
        asked?.code_challenge === createHash("sha256").update(given.code_verifier).digest("base64url") &&
        given.redirect_uri === this.redirectUri &&
        given.client_id === this.clientId;
      if (!isProven) return json(400, { error: "invalid_grant" });
      const nonce = this.nonce ?? asked.nonce;
      return json(200, {
        token_type: "Bearer",
        id_token: this.#token(this.clientId, nonce),
        access_token: this.#token(asked.audience),
      });
    }
    return json(404, { error: "not_found" });
  }

  #page(asked) {
    const { redirect_uri, state, code_challenge_method, response_type, client_id } = Object.fromEntries(asked);
    assert.deepEqual(
      [redirect_uri, code_challenge_method, response_type, client_id],
      [this.redirectUri, "S256", "code", this.clientId],
    );
    const code = randomUUID();
    this.#codes.set(code, Object.fromEntries(asked));
    const link = (options, label) =>
      `<a href="${redirect_uri}?${new URLSearchParams({ ...options, state })}">${label}</a>`;
    return `<!doctype html><html lang="en"><title>Log in</title><link rel="icon" href="data:,"><p>
      ${link({ code, iss: this.url }, "Log in")} ${link({ error: "access_denied" }, "Refuse")}`.replaceAll(
      "&",
      "&amp;",
    );
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
