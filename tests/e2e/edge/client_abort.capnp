# Configures the worker behind another worker, which aborts requests as Cloudflare does when clients disconnect: workerd
# alone does not notice a disconnect.
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
    (name = "index.js", esModule = embed "../../../edge/build/index.js"),
    (name = "./index_bg.wasm", wasm = embed "../../../edge/build/index_bg.wasm"),
  ],
  compatibilityDate = "2026-04-26",
  compatibilityFlags = ["enable_request_signal"],
  bindings = [
    (name = "ORIGINS", fromEnvironment = "ORIGINS"),
    (name = "JWKS", fromEnvironment = "JWKS"),
  ],
);
