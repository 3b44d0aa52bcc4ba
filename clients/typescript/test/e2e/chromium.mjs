// Runs the calls in a page. The end-to-end suite starts it, with the service in the environment.
import { fileURLToPath } from "node:url";
import { inBrowser } from "./browser.mjs";

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));
const { SELKIE_URL: url, SELKIE_KEY: key, SELKIE_DATABASE: database, SELKIE_FOLDER: media } = process.env;
const folders = { dist: folder("../../dist"), e2e: folder(".") };
const pages = { "/": "<!doctype html><title>calls</title>" };
await inBrowser({ folders, pages }, async (page, address) => {
  await page.goto(address);
  // Edges refuse full keys from pages, so the calls that need one are left to Node.
  await page.evaluate(
    async (options) => {
      const [client, { calls }, { changes }] = await Promise.all(
        ["/dist/index.js", "/e2e/calls.mjs", "/e2e/changes.mjs"].map((path) => import(path)),
      );
      await calls({ client, ...options });
      await changes({ client, ...options });
    },
    { url, key, database, folder: media },
  );
});
console.log("all calls were answered");
