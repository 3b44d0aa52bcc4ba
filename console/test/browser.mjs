// A headless Chromium with the console in it. Fails for whatever a user would find in the browser's console.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { launch } from "puppeteer-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Milliseconds that a step may take; a page that hangs fails. */
const STEP_MAX_MS = 30_000;

export class Tab {
  #faults = [];

  /** Opens the console. Its pages may send requests to it and to the other web origins. */
  static async open(browser, address, others = []) {
    const tab = new Tab();
    const context = await browser.createBrowserContext();
    tab.page = await context.newPage();
    tab.page.setDefaultTimeout(STEP_MAX_MS);
    await tab.page.setViewport({ width: 1280, height: 800 });
    await tab.page.evaluateOnNewDocument(() => {
      addEventListener("securitypolicyviolation", (event) => {
        console.error(
          `policy: ${event.violatedDirective} ${event.blockedURI} in ${event.target?.outerHTML?.slice(0, 200)}`,
        );
      });
    });
    tab.page.on("pageerror", (error) => tab.#faults.push(error.stack ?? String(error)));
    tab.page.on("console", (message) => {
      // What the service refuses is shown to the user, and checked where it is expected.
      const isRefusal = /^Failed to load resource: .* status of 4/.test(message.text());
      if (message.type() === "error" && !isRefusal) tab.#faults.push(message.text());
    });
    tab.page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol !== "blob:" && protocol !== "data:" && ![new URL(address).origin, ...others].includes(origin))
        tab.#faults.push(`a request to ${request.url()}`);
    });
    await tab.page.goto(address);
    return tab;
  }

  /** Fails if the page met an error, or broke its own policy. */
  check() {
    assert.deepEqual(this.#faults, []);
  }

  async signIn(key) {
    await this.page.waitForSelector("#key");
    // Pasted, as keys are.
    await this.page.$eval(
      "#key",
      (input, key) => {
        input.value = key;
        input.dispatchEvent(new Event("input", { bubbles: true }));
      },
      key,
    );
    await this.press("Sign in");
  }

  // What is used is waited for: a page on a busy machine may still be rendering it.
  click = (selector) => this.page.locator(selector).click();
  focus = async (selector) => (await this.page.waitForSelector(selector)).focus();
  select = async (selector, value) => (await this.page.waitForSelector(selector)).select(value);
  type = async (selector, text) => (await this.page.waitForSelector(selector)).type(text);

  /** Waits until the active line of the grid is read, and gives the keyboard to the grid. */
  async grid() {
    await this.page.waitForSelector(".grid .cell.active:not(:has(.ghost))");
    await this.focus(".grid");
  }

  /** Clicks the button or link with this name. */
  press = (name, role = "button") => this.click(`::-p-aria([name="${name}"][role="${role}"])`);

  /** Types into the field with this name, instead of what is there. */
  async fill(name, text, within = "") {
    const field = await this.page.waitForSelector(`${within} ::-p-aria([name="${name}"])`.trim());
    await field.focus();
    await field.evaluate((input) => input.select?.());
    await field.type(text);
  }

  /** Waits until the text is seen within the element. */
  sees = (text, within = "body") =>
    this.page
      .waitForFunction(
        (text, within) => [...document.querySelectorAll(within)].some((element) => element.innerText.includes(text)),
        {},
        text,
        within,
      )
      .catch(async (error) => {
        throw new Error(
          `"${text}" is not seen in ${within}: ${await this.page.$$eval(within, (list) =>
            list
              .map((one) => one.innerText)
              .join("\n")
              .slice(0, 1_500),
          )}`,
          { cause: error },
        );
      });

  gone = (selector) => this.page.waitForSelector(selector, { hidden: true });

  keys = async (...keys) => {
    for (const key of keys) await this.page.keyboard.press(key);
  };

  async holding(modifier, key) {
    await this.page.keyboard.down(modifier);
    await this.page.keyboard.press(key);
    await this.page.keyboard.up(modifier);
  }

  go = (hash) => this.page.evaluate((hash) => (location.hash = hash), hash);

  /** Returns the texts of the cells of the grid's line. */
  line = (at) =>
    this.page.$$eval(`.body [aria-rowindex="${at + 1}"] [role=gridcell]:not(.pick)`, (cells) =>
      cells.map((cell) => cell.innerText.trim()),
    );

  /** Checks what is shown for faults that keep people out, in these colour schemes, and that it fits on a phone. */
  async isAccessible(view, schemes = ["light"]) {
    for (const value of schemes) {
      await this.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
      await this.page.evaluate(axe);
      const faults = await this.page.evaluate(async (isDark) => {
        // Only colours depend on the scheme.
        const { violations } = await axe.run(document, {
          resultTypes: ["violations"],
          ...(isDark ? { runOnly: ["color-contrast"] } : {}),
        });
        return violations
          .filter(({ impact }) => impact === "serious" || impact === "critical")
          .map(
            ({ id, nodes }) =>
              `${id}: ${nodes
                .slice(0, 3)
                .map(({ html }) => html)
                .join(" ")}`,
          );
      }, value === "dark");
      assert.deepEqual(faults, [], `${view}, ${value}`);
    }
    await this.page.setViewport({ width: 390, height: 780 });
    const width = await this.page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(width, 390, `${view} is wider than a phone`);
    await this.page.setViewport({ width: 1280, height: 800 });
  }
}

export async function inChromium(visit) {
  // No sandbox: containers and root have none, and the pages are ours.
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  const browser = await launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
  try {
    await visit(browser);
  } finally {
    await browser.close();
  }
}
