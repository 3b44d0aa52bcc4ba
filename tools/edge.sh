#!/usr/bin/env bash
# Builds the worker into edge/build/. Called by `make edge` when a source of it changed.
#
# Needs the tools that tools/setup.sh installs. worker-build is not used: it wraps the worker in a
# class and proxies, which cost each request 5 µs of processor time.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=node_modules/binaryen/bin
esbuild=$(node -p 'require.resolve(`@esbuild/${process.platform}-${process.arch}/bin/esbuild`)')
mkdir -p target edge/build
# Each build has a directory of its own, since wrangler may start a build at the same time.
parts=$(mktemp -d target/worker.XXXXXX)
trap 'rm -rf "$parts"' EXIT

# Panic messages have the paths of dependencies: without this, the worker's size would depend on the home directory. Cargo
# adds the flag to those of .cargo/config.toml.
paths="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src/="
cargo build --locked -p selkie-edge --lib --profile edge --target wasm32-unknown-unknown \
  --config "target.wasm32-unknown-unknown.rustflags=['$paths']"
# `--workspace`: with the features of all crates, as the tests need its dependencies.
cargo build --locked --quiet --workspace --bin bindgen
target/debug/bindgen target/wasm32-unknown-unknown/edge/edge.wasm "$parts"
# Removes function names, which are a tenth of the bytes that an isolate loads, and duplicate
# functions. Other passes of binaryen would save 10 % of the bytes that rustc has optimised, but the
# compressed file would be 2 % larger.
"$bin/wasm-opt" --code-folding --duplicate-function-elimination --remove-unused-brs --rse --vacuum \
  --optimize-instructions --duplicate-function-elimination --dae-optimizing --coalesce-locals --reorder-locals \
  --merge-blocks --rse --vacuum --optimize-instructions --remove-unused-module-elements \
  --strip-debug --strip-producers --strip-target-features --enable-mutable-globals --enable-sign-ext --enable-nontrapping-float-to-int \
  --enable-bulk-memory --enable-multivalue --enable-reference-types --enable-exception-handling \
  "$parts/worker_bg.wasm" -o "$parts/index_bg.wasm"
# workerd takes a module of wasm as a plain import.
sed -i 's|^import source wasmModule from "./worker_bg.wasm"|import wasmModule from "./index_bg.wasm"|' "$parts/worker.js"
# A worker is the object that its module exports as the default.
echo 'import { fetch } from "./worker.js"; export default { fetch };' > "$parts/entry.js"
"$esbuild" "$parts/entry.js" --bundle --minify --format=esm --log-level=warning \
  "--external:./index_bg.wasm" '--external:cloudflare:*' --outfile="$parts/index.js"
# `make` looks at these files, so they are written last.
mv "$parts/index_bg.wasm" "$parts/index.js" edge/build/
