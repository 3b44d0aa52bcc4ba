// Tests how an owner creates, changes and deletes databases.
import assert from "node:assert/strict";

export async function manageDatabases(tab, { database, project }) {
  await tab.press("Databases", "link");
  await tab.sees(database, ".list");
  const archive = `${project}_archive`;
  await tab.fill("Name", "archive", ".manage form");
  await tab.press("Create database");
  await tab.sees(archive, ".list");
  await tab.sees(archive, ".side-tables");
  await tab.isAccessible("databases", ["dark", "light"]);
  await tab.press(`Change the collation of ${archive}: utf8mb4_unicode_ci`);
  await tab.isAccessible("a collation");
  await tab.select("dialog select", "ascii_bin");
  await tab.press("Save collation");
  await tab.sees("ascii_bin", ".list");
  await tab.press(`Delete ${archive}`);
  await tab.isAccessible("the deletion of a database");
  assert.ok(await tab.page.$("dialog .danger:disabled"), "its name must be typed");
  await tab.fill("Type its name", archive, "dialog");
  await tab.click("dialog .danger");
  await tab.page.waitForFunction((name) => !document.querySelector(".list")?.innerText.includes(name), {}, archive);
}
