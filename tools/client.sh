#!/usr/bin/env bash
# Builds the TypeScript client into clients/typescript/dist/: one module and its types. Called by `make client`.
#
# tools/setup.sh has installed all tools.
set -euo pipefail
cd "$(dirname "$0")/../clients/typescript"

esbuild=$(node -p 'require.resolve(`@esbuild/${process.platform}-${process.arch}/bin/esbuild`)')
rm -rf dist
node ../../node_modules/typescript/bin/tsc -p .
cp ../../LICENSE-MIT ../../LICENSE-APACHE .
# `make` looks at this file, so it is written last. It is not minified: users bundle it, and read it in a debugger.
"$esbuild" src/index.ts --bundle --format=esm --target=es2022 --log-level=warning --outfile=dist/index.js
