# Configures the worker that the edge is compared with, like edge/workerd.capnp configures the edge.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  v8Flags = ["--max-heap-size=128", "--min-semi-space-size=4", "--heap-growing-percent=30"], # as in edge/workerd.capnp
  services = [
    (name = "pass-through", worker = .passThrough),
    (name = "internet", network = (allow = ["public", "private", "local"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8788", http = (), service = "pass-through")],
);

const passThrough :Workerd.Worker = (
  modules = [(name = "pass-through.js", esModule = embed "pass-through.js")],
  compatibilityDate = "2026-04-26", # as in wrangler.toml
  bindings = [(name = "ORIGIN_URL", fromEnvironment = "ORIGIN_URL")],
);
