// Uses the example of a to-do list in Chromium as two users do. The end-to-end suite starts it, with the service in the environment.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inBrowser } from "./browser.mjs";
import { same } from "./calls.mjs";

/** A picture of 16 × 16 pixels. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mOQyeshCTGMahjVMHw1AABb9xYQk+vKMgAAAABJRU5ErkJggg==";

// Files belong to the users of one issuer: each run has users of its own.
const [ann, bob] = ["ann", "bob"].map((name) => name + (process.env.TODO_USERS ?? ""));
const example = fileURLToPath(new URL("../../examples/todo/serve.mjs", import.meta.url));
const server = spawn("node", [example], { env: { ...process.env, PORT: "0" }, stdio: ["ignore", "pipe", "inherit"] });
const directory = mkdtempSync(join(tmpdir(), "selkie-todo-"));
try {
  const [line] = await once(server.stdout, "data");
  const picture = join(directory, "me.png");
  writeFileSync(picture, Buffer.from(PNG, "base64"));
  await inBrowser({ folders: {} }, (page) => use(page, String(line).trim(), picture));
} finally {
  server.kill();
  rmSync(directory, { recursive: true });
}
console.log("the to-do list works");

async function use(page, address, picture) {
  const titles = () => page.$$eval("#list span", (spans) => spans.map((span) => span.textContent));
  /** Waits until the list shows these titles and nothing else. */
  const shows = async (expected) => {
    const joined = JSON.stringify(expected);
    const list = (wanted) =>
      JSON.stringify([...document.querySelectorAll("#list span")].map((span) => span.textContent)) === wanted;
    await page
      .waitForFunction(list, {}, joined)
      .catch(async () =>
        same(await titles(), expected, `the list (${await page.$eval("#error", (p) => p.textContent)})`),
      );
  };
  const logIn = async (name) => {
    await page.goto(address, { waitUntil: "networkidle0" });
    await page.type("[name=name]", name);
    await page.click("#login button");
    await page.waitForSelector("main:not([hidden])");
  };
  const add = async (title, expected) => {
    await page.type("[name=title]", title);
    await page.click("#add button");
    await shows(expected);
  };

  await logIn(ann);
  await shows([]);
  for (let index = 1; index <= 7; index += 1) {
    const last = Array.from({ length: Math.min(index, 5) }, (_, at) => `ann ${index - at}`);
    await add(`ann ${index}`, last);
  }
  same(await page.$eval("#count", (count) => count.textContent), "7 to do or done", "the count");
  await page.click("#more");
  await shows([7, 6, 5, 4, 3, 2, 1].map((index) => `ann ${index}`));
  await page.waitForSelector("#more[hidden]");

  await page.type("#filter", "n 3");
  await shows(["ann 3"]);
  await page.click("#list input");
  await page.waitForSelector("#list .done");
  await page.click("#filter", { clickCount: 3 });
  await page.keyboard.press("Backspace");
  await shows([7, 6, 5, 4, 3].map((index) => `ann ${index}`));
  await page.waitForSelector("#list .done");
  await page.click("#list button");
  await shows([6, 5, 4, 3, 2].map((index) => `ann ${index}`));

  const [input] = await page.$$("#picture");
  await input.uploadFile(picture);
  await page.waitForFunction(() => document.getElementById("avatar").naturalWidth === 16);
  same(await page.$eval("#error", (error) => error.textContent), "", "the error");

  await logIn(bob);
  await shows([]);
  await add("bob 1", ["bob 1"]);
  await logIn(ann);
  await shows([6, 5, 4, 3, 2].map((index) => `ann ${index}`));
  await page.waitForFunction(() => document.getElementById("avatar").naturalWidth === 16);
}
