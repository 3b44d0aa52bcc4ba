// Runs the worker locally: what `wrangler dev` does, without its debugger. Ends on SIGTERM and SIGINT.
//
// Usage: node tools/edge-dev.mjs --ip 127.0.0.1 --port 8787 --env-file FILE --persist-to DIR
//
// Why not `wrangler dev` itself: its command line can't turn the debugger off. With it, every header of
// every request, keys included, is copied into a log file, a long answer costs a connection per 4 kB,
// and wrangler runs out of memory. Its API, which the command line calls too, can.
import { parseArgs } from "node:util";
import process from "node:process";

const { values } = parseArgs({
  options: {
    ip: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: "8787" },
    "env-file": { type: "string" },
    "persist-to": { type: "string", default: ".wrangler/state" },
    "log-level": { type: "string", default: "warn" },
  },
});

// Before wrangler is loaded: it reads them then.
process.env.WRANGLER_SEND_METRICS ??= "false";
process.env.WRANGLER_SEND_ERROR_REPORTS ??= "false";
process.env.WRANGLER_LOG ??= values["log-level"];
process.env.WRANGLER_LOG_PATH ??= `${values["persist-to"]}/logs`;
if (!process.stdout.isTTY) process.env.NO_COLOR ??= "1";
process.env.WRANGLER_REGISTRY_PATH ??= `${values["persist-to"]}/registry`;
process.env.CLOUDFLARE_CF_FETCH_ENABLED ??= "false"; // no call home for a sample `request.cf`

const { unstable_startWorker: startWorker } = await import("wrangler");

let worker;
let ending = false;
async function end(code) {
  if (ending) return;
  ending = true;
  // A worker that can't be disposed of must not keep the process.
  setTimeout(() => process.exit(code), 3000).unref();
  await worker?.dispose();
  process.exit(code);
}
process.on("SIGTERM", () => end(0));
process.on("SIGINT", () => end(0));

try {
  worker = await startWorker({
    config: "wrangler.toml",
    envFiles: values["env-file"] ? [values["env-file"]] : undefined,
    sendMetrics: false,
    dev: {
      server: { hostname: values.ip, port: Number(values.port) },
      inspector: false,
      persist: values["persist-to"],
      logLevel: values["log-level"],
      watch: false,
      liveReload: false,
    },
  });
  await worker.ready;
} catch (error) {
  console.error(`the edge does not start: ${error.message}`);
  await end(1);
}
