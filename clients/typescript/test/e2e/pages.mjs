// Two users edit one live list in two pages. The end-to-end suite starts it, with the service in the environment.
import { fileURLToPath } from "node:url";
import { inBrowser } from "./browser.mjs";
import { same } from "./calls.mjs";

const { SELKIE_URL: url, SELKIE_KEY: key, SELKIE_DATABASE: database } = process.env;
const PAGE = `<!doctype html>
<title>messages</title>
<form><input name="text" required><button>Send</button></form>
<ul></ul>
<script type="module">
  import { createClient } from "/dist/index.js";
  const selkie = createClient(${JSON.stringify({ url, key })});
  const messages = selkie.table(${JSON.stringify(`${database}.messages`)});
  const list = messages.live({ where: { room: "pages" }, order: "-id", limit: 3 });
  const show = (records) =>
    document.querySelector("ul").replaceChildren(
      ...records.map(({ id, text, stars }) => {
        const item = document.createElement("li");
        item.append(text + "*".repeat(stars), ...["star", "delete"].map((name) => {
          const button = document.createElement("button");
          button.name = name;
          button.onclick = () =>
            name === "star" ? messages.update(id, { stars: { $add: 1 } }) : messages.remove(id);
          return button;
        }));
        return item;
      }),
    );
  list.subscribe(show);
  document.querySelector("form").onsubmit = (event) => {
    event.preventDefault();
    const { text } = event.target.elements;
    messages.insert({ room: "pages", text: text.value });
    text.value = "";
  };
  await list.ready;
  document.title = "ready";
</script>`;

/** A page behind another one draws nothing, so its frames can't be waited for. */
const POLL = { polling: 50 };

/** Waits until a page shows these messages and no others. */
async function shows(page, expected) {
  const texts = () => [...document.querySelectorAll("li")].map((item) => item.firstChild.textContent);
  const wanted = JSON.stringify(expected);
  await page
    .waitForFunction(`JSON.stringify((${texts})()) === ${JSON.stringify(wanted)}`, POLL)
    .catch(async () => same(await page.evaluate(texts), expected, "the list"));
}

/** Clicks at once: between a mouse's press and its release, the other page's message may replace the button. */
const click = (page, selector) => page.$eval(selector, (element) => element.click());

async function send(page, text) {
  await page.bringToFront();
  await page.type("[name=text]", text);
  await page.click("form button");
}

const dist = fileURLToPath(new URL("../../dist", import.meta.url));
await inBrowser({ folders: { dist }, pages: { "/": PAGE } }, async (ann, address) => {
  const bob = await ann.browser().newPage();
  const both = [ann, bob];
  for (const page of both) {
    await page.goto(address);
    await page.waitForFunction(() => document.title === "ready", POLL);
  }
  const show = (expected) => Promise.all(both.map((page) => shows(page, expected)));
  await send(ann, "hello");
  await show(["hello"]);
  await send(bob, "hi");
  await show(["hi", "hello"]);
  await click(bob, "li:last-child [name=star]");
  await show(["hi", "hello*"]);
  await send(ann, "how are you?");
  await click(bob, "li:last-child [name=star]");
  await show(["how are you?", "hi", "hello**"]);
  await send(bob, "fine");
  await show(["fine", "how are you?", "hi"]);
  // A message that the limit kept out comes back.
  await click(ann, "li:first-child [name=delete]");
  await show(["how are you?", "hi", "hello**"]);
  // A page that was offline catches up.
  await bob.setOfflineMode(true);
  await click(ann, "li:nth-child(2) [name=star]");
  await send(ann, "are you there?");
  await shows(ann, ["are you there?", "how are you?", "hi*"]);
  await bob.setOfflineMode(false);
  await send(bob, "yes");
  await show(["yes", "are you there?", "how are you?"]);
});
console.log("the pages show the same list");
