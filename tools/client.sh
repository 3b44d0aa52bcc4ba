#!/usr/bin/env bash
# Builds the TypeScript client into clients/typescript/dist/: one module and its types. Called by `make client`.
#
# Needs the tools that tools/setup.sh installs.
set -euo pipefail
cd "$(dirname "$0")/../clients/typescript"

esbuild=$(node -p 'require.resolve(`@esbuild/${process.platform}-${process.arch}/bin/esbuild`)')
rm -rf dist
node ../../node_modules/typescript/bin/tsc -p .
cp ../../LICENSE-MIT ../../LICENSE-APACHE .
# Written last, since `make` checks the age of this file. Not minified, since users bundle it
# themselves, and read it in a debugger.
"$esbuild" src/index.ts --bundle --format=esm --target=es2022 --log-level=warning --outfile=dist/index.js
