// Tests how an owner makes and changes tables, views and stored programs in the console.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";

const source = readFileSync(new URL("../src/design/draft.ts", import.meta.url), "utf8");
const { code } = transformSync(source, { loader: "ts" });
const { alterationOf, draftOf, newDraft, newTableOf } = await import(
  `data:text/javascript,${encodeURIComponent(code)}`
);

const MADE = {
  columns: ["a", "b", "c", "d"].map((name) => ({ name, type: "varchar(9)", charset: "utf8mb4", nullable: false })),
  primaryKey: ["a", "b"],
  comment: "all",
};
const draft = draftOf("t", MADE);
const [a, b, c, d] = draft.columns;
const column = (name, more) => ({ name, type: "varchar(9)", charset: "utf8mb4", ...more });
const added = (id, name) => ({ id, name, type: "int" });

/** Changes of the draft, and the alterations that they are. */
const ALTERATIONS = [
  [{}, {}],
  [{ columns: [{ ...a, name: " x " }, b, c, d] }, { changeColumns: [{ column: "a", ...column("x") }] }],
  [{ columns: [d, a, b, c] }, { changeColumns: [{ column: "d", ...column("d"), first: true }] }],
  [{ columns: [b, c, d, a] }, { changeColumns: [{ column: "a", ...column("a"), after: "d" }] }],
  [
    { columns: [d, { ...b, name: "x" }, a, c] },
    {
      changeColumns: [
        { column: "d", ...column("d"), first: true },
        { column: "b", ...column("x") },
        { column: "a", ...column("a"), after: "x" },
      ],
    },
  ],
  [
    { columns: [added(4, "n"), a, { ...b, isDropped: true }, added(5, "m"), c, d, added(6, "o"), added(7, "p")] },
    {
      addColumns: [
        { name: "n", type: "int", first: true },
        { name: "m", type: "int", after: "a" },
        { name: "o", type: "int" },
        { name: "p", type: "int" },
      ],
      dropColumns: ["b"],
      primaryKey: ["a"],
    },
  ],
  [
    { columns: [{ ...a, type: "int", default: "0", collation: "utf8mb4_bin" }, b, c, d] },
    { changeColumns: [{ column: "a", name: "a", type: "int", default: "0" }] },
  ],
  [{ primaryKey: [] }, { primaryKey: null }],
  [{ primaryKey: [1, 0] }, { primaryKey: ["b", "a"] }],
  [
    { name: "u ", comment: "" },
    { comment: "", rename: "u" },
  ],
  [
    {
      columns: [a, b, { ...c, name: "x" }, d],
      addedIndexes: [{ name: "", kind: "index", parts: [{ id: 2, length: 3 }, { id: 3 }] }],
    },
    {
      changeColumns: [{ column: "c", ...column("x") }],
      addIndexes: [{ kind: "index", columns: [{ column: "x", length: 3 }, "d"] }],
    },
  ],
];

/** Types instead of what is in the field. */
const set = (tab, name, text) => tab.fill(name, text, ".design");
const columnsOf = ({ columns }) => columns.map(({ name }) => name);

export const design = ({ database, call }) => ({
  async "find what a table's change is"() {
    for (const [part, expected] of ALTERATIONS)
      assert.deepEqual(alterationOf({ ...draft, ...part }, "t", MADE), expected, JSON.stringify(part));
    assert.deepEqual(newTableOf(newDraft()), {
      columns: [{ name: "id", type: "bigint unsigned", autoIncrement: true }],
      primaryKey: ["id"],
    });
  },

  async "create a table"(tab) {
    await tab.press(`New table: ${database}`, "link");
    await tab.page.waitForSelector(".design");
    await set(tab, "Table name", "shelves");
    await set(tab, "Table comment", "where books stand");
    await tab.press("Add column");
    await tab.page.waitForSelector('[aria-label="Name 2"]:focus');
    await set(tab, "Name 2", "label");
    const types = await tab.page.$$eval("#column-types option", (options) => options.map(({ value }) => value));
    assert.ok(types.includes("decimal(10,2)") && types.includes("enum('a','b')"), types.join(" "));
    await set(tab, "Type 2", "enum");
    const fault = await tab.page.$eval('[aria-label="Type 2"]', (input) => input.validationMessage);
    assert.match(fault, /^Write the values/);
    await set(tab, "Type 2", "varchar(20");
    await tab.press("Review and save");
    await tab.sees("Column label: type has no closing parenthesis", "dialog [role=alert]");
    await tab.press("Cancel");
    await set(tab, "Type 2", "strings(20)");
    await tab.press("Add column");
    await set(tab, "Name 3", "width");
    await set(tab, "Type 3", "int");
    await tab.select('[aria-label="Default 3"]', "value");
    await set(tab, "Value 3", "80");
    await tab.press("More of width");
    await set(tab, "Check, as SQL 3", "width > 0");
    await tab.press("Add column");
    await set(tab, "Name 4", "twice");
    await set(tab, "Type 4", "int");
    await tab.select('[aria-label="Default 4"]', "virtual");
    await set(tab, "Value 4", "width * 2");
    await tab.isAccessible("new table");
    await tab.press("Review and save");
    await tab.sees("sql_error", "dialog [role=alert]");
    await tab.press("Cancel");
    await set(tab, "Type 2", "varchar(20)");
    await tab.press("Review and save");
    await tab.sees(`CREATE TABLE \`${database}\`.\`shelves\``, "dialog");
    await tab.press("Run");
    await tab.page.waitForFunction((hash) => location.hash === hash, {}, `#/structure/${database}/shelves`);
    await tab.sees("where books stand", ".structure");
    await tab.sees("shelves", ".side-tables");
    const made = await call("GET", `schema/${database}/shelves`);
    assert.deepEqual([columnsOf(made), made.primaryKey], [["id", "label", "width", "twice"], ["id"]]);
    assert.deepEqual(made.columns[2].check, { expression: "`width` > 0" });
    await call("POST", `crud/${database}/shelves`, { batchData: [{ label: "a" }, { label: "a" }] });
  },

  async "change a table, and see what it costs"(tab) {
    await tab.press("Edit", "link");
    await tab.sees("Nothing is changed yet.", ".design");
    await set(tab, "Name 2", "title");
    await tab.press("Move title down");
    await tab.press("Add column");
    await set(tab, "Name 5", "author");
    await set(tab, "Type 5", "int unsigned");
    await tab.press("More of author");
    await tab.select('[aria-label="Place 5"]', "1");
    await tab.press("Add index");
    await tab.select('[aria-label="Kind"]', "unique");
    await tab.select('[aria-label="Indexed column 1"]', "1");
    await set(tab, "First characters of column 1", "5");
    await set(tab, "Name of the index", "by_title");
    await tab.press("Add foreign key");
    await tab.select('[aria-label="References"]', "authors");
    await tab.select('[aria-label="Column 1"]', "4");
    await tab.page.waitForFunction(() => document.querySelector('[aria-label="Referenced column 1"]')?.value === "id");
    await set(tab, "Name of the foreign key", "shelf_author");
    await tab.isAccessible("edited table", ["dark", "light"]);
    // The tab keeps the edits.
    await tab.page.reload();
    await tab.page.waitForSelector('[aria-label="References"]');
    await tab.press("Review and save");
    await tab.sees("Copies the table record by record", "dialog");
    await tab.sees("Meanwhile, others can", "dialog");
    await tab.isAccessible("change", ["dark", "light"]);
    await tab.press("Run");
    await tab.sees("Duplicate entry", "dialog [role=alert]");
    await tab.press("Cancel");
    await tab.select('[aria-label="Kind"]', "index");
    await tab.press("Review and save");
    await tab.press("Run");
    await tab.sees("shelf_author", ".structure");
    await tab.sees("title(5)", ".structure");
    const made = await call("GET", `schema/${database}/shelves`);
    assert.deepEqual(columnsOf(made), ["id", "author", "width", "title", "twice"]);
    assert.deepEqual(made.foreignKeys[0].references, { table: "authors", columns: ["id"] });
    assert.equal(made.comment, "where books stand");
  },

  async "drop columns and keys, rename and drop a table"(tab) {
    const trigger = "CREATE TRIGGER titled BEFORE INSERT ON shelves FOR EACH ROW SET NEW.title = UPPER(NEW.title)";
    await call("POST", "sql", { database, query: trigger });
    await call("POST", "sql", { database, query: "CREATE VIEW widths AS SELECT id, width FROM shelves" });
    await tab.press("Edit", "link");
    await tab.press("Drop the foreign key shelf_author");
    await tab.press("Drop the index by_title");
    await tab.press("Drop title");
    await tab.press("Drop twice");
    await tab.press("Drop width");
    await tab.press("Keep width");
    await set(tab, "Table name", "racks");
    await tab.press("Review and save");
    await tab.sees("with all their values: title, twice.", "dialog");
    await tab.sees("The trigger titled mentions title, and may fail after this change.", "dialog");
    assert.ok(!(await tab.page.$eval("dialog", ({ innerText }) => innerText)).includes("widths"));
    await tab.isAccessible("mentions of a dropped column", ["dark", "light"]);
    await call("POST", "sql", { database, query: "DROP TRIGGER titled" });
    await tab.fill("Type shelves to confirm", "shelv", "dialog");
    assert.ok(await tab.page.$eval("dialog .danger[type=submit]", ({ disabled }) => disabled));
    await tab.fill("Type shelves to confirm", "shelves", "dialog");
    await tab.click("dialog .danger[type=submit]");
    await tab.page.waitForFunction((hash) => location.hash === hash, {}, `#/structure/${database}/racks`);
    await tab.sees("CREATE TABLE `racks`", ".structure");
    assert.deepEqual(columnsOf(await call("GET", `schema/${database}/racks`)), ["id", "author", "width"]);
    await tab.press("Edit", "link");
    await set(tab, "Name 3", "breadth");
    await call("POST", "sql", { database, query: "CREATE OR REPLACE VIEW widths AS SELECT id, width FROM racks" });
    await tab.press("Review and save");
    await tab.sees("The view widths mentions width", "dialog");
    await tab.press("Cancel");
    await tab.press("Discard");
    await call("POST", "sql", { database, query: "DROP VIEW widths" });
    await tab.press("Structure", "link");
    await tab.press("Delete all records");
    await tab.sees("TRUNCATE TABLE", "dialog");
    await tab.fill("Type racks to confirm", "racks", "dialog");
    await tab.isAccessible("deletion of all records");
    await tab.click("dialog .danger[type=submit]");
    await tab.gone("dialog");
    assert.deepEqual(await call("GET", `crud/${database}/racks`), []);
    await tab.press("Drop table");
    await tab.sees("DROP TABLE", "dialog");
    await tab.fill("Type racks to confirm", "racks", "dialog");
    await tab.click("dialog .danger[type=submit]");
    await tab.sees("books", ".home");
    await tab.page.waitForFunction(() => !document.querySelector(".side-tables").innerText.includes("racks"));
    // What the table of another has is refused.
    await tab.go(`#/structure/${database}/authors`);
    await tab.press("Drop table");
    await tab.fill("Type authors to confirm", "authors", "dialog");
    await tab.click("dialog .danger[type=submit]");
    await tab.sees("foreign key constraint", "dialog [role=alert]");
    await tab.press("Cancel");
  },

  async "change a table of sixty columns"(tab) {
    const columns = Array.from({ length: 60 }, (_, at) => ({ name: `c${at}`, type: "int", nullable: true }));
    await call("POST", "schema", { database, table: "wide", create: { columns } });
    await tab.go(`#/edit/${database}/wide`);
    await tab.press("More of c59");
    await tab.select('[aria-label="Place 60"]', "0");
    await tab.press("Review and save");
    await tab.sees("CHANGE COLUMN `c59` `c59` int(11) NULL FIRST, ALGORITHM=INSTANT", "dialog");
    await tab.sees("Changes only the definition", "dialog");
    // Somebody else changes the table meanwhile.
    await call("POST", "sql", { database, query: "ALTER TABLE wide DROP COLUMN c0, ROW_FORMAT = COMPRESSED" });
    await tab.press("Run");
    await tab.sees("ALGORITHM=INSTANT is not supported", "dialog [role=alert]");
    await tab.press("Run it in another way, which may take longer");
    await tab.page.waitForFunction(() => location.hash.startsWith("#/structure/"));
    const made = await call("GET", `schema/${database}/wide`);
    assert.deepEqual(columnsOf(made).slice(0, 3), ["c59", "c1", "c2"]);
    await tab.press("Edit", "link");
    await set(tab, "Name 1", "first");
    await call("POST", "schema", { database, table: "wide", alter: { dropColumns: ["c1"] } });
    await tab.page.reload();
    await tab.sees("The table has changed since these edits began.", ".design [role=alert]");
    await tab.press("Discard");
    await tab.sees("Nothing is changed yet.", ".design");
    assert.equal(await tab.page.$eval('[aria-label="Name 2"]', ({ value }) => value), "c2");
    await call("POST", "schema", { database, table: "wide", drop: true });
  },

  async "write views, triggers and routines"(tab) {
    const write = async (text) => {
      await tab.click(".editor");
      await tab.holding("Control", "a");
      await tab.page.keyboard.sendCharacter(text);
      await tab.keys("Escape");
    };
    await tab.press(`Views, triggers and routines: ${database}`, "link");
    await tab.press("cheap", "link");
    await tab.page.waitForFunction(() =>
      document.querySelector(".code-text .editor")?.shadowRoot?.textContent.includes("CREATE OR REPLACE"),
    );
    await tab.sees("DEFINER is the account", ".code-text");
    await tab.isAccessible("view as text");
    await tab.press("New view", "link");
    await tab.sees("New view", ".code-text h2");
    await write("CREATE VIEW dear AS SELECT id FROM nowhere");
    await tab.press("Save");
    await tab.sees("nowhere", ".code-text [role=alert]");
    await write("CREATE VIEW dear AS SELECT id, title FROM books WHERE price > 300");
    await tab.press("Save");
    await tab.page.waitForFunction((hash) => location.hash === hash, {}, `#/code/${database}/view/dear`);
    await tab.sees("The view dear", ".code-text");
    await tab.sees("Created.", ".code-text");
    await tab.sees("dear", ".side-tables");
    await tab.press("New trigger", "link");
    await tab.sees("New trigger", ".code-text h2");
    await write("CREATE TRIGGER loud BEFORE INSERT ON logs FOR EACH ROW BEGIN SET NEW.word = UPPER(NEW.word); END");
    await tab.press("Save");
    await tab.sees("The trigger loud", ".code-text");
    await tab.page.waitForFunction(() =>
      document.querySelector(".code-text .editor")?.shadowRoot?.textContent.includes("UPPER(NEW.word)"),
    );
    await write("CREATE OR REPLACE TRIGGER loud BEFORE INSERT ON logs FOR EACH ROW SET NEW.word = LOWER(NEW.word)");
    await tab.press("Save");
    await tab.sees("Saved.", ".code-text");
    await tab.go(`#/structure/${database}/logs`);
    await tab.sees("before insert", ".structure");
    await tab.press("loud", "link");
    await tab.press("Drop the trigger");
    await tab.isAccessible("drop of a trigger");
    await tab.click("dialog .danger");
    await tab.page.waitForFunction(() => !document.querySelector(".manage nav").innerText.includes("loud"));
    await tab.go(`#/structure/${database}/dear`);
    await tab.press("Edit as text", "link");
    await tab.press("Drop the view");
    await tab.click("dialog .danger");
    await tab.page.waitForFunction(() => !document.querySelector(".side-tables").innerText.includes("dear"));
    const { views, triggers } = await call("GET", `schema/${database}`);
    assert.deepEqual([views.map(({ name }) => name), triggers], [["cheap", "later", "many"], []]);
  },
});
