// Tests how an owner writes roles: as tables, by rules and as JSON, which stay one role; and how a role is tested.
import assert from "node:assert/strict";

/** Returns a role with a number that JavaScript would round, and parts that the tables don't show. */
const roleOf = (database) =>
  `{"tables": {"${database}.authors": {"read": {"rows": {"id": {"value": 9007199254740993, "equality": "<"}}}}}, "media": {"read": "own"}}`;

export async function manageRoles(tab, { database, call }) {
  const [authors, books] = [`${database}.authors`, `${database}.books`];
  const areaText = (text) =>
    tab.page.$eval(
      ".role textarea",
      (area, text) => {
        area.value = text;
        area.dispatchEvent(new Event("input", { bubbles: true }));
      },
      text,
    );
  /** Waits until the JSON is this role. */
  const isRole = (role) =>
    tab.page
      .waitForFunction(
        (wanted) => {
          const text = document.querySelector(".role textarea")?.value ?? "";
          try {
            return JSON.stringify(JSON.parse(text)) === wanted;
          } catch {
            return false;
          }
        },
        {},
        JSON.stringify(role),
      )
      .catch(async () =>
        assert.deepEqual(JSON.parse(await tab.page.$eval(".role textarea", ({ value }) => value)), role),
      );
  const tick = (name) => tab.press(name, "checkbox");
  const isTicked = (name, isOn) =>
    tab.page.waitForFunction(
      (name, isOn) => document.querySelector(`[aria-label="${name}"]`)?.checked === isOn,
      {},
      name,
      isOn,
    );
  const choose = (name, value) => tab.select(`[aria-label="${name}"]`, value);

  await tab.press("Roles", "link");
  await tab.press("New role", "link");
  await tab.fill("Name of the role", "reader", ".role");
  await areaText("{");
  await tab.sees("The JSON is not a role yet", ".role [role=alert]");
  await tab.isAccessible("JSON that is no role", ["dark", "light"]);
  await areaText(`{"tables": {"${database}.nothing": {"read": {}}}}`);
  await tab.sees("no such table", ".matrix");
  await tab.press("Save role");
  await tab.sees(`tables."${database}.nothing"`, "[role=alert]");
  await tab.isAccessible("a wrong role", ["dark", "light"]);
  await areaText(roleOf(database));
  await tab.press("Save role");
  await tab.page.waitForFunction(() => location.hash === "#/roles/reader");
  await tab.page.waitForFunction(() => document.querySelector(".role textarea")?.value.includes("9007199254740993"));

  // A change in the tables keeps the number and the media; a change in the JSON shows in the tables.
  await tab.fill("Find a table", "books", ".role");
  await tick(`insert ${books}`);
  await isTicked(`insert ${books}`, true);
  const text = await tab.page.$eval(".role textarea", ({ value }) => value);
  assert.ok(text.includes("9007199254740993") && text.includes('"read": "own"'), text);
  await tick(`insert ${books}`);
  await areaText(JSON.stringify({ tables: { [`${database}.*`]: { read: true } } }));
  await isTicked(`read ${books}`, true);
  await tab.sees(`as ${database}.*`, ".matrix");
  await tick(`update ${books}`);
  await isRole({ tables: { [`${database}.*`]: { read: true }, [books]: { read: true, update: true } } });
  await tab.isAccessible("the tables of a role", ["dark", "light"]);

  await tab.press(`Rules of ${books}`);
  await tick("read big");
  await tick("update all other fields, also later ones");
  for (const field of ["id", "author_id", "title", "price", "big", "kind", "sold_on", "meta", "cover"])
    await tick(`update ${field}`);
  const read = { fields: { omit: ["big"] } };
  await isRole({ tables: { [`${database}.*`]: { read: true }, [books]: { read, update: { fields: ["note"] } } } });
  await tab.press("Remove its entry");
  await tab.sees("It has no entry of its own", ".role");
  await areaText(JSON.stringify({ tables: { [books]: { read, update: { fields: ["note"] } } }, maxRows: 500 }));

  await isTicked("update note", true);

  // read: books of the caller's author, or novels of authors that are called so
  const inRead = (name) => `.action ::-p-aria([name="${name}"])`;
  await tab.click(inRead("Add group"));
  await tab.page.waitForSelector('[aria-label="How read 1 is joined"]');
  await tab.click(".rules .rules ::-p-aria([name='Add condition'])");
  await choose("Field of read 1.1", "author_id");
  await tab.fill("Claim of read 1.1", "author");
  await tab.click(".rules .rules ::-p-aria([name='Add group'])");
  await choose("How read 1.2 is joined", "false");
  await tab.click(".rules .rules .rules ::-p-aria([name='Add condition'])");
  await choose("Field of read 1.2.1", "kind");
  await choose("Operator of read 1.2.1", "in");
  await choose("Kind of value of read 1.2.1", "value");
  await tab.fill("Value of read 1.2.1", "novel, play");
  await tab.click(".rules .rules .rules ::-p-aria([name='Add condition'])");
  await choose("Field of read 1.2.2", "related author");
  await choose("Which related records of read 1.2.2", "every");
  await tab.click(".rules .rules .rules .rules ::-p-aria([name='Add condition'])");
  await choose("Field of read 1.2.2.1", "name");
  await choose("Operator of read 1.2.2.1", "startsWith");
  await tab.fill("Claim of read 1.2.2.1", "nick");
  const rows = {
    any: {
      __query: {
        author_id: { claim: "author" },
        any: {
          __query: { kind: { in: ["novel", "play"] }, author: { every: { name: { startsWith: { claim: "nick" } } } } },
          operator: "AND",
        },
      },
      operator: "OR",
    },
  };
  const tables = (update) => ({ tables: { [books]: { read: { ...read, rows }, update } }, maxRows: 500 });
  await isRole(tables({ fields: ["note"] }));
  await tab.sees("It may update records that it can't read", ".action");
  await tab.isAccessible("the rules of a table", ["dark", "light"]);
  await tab.press("Take the conditions of read for update");
  await choose("Set a field: update", "kind");
  await choose("Kind of value of update set kind", "value");
  await tab.fill("Value of update set kind", "poem");
  await tab.press("author_id", "checkbox");
  await isRole(tables({ fields: ["note"], rows, set: { kind: "poem" }, unchecked: ["author_id"] }));
  await tab.press("author_id", "checkbox");

  // Two conditions on one field; a number keeps its digits, and what the builder can't show is not lost.
  const other = { not: true, value: "x" };
  await areaText(
    `{"tables": {"${books}": {"read": {"rows": {"big": {"gt": 1, "lt": 9007199254740993}, "title": ${JSON.stringify(other)}}}}}}`,
  );
  await tab.sees("in the JSON only", ".rules");
  await tab.fill("Value of read 1", "5");
  await tab.page.waitForFunction(
    () =>
      JSON.parse(document.querySelector(".role textarea").value).tables &&
      /"gt": 5,\s+"lt": 9007199254740993/.test(document.querySelector(".role textarea").value),
  );
  await tab.press("Remove read 2");
  await tab.click(inRead("Add condition"));
  await choose("Field of read 3", "big");
  await tab.press("All tables");
  await tab.fill("Requests", "20/1s", ".limits");
  await isRole({
    tables: {
      [books]: { read: { rows: { big: { gt: 5 }, title: other, "big 2": { __query: { big: { claim: "sub" } } } } } },
    },
    rateLimit: "20/1s",
  });

  // What a key of the role sees: the claims that it names are asked for.
  await areaText(
    JSON.stringify({
      tables: {
        [books]: {
          read: { fields: { omit: ["big"] }, rows: { author_id: { claim: "author" } } },
          update: { fields: ["note"] },
        },
      },
    }),
  );
  await tab.sees("Save the role to test it.", ".test");
  await tab.press("Save role");
  await tab.sees("Saved.", ".role");
  await tab.fill("Claim author", "1");
  await tab.press("Show what it sees");
  await tab.sees(books, ".seen");
  assert.ok(
    !(await tab.page.$eval(".seen", ({ innerText }) => innerText)).includes("authors"),
    "what it hides is not listed",
  );
  await tab.press(`Show records of ${books}`);
  await tab.sees("The first 5 of 116 records", ".test");
  await tab.sees("note (may write)", ".looked");
  assert.ok(
    !(await tab.page.$eval(".looked", ({ innerText }) => innerText)).includes("big"),
    "hidden fields are not shown",
  );
  await tab.isAccessible("what a role sees", ["dark", "light"]);
  await tab.fill("Claims of the tested key", "[]");
  await tab.press("Show what it sees");
  await tab.sees("The claims must be a JSON object", ".test [role=alert]");
  const live = async () =>
    (await call("GET", "keys?limit=1000")).filter(({ name, state }) => name === "test of reader" && state === "live");
  const allRevoked = async () => {
    const last = Date.now() + 30_000;
    while ((await live()).length > 0) assert.ok(Date.now() < last, "the key of the test is revoked");
  };
  await allRevoked();

  await areaText(roleOf(database));
  await tab.press("Save role");
  await tab.sees("Saved.", ".role");
  await tab.fill("Claims of the tested key", '{"sub": 7}', ".role");
  await tab.press("Show what it sees");
  await tab.sees(authors, ".seen");
  await tab.press("Open the console as this role");
  await tab.sees("role reader", ".who");
  assert.equal((await live()).length, 1, "the key lives while the console is open with it");
  await tab.sees("authors", ".side-tables");
  assert.ok(
    !(await tab.page.$eval(".side", (side) => side.innerText)).includes("books"),
    "what the role hides is not listed",
  );
  await tab.press("End the test");
  await tab.sees("full key", ".who");
  await allRevoked();
  await tab.go("#/roles/reader");
  await tab.page.waitForSelector(".role textarea");
  await areaText(`{"tables": {"${authors}": {"read": {"rows": {"name": {"value": {"claim": "nick"}}}}}}}`);
  await tab.press("Save role");
  await tab.sees("whose collation ignores case", ".role [role=alert]");
  await tab.isAccessible("a warning of a role", ["dark", "light"]);
  await tab.press("Create a key with this role", "link");
  await tab.fill("Name", "nameless", ".manage form");
  await tab.press("Create key");
  await tab.sees("the claims nick, which this key lacks", ".created [role=alert]");
  await tab.isAccessible("a warning of a key", ["dark", "light"]);
  await tab.press("Done");
  await tab.go("#/roles/reader");
  await tab.press("Delete role");
  await tab.click("dialog .danger");
  await tab.page.waitForFunction(() => document.querySelector(".role nav ul")?.innerText.includes("reader") === false);
}
