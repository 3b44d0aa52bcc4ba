// Does with the console what its users do. The end-to-end suite starts it, with the service and its keys in the environment.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { inChromium, Tab } from "./browser.mjs";
import { design } from "./design.mjs";
import { editing } from "./edits.mjs";
import { foreignKeys } from "./foreign.mjs";
import { manage } from "./manage.mjs";
import { manyRows } from "./rows.mjs";
import { sql } from "./sql.mjs";
import { transfer } from "./transfer.mjs";

const {
  SELKIE_URL: url,
  SELKIE_KEY: key,
  SELKIE_READ_KEY: readKey,
  SELKIE_ROLE_KEY: roleKey,
  SELKIE_VISITOR_KEY: visitorKey,
  SELKIE_DATABASE: database,
  SELKIE_FOLDER: folder,
  SELKIE_LINK: link,
} = process.env;

async function call(method, path, body, more) {
  const headers = { ...more, authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(`${url}/api/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  assert.ok(answer.success, JSON.stringify(answer.error));
  return answer.payload;
}

/** Files in the library, in which the first is the only one of its folder. */
const FILES = 126;
async function fill() {
  const media = (from, to) =>
    Array.from({ length: to - from }, (_, index) => ({
      name: `${from + index}.txt`,
      base64: "data:text/plain;base64,YQ==",
    }));
  const put = (folder, from, to) => call("POST", "media", { type: "file", folder, media: media(from, to) });
  await put(`${folder}-first`, 0, 1);
  for (let from = 1; from < FILES; from += 50) await put(`${folder}-full`, from, Math.min(FILES, from + 50));
}

/** Returns the titles that paging through the whole grid shows. */
async function titles(tab) {
  await tab.grid();
  await tab.page.evaluate(() => (globalThis.seen = new Set()));
  const last = await tab.page.waitForFunction(() => {
    const grid = document.querySelector(".grid");
    if (grid.querySelector(".ghost")) return false;
    const lines = [...grid.querySelectorAll(".body [aria-rowindex]")];
    for (const { innerText } of lines)
      for (const [title] of innerText.matchAll(/Book \d+/g)) globalThis.seen.add(title);
    const isLast = lines.some((line) => line.getAttribute("aria-rowindex") === grid.getAttribute("aria-rowcount"));
    grid.dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown", bubbles: true }));
    return isLast && [...globalThis.seen].sort();
  });
  return last.jsonValue();
}
const LATER = Array.from({ length: 250 }, (_, index) => `Book ${101 + index}`);

const tasks = {
  async "sign in"(tab) {
    await tab.press("Sign in");
    await tab.sees("Paste a key first.");
    await tab.signIn("no-key");
    await tab.sees("invalid_key", "[role=alert]");
    await tab.isAccessible("sign-in");
    await tab.signIn(key);
    await tab.sees("full key", ".who");
    await tab.sees(database, ".home");
    await tab.sees("Size", ".tables");
    await tab.isAccessible("home", ["dark", "light"]);
    await tab.sees("selkie backup", ".home");
    assert.ok(
      !(await tab.page.$eval(".home", ({ innerText }) => innerText)).includes("Write a role"),
      "there are roles",
    );
    await tab.press("It runs");
    await tab.gone("h2 + ul.figures");
    await tab.fill("Find a table", "boo", ".home");
    await tab.page.waitForFunction(() => document.querySelectorAll(".tables tbody tr").length === 1);
    await tab.fill("Find a table", "nothing", ".home");
    await tab.sees("No table has this", ".home");
    await tab.fill("Filter tables", "boo");
    await tab.press("books", "link");
    await tab.sees("350 records", ".status");
  },

  async "see exact values"(tab) {
    await tab.page.waitForFunction(() => document.querySelector('.body [aria-rowindex="3"]'));
    await tab.sees("Ben 2", ".grid");
    const first = await tab.line(1);
    assert.deepEqual(first.slice(0, 6), [
      "1",
      "Ben 2",
      "The white whale",
      "0.10000000000000000001",
      "18446744073709551615",
      "NULL",
    ]);
    assert.deepEqual(first.slice(8), ['{"pages":9}', "3 B · 00 01 ff"]);
    const second = await tab.line(2);
    assert.deepEqual([second[5], second[7], second[8]], ["empty", "NULL", "NULL"]);
  },

  async "scroll by keys"(tab) {
    await tab.grid();
    await tab.page.waitForFunction(() => {
      const grid = document.querySelector(".grid");
      grid.dispatchEvent(new KeyboardEvent("keydown", { key: "End", ctrlKey: true, bubbles: true }));
      return grid.innerText.includes("Book 350");
    });
    assert.ok((await tab.page.$$(".body .line")).length < 80, "only visible lines are in the page");
    await tab.holding("Control", "Home");
    await tab.sees("The white whale", ".grid");
    await tab.isAccessible("records", ["dark", "light"]);
  },

  async "sort, filter, search, choose columns"(tab) {
    await tab.press("Sort by title");
    await tab.press("Sort by title");
    await tab.page.waitForSelector('[aria-sort="descending"]');
    await tab.page.waitForFunction(() =>
      document.querySelector('.body [aria-rowindex="2"]')?.innerText.includes("The white whale"),
    );
    await tab.press("Filter");
    await tab.select('[aria-label="Field 1"]', "kind");
    await tab.select('[aria-label="Operator 1"]', "in");
    await tab.fill("Value 1", "novel, play");
    await tab.press("Add condition");
    await tab.select('[aria-label="Field 2"]', "price");
    await tab.select('[aria-label="Operator 2"]', "gt");
    await tab.fill("Value 2", "340");
    await tab.isAccessible("filters");
    await tab.press("Apply");
    await tab.sees("7 records", ".status");
    await tab.press("Code");
    await tab.sees('"price":{"gt":"340"}', ".code");
    const command = await tab.page.$eval(".code", ({ innerText }) => innerText);
    const answer = JSON.parse(execFileSync("sh", ["-c", command], { encoding: "utf8", stdio: "pipe" }));
    assert.equal(answer.payload.length, 7, command);
    await tab.press("TypeScript");
    await tab.sees(`selkie.table("${database}.books").list({`, ".code");
    await tab.keys("Escape");
    await tab.press("Filter 2");
    await tab.press("Clear");
    await tab.press("Search");
    await tab.fill("Words to find", "whale");
    await tab.click(".panel .main");
    await tab.sees("1 record", ".status");
    await tab.press("Search 1");
    await tab.click("::-p-aria([name='a text within title, note'][role='radio'])");
    await tab.fill("Words to find", "hite wha");
    await tab.isAccessible("search", ["dark", "light"]);
    await tab.click(".panel .main");
    await tab.page.waitForFunction(() => location.hash.includes("contains"));
    await tab.sees("1 record", ".status");
    await tab.sees("The white whale", ".grid");
    await tab.press("Code");
    await tab.sees('"contains":"hite wha"', ".code");
    await tab.keys("Escape");
    for (const [operator, value, found] of [
      ["match", "Book", "349 records"],
      ["notRegexp", "^Book", "1 record"],
    ]) {
      const filter = encodeURIComponent(JSON.stringify([{ field: "title", operator, value }]));
      await tab.go(`#/data/${database}/books?filter=${filter}`);
      await tab.sees(found, ".status");
    }
    await tab.go(`#/data/${database}/books`);
    await tab.sees("350 records", ".status");
    await tab.press("Columns");
    await tab.click("::-p-aria([name='note'][role='checkbox'])");
    await tab.page.waitForFunction(() => !document.querySelector(".line.header").innerText.includes("note"));
    await tab.press("Show all");
    await tab.sees("note", ".line.header");
    await tab.keys("Escape");
  },

  async "see every record of a view"(tab) {
    await tab.go(`#/data/${database}/later`);
    await tab.sees("250 records", ".status");
    assert.deepEqual(await titles(tab), LATER);
    await tab.go(`#/data/${database}/books`);
    await tab.sees("350 records", ".status");
  },

  async "follow foreign keys both ways"(tab) {
    await tab.grid();
    await tab.click('.body [aria-rowindex="2"] .follow');
    await tab.sees("1 record", ".status");
    await tab.sees("Ben", ".grid");
    await tab.grid();
    await tab.keys(" ");
    await tab.sees("authors 2", ".record");
    await tab.isAccessible("record", ["dark", "light"]);
    await tab.click(".related a");
    await tab.sees("117 records", ".status");
    await tab.go(`#/data/${database}/books`);
    await tab.sees("350 records", ".status");
  },

  ...foreignKeys({ database, call }),

  ...manyRows({ database, call }),

  ...editing({ database, call }),

  async "be offered what the table has"(tab) {
    await tab.go(`#/data/${database}/tickets`);
    await tab.sees("123456", ".grid");
    assert.equal(await tab.page.$("::-p-aria([name='Search'][role='button'])"), null, "there is no text to search");
    const cut = await tab.page.$$eval(
      ".body .value",
      (values) => values.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length,
    );
    assert.equal(cut, 0, "whole ids are shown");
    await tab.page.waitForSelector('.top a[href="/docs"]');
    await tab.go(`#/data/${database}/many`);
    await tab.sees("word 1", ".grid");
    await tab.press("Search");
    await tab.sees("more than 100,000 records", ".panel [role=alert]");
    await tab.isAccessible("a search of a large table", ["dark", "light"]);
    await tab.fill("Words to find", "word 100001");
    await tab.keys("Enter");
    await tab.sees("1 record", ".status");
  },

  async "see structure and relations"(tab) {
    await tab.go(`#/structure/${database}/books`);
    await tab.sees("decimal(30,20)", ".structure");
    await tab.sees("FULLTEXT", ".structure");
    await tab.isAccessible("structure");
    await tab.go(`#/diagram/${database}`);
    await tab.page.waitForSelector(".canvas a[href$='books']");
    assert.equal((await tab.page.$$(".edge")).length, 1);
    await tab.isAccessible("diagram");
  },

  ...design({ database, call }),

  ...transfer({ database, call }),

  ...sql({ database, call }),

  async "keep files"(tab) {
    await tab.go(`#/media?folder=${folder}`);
    await tab.sees("No files here yet.", ".files");
    await tab.sees("Anybody with the address can see a public file.", ".media");
    const chooser = await tab.page.waitForSelector('input[type=file][aria-label="Upload"]');
    await chooser.uploadFile(
      ...["picture.png", "schema.sql", "console.mjs"].map((name) => new URL(name, import.meta.url).pathname),
    );
    await tab.page.waitForFunction(() => document.querySelectorAll(".thumb").length === 3);
    await tab.page.waitForFunction(() => document.querySelector(".picture img")?.complete);
    await tab.isAccessible("media");
    await tab.click(".thumb:has(img)");
    await tab.sees("image/png", "dialog");
    await tab.page.waitForFunction(() => document.querySelector(".stage img")?.naturalWidth > 0);
    await tab.isAccessible("preview");
    for (let left = 2; left >= 0; left -= 1) {
      await tab.press("Delete");
      await tab.click(".preview .notice .danger");
      await tab.gone("dialog");
      await tab.page.waitForFunction((left) => document.querySelectorAll(".thumb").length === left, {}, left);
      if (left) await tab.click(".thumb");
    }
    await tab.sees("No files here yet.", ".files");
    await tab.press("Upload as private", "checkbox");
    await tab.sees("A private file needs a key of the project or a signed link.", ".media");
    await chooser.uploadFile(new URL("schema.sql", import.meta.url).pathname);
    await tab.sees("private", ".thumb");
    const [{ id, url: address, private: isPrivate }] = await call("GET", `media?folder=${folder}`);
    assert.deepEqual([isPrivate, (await fetch(address)).status], [true, 404]);
    await call("DELETE", `media/${id}`);
  },

  async "sign out"(tab) {
    await tab.press("Sign out");
    await tab.page.waitForSelector("#key");
    assert.equal(await tab.page.evaluate(() => Object.keys(sessionStorage).length), 0);
  },
};

await inChromium(async (browser) => {
  // First, since the link is valid for one minute.
  await manage(browser, { url, database, link, call, folder });

  const tab = await Tab.open(browser, `${url}/console`);
  for (const [name, task] of Object.entries(tasks)) {
    await task(tab).catch(async (error) => {
      if (process.env.SELKIE_SCREENSHOT) await tab.page.screenshot({ path: process.env.SELKIE_SCREENSHOT });
      throw new Error(`${name}: ${error.message}`, { cause: error });
    });
    tab.check();
  }

  const reader = await Tab.open(browser, `${url}/console#/data/${database}/books`);
  await reader.signIn(readKey);
  await reader.sees("350 records", ".status");
  await reader.sees("Read-only", ".toolbar");
  await reader.press("Search");
  await reader.fill("Words to find", "Book");
  await reader.click(".panel .main");
  await reader.sees("records", ".status");
  await reader.gone(".problem");
  await reader.go(`#/data/${database}/authors`);
  await reader.sees("3 records", ".status");
  await reader.press("Search");
  await reader.fill("Words to find", "example.org");
  await reader.click(".panel .main");
  await reader.sees("2 records", ".status");
  assert.equal(await reader.page.$("::-p-aria([name='SQL'][role='link'])"), null, "a read key is not offered SQL");
  assert.equal(await reader.page.$("::-p-aria([name='Add record'][role='button'])"), null, "nor new records");
  for (const name of ["Edit", `New table: ${database}`])
    assert.equal(await reader.page.$(`::-p-aria([name='${name}'][role='link'])`), null, `nor ${name}`);
  for (const view of ["edit", "create", "code"]) {
    await reader.go(`#/${view}/${database}/books`);
    await reader.sees("Only full keys may change tables.", "main");
  }
  await reader.go("#/");
  await reader.sees("books", ".tables");
  assert.equal(await reader.page.$(".home .figures li"), null, "a read key is told no steps");
  reader.check();

  const author = await Tab.open(browser, `${url}/console#/data/${database}/books`);
  await author.signIn(roleKey);
  await author.sees("115 records", ".status");
  assert.ok(
    !(await author.page.$eval(".side-tables", (side) => side.innerText)).includes("authors"),
    "a hidden table is not listed",
  );
  assert.ok(
    !(await author.page.$eval(".line.header", (header) => header.innerText)).includes("big"),
    "a hidden field is not shown",
  );
  await author.grid();
  await author.keys(" ");
  await author.page.waitForSelector('[data-field="note"] input, [data-field="note"] textarea');
  author.check();

  // A key that is revoked while the console is open with it.
  const made = await call("POST", "keys", { name: "short", access: "read", expires: "1h" });
  const short = await Tab.open(browser, `${url}/console#/data/${database}/books`);
  await short.signIn(made.key);
  await short.sees("350 records", ".status");
  await call("DELETE", `keys/${made.id}`);
  const last = Date.now() + 60_000;
  for (let isOver = false; !isOver; assert.ok(Date.now() < last, "the revoked key is refused")) {
    await short.go(`#/data/${database}/authors`);
    await short.go(`#/data/${database}/books`);
    isOver = (await short.page.$("main > .problem")) !== null;
  }
  await short.sees("The service refuses this key: it was revoked or has expired.", "main [role=alert]");
  assert.equal(await short.page.$(".spinner"), null, "nothing is awaited");
  await short.isAccessible("a refused key", ["dark", "light"]);
  await short.press("Sign in with another key");
  // Not checked: the service cuts off the stream of changes of a key that ends, which the browser calls an error.
  await short.page.waitForSelector("#key");

  // A role that allows 50 records in one answer.
  await fill();
  const visitor = await Tab.open(browser, `${url}/console#/data/${database}/later`);
  await visitor.signIn(visitorKey);
  await visitor.sees("250 records", ".status");
  assert.deepEqual(await titles(visitor), LATER);
  await visitor.go("#/media");
  await visitor.page.waitForFunction(() => document.querySelectorAll(".thumb").length === 120);
  await visitor.sees(`${folder}-first`, ".library nav");
  await visitor.press("Show more");
  await visitor.page.waitForFunction((count) => document.querySelectorAll(".thumb").length === count, {}, FILES);
  await visitor.gone(".files > .button");
  visitor.check();
});
console.log("all tasks were done");
