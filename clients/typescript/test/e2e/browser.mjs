// Opens pages in a headless Chromium, served from this machine. It must not know what the pages do.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { launch } from "puppeteer-core";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".png": "image/png" };
/** Milliseconds that a page may take; a page that hangs fails. */
const PAGE_MAX_MS = 60_000;

/** Serves the files of `folders` by the first part of their paths, and `pages` from memory. */
function serve(folders, pages) {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    try {
      const [, first, ...rest] = path.split("/");
      const content = pages[path] ?? readFileSync(join(folders[first], ...rest));
      response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/html" }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/** Runs `visit` with a new page and the address of the files; fails if the page throws or refuses what it needs. */
export async function inBrowser({ folders, pages = {} }, visit) {
  const server = await serve(folders, pages);
  // No sandbox: containers and root have none, and the pages are ours.
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  const browser = await launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(PAGE_MAX_MS);
    const faults = [];
    page.on("pageerror", (error) => faults.push(error));
    const result = await visit(page, `http://127.0.0.1:${server.address().port}`);
    if (faults.length) throw faults[0];
    return result;
  } finally {
    await browser.close();
    server.close();
  }
}
