# The edge without Cloudflare: the same worker under plain workerd.
#
#   node_modules/.bin/workerd serve edge/workerd.capnp --socket-addr http=127.0.0.1:8787
#
# Run `make edge` first. Variables come from the environment; docs/settings.md tells which.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  # V8 does not count the native memory that dead JavaScript objects keep. By default it collects them so rarely that
  # this memory rises for hours (docs/performance/soak.md). So: 128 MB of JavaScript heap, as on Cloudflare (the worker uses
  # 2 MB); 4 MB for young objects, so that most are freed by the cheap collection of young ones; a full collection once
  # the heap has grown by 30 %.
  v8Flags = ["--max-heap-size=128", "--min-semi-space-size=4", "--heap-growing-percent=30"],
  services = [
    (name = "edge", worker = .edge),
    # Where the worker may connect to: the origins may be anywhere, also on this machine.
    (name = "internet", network = (allow = ["public", "private", "local"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "edge")],
);

const edge :Workerd.Worker = (
  modules = [
    (name = "index.js", esModule = embed "build/index.js"),
    (name = "./index_bg.wasm", wasm = embed "build/index_bg.wasm"),
  ],
  compatibilityDate = "2026-04-26", # as in wrangler.toml
  compatibilityFlags = ["enable_request_signal"], # as there
  bindings = [
    (name = "ORIGINS", fromEnvironment = "ORIGINS"),
    (name = "ORIGIN_TIMEOUT_MS", fromEnvironment = "ORIGIN_TIMEOUT_MS"),
    (name = "ORIGIN_CONNECT_TIMEOUT_MS", fromEnvironment = "ORIGIN_CONNECT_TIMEOUT_MS"),
    (name = "JWKS", fromEnvironment = "JWKS"),
    (name = "ISSUERS", fromEnvironment = "ISSUERS"),
    (name = "CORS_ORIGINS", fromEnvironment = "CORS_ORIGINS"),
    (name = "LOG_REQUESTS", fromEnvironment = "LOG_REQUESTS"),
    (name = "READ_CACHE_MAX_SECONDS", fromEnvironment = "READ_CACHE_MAX_SECONDS"),
    (name = "UPLOAD_MAX_BYTES", fromEnvironment = "UPLOAD_MAX_BYTES"),
    (name = "MEDIA_REVALIDATE_SECONDS", fromEnvironment = "MEDIA_REVALIDATE_SECONDS"),
    (name = "ALLOW_FULL_KEYS_FROM_BROWSERS", fromEnvironment = "ALLOW_FULL_KEYS_FROM_BROWSERS"),
    (name = "EDGE_SECRET", fromEnvironment = "EDGE_SECRET"),
    # Unless a proxy before this sets it on every request, no header tells a caller's address: callers could set it too.
    (name = "CLIENT_ADDRESS_HEADER", fromEnvironment = "CLIENT_ADDRESS_HEADER"),
  ],
);
