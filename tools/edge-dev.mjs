// Runs the worker locally as `wrangler dev` does: wrangler's configuration, Miniflare's cache and rate limiter. Ends
// on SIGTERM and SIGINT.
//
// Usage: node tools/edge-dev.mjs --ip 127.0.0.1 --port 8787 --env-file FILE --persist-to DIR
//
// `wrangler dev` itself puts a proxy before the worker. If a POST arrives on an idle connection that the proxy is
// closing, the proxy answers with 503 "Your worker restarted mid-request" (cloudflare/workers-sdk issue 14641). Its
// debugger, which the command line can't turn off, writes every header, keys included, to a file. So Miniflare, the
// library that wrangler runs workers with, is used without that proxy.
import { execSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { parseArgs, parseEnv } from "node:util";

const { values } = parseArgs({
  options: {
    ip: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: "8787" },
    "env-file": { type: "string" },
    "persist-to": { type: "string", default: ".wrangler/state" },
  },
});

// Set before wrangler is imported, because it reads them on import.
process.env.WRANGLER_SEND_METRICS ??= "false";
process.env.WRANGLER_SEND_ERROR_REPORTS ??= "false";
process.env.WRANGLER_LOG_PATH ??= `${values["persist-to"]}/logs`;

const { unstable_readConfig: readConfig, unstable_getMiniflareWorkerOptions: workerOptionsOf } = await import(
  "wrangler"
);
const { Log, LogLevel, Miniflare } = await import("miniflare");

let miniflare;
let ending = false;
async function end(code) {
  if (ending) return;
  ending = true;
  // If Miniflare can't be disposed of, the process ends anyway.
  setTimeout(() => process.exit(code), 3000).unref();
  await miniflare?.dispose();
  process.exit(code);
}
process.on("SIGTERM", () => end(0));
process.on("SIGINT", () => end(0));

try {
  const config = readConfig({ config: "wrangler.toml" });
  execSync(config.build.command, { stdio: "inherit" });
  const { workerOptions } = workerOptionsOf(config);
  const main = path.resolve(config.main);
  const wasm = path.join(path.dirname(main), "index_bg.wasm");
  miniflare = new Miniflare({
    ...workerOptions,
    bindings: {
      ...workerOptions.bindings,
      ...(values["env-file"] ? parseEnv(readFileSync(values["env-file"], "utf8")) : {}),
    },
    modulesRoot: path.dirname(main),
    modules: [
      { type: "ESModule", path: main },
      { type: "CompiledWasm", path: wasm },
    ],
    host: values.ip,
    port: Number(values.port),
    cachePersist: path.resolve(values["persist-to"], "cache"),
    cf: false, // no call home for a sample `request.cf`
    log: new Log(LogLevel.WARN),
    logRequests: false,
  });
  await miniflare.ready;
} catch (error) {
  console.error(`the edge does not start: ${error.message}`);
  await end(1);
}
