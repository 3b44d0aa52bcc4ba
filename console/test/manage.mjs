// Tests how an owner manages a project in the console: link, keys, roles, webhooks, activity.
import assert from "node:assert/strict";
import { Tab } from "./browser.mjs";
import { manageDatabases } from "./databases.mjs";
import { manageRoles } from "./roles.mjs";
import { signInByIssuer } from "./signin.mjs";
import { manageWebhooks } from "./webhooks.mjs";

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

  await tab.go(`#link=${link}`);
  await tab.sees("It ends your session in the project", ".signin");
  await tab.press("Stay signed in");
  await tab.press("Keys", "link");
  await tab.sees("Your key ends at", ".manage");
  await tab.sees("Only some tables? Write a role first.", ".manage");
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

  await manageRoles(tab, { database, call });

  await signInByIssuer(tab, { browser, url, database, project: folder, call });
  await manageWebhooks(tab, { database, call });

  await manageDatabases(tab, { database, project: folder });

  const id = `find-me-${folder}-${Date.now()}`;
  await call("GET", "crud", undefined, { "x-request-id": id });
  await tab.press("Activity", "link");
  await tab.sees("Requests a second", ".figures");
  await tab.page.waitForSelector(".charts .uplot canvas");
  await tab.fill("Find a request id", id.toUpperCase());
  await tab.sees(id, ".requests");
  assert.equal((await tab.page.$$(".requests tbody tr")).length, 1);
  await tab.isAccessible("activity", ["dark", "light"]);
  await tab.press("Only changes, and SQL", "checkbox");
  await tab.sees("None of the last requests has this id.", ".manage");
  await tab.page.$eval("input[type=search][aria-label='Find a request id']", (input) => {
    input.value = "";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await tab.sees("DELETE", ".requests");
  assert.ok(!(await tab.page.$eval(".requests", ({ innerText }) => innerText)).includes("GET"), "no reads");
  await tab.press("Only changes, and SQL", "checkbox");
  await tab.fill("Find a request id", "no such id");
  await tab.sees("None of the last requests has this id.", ".manage");

  const own = await tab.page.evaluate(() => sessionStorage.getItem("selkie.key"));
  await tab.press("Sign out");
  await tab.page.waitForSelector("#key");
  await ends(own);
  tab.check();
}
