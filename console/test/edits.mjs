// Tests how records are edited in the console: undone, saved, refused, and changed by others meanwhile.
import assert from "node:assert/strict";

export const editing = ({ database, call }) => {
  const book = (id) => call("GET", `crud/${database}/books/${id}`);
  /** Returns the JSON document of a book as the database stores it. */
  const raw = async (id) =>
    (await call("POST", "sql", { query: "SELECT meta FROM books WHERE id = ?", params: [id], database }))[0].meta;
  const change = (id, data) => call("PATCH", `crud/${database}/books/${id}`, data);

  return {
    async "edit in place, undo, reload, save"(tab) {
      await tab.page.waitForSelector('.body [aria-rowindex="3"]');
      await tab.grid();
      await tab.holding("Control", "Home");
      await tab.keys("ArrowRight", "ArrowRight", "Enter");
      await tab.page.waitForSelector(".cell-editor input:focus");
      await tab.holding("Control", "a");
      await tab.page.keyboard.type("A whale");
      await tab.keys("Enter");
      await tab.sees("1 unsaved change", ".edits");
      await tab.press("Undo");
      await tab.gone(".edits");
      await tab.grid();
      await tab.keys("ArrowUp", "Enter");
      await tab.page.waitForSelector(".cell-editor input:focus");
      await tab.holding("Control", "a");
      await tab.page.keyboard.type("Two whales");
      await tab.keys("Enter", " ");
      await tab.sees("books 2", ".record");
      await tab.select('[data-field="kind"] select', "play");
      await tab.page.$eval('[data-field="meta"] textarea', (area) => area.scrollIntoView());
      await tab.type('[data-field="meta"] textarea', '{"pages": 12}');
      await tab.sees("2 unsaved changes", ".edits");
      await tab.page.reload();
      await tab.sees("2 unsaved changes", ".edits");
      await tab.page.waitForSelector('.body [aria-rowindex="4"]');
      await tab.grid();
      await tab.keys("ArrowDown", "ArrowDown", "Delete");
      await tab.sees("3 unsaved changes", ".edits");
      await tab.press("Add record");
      await tab.page.waitForSelector('[data-field="author_id"] input:focus');
      await tab.press("Save all");
      await tab.sees("title", "[role=alert]");
      await tab.sees("Nothing was saved.", ".edits");
      assert.equal((await book(1)).title, "The white whale", "none is saved if one is refused");
      await tab.isAccessible("refused edits", ["dark", "light"]);
      await tab.type('[data-field="title"] input', "A new one");
      await tab.press("Save all");
      await tab.gone(".edits");
      await tab.sees("350 records", ".status");
      assert.equal((await book(1)).title, "Two whales");
      const { kind, meta } = await book(2);
      assert.deepEqual([kind, meta], ["play", { pages: 12 }]);
      assert.deepEqual(await call("POST", `crud/${database}/books/query`, { query: { id: 3 } }), []);
      assert.equal((await call("POST", `crud/${database}/books/query`, { query: { title: "A new one" } })).length, 1);
    },

    async "see others' changes at once, beside unsaved edits"(tab) {
      await tab.go(`#/data/${database}/books`);
      await tab.sees("350 records", ".status");
      await tab.page.waitForSelector('.body [aria-rowindex="3"]');
      await tab.grid();
      await tab.holding("Control", "Home");
      await tab.keys("ArrowRight", "ArrowRight", "Enter");
      await tab.page.waitForSelector(".cell-editor input:focus");
      await tab.holding("Control", "a");
      await tab.page.keyboard.type("Mine, not saved");
      await tab.keys("Enter");
      const { title } = await book(2);
      await change(2, { title: "Theirs, at once" });
      await tab.sees("Theirs, at once", ".grid");
      await tab.sees("Mine, not saved", ".grid");
      await tab.sees("1 unsaved change", ".edits");
      await change(2, { title });
      await tab.sees(title, ".grid");
      await tab.press("Undo");
      await tab.gone(".edits");
    },

    async "be told of others' changes"(tab) {
      await tab.go(
        `#/data/${database}/books?filter=${encodeURIComponent(JSON.stringify([{ field: "id", operator: "eq", value: "10" }]))}`,
      );
      await tab.sees("Book 010", ".grid");
      await tab.grid();
      await tab.keys(" ");
      await tab.sees("books 10", ".record");
      const tagged = tab.page.waitForResponse(
        (response) => response.url().endsWith("/books/10") && response.request().method() === "GET",
      );
      await tab.fill("title", "Mine", ".record");
      await tagged;
      await change(10, { title: "Theirs" });
      await tab.press("Save");
      await tab.sees("Somebody else changed this record meanwhile.", ".conflict");
      await tab.sees("Theirs", ".conflict");
      await tab.isAccessible("conflict");
      await tab.press("Keep mine");
      await tab.gone(".conflict");
      await tab.press("Save");
      await tab.gone(".edits");
      assert.equal((await book(10)).title, "Mine");
    },

    async "keep all digits of JSON documents"(tab) {
      const at = `#/data/${database}/books?filter=${encodeURIComponent(JSON.stringify([{ field: "id", operator: "eq", value: "4" }]))}`;
      await tab.go(at);
      await tab.sees('{"n":9007199254740993,"pages":9}', ".grid");
      await tab.grid();
      await tab.keys(" ");
      await tab.sees("books 4", ".record");
      await tab.fill("note", "Another note", ".record");
      await tab.press("Save");
      await tab.gone(".edits");
      assert.equal(await raw(4), '{"n": 9007199254740993, "pages": 9}', "an edit of another field");
      await tab.grid();
      await tab.keys(" ");
      const meta = await tab.page.waitForSelector('[data-field="meta"] textarea');
      assert.match(await meta.evaluate((area) => area.value), /9007199254740993/);
      await meta.evaluate((area) => {
        area.value = '{"n": 9007199254740993, "more": [0.1234567890123456789, -18446744073709551615], "pages": 10}';
        area.dispatchEvent(new Event("input", { bubbles: true }));
      });
      await tab.press("Save");
      await tab.gone(".edits");
      assert.equal(
        (await raw(4)).replaceAll(" ", ""),
        '{"n":9007199254740993,"more":[0.1234567890123456789,-18446744073709551615],"pages":10}',
      );
    },

    async "see all fields of a refused record, without the request's parts"(tab) {
      await tab.go(
        `#/data/${database}/books?filter=${encodeURIComponent(JSON.stringify([{ field: "id", operator: "in", value: "20, 21" }]))}`,
      );
      await tab.sees("2 records", ".status");
      await tab.grid();
      await tab.keys(" ");
      await tab.sees("books 20", ".record");
      await tab.fill("price", "much", ".record");
      await tab.grid();
      await tab.keys("ArrowDown", " ");
      await tab.sees("books 21", ".record");
      await tab.fill("note", "fine", ".record");
      await tab.press("Save all");
      await tab.sees("price", ".record [role=alert]");
      await tab.sees("books 20", ".record");
      await tab.page.waitForSelector('.record [data-field="kind"]');
      assert.ok(
        !(await tab.page.$eval("main", (main) => main.innerText)).includes("Operation"),
        "the user sees no operations",
      );
      await tab.press("Discard");
      await tab.gone(".edits");
      await tab.press("Undo");
      await tab.sees("2 unsaved changes", ".edits");
      await tab.press("Discard");
      await tab.sees("The changes are discarded.", ".saved");
    },

    async "say what is saved of a table without transactions"(tab) {
      await tab.go(`#/data/${database}/logs`);
      await tab.sees("3 records", ".status");
      await tab.grid();
      await tab.keys("ArrowRight", "Enter");
      await tab.page.waitForSelector(".cell-editor input:focus");
      await tab.page.keyboard.type("half");
      await tab.page.reload();
      await tab.sees("half", ".grid");
      await tab.press("Discard");
      await tab.gone(".edits");
      await tab.grid();
      await tab.keys("Home");
      for (const word of ["one", "too long", "three"]) {
        await tab.keys("Home", "ArrowRight", "Enter");
        await tab.page.waitForSelector(".cell-editor input:focus");
        await tab.holding("Control", "a");
        await tab.page.keyboard.type(word);
        await tab.keys("Enter");
        await tab.page.waitForFunction(() => !document.querySelector(".cell-editor"));
        await tab.grid();
      }
      await tab.sees("3 unsaved changes", ".edits");
      await tab.press("Save all");
      await tab.sees("1 change was saved before this was refused", ".edits");
      await tab.sees("2 unsaved changes", ".edits");
      await tab.sees("word", "[role=alert]");
      const words = async () => (await call("GET", `crud/${database}/logs?order=id`)).map(({ word }) => word);
      assert.deepEqual(await words(), ["one", "b", "c"]);
      await tab.fill("word", "two", ".record");
      await tab.press("Save all");
      await tab.gone(".edits");
      assert.deepEqual(await words(), ["one", "two", "three"]);
    },

    async "see unsaved edits of other tables, and be asked before they are dropped"(tab) {
      await tab.go(`#/data/${database}/books`);
      await tab.sees("350 records", ".status");
      await tab.grid();
      await tab.keys("ArrowRight", "ArrowRight", "x", "Enter");
      await tab.sees("1 unsaved change", ".edits");
      await tab.press("authors", "link");
      await tab.sees("3 records", ".status");
      await tab.press("Unsaved 1");
      await tab.sees(`${database}.books`, ".panel");
      await tab.isAccessible("unsaved edits", ["dark", "light"]);
      await tab.press("Sign out");
      await tab.sees(`${database}.books 1 unsaved change`, "dialog");
      await tab.isAccessible("a question at the sign-out", ["dark", "light"]);
      await tab.press("Cancel");
      await tab.gone("dialog");
      await tab.page.reload();
      await tab.press("Unsaved 1");
      await tab.click(".top .panel a");
      await tab.press("Discard");
      await tab.gone(".edits");
      await tab.page.waitForFunction(() => !document.querySelector(".top .popup"));
    },

    async "open a record by a tap on a phone"(tab) {
      await tab.page.setViewport({ width: 390, height: 780, hasTouch: true });
      await tab.go(`#/data/${database}/books`);
      await tab.sees("350 records", ".status");
      const cell = await tab.page.waitForSelector('.body [aria-rowindex="4"] [aria-colindex="4"]');
      await cell.tap();
      await tab.page.waitForSelector(".record h2:focus");
      await tab.press("Close");
      await tab.page.waitForSelector('.body [aria-rowindex="4"]', { visible: true });
      await tab.page.setViewport({ width: 1280, height: 800 });
    },
  };
};
