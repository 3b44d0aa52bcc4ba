# Configures the worker behind another worker, which aborts requests as Cloudflare does when clients disconnect: workerd
# alone only notices broken connections, not closed ones. The edge's closures are counted.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "client", worker = .client),
    (name = "edge", worker = .edge),
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "client")],
);

const client :Workerd.Worker = (
  modules = [(name = "client_abort.js", esModule = embed "client_abort.js")],
  compatibilityDate = "2026-04-26",
  bindings = [(name = "EDGE", service = "edge")],
);

const edge :Workerd.Worker = (
  modules = [
    (name = "closure_count.js", esModule = embed "closure_count.js"),
    (name = "index.js", esModule = embed "../../../edge/build/index.js"),
    (name = "./index_bg.wasm", wasm = embed "../../../edge/build/index_bg.wasm"),
  ],
  compatibilityDate = "2026-04-26",
  compatibilityFlags = ["enable_request_signal"],
  bindings = [
    (name = "ORIGINS", fromEnvironment = "ORIGINS"),
    (name = "ORIGIN_TIMEOUT_MS", fromEnvironment = "ORIGIN_TIMEOUT_MS"),
    (name = "ORIGIN_CONNECT_TIMEOUT_MS", fromEnvironment = "ORIGIN_CONNECT_TIMEOUT_MS"),
    (name = "JWKS", fromEnvironment = "JWKS"),
  ],
);
