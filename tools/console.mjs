// Bundles the console (console/src) and returns its files by name. The SQL editor, charts and the diagram are files of their
// own, which the page loads when they are opened.
import { build } from "esbuild";
import { readFileSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const folder = join(root, "console");

/** Returns the files of the page at `/console` as pairs of name and content. */
export async function consoleFiles() {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: { main: join(folder, "src/main.tsx") },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    metafile: true,
    chunkNames: "[name]-[hash]",
    jsx: "automatic",
    jsxImportSource: "preact",
    alias: {
      "@selkie/client": join(root, "clients/typescript/src"),
      react: "preact/compat",
      "react-dom": "preact/compat",
    },
    define: { "process.env.NODE_ENV": '"production"' },
    publicPath: "/console",
    logLevel: "warning",
    write: false,
  });
  return [
    ...["index.html", "icon.svg"].map((name) => [name, readFileSync(join(folder, name))]),
    ["LICENSES.txt", licenses(Object.keys(metafile.inputs))],
    ...outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]),
  ];
}

/** Returns the licenses of the packages whose code is in the files. */
function licenses(files) {
  const packages = files.map((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]).filter(Boolean);
  const texts = [...new Set(packages)].sort().map((name) => {
    const own = join(root, "node_modules", name);
    const license = readdirSync(own).find((file) => /^licen[sc]e/i.test(file));
    if (!license) throw new Error(`The package ${name} has no file with its license.`);
    return `${name}\n\n${readFileSync(join(own, license), "utf8").trim()}\n`;
  });
  return Buffer.from(texts.join(`\n${"-".repeat(80)}\n\n`));
}
