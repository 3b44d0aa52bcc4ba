#!/usr/bin/env bash
# Builds the worker into edge/build/. Called by `make edge` when a source of it changed.
#
# Every tool is one that tools/setup.sh put there: worker-build would otherwise download its own.
set -euo pipefail
cd "$(dirname "$0")/.."

export WASM_BINDGEN_BIN=$PWD/.tools/bin/wasm-bindgen
export WASM_OPT_BIN=$PWD/node_modules/binaryen/bin/wasm-opt
# The program itself: worker-build can't follow the JavaScript that stands in for it under .bin/.
ESBUILD_BIN=$(node -p 'require.resolve(`@esbuild/${process.platform}-${process.arch}/bin/esbuild`)')
export ESBUILD_BIN

.tools/bin/worker-build --profile edge edge -- --locked
# worker-build needs the functions' names, nobody else does: they are a tenth of what an isolate loads.
"$WASM_OPT_BIN" --strip-debug edge/build/index_bg.wasm -o edge/build/index_bg.wasm
touch edge/build/index.js
