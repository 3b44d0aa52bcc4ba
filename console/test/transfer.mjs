// Tests how users import files into tables and export tables to files in the console.
import assert from "node:assert/strict";
import { buildSync } from "esbuild";

/** Loads a module of the console with what it imports. */
async function load(path) {
  const entryPoints = [new URL(`../src/transfer/${path}`, import.meta.url).pathname];
  const { outputFiles } = buildSync({ entryPoints, bundle: true, write: false, format: "esm" });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}
const { Values } = await load("guess.ts");
const { rowsOf, guessReading } = await load("read.ts");

/** Cells, and the type of a column that has them. */
const TYPES = [
  [["1", "-2147483648"], "int"],
  [["1", "2147483648"], "bigint"],
  [["18446744073709551615", "0"], "bigint unsigned"],
  [["18446744073709551615", "-1"], "decimal(20,0)"],
  [["1", "12.50"], "decimal(10,2)"],
  [["0.5", "0.125"], "decimal(11,3)"],
  [["123456789.5"], "decimal(11,2)"],
  [[`${"9".repeat(64)}.5`], "decimal(65,1)"],
  [["0.5", "1e3"], "double"],
  [["1e999"], "varchar(255)"],
  [["007"], "varchar(255)"],
  [["-0"], "varchar(255)"],
  [["1", "x"], "varchar(255)"],
  [["true", "false"], "boolean"],
  [["yes", "No", "TRUE"], "boolean"],
  [["true", "1"], "varchar(255)"],
  [["2024-02-29", "2024-01-01"], "date"],
  [["2024-02-30"], "varchar(255)"],
  [["2024-02-29", "2024-01-01 08:30:00.25"], "datetime(2)"],
  [["2024-01-01T08:30:00+02:00"], "datetime"],
  [["-27:30:00.5", "838:00:00"], "time(1)"],
  [["839:00:00"], "varchar(255)"],
  [['{"a":1}', "[]"], "json"],
  [["{a}"], "varchar(255)"],
  [[], "varchar(255)"],
  [["x".repeat(256)], "text"],
];

/** CSV files, and their rows with the lines on which they begin. */
const FILES = [
  [
    "a,b\r\n1,2\r\n",
    [
      [1, "a", "b"],
      [2, "1", "2"],
    ],
  ],
  [
    '\ufeffa,b\n,""\n\n"x,\n""y""","z"',
    [
      [1, "a", "b"],
      [2, null, ""],
      [4, 'x,\n"y"', "z"],
    ],
  ],
  [
    "a\n\n1\n",
    [
      [1, "a"],
      [2, null],
      [3, "1"],
    ],
  ],
  ['a,b\n1\n"1"2,3\n"4', [[1, "a", "b"], "The row has 1 cells", "There is text after", "A quote is not closed"]],
];

/** Puts a file on the page, as by dragging it there. */
const drop = async (tab, name, text) =>
  (await tab.page.waitForSelector(".import")).evaluate(
    (page, name, text) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], name));
      page.dispatchEvent(new DragEvent("dragover", { dataTransfer, bubbles: true, cancelable: true }));
      page.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    },
    name,
    text,
  );

/** Keeps the text of the next file that the page saves as a whole, as `saved`. */
const keepSaved = (tab) =>
  tab.page.evaluate(() => {
    const { createObjectURL } = URL;
    globalThis.saved = new Promise((resolve) => {
      URL.createObjectURL = (blob) => {
        URL.createObjectURL = createObjectURL;
        resolve(blob.text());
        return createObjectURL(blob);
      };
    });
    // The promise itself would be waited for.
    return undefined;
  });

/** Exports what the grid shows, and returns what was written to the file. */
async function exported(tab, form) {
  await tab.page.evaluate(() => {
    globalThis.written = "";
    globalThis.showSaveFilePicker = async ({ suggestedName }) => {
      globalThis.written = `${suggestedName}\n`;
      const decoder = new TextDecoder();
      const write = (bytes) => {
        globalThis.written += decoder.decode(bytes, { stream: true });
      };
      return { createWritable: async () => new WritableStream({ write }) };
    };
  });
  await tab.press("Export");
  await tab.press(form, "radio");
  await tab.press("Save");
  await tab.sees("Saved,", ".panel");
  await tab.keys("Escape");
  await tab.gone(".panel");
  const text = await tab.page.evaluate(() => globalThis.written);
  return [text.slice(0, text.indexOf("\n")), text.slice(text.indexOf("\n") + 1)];
}

export const transfer = ({ database, call }) => ({
  async "read files, and infer types"() {
    for (const [cells, type] of TYPES) {
      const values = new Values();
      for (const cell of cells) values.add(cell);
      assert.equal(values.type(true), type, JSON.stringify(cells).slice(0, 80));
    }
    const sample = new Values();
    sample.add("1.5");
    assert.equal(sample.type(false), "decimal(30,10)");
    for (const [text, expected] of FILES) {
      const rows = [];
      const reading = { form: "csv", delimiter: ",", encoding: "utf-8" };
      for await (const { line, cells, fault } of rowsOf(new File([text], "a.csv"), reading)) {
        const wanted = expected[rows.length];
        rows.push(typeof wanted === "string" && fault?.startsWith(wanted) ? wanted : [line, ...cells]);
      }
      assert.deepEqual(rows, expected, text);
    }
    const guess = async (name, text) => guessReading(new File([text], name));
    assert.equal((await guess("a.csv", "a;b,c;d\n")).delimiter, ";");
    assert.equal((await guess("a.txt", '{"a": 1}\n')).form, "ndjson");
  },

  async "import a file into a new table"(tab) {
    await tab.go(`#/create/${database}`);
    await tab.press("From a file", "link");
    const chooser = await tab.page.waitForSelector('input[type=file][aria-label="Choose a file"]');
    await chooser.uploadFile(new URL("picture.png", import.meta.url).pathname);
    await tab.sees("The file is not text in this encoding.", ".import [role=alert]");
    await drop(tab, "empty.csv", "a,b\n");
    await tab.sees("The file has no rows.", ".import");
    const lines = Array.from({ length: 4_100 }, (_, at) => `${at + 1};"Name ${at}; and more";${at / 4};2026-01-02`);
    await drop(tab, "big people.csv", `id;full name;height;born on\r\n${lines.join("\r\n")}\r\n`);
    await tab.sees("Name 0; and more", ".import .list");
    await tab.sees("4,100 rows", ".import");
    const value = (name) => tab.page.$eval(`[aria-label="${name}"]`, ({ value }) => value);
    await tab.page.waitForSelector('[aria-label="Type 4"]');
    assert.deepEqual(
      [await value("Type 1"), await value("Type 2"), await value("Type 3"), await value("Type 4")],
      ["bigint unsigned", "varchar(255)", "decimal(10,2)", "date"],
    );
    await tab.fill("Name 2", "name", ".import");
    await tab.press("Drop height");
    await tab.isAccessible("import into a new table", ["dark", "light"]);
    await tab.press("Create the table and import");
    await tab.sees("CREATE TABLE", "dialog");
    await tab.press("Run");
    await tab.sees("Done: 4,100 rows imported.", ".import");
    await tab.press("Show the records", "link");
    await tab.sees("4,100 records", ".status");
    await tab.sees("Name 0; and more", ".grid");
    const made = await call("GET", `schema/${database}/big_people`);
    assert.deepEqual(
      made.columns.map(({ name }) => name),
      ["id", "name", "born on"],
    );
  },

  async "see which rows of a file are refused"(tab) {
    await tab.press("Import", "link");
    await tab.page.waitForSelector(".tabs a[href*='structure']");
    const good = Array.from({ length: 3_000 }, (_, at) => `${10_000 + at},n${at},2026-01-02`);
    good[7] = "10007,late,2026-02-30";
    good[2_500] = "12500,short";
    // Two lines of one row; the row after it has the line 1,003.
    good[1_000] = '11000,"two\nlines",2026-01-02';
    good[1_001] = "17,taken,2026-01-02";
    await drop(tab, "more.csv", `ID,Name,Born_On\n${good.join("\n")}\n`);
    await tab.page.waitForSelector('[aria-label="Field for Born_On"]');
    assert.equal(await tab.page.$eval('[aria-label="Field for Born_On"]', ({ value }) => value), "born on");
    await tab.select('[aria-label="Field for Name"]', "born on");
    await tab.sees("Two columns go to the field born on.", "form [role=alert]");
    await tab.isAccessible("import into a table");
    await tab.select('[aria-label="Field for Name"]', "name");
    await tab.press("Import");
    await tab.sees("Done: 2,997 rows imported, 3 refused.", ".import");
    const refused = await tab.page.$$eval(".refused tbody tr", (rows) =>
      rows.map(({ cells }) => [cells[0].innerText, cells[1].innerText]),
    );
    assert.deepEqual(
      refused.map(([line]) => line),
      ["9", "1004", "2503"],
    );
    assert.match(refused[0][1], /"born on" \(date\)/);
    assert.match(refused[1][1], /Duplicate entry '17'/);
    assert.match(refused[2][1], /The row has 2 cells, but the header has 3/);
    await tab.isAccessible("refused rows", ["dark", "light"]);
    await keepSaved(tab);
    await tab.press("Download the refused rows");
    const [head, first] = (await tab.page.evaluate(() => globalThis.saved)).split("\n");
    assert.equal(head, "ID,Name,Born_On,Line,Reason");
    assert.match(first, /^10007,late,2026-02-30,9,/);
    await tab.go(
      `#/data/${database}/big_people?filter=${encodeURIComponent('[{"field":"id","operator":"eq","value":"11000"}]')}`,
    );
    await tab.sees("two ⏎ lines", ".grid");
  },

  async "remove a new table that took no row, and try again with words as booleans"(tab) {
    await tab.go(`#/import/${database}`);
    await drop(tab, "goods.csv", "category_id,price,offered\n1,9.5,yes\n2,120,No\n2,,\n");
    await tab.page.waitForSelector('[aria-label="Type 4"]');
    const types = () => tab.page.$$eval('.import [aria-label^="Type "]', (fields) => fields.map(({ value }) => value));
    assert.deepEqual(await types(), ["bigint unsigned", "bigint unsigned", "decimal(10,2)", "boolean"]);
    await tab.fill("Type 2", "date", ".import");
    await tab.press("Create the table and import");
    await tab.sees("CREATE TABLE", "dialog");
    await tab.press("Run");
    await tab.sees("Done: 0 rows imported, 3 refused.", ".import");
    await tab.isAccessible("an import that took no row", ["dark", "light"]);
    await tab.press("Remove the new table and try again");
    await tab.sees("DROP TABLE", "dialog");
    await tab.press("Run");
    await tab.page.waitForSelector('[aria-label="Type 4"]');
    assert.deepEqual(await types(), ["bigint unsigned", "date", "decimal(10,2)", "boolean"]);
    await tab.fill("Type 2", "bigint unsigned", ".import");
    await tab.press("Create the table and import");
    await tab.sees("CREATE TABLE", "dialog");
    await tab.press("Run");
    await tab.sees("Done: 3 rows imported.", ".import");
    const goods = await call("POST", `crud/${database}/goods/query`, { query: {} });
    assert.deepEqual(
      goods.map(({ offered }) => offered && Number(offered)),
      [1, 0, null],
    );
    await call("POST", "schema", { database, table: "goods", drop: true });
  },

  async "import NDJSON, and skip rows that are there"(tab) {
    await tab.go(`#/import/${database}/big_people`);
    const lines = [
      { id: 1, name: "again" },
      { id: 90_001, name: "new" },
      { id: 90_002, nick: "x" },
    ].map((row) => JSON.stringify(row));
    await drop(tab, "people.ndjson", `${lines.join("\n")}\n[1]\n`);
    await tab.page.waitForSelector('[aria-label="Field for nick"]');
    await tab.select('[aria-label="Field for nick"]', "name");
    await tab.select('[aria-label="Field for name"]', "");
    await tab.select(".import form > label select", "ignore");
    await tab.press("Import");
    await tab.sees("Done: 2 rows imported, 1 skipped, 1 refused.", ".import");
    await tab.sees("must be an object", ".refused");
    assert.equal((await call("GET", `crud/${database}/big_people/90002`)).name, "x");
    assert.equal((await call("GET", `crud/${database}/big_people/1`)).name, "Name 0; and more");
    await tab.go(`#/import/${database}/logs`);
    await drop(tab, "logs.csv", "id,word\n9,x\n");
    await tab.press("Import");
    await tab.sees("This table takes no import", ".import [role=alert]");
    await call("POST", "schema", { database, table: "big_people", drop: true });
  },

  async "export what the grid shows"(tab) {
    const query = `CREATE TABLE letters (id INT PRIMARY KEY, title VARCHAR(40) NOT NULL, big BIGINT UNSIGNED NOT NULL,
      note VARCHAR(40) NULL, meta JSON NULL, cover VARBINARY(16) NULL)`;
    await call("POST", "sql", { database, query });
    const values = `(1, 'It''s white', 18446744073709551615, NULL, '{"pages": 9}', x'0001ff'), (2, 'b', 2, '', NULL, 'abc'), (3, 'c', 3, '', NULL, NULL)`;
    await call("POST", "sql", { database, query: `INSERT INTO letters VALUES ${values}` });
    const filter = encodeURIComponent('[{"field":"id","operator":"lte","value":"2"}]');
    const order = encodeURIComponent('[{"field":"id","strategy":"DESC"}]');
    const columns = encodeURIComponent('["title","big","note","meta","cover"]');
    await tab.go(`#/data/${database}/letters?filter=${filter}&order=${order}&columns=${columns}`);
    await tab.sees("2 records", ".status");
    await tab.press("Export");
    await tab.isAccessible("export", ["dark", "light"]);
    await tab.keys("Escape");
    assert.deepEqual(await exported(tab, "CSV"), [
      "letters.csv",
      `title,big,note,meta,cover\r\nb,2,"",,YWJj\r\nIt's white,18446744073709551615,,"{""pages"": 9}",AAH/\r\n`,
    ]);
    const [second, first] = [
      '{"title":"b","big":2,"note":"","meta":null,"cover":"YWJj"}',
      `{"title":"It's white","big":"18446744073709551615","note":null,"meta":{"pages": 9},"cover":"AAH/"}`,
    ];
    assert.deepEqual(await exported(tab, "NDJSON"), ["letters.ndjson", `${second}\n${first}\n`]);
    assert.deepEqual(await exported(tab, "JSON"), ["letters.json", `[\n${second},\n${first}\n]\n`]);
    assert.deepEqual(await exported(tab, "SQL (INSERT)"), [
      "letters.sql",
      "INSERT INTO `letters` (`title`, `big`, `note`, `meta`, `cover`) VALUES\n" +
        "  ('b', 2, '', NULL, x'616263'),\n" +
        "  ('It''s white', 18446744073709551615, NULL, '{\"pages\":9}', x'0001ff');\n",
    ]);
    await tab.go(
      `#/data/${database}/letters?filter=${encodeURIComponent('[{"field":"id","operator":"eq","value":"0"}]')}`,
    );
    await tab.sees("No record fulfils the conditions.", ".status");
    assert.deepEqual(await exported(tab, "JSON"), ["letters.json", "[]\n"]);
    // A browser that can't write a file piece by piece saves it as a whole.
    await tab.page.evaluate(() => {
      globalThis.showSaveFilePicker = undefined;
    });
    await keepSaved(tab);
    await tab.press("Export");
    await tab.press("Save");
    assert.match(await tab.page.evaluate(() => globalThis.saved), /^id,title,big,.*\r\n$/);
    await tab.keys("Escape");
    await call("POST", "schema", { database, table: "letters", drop: true });
  },
});
