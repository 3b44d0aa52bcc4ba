// What a page loads for the client.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { buildSync } from "esbuild";

const MAX_BYTES = 11_000;

test("the client is small, and needs no other package", () => {
  const entryPoints = [fileURLToPath(new URL("../../dist/index.js", import.meta.url))];
  // For browsers: a package of Node or of npm would fail the build.
  const { outputFiles } = buildSync({
    entryPoints,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    write: false,
  });
  const { length } = gzipSync(outputFiles[0].contents);
  assert.ok(length < MAX_BYTES, `${length} bytes`);
});
