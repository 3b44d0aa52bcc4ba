// Tests the SQL page of the console.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";

const source = readFileSync(new URL("../src/sql/split.ts", import.meta.url), "utf8");
const { code } = transformSync(source, { loader: "ts" });
const { split, statementAt, losesData, limited } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

/** Texts, and the statements that they have. */
const TEXTS = [
  ["SELECT 1", ["SELECT 1"]],
  ["SELECT 1; ;\nSELECT 2;", ["SELECT 1", "SELECT 2"]],
  [
    'SELECT \';\', "a;\\"b", `x;y` -- ; no\n; # ;\nSELECT /* ; */ 2',
    ['SELECT \';\', "a;\\"b", `x;y` -- ; no', "# ;\nSELECT /* ; */ 2"],
  ],
  ["SELECT 'it''s; so';SELECT 2--1;", ["SELECT 'it''s; so'", "SELECT 2--1"]],
  ["-- nothing\n;", []],
  ["/*!40101 SET NAMES utf8 */;", ["/*!40101 SET NAMES utf8 */"]],
  [
    "BEGIN NOT ATOMIC SELECT 1; IF 1 THEN SELECT 2; END IF; END; SELECT 3",
    ["BEGIN NOT ATOMIC SELECT 1; IF 1 THEN SELECT 2; END IF; END", "SELECT 3"],
  ],
  [
    "CREATE PROCEDURE p() BEGIN SELECT CASE 1 WHEN 1 THEN CASE 2 WHEN 2 THEN 3 END END; SELECT 4; END; SELECT 5",
    ["CREATE PROCEDURE p() BEGIN SELECT CASE 1 WHEN 1 THEN CASE 2 WHEN 2 THEN 3 END END; SELECT 4; END", "SELECT 5"],
  ],
  [
    "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW IF NEW.x THEN SET NEW.x = IF(1, 2, 3); END IF; SELECT 1",
    ["CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW IF NEW.x THEN SET NEW.x = IF(1, 2, 3); END IF", "SELECT 1"],
  ],
  ["CREATE TABLE event (procedure_id INT); SELECT 1", ["CREATE TABLE event (procedure_id INT)", "SELECT 1"]],
  [
    "DELIMITER //\nCREATE FUNCTION f() RETURNS INT RETURN 1;//\nDELIMITER ;\nSELECT f();",
    ["CREATE FUNCTION f() RETURNS INT RETURN 1;", "SELECT f()"],
  ],
];
const LOSE = [
  "DROP TABLE a",
  "truncate a",
  "DELETE FROM a",
  "UPDATE a SET x = (SELECT 1 FROM b WHERE c)",
  "ALTER TABLE a DROP b",
  "CREATE OR REPLACE TABLE a (b INT)",
  "/* WHERE */ DELETE FROM a -- WHERE",
];
const KEEP = [
  "DELETE FROM a WHERE b",
  "UPDATE a SET x = 'DROP' WHERE 1",
  "SELECT 'DROP TABLE a'",
  "INSERT INTO a VALUES (1)",
  "EXPLAIN DELETE FROM a",
];
const LIMITED = [
  "SELECT 1",
  "SELECT * FROM (SELECT 1 LIMIT 1) AS a -- end",
  "WITH a AS (SELECT 1 LIMIT 1) SELECT * FROM a",
];
const WHOLE = [
  "SELECT 1 LIMIT 3",
  "SELECT 1 INTO @a",
  "SELECT 1 FROM a FOR UPDATE",
  "SHOW TABLES",
  "INSERT INTO a SELECT 1",
];

const write = async (tab, text) => {
  await tab.click(".editor");
  await tab.holding("Control", "a");
  await tab.page.keyboard.sendCharacter(text);
  await tab.keys("Escape");
};

export const sql = ({ database, call }) => ({
  async "divide SQL into statements"() {
    for (const [text, statements] of TEXTS)
      assert.deepEqual(
        split(text).map(({ text }) => text),
        statements,
      );
    const two = split("SELECT 1;\nSELECT 2;\n");
    assert.deepEqual(
      [0, 8, 9, 10, 19, 20].map((at) => statementAt(two, at).text.at(-1)),
      ["1", "1", "1", "2", "2", "2"],
    );
    for (const text of LOSE) assert.ok(losesData(text), text);
    for (const text of KEEP) assert.ok(!losesData(text), text);
    for (const text of LIMITED) assert.equal(limited(text, 5), `${text}\nLIMIT 5`);
    for (const text of WHOLE) assert.equal(limited(text, 5), undefined, text);
  },

  async "run SQL"(tab) {
    await tab.go("#/sql");
    await tab.page.waitForFunction(() => document.querySelector(".editor")?.shadowRoot?.activeElement);
    await tab.select(".sql .head select", database);
    await tab.click(".editor");
    await tab.page.keyboard.type("SELECT kind, COUNT(*) AS books FROM books GROUP BY kind ORDER BY kind");
    await tab.keys("Escape");
    await tab.holding("Control", "Enter");
    await tab.sees("3 rows", ".result");
    await tab.sees("LIMIT 1000 was added", ".result");
    await tab.isAccessible("SQL", ["dark", "light"]);
    await tab.press("Chart");
    await tab.page.waitForSelector(".uplot canvas");
    await tab.press("Explain");
    await tab.sees("select_type", ".result");
    await write(tab, "SELECT SLEEP(25)");
    await tab.press("Run statement");
    await tab.press("Cancel");
    await tab.sees("Canceled.", ".result");
    await write(tab, "SELECT nothing FROM books");
    await tab.press("Run statement");
    await tab.sees("nothing", "[role=alert]");
    await tab.press("History");
    await tab.sees("GROUP BY kind", ".history");
    await tab.keys("Escape");
  },

  async "run several statements until one is refused"(tab) {
    await write(tab, "SELECT 'first' AS word; SELECT 'second' AS word;");
    await tab.holding("Control", "Enter");
    await tab.sees("second", ".result");
    await tab.holding("Control", "Home");
    await tab.holding("Control", "Enter");
    await tab.sees("first", ".result");
    await tab.sees("SELECT 'first' AS word", ".result .ran");
    const marked = await tab.page.$eval(".editor", ({ shadowRoot }) =>
      [...shadowRoot.querySelectorAll(".cm-marked")].map(({ textContent }) => textContent).join(""),
    );
    assert.equal(marked, "SELECT 'first' AS word");
    await tab.holding("Shift", "End");
    await tab.holding("Control", "Enter");
    await tab.sees("2: 1 row", ".result");
    await write(tab, "SELECT 'one' AS word; SELECT nothing; SELECT 'three' AS word");
    await tab.page.keyboard.down("Shift");
    await tab.holding("Control", "Enter");
    await tab.page.keyboard.up("Shift");
    await tab.sees("2: refused", ".result");
    await tab.sees("Statement 3 was not run.", ".result");
    await tab.isAccessible("results", ["dark", "light"]);
    assert.equal(await tab.page.$("::-p-aria([name*='3:'][role='button'])"), null);
    await tab.press("1: 1 row");
    await tab.sees("one", ".result .grid");
  },

  async "be asked before data is lost"(tab) {
    await call("POST", "sql", { query: "CREATE TABLE lost (id INT PRIMARY KEY)", database });
    await write(tab, "DROP TABLE lost");
    await tab.holding("Control", "Enter");
    await tab.sees("DROP TABLE lost", "dialog");
    await tab.isAccessible("a question", ["dark", "light"]);
    await tab.keys("Escape");
    await tab.gone("dialog");
    await write(tab, "DELETE FROM lost");
    await tab.press("Run statement");
    await tab.sees("This deletes all records of the table.", "dialog");
    await tab.press("Cancel");
    await write(tab, "DROP TABLE lost");
    await call("GET", `crud/${database}/lost`);
    await tab.press("Run statement");
    await tab.click("dialog .danger");
    await tab.sees("0 affected rows", ".result");
    await tab.page.waitForFunction(() => !document.querySelector(".side-tables").innerText.includes("lost"));
  },

  async "choose whether a limit is added, and keep queries for the project"(tab) {
    await write(tab, "SELECT seq FROM many");
    await tab.press("Run statement");
    await tab.sees("1,000 rows", ".result");
    await tab.press("Limit of 1,000 rows", "checkbox");
    await tab.press("Run statement");
    await tab.sees("100,001 rows", ".result");
    await tab.press("Limit of 1,000 rows", "checkbox");
    await tab.press("Saved queries");
    await tab.fill("Name of the query", "all of many", ".panel");
    await tab.keys("Enter");
    await tab.sees("SELECT seq FROM many", ".panel .history");
    await tab.isAccessible("saved queries", ["dark", "light"]);
    await tab.keys("Escape");
    await write(tab, "SELECT 2");
    await tab.page.reload();
    const chosen = await tab.page.waitForSelector(".sql .head select");
    assert.equal(await chosen.evaluate(({ value }) => value), database);
    await tab.press("Saved queries 1");
    await tab.press(`all of many ${database} SELECT seq FROM many`);
    await tab.press("Run statement");
    await tab.sees("1,000 rows", ".result");
    await tab.press("Saved queries 1");
    await tab.page.evaluate(() => {
      const { createObjectURL } = URL;
      URL.createObjectURL = (blob) => {
        globalThis.exported = blob.text();
        URL.createObjectURL = createObjectURL;
        return createObjectURL(blob);
      };
    });
    await tab.press("Export as JSON");
    assert.deepEqual(JSON.parse(await tab.page.evaluate(() => globalThis.exported)), [
      { name: "all of many", query: "SELECT seq FROM many", database },
    ]);
    await tab.press("Delete all of many");
    await tab.keys("Escape");
    await tab.page.waitForSelector("::-p-aria([name='Saved queries'][role='button'])");
  },
});
