# The worker with a rate-limiting binding that fails.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "edge", worker = .edge),
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "edge")],
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
    (name = "RATE_LIMIT", text = "1/1m"),
    (name = "RATE_LIMITER", json = "{}"),
  ],
);
