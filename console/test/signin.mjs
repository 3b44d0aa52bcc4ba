// Tests how an owner lets the users of an issuer in, and how these sign in without a key.
import assert from "node:assert/strict";
import { Tab } from "./browser.mjs";
import { Provider } from "./provider.mjs";

const AUDIENCE = "app";
const DAY_MS = 24 * 60 * 60 * 1000;

export async function signInByIssuer(tab, { browser, url, database, project, call }) {
  const provider = await new Provider().listen(`${url}/console/sign-in-`);
  try {
    await setIssuer(tab, provider, { database, call });
    await users(browser, provider, { url, database, project });
    await tab.press(`Remove ${provider.url}`);
    await tab.isAccessible("the removal of an issuer");
    await tab.click("dialog .danger");
    await tab.sees("This project has no issuer yet.", ".manage");
  } finally {
    provider.close();
  }
}

async function setIssuer(tab, provider, { database, call }) {
  const books = { read: { rows: { author_id: { claim: "author" } } } };
  await call("PUT", "roles/member", { tables: { [`${database}.books`]: books } });
  await tab.press("Sign-in (OIDC)", "link");
  await tab.sees("This project has no issuer yet.", ".manage");
  await tab.press("New issuer");
  await tab.fill("Issuer", provider.url, ".manage form");
  await tab.fill("Audience", AUDIENCE, ".manage form");
  await tab.select(".manage form select", "false");
  await tab.fill("JWK set", "{", ".manage form");
  await tab.fill("Claim that names the role", "role", ".manage form");
  await tab.select("::-p-aria([name='Role of tokens without the claim'])", "member");
  await tab.press("Add value");
  await tab.fill("Value 1", "admin");
  await tab.select('[aria-label="Role of value 1"]', "full");
  await tab.fill("Client id of the console", provider.clientId, ".manage form");
  await tab.press("Save issuer");
  await tab.sees("A JWK set is a JSON object", "form [role=alert]");
  await tab.isAccessible("an issuer", ["dark", "light"]);
  await tab.fill("JWK set", JSON.stringify(provider.jwks), ".manage form");
  await tab.press("Save issuer");
  await tab.sees("can't give tokens full or read access", ".manage [role=alert]");
  await refusesClientId(tab);
  await tab.press("Remove value 1");
  await tab.press("Save issuer");
  await tab.sees("Saved.", ".manage");
  await tab.sees("claim role, else member", ".list");
  await tab.isAccessible("issuers", ["dark", "light"]);
  await tab.press(`Change ${provider.url}`);
  await tab.fill("Audience", "changed", ".manage form");
  await tab.press("Save issuer");
  await tab.sees("changed", ".list");
  // The tab's own key ends, so it can't let others in for ever.
  await call("PUT", `issuers/${encodeURIComponent(provider.url)}`, {
    audience: AUDIENCE,
    jwks: provider.jwks,
    roleClaim: "role",
    role: "member",
    map: { admin: "full" },
    clientId: provider.clientId,
  });
}

/** Saves the form at a service that leaves the client id to its operator. */
async function refusesClientId(tab) {
  const command = `selkie issuer add --project`;
  await tab.sees(command, ".manage form");
  await tab.page.evaluate(() => {
    const { fetch } = globalThis;
    globalThis.fetch = async () => {
      globalThis.fetch = fetch;
      const error = { code: "permission_denied", message: "Only the operator may set the client id of an issuer." };
      const headers = { "content-type": "application/json" };
      return new Response(JSON.stringify({ success: false, error }), { status: 403, headers });
    };
  });
  await tab.press("Save issuer");
  await tab.sees("Here only the operator may set it.", ".manage form");
  const field = await tab.page.waitForSelector("::-p-aria([name='Client id of the console']):disabled");
  assert.equal(await field.evaluate(({ value }) => value), "", "the rest can be saved");
  await tab.isAccessible("a client id that only the operator may set", ["dark", "light"]);
}

async function users(browser, provider, { url, database, project }) {
  const begin = `Sign in with ${provider.host} to ${project}`;
  const ann = await Tab.open(browser, `${url}/console#/data/${database}/books`, [provider.url]);
  const signIn = async () => {
    await ann.press(begin);
    await ann.press("Log in", "link");
  };
  await ann.sees(begin, ".signin");
  await ann.isAccessible("sign-in by an issuer", ["dark", "light"]);
  provider.claims = { ...provider.claims, author: 2 };
  await signIn();
  await ann.sees("117 records", ".status");
  await ann.sees(`${project} · Ann · role`, ".who");
  assert.equal(await ann.page.evaluate(() => location.search), "", "no code is left in the address");
  assert.equal(await ann.page.$("::-p-aria([name='Keys'][role='link'])"), null, "a role manages nothing");

  // A token that has ended.
  await ann.page.evaluate((ms) => {
    const realNow = Date.now;
    Date.now = () => realNow() + ms;
  }, DAY_MS);
  await ann.press("Sign in again");
  await ann.press("Log in", "link");
  await ann.sees("117 records", ".status");
  await ann.press("Sign out");
  await ann.page.waitForSelector("#key");
  assert.equal(await ann.page.evaluate(() => Object.keys(sessionStorage).length), 0);

  await ann.press(begin);
  await ann.press("Refuse", "link");
  await ann.sees("The issuer refuses: access_denied", "[role=alert]");
  await ann.isAccessible("a refused sign-in", ["dark", "light"]);
  await ann.press("Back");
  provider.nonce = "of another sign-in";
  await signIn();
  await ann.sees("is not of this sign-in", "[role=alert]");
  provider.nonce = undefined;
  await ann.page.goto(`${url}/console?code=x&state=y`);
  await ann.sees("was not begun in this tab", "[role=alert]");
  await ann.press("Back");
  // Another issuer's answer to the same question comes to another address.
  await ann.press(begin);
  const link = await ann.page.waitForSelector("::-p-aria([name='Log in'][role='link'])");
  const address = await link.evaluate((link) => link.href);
  await ann.page.goto(address.replace(/sign-in-\w+/, `sign-in-${"0".repeat(16)}`));
  await ann.sees("was not begun in this tab", "[role=alert]");
  await ann.press("Back");
  assert.equal(await ann.page.evaluate(() => sessionStorage.length), 0, "nobody is signed in");

  provider.claims = { ...provider.claims, role: "admin" };
  await signIn();
  await ann.sees(`${project} · Ann · may do everything`, ".who");
  await ann.press("Keys", "link");
  await ann.sees("Your key ends at", ".manage");
  ann.check();
}
