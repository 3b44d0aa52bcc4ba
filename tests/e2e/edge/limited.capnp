# The worker with a rate-limiting binding: wrangler's own simulation of it, five requests a minute.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "edge", worker = .edge),
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "edge")],
  extensions = [(modules = [(
    name = "selkie-tests:ratelimit",
    internal = true,
    esModule = embed "../../../node_modules/miniflare/dist/src/workers/ratelimit/ratelimit.worker.js",
  )])],
);

const edge :Workerd.Worker = (
  modules = [
    (name = "index.js", esModule = embed "../../../edge/build/index.js"),
    (name = "./index_bg.wasm", wasm = embed "../../../edge/build/index_bg.wasm"),
  ],
  compatibilityDate = "2026-04-26",
  compatibilityFlags = ["enable_request_signal"],
  bindings = [
    (name = "ORIGINS", fromEnvironment = "ORIGINS"),
    (name = "JWKS", fromEnvironment = "JWKS"),
    (name = "ISSUERS", fromEnvironment = "ISSUERS"),
    (name = "RATE_LIMIT", text = "5/1m"),
    (name = "RATE_LIMITER", wrapped = (
      moduleName = "selkie-tests:ratelimit",
      innerBindings = [
        (name = "namespaceId", json = "\"1001\""),
        (name = "limit", json = "5"),
        (name = "period", json = "60"),
      ],
    )),
  ],
);
