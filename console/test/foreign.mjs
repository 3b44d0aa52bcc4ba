// Tests how foreign keys are shown and chosen in the console.
import assert from "node:assert/strict";

/** Returns the tasks; `call` is a request with a full key. */
export const foreignKeys = ({ database, call }) => ({
  async "see labels instead of keys, with one request for a page"(tab) {
    await tab.go(`#/data/${database}/tickets`);
    await tab.sees("123456", ".grid");
    const reads = [];
    const onRequest = (request) => request.url().endsWith("/authors/query") && reads.push(request.postData());
    tab.page.on("request", onRequest);
    await tab.go(`#/data/${database}/books`);
    await tab.sees("Cleo 3", ".grid");
    await tab.sees("Ben 2", ".grid");
    tab.page.off("request", onRequest);
    assert.equal(reads.length, 1, reads.join("\n"));
  },

  async "choose a record by its label"(tab) {
    await tab.grid();
    await tab.holding("Control", "Home");
    await tab.keys("ArrowRight", "Enter");
    await tab.page.waitForSelector(".cell-editor [role=combobox]:focus");
    await tab.sees("Ann 1", ".menu:popover-open");
    await tab.isAccessible("a picker", ["dark", "light"]);
    await tab.page.keyboard.type("cle");
    await tab.keys("Enter");
    await tab.gone(".cell-editor");
    await tab.sees("1 unsaved change", ".edits");
    await tab.sees("Cleo 3", '.body [aria-rowindex="2"]');
    await tab.keys("ArrowUp", " ");
    await tab.sees("books 1", ".record");
    await tab.focus('[data-field="author_id"] input');
    await tab.page.$eval('[data-field="author_id"] input', (input) => input.select());
    await tab.page.keyboard.type("ANN");
    await tab.sees("Ann 1", ".menu:popover-open");
    await tab.isAccessible("a picker of a record", ["dark", "light"]);
    await tab.keys("Enter");
    await tab.sees("Ann 1", '.body [aria-rowindex="2"]');
    await tab.press("Save");
    await tab.sees("Saved.", ".saved");
    await tab.keys("Escape");
    await tab.page.waitForFunction(() => document.querySelector(".saved").innerText === "");
    assert.equal((await call("GET", `crud/${database}/books/1`)).author_id, 1);
    await tab.page.waitForSelector('.body [aria-rowindex="2"]');
    await tab.grid();
    await tab.holding("Control", "Home");
    await tab.keys("ArrowRight", "Enter");
    await tab.page.waitForSelector(".cell-editor [role=combobox]:focus");
    await tab.page.keyboard.type("2");
    await tab.sees("Ben 2", ".menu:popover-open");
    await tab.keys("Enter");
    await tab.gone(".cell-editor");
    await tab.press("Save");
    await tab.gone(".edits");
    assert.equal((await call("GET", `crud/${database}/books/1`)).author_id, 2);
  },

  async "filter by a record's label"(tab) {
    await tab.press("Filter");
    await tab.select('[aria-label="Field 1"]', "author_id");
    await tab.focus('.panel [aria-label="Value 1"]');
    await tab.page.keyboard.type("cle");
    await tab.sees("Cleo 3", ".menu:popover-open");
    await tab.isAccessible("a picker of a filter", ["dark", "light"]);
    await tab.keys("Enter");
    await tab.page.waitForFunction(() => document.querySelector('[aria-label="Value 1"]').value === "Cleo");
    await tab.press("Apply");
    await tab.sees("117 records", ".status");
    await tab.press("Filter 1");
    await tab.press("Clear");
    await tab.sees("350 records", ".status");
  },

  async "choose which field is the label"(tab) {
    await tab.go(`#/data/${database}/authors`);
    await tab.sees("3 records", ".status");
    await tab.press("Columns");
    await tab.select(".panel select", "email");
    await tab.isAccessible("columns and label");
    await tab.go(`#/data/${database}/books`);
    await tab.sees("ben@example.org 2", ".grid");
    await tab.page.waitForFunction(() =>
      [...document.querySelectorAll('.body [aria-colindex="3"]')].some(({ innerText }) => innerText.trim() === "3"),
    );
    await tab.page.reload();
    await tab.sees("ben@example.org 2", ".grid");
    await tab.go(`#/data/${database}/authors`);
    await tab.sees("3 records", ".status");
    await tab.press("Columns");
    await tab.select(".panel select", " ");
    await tab.go(`#/data/${database}/books`);
    await tab.sees("Ben 2", ".grid");
  },
});
