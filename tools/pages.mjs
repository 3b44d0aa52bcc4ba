// Makes the files of the pages that the origin serves, in pages/build/: the files of pages/ and of npm packages,
// gzipped, with the licenses of their contents. `cargo build` embeds them in a release; without them the origin answers
// that it was built without pages.
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { consoleFiles } from "./console.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const target = join(root, "pages/build");
const swagger = join(root, "node_modules/swagger-ui-dist");

/** The files of each page, as paths. */
const PAGES = {
  home: [join(root, "pages/home/index.html")],
  docs: [
    join(root, "README.md"),
    ...readdirSync(join(root, "pages/docs")).map((name) => join(root, "pages/docs", name)),
    ...["swagger-ui-bundle.js", "swagger-ui.css", "swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE"].map((name) =>
      join(swagger, name),
    ),
  ],
};

// Written to a draft directory and renamed at the end, so that no build embeds an incomplete set of files.
const draft = `${target}.${process.pid}`;
const write = (page, name, content) => {
  mkdirSync(join(draft, page), { recursive: true });
  writeFileSync(join(draft, page, `${name}.gz`), gzipSync(content, { level: 9 }));
};
for (const [name, content] of await consoleFiles()) write("console", name, content);
for (const [page, files] of Object.entries(PAGES)) {
  for (const file of files) {
    let content = readFileSync(file);
    // Removes the reference to the source map, which is not served.
    if (file.endsWith(".js") || file.endsWith(".css")) {
      content = Buffer.from(
        content.toString().replace(/\n(\/\/# sourceMappingURL=\S+|\/\*# sourceMappingURL=\S+ ?\*\/)\s*$/, "\n"),
      );
    }
    const name = file.split("/").pop();
    write(page, name, content);
    if (name === "index.html") {
      write(page, "without-console.html", content.toString().replace(/^.*href="\/console".*\n/gm, ""));
    }
  }
}
rmSync(target, { recursive: true, force: true });
renameSync(draft, target);
