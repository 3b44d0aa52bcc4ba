// Opens / and /docs in Chromium, types in a key, and makes a call, as a person would. The end-to-end suite runs it:
//
//   node docs-page.mjs <base URL> <database> <table>
//
// SELKIE_KEY is the key. It prints what the page shows as JSON, and fails if the page breaks its policy, asks another
// host, writes an error to the console, keeps the key, or may load callers' files as code.
import puppeteer from "puppeteer-core";

const [base, database, table] = process.argv.slice(2);
const key = process.env.SELKIE_KEY;
const browser = await puppeteer.launch({
  executablePath: process.env.SELKIE_CHROMIUM ?? "/usr/bin/chromium",
  // Chromium's sandbox needs rights that a test's machine may lack; the page is ours.
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
  ],
});
const faults = [];
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => {
    if (["error", "warn", "warning"].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("requestfailed", (request) => faults.push(`not loaded: ${request.url()}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== new URL(base).origin) faults.push(`foreign host: ${url.host}`);
  });
  await page.evaluateOnNewDocument(() => {
    globalThis.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      globalThis.violations.push(
        `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`,
      ),
    );
  });
  await page.goto(`${base}/`, { waitUntil: "networkidle0" });
  const margin = await page.$eval("body", (body) => getComputedStyle(body).marginTop);
  if (margin !== "0px") faults.push("the page / has no styles");
  const answer = await page.goto(`${base}/docs`, { waitUntil: "networkidle0" });
  const policy = answer.headers()["content-security-policy"];
  await page.type("#key", key);
  await page.click("#show");
  await page.waitForSelector(".opblock-tag");
  const chosen = await page.$eval("#database", (select) => select.value);
  if (chosen !== database) faults.push(`the page chose the database ${chosen}`);
  const tag = `.opblock-tag[data-tag="${database}.${table}"]`;
  await page.waitForSelector(tag);
  const tags = await page.$$eval(".opblock-tag", (all) => all.map((one) => one.dataset.tag));
  await page.click(tag);
  await page.waitForSelector(`${tag}[data-is-open="true"]`);
  const list = `.opblock-get:has(.opblock-summary-path[data-path="/crud/${database}/${table}"]) .opblock-summary-control`;
  await page.waitForSelector(list);
  const summaries = await page.$$eval(".opblock-summary-description", (all) => all.map((one) => one.textContent));
  await page.click(list);
  // A call before the page has resolved the references to the parameters is never sent.
  await page.waitForSelector(".is-open tr[data-param-name]");
  await page.waitForSelector(".execute");
  // Not by the mouse, since the page may still be moving the button.
  await page.$eval(".execute", (button) => button.click());
  await page.waitForSelector(".live-responses-table .response-col_status");
  const status = await page.$eval(".live-responses-table .response .response-col_status", (cell) =>
    cell.textContent.trim(),
  );
  const body = await page.$eval(
    ".live-responses-table .highlight-code, .live-responses-table .microlight",
    (cell) => cell.textContent,
  );
  faults.push(...(await page.evaluate(() => globalThis.violations)).map((violation) => `policy: ${violation}`));
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  if (kept.includes(key)) faults.push("the page keeps the key");
  // The page can't load a caller's file, though it is of the same host. What the browser says of this is no fault.
  const told = faults.length;
  for (const [directive, element] of [
    ["script-src", "script"],
    ["style-src", "link"],
    ["img-src", "img"],
  ]) {
    await page.evaluate((element) => {
      const loading = Object.assign(document.createElement(element), { rel: "stylesheet" });
      loading[element === "link" ? "href" : "src"] = "/media/default/file";
      document.head.append(loading);
    }, element);
    await page.waitForFunction(
      (directive) => globalThis.violations.some((violation) => violation.startsWith(directive)),
      {},
      directive,
    );
  }
  faults.length = told;
  console.log(JSON.stringify({ policy, tags, summaries, status, body }));
} finally {
  await browser.close();
}
for (const fault of faults) console.error(fault);
process.exitCode = faults.length ? 1 : 0;
