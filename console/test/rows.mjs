// Tests what is done with many records in the console: select, copy, change, delete, paste, duplicate; and the keyboard.
import assert from "node:assert/strict";

export const manyRows = ({ database, call }) => {
  const count = (query) => call("POST", `crud/${database}/books/query`, { query, selectFields: ["id"] });
  const open = async (tab) => {
    await tab.go(
      `#/data/${database}/books?filter=${encodeURIComponent('[{"field":"id","operator":"between","value":"30,39"}]')}`,
    );
    await tab.sees("10 records", ".status");
    await tab.sees("Book 039", ".grid");
    await tab.grid();
    await tab.holding("Control", "Home");
  };
  const box = (line) => `.body [aria-rowindex="${line}"] .pick input`;
  /** Returns what Ctrl+C puts on the clipboard. */
  const copied = (tab) =>
    tab.page.evaluate(() => {
      const event = new ClipboardEvent("copy", { clipboardData: new DataTransfer(), bubbles: true });
      document.activeElement.dispatchEvent(event);
      return event.clipboardData.getData("text/plain");
    });
  const paste = (tab, text) =>
    tab.page.evaluate((text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", text);
      document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
    }, text);
  /** Returns what a button of the panel copies. */
  const taken = async (tab, name) => {
    await tab.page.evaluate(() => {
      Object.defineProperty(navigator, "clipboard", {
        value: { writeText: async (text) => (globalThis.taken = text) },
        configurable: true,
      });
    });
    await tab.press(name);
    return tab.page.evaluate(() => globalThis.taken);
  };

  return {
    async "open an address that was written by hand"(tab) {
      for (const options of ["filter=5", "filter=[null]", "order=5", "columns=5", "search=7"]) {
        await tab.go(`#/data/${database}/books?${options}`);
        await tab.sees("350 records", ".status");
      }
    },

    async "keep a view under a name"(tab) {
      await open(tab);
      await tab.press("Views");
      await tab.fill("Name of this view", "thirties", ".panel");
      await tab.keys("Enter");
      await tab.sees("id between 30,39", ".panel .history");
      await tab.isAccessible("saved views", ["dark", "light"]);
      await tab.go(`#/data/${database}/books`);
      await tab.sees("350 records", ".status");
      await tab.page.reload();
      await tab.press("Views 1");
      await tab.press("thirties id between 30,39");
      await tab.sees("10 records", ".status");
      await tab.press("Views 1");
      await tab.press("Delete thirties");
      await tab.keys("Escape");
      await tab.page.waitForSelector("::-p-aria([name='Views'][role='button'])");
    },

    async "select records, and copy them in four forms"(tab) {
      await open(tab);
      await tab.click(box(2));
      await tab.page.keyboard.down("Shift");
      await tab.click(box(4));
      await tab.page.keyboard.up("Shift");
      await tab.page.waitForSelector(".header .pick input:indeterminate");
      await tab.page.waitForSelector("::-p-aria([name='Selected (3)'][role='button'])");
      await tab.keys("Escape");
      await tab.page.waitForSelector("::-p-aria([name='Rows'][role='button'])");
      await tab.holding("Control", "Home");
      await tab.holding("Shift", "Space");
      await tab.holding("Shift", "ArrowDown");
      const lines = (await copied(tab)).split("\n");
      assert.equal(lines.length, 2);
      assert.deepEqual(lines[0].split("\t").slice(0, 3), ["30", "1", "Book 030"]);
      await tab.press("Selected (2)");
      await tab.isAccessible("rows", ["dark", "light"]);
      assert.deepEqual(
        JSON.parse(await taken(tab, "JSON")).map(({ id, title }) => [id, title]),
        [
          [30, "Book 030"],
          [31, "Book 031"],
        ],
      );
      assert.match(await taken(tab, "CSV"), /^id,author_id,title.*\r\n30,1,Book 030,/);
      const insert = await taken(tab, "INSERT");
      const [twin] = await call("POST", "sql", {
        query: "SELECT HEX(cover) AS cover FROM books WHERE id = 30",
        database,
      });
      assert.ok(insert.startsWith("INSERT INTO `books` (`id`, `author_id`, `title`"), insert);
      assert.ok(insert.includes(`x'${twin.cover.toLowerCase()}'`), insert);
      await call("POST", "sql", {
        query: `${insert.replace(/;\s*$/, "")} ON DUPLICATE KEY UPDATE id = VALUES(id)`,
        database,
      });
      await tab.press("Select none");
      await tab.keys("Escape");
    },

    async "change one field of the selected records, then of all of the filter"(tab) {
      await open(tab);
      await tab.click(box(2));
      await tab.click(box(4));
      await tab.press("Selected (2)");
      assert.equal(await tab.page.$eval(".set-field select", ({ value }) => value), "");
      await tab.select(".set-field select", "kind");
      await tab.sees("Choose", ".set-field [aria-label=Value]");
      await tab.select(".set-field select", "note");
      await tab.fill("Value", "picked", ".panel");
      await tab.press("Change …");
      await tab.sees("This sets note to picked in 2 records", ".asked");
      assert.equal((await count({ note: "picked" })).length, 0, "it is only counted");
      await tab.isAccessible("a counted change", ["dark", "light"]);
      await tab.press("Change 2 records");
      await tab.sees("Changed 2 records.", ".panel");
      assert.deepEqual(
        (await count({ note: "picked" })).map(({ id }) => id),
        [30, 32],
      );
      await tab.page.waitForSelector("::-p-aria([name='Selected (2)'][role='button'])");
      await tab.select(".panel select", "filter");
      await tab.select(".set-field select", "author_id");
      await tab.focus('.panel [aria-label="Value"]');
      await tab.page.keyboard.type("cle");
      await tab.keys("Enter");
      await tab.press("Change …");
      await tab.sees("This sets author_id to 3 in 10 records", ".asked");
      await tab.press("Change 10 records");
      await tab.sees("Changed 10 records.", ".panel");
      assert.equal((await count({ author_id: 3, id: { between: [30, 39] } })).length, 10);
      await tab.keys("Escape");
      await tab.gone(".panel");
      await tab.sees("picked", ".grid");
      const query = "UPDATE books SET author_id = 1 + id MOD 3, note = 'some' WHERE id BETWEEN 30 AND 39";
      await call("POST", "sql", { query, database });
    },

    async "delete nothing while nothing is selected"(tab) {
      await tab.go(`#/data/${database}/books`);
      await tab.sees("350 records", ".status");
      await tab.press("Rows");
      await tab.sees("the selected records (0)", ".panel");
      const [scope, isOff] = await tab.page.$eval(".panel", (panel) => [
        panel.querySelector("select").value,
        [...panel.querySelectorAll("button")].find(({ innerText }) => innerText.includes("Delete …")).disabled,
      ]);
      assert.deepEqual([scope, isOff], ["selected", true]);
      await tab.keys("Escape");
      await tab.gone(".panel");
    },

    async "delete the selected records"(tab) {
      const ids = [];
      for (const title of ["Gone 1", "Gone 2"]) ids.push(await call("POST", `crud/${database}/books`, { title }));
      await tab.go(
        `#/data/${database}/books?filter=${encodeURIComponent('[{"field":"title","operator":"startsWith","value":"Gone"}]')}`,
      );
      await tab.sees("2 records", ".status");
      await tab.grid();
      await tab.holding("Control", "a");
      await tab.press("Selected (2)");
      await tab.press("Delete …");
      await tab.sees("This deletes 2 records", ".asked");
      await tab.press("Delete 2 records");
      await tab.sees("Deleted 2 records.", ".panel");
      await tab.keys("Escape");
      await tab.gone(".panel");
      assert.equal((await count({ id: { in: ids } })).length, 0);
    },

    async "type over cells, and go down with Enter"(tab) {
      await open(tab);
      await tab.keys("ArrowRight", "ArrowRight");
      for (const word of ["One", "Two"]) {
        await tab.page.keyboard.type(word);
        await tab.page.waitForFunction(
          (word) => document.querySelector(".cell-editor input")?.value === word,
          {},
          word,
        );
        await tab.keys("Enter");
        await tab.gone(".cell-editor");
      }
      await tab.sees("2 unsaved changes", ".edits");
      await tab.sees("One", '.body [aria-rowindex="2"]');
      await tab.sees("Two", '.body [aria-rowindex="3"]');
      await tab.press("Undo");
      await tab.press("Undo");
      await tab.gone(".edits");
    },

    async "paste cells as edits and as new records"(tab) {
      await open(tab);
      await tab.keys("ArrowRight", "ArrowRight");
      await paste(tab, 'Pasted 1\t1.5\n"Pasted\t""2"""\t2.5\n');
      await tab.sees("2 unsaved changes", ".edits");
      await tab.sees("Pasted 1", '.body [aria-rowindex="2"]');
      await tab.press("Undo");
      await tab.gone(".edits");
      await tab.grid();
      await paste(tab, 'Pasted 1\t1.5\n"Pasted\t""2"""\t2.5\n');
      await tab.press("Save all");
      await tab.gone(".edits");
      assert.equal((await call("GET", `crud/${database}/books/31`)).title, 'Pasted\t"2"');
      assert.equal(Number((await call("GET", `crud/${database}/books/31`)).price), 2.5);
      await tab.press("Rows");
      await tab.fill("New records from a spreadsheet", "x", ".panel");
      await tab.page.$eval(".panel textarea", (area) => {
        area.value = "title\tkind\nPasted 3\tplay\nPasted 4\tpoem\n";
        area.dispatchEvent(new Event("input", { bubbles: true }));
      });
      await tab.press("Add to the changes");
      await tab.keys("Escape");
      await tab.sees("2 unsaved changes", ".edits");
      await tab.press("Save all");
      await tab.gone(".edits");
      const added = await count({ title: { in: ["Pasted 3", "Pasted 4"] }, kind: { in: ["play", "poem"] } });
      assert.equal(added.length, 2);
      await call("DELETE", `crud/${database}/books`, { query: { id: { in: added.map(({ id }) => id) } } });
      for (const id of [30, 31])
        await call("PATCH", `crud/${database}/books/${id}`, { title: `Book 0${id}`, price: id });
    },

    async "paste words as booleans, and lose none that is no boolean"(tab) {
      const query = "CREATE TABLE flags (id INT PRIMARY KEY, done TINYINT(1) NULL, many INT NULL)";
      await call("POST", "sql", { database, query });
      const flags = async () =>
        (await call("POST", `crud/${database}/flags/query`, { query: {} })).map(({ done }) => Number(done));
      await tab.go(`#/data/${database}/flags`);
      await tab.sees("This table has no records", ".status");
      const add = async (text) => {
        await tab.press("Rows");
        await tab.fill("New records from a spreadsheet", "x", ".panel");
        await tab.page.$eval(
          ".panel textarea",
          (area, text) => {
            area.value = text;
            area.dispatchEvent(new Event("input", { bubbles: true }));
          },
          text,
        );
        await tab.press("Add to the changes");
        await tab.keys("Escape");
      };
      await add("1\tyes\n2\tNo\n3\tTRUE\n4\tfalse\n5\t1\n6\t0\n");
      await tab.press("Save all");
      await tab.gone(".edits");
      assert.deepEqual(await flags(), [1, 0, 1, 0, 1, 0]);
      await add("7\tn/a\tyes\n");
      await tab.sees("n/a", ".grid");
      await tab.press("Save");
      await tab.sees("done", "[role=alert]");
      assert.equal((await flags()).length, 6);
      await tab.press("Discard");
      await tab.gone(".edits");
      await call("POST", "schema", { database, table: "flags", drop: true });
    },

    async "duplicate a record, and go to a key"(tab) {
      await tab.go(`#/data/${database}/books`);
      await tab.sees("350 records", ".status");
      await tab.holding("Control", "g");
      await tab.page.keyboard.type("9999");
      await tab.keys("Enter");
      await tab.sees("No record has this key.", ".panel");
      await tab.isAccessible("no such key");
      await tab.fill("Key (id)", "300", ".panel");
      await tab.keys("Enter");
      await tab.sees("books 300", ".record");
      await tab.press("Duplicate");
      await tab.sees("New record", ".record");
      await tab.page.waitForFunction(() => document.querySelector('[data-field="title"] input')?.value === "Book 300");
      await tab.press("Save");
      await tab.gone(".edits");
      const twins = await count({ title: "Book 300" });
      assert.equal(twins.length, 2);
      await call("DELETE", `crud/${database}/books/${twins[1].id}`);
      await tab.sees("350 records", ".status");
    },
  };
};
