// Measures how long a user of the console waits, in Chromium without a cache. Asserts nothing,
// since the times depend on the machine.
//
//   SELKIE_URL=… SELKIE_KEY=… node console/test/measure.mjs <database> <table> [<indexed field>]
import { inChromium } from "./browser.mjs";

const { SELKIE_URL: url, SELKIE_KEY: key } = process.env;
const [database, table, field = "id"] = process.argv.slice(2);
const ROUNDS = 5;
const PAGE_ROWS = 50;

const median = (list) => list.toSorted((one, other) => one - other)[Math.floor(list.length / 2)];

/** Waits until the grid shows a record in the line. Returns the milliseconds since `since`, a time
 * of the page's `performance.now()`. */
const shown = (page, line, since) =>
  page
    .waitForFunction(
      (line, since) =>
        document.querySelector(`.body [aria-rowindex="${line}"] .value`)?.innerText && performance.now() - since,
      { polling: "raf" },
      line,
      since,
    )
    .then((handle) => handle.jsonValue());

/** Opens the console once and returns the measured times in milliseconds. */
async function visit(browser) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.setViewport({ width: 1280, height: 800 });
  const figures = {};
  await page.goto(`${url}/console`);
  await page.waitForSelector("#key");
  figures["first paint"] = await page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
  );
  await page.evaluate((key) => sessionStorage.setItem("selkie.key", key), key);
  await page.goto(`${url}/console#/data/${database}/${table}`);
  await page.reload();
  figures["first page"] = await shown(page, 2, 0);
  figures["kB until then"] = await page.evaluate(
    () => performance.getEntriesByType("resource").reduce((sum, { transferSize }) => sum + transferSize, 0) / 1000,
  );
  const scroll = await page.evaluate(() => {
    document.querySelector(".grid").scrollTop = 50 * 32;
    return performance.now();
  });
  figures[`scroll by ${PAGE_ROWS} rows`] = await shown(page, PAGE_ROWS + 10, scroll);
  await page.evaluate(() => (document.querySelector(".grid").scrollTop = 0));
  const sorted = await page.evaluate((field) => {
    document.querySelector(`[aria-label="Sort by ${field}"], [title="Sort by ${field}"]`).click();
    return performance.now();
  }, field);
  await page.waitForSelector('[aria-sort="ascending"]');
  figures[`sort by ${field}`] = await shown(page, 2, sorted);
  figures["status line"] = await page.$eval(".status", (status) => status.innerText.split("\n")[0]);
  await context.close();
  return figures;
}

await inChromium(async (browser) => {
  const visits = [];
  for (let round = 0; round < ROUNDS; round += 1) visits.push(await visit(browser));
  for (const name of Object.keys(visits[0])) {
    const values = visits.map((figures) => figures[name]);
    console.log(
      `${name}: ${typeof values[0] === "number" ? `${median(values).toFixed(0)} (${values.map((value) => value.toFixed(0)).join(", ")})` : values[0]}`,
    );
  }
});
