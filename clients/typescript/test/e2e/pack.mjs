// Packs the client, installs it into a new project without the network, compiles a typed program there, and runs it.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { same } from "./calls.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tsc = fileURLToPath(import.meta.resolve("typescript/bin/tsc"));
const directory = mkdtempSync(join(tmpdir(), "selkie-package-"));
try {
  // Nothing of this machine's npm: neither its cache nor its settings.
  const env = {
    ...process.env,
    npm_config_cache: join(directory, "cache"),
    npm_config_userconfig: join(directory, "npmrc"),
    npm_config_update_notifier: "false",
  };
  const run = (program, ...args) =>
    execFileSync(program, args, { cwd: join(directory, "project"), env, encoding: "utf8" });
  mkdirSync(join(directory, "project"));
  const [packed] = JSON.parse(run("npm", "pack", root, "--json", "--pack-destination", directory, "--silent"));
  const files = packed.files.map(({ path }) => path);
  same(
    ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "dist/index.d.ts", "dist/index.js"].filter(
      (path) => !files.includes(path),
    ),
    [],
    "the missing files",
  );
  same(
    files.filter((path) => /^(src|test|examples)/.test(path)),
    [],
    "the files too many",
  );

  writeFileSync(join(directory, "project/package.json"), JSON.stringify({ private: true, type: "module" }));
  run("npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", join(directory, packed.filename));
  copyFileSync(join(root, "test/e2e/program.ts"), join(directory, "project/program.ts"));
  copyFileSync(join(root, "test/types/database.ts"), join(directory, "project/database.ts"));
  const strict = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"];
  run(process.execPath, tsc, ...strict, "program.ts");
  const [order, code, removed] = JSON.parse(run(process.execPath, "program.js"));
  same([order, code, removed], [{ total: "3.20", customer: null }, "invalid_value", 1], "what the program printed");
} finally {
  rmSync(directory, { recursive: true });
}
console.log("the package works");
