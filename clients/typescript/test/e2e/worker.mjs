// Runs the calls in a Cloudflare worker (Miniflare). The end-to-end suite starts it, with the service in the environment.
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { Miniflare } from "miniflare";

const {
  SELKIE_URL: url,
  SELKIE_KEY: key,
  SELKIE_FULL_KEY: fullKey,
  SELKIE_DATABASE: database,
  SELKIE_FOLDER: folder,
} = process.env;
const contents = `
  import * as client from "@selkie/client";
  import { calls } from "./calls.mjs";
  import { changes } from "./changes.mjs";
  export default {
    async fetch(request) {
      try {
        const options = await request.json();
        await calls({ client, ...options });
        await changes({ client, ...options });
        return new Response("all calls were answered");
      } catch (error) {
        return new Response(error.stack, { status: 500 });
      }
    },
  };`;
const resolveDir = fileURLToPath(new URL(".", import.meta.url));
const { outputFiles } = buildSync({ stdin: { contents, resolveDir }, bundle: true, format: "esm", write: false });
const worker = new Miniflare({ modules: true, script: outputFiles[0].text, compatibilityDate: "2026-01-01" });
try {
  const body = JSON.stringify({ url, key, fullKey, database, folder });
  const answer = await worker.dispatchFetch("http://worker/", { method: "POST", body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  console.log(text);
} finally {
  await worker.dispose();
}
