// Tests how an owner manages a project in the console: link, keys, roles, webhooks, activity.
import assert from "node:assert/strict";
import { Tab } from "./browser.mjs";
import { manageWebhooks } from "./webhooks.mjs";

/** Returns a role with a number that JavaScript would round. */
const roleOf = (database) =>
  `{"tables": {"${database}.authors": {"read": {"rows": {"id": {"value": 9007199254740993, "equality": "<"}}}}}}`;

export async function manage(browser, { url, database, link, call, folder }) {
  const tab = await Tab.open(browser, `${url}/console#link=${link}`);
  await tab.sees("The link signs in to the project", ".signin");
  await tab.isAccessible("link", ["dark", "light"]);
  await tab.press("Sign in");
  await tab.sees("full key", ".who");
  await tab.sees(database, ".home");
  assert.ok(!(await tab.page.url()).includes("link"), "the link is not in the address");
  const again = await Tab.open(browser, `${url}/console#link=${link}`);
  await again.press("Sign in");
  await again.sees("The link was used before.", "[role=alert]");
  await again.press("Don't sign in");
  await again.page.waitForSelector("#key");
  again.check();

  const status = async (key) =>
    (await fetch(`${url}/api/v1/crud`, { headers: { authorization: `Bearer ${key}` } })).status;
  const ends = async (key) => {
    for (const last = Date.now() + 60_000; Date.now() < last; ) if ((await status(key)) === 401) return;
    assert.fail("the key has not ended");
  };
  const areaText = async (text) =>
    tab.page.$eval(
      ".role textarea",
      (area, text) => {
        area.value = text;
        area.dispatchEvent(new Event("input", { bubbles: true }));
      },
      text,
    );

  await tab.go(`#link=${link}`);
  await tab.sees("It ends your session in the project", ".signin");
  await tab.press("Stay signed in");
  await tab.press("Keys", "link");
  await tab.sees("Your key ends at", ".manage");
  await tab.fill("Name", "reports", ".manage form");
  await tab.press("Create key");
  await tab.sees("shown only now", ".created");
  const key = await tab.page.$eval(".created pre", (pre) => pre.innerText);
  assert.equal(await status(key), 200);
  await tab.isAccessible("keys", ["dark", "light"]);
  await tab.press("Done");
  await tab.sees("reports", ".list");
  assert.ok(!(await tab.page.content()).includes(key), "a key is shown once");
  await tab.press("Revoke reports");
  await tab.isAccessible("revocation");
  await tab.press("Revoke");
  await tab.page.waitForFunction(() => document.querySelector(".list")?.innerText.includes("reports") === false);
  await ends(key);

  await tab.press("Roles", "link");
  await tab.press("New role", "link");
  await tab.fill("Name of the role", "reader", ".role");
  await areaText(`{"tables": {"${database}.nothing": {"read": {}}}}`);
  await tab.press("Save role");
  await tab.sees(`tables."${database}.nothing"`, "[role=alert]");
  await tab.isAccessible("a wrong role", ["dark", "light"]);
  await areaText(roleOf(database));
  await tab.press("Save role");
  await tab.page.waitForFunction(() => location.hash === "#/roles/reader");
  await tab.page.waitForFunction(() => document.querySelector(".role textarea")?.value.includes("9007199254740993"));
  await tab.isAccessible("role");
  await tab.fill("Claims of the tested key", '{"sub": 7}', ".role");
  await tab.press("Test as this role");
  await tab.sees("role reader", ".who");
  await tab.sees("authors", ".side-tables");
  assert.ok(
    !(await tab.page.$eval(".side", (side) => side.innerText)).includes("books"),
    "what the role hides is not listed",
  );
  await tab.press("End the test");
  await tab.sees("full key", ".who");
  await tab.go("#/roles/reader");
  await tab.page.waitForSelector(".role textarea");
  await areaText(`{"tables": {"${database}.authors": {"read": {"rows": {"name": {"value": {"claim": "nick"}}}}}}}`);
  await tab.press("Save role");
  await tab.sees("whose collation ignores case", ".role [role=alert]");
  await tab.isAccessible("a warning of a role", ["dark", "light"]);
  await tab.press("Create a key with this role", "link");
  await tab.fill("Name", "nameless", ".manage form");
  await tab.press("Create key");
  await tab.sees("the claims nick, which this key lacks", ".created [role=alert]");
  await tab.isAccessible("a warning of a key", ["dark", "light"]);
  await tab.press("Done");
  await tab.go("#/roles/reader");
  await tab.press("Delete role");
  await tab.click("dialog .danger");
  await tab.page.waitForFunction(() => document.querySelector(".role nav ul")?.innerText.includes("reader") === false);

  await manageWebhooks(tab, { database, call });

  const id = `find-me-${folder}-${Date.now()}`;
  await call("GET", "crud", undefined, { "x-request-id": id });
  await tab.press("Activity", "link");
  await tab.sees("Requests a second", ".figures");
  await tab.page.waitForSelector(".charts .uplot canvas");
  await tab.fill("Find a request id", id.toUpperCase());
  await tab.sees(id, ".requests");
  assert.equal((await tab.page.$$(".requests tbody tr")).length, 1);
  await tab.isAccessible("activity", ["dark", "light"]);
  await tab.fill("Find a request id", "no such id");
  await tab.sees("None of the last requests has this id.", ".manage");

  const own = await tab.page.evaluate(() => sessionStorage.getItem("selkie.key"));
  await tab.press("Sign out");
  await tab.page.waitForSelector("#key");
  await ends(own);
  tab.check();
}
