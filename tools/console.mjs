// Bundles the console (console/src) and returns its files by name. The SQL editor, charts and the diagram are files of their
// own, which the page loads when they are opened.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const folder = join(root, "console");

/** Returns the files of the page at `/console` as pairs of name and content. */
export async function consoleFiles() {
  const { outputFiles } = await build({
    entryPoints: { main: join(folder, "src/main.tsx") },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "linked",
    chunkNames: "[name]-[hash]",
    jsx: "automatic",
    jsxImportSource: "preact",
    alias: { "@selkie/client": join(root, "clients/typescript/src/index.ts"), react: "preact/compat", "react-dom": "preact/compat" },
    define: { "process.env.NODE_ENV": '"production"' },
    publicPath: "/console",
    logLevel: "warning",
    write: false,
  });
  return [
    ...["index.html", "icon.svg"].map((name) => [name, readFileSync(join(folder, name))]),
    ...outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]),
  ];
}
