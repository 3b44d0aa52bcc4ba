// Takes the screenshots in docs/images, of a console with the demo database of `make run`.
//
//   SELKIE_URL=… SELKIE_KEY=… node console/test/pictures.mjs [<name of a picture> …]
import sharp from "sharp";
import { inChromium, Tab } from "./browser.mjs";

const { SELKIE_URL: url, SELKIE_KEY: key } = process.env;
const wanted = process.argv.slice(2);
const WIDE = { width: 1200, height: 700 };
const PHONE = { width: 390, height: 720, deviceScaleFactor: 2 };

const records = async (tab) => {
  await tab.go(
    `#/data/demo/posts?filter=${encodeURIComponent(JSON.stringify([{ field: "category", operator: "eq", value: "sea" }]))}`,
  );
  await tab.sees(" records", ".status");
  await tab.page.focus(".grid");
};
const edited = async (tab) => {
  await records(tab);
  await tab.keys("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "Enter");
  await tab.page.waitForSelector(".cell-editor input:focus");
  await tab.page.keyboard.type("A morning with the pilot boat");
  await tab.keys("Enter", "ArrowDown", " ");
  await tab.page.mouse.move(0, 0);
  await tab.page.waitForSelector(".record");
};
const keys = async (tab) => {
  await tab.go("#/keys");
  await tab.fill("Name", "reports", ".manage form");
  await tab.press("Create key");
  await tab.sees("shown only now", ".created");
};
const role = async (tab) => {
  const role = {
    tables: {
      "demo.posts": { read: { fields: { omit: ["price"] }, rows: { is_published: 1 } } },
      "demo.comments": { read: true, insert: { fields: ["post_id", "body"], set: { author_name: { claim: "name" } } } },
    },
    maxRows: 500,
  };
  await fetch(`${url}/api/v1/roles/reader`, {
    method: "PUT",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(role, null, 2),
  });
  await tab.go("#/roles/reader");
  await tab.page.waitForSelector(".role textarea");
};
const activity = async (tab) => {
  await tab.go("#/activity");
  await tab.page.waitForSelector(".charts canvas");
};
const change = async (tab) => {
  await tab.go("#/edit/demo/posts");
  await tab.press("Add column");
  await tab.fill("Name 13", "subtitle", ".design");
  await tab.press("More of subtitle");
  await tab.select('[aria-label="Place 13"]', "3");
  await tab.press("Add index");
  await tab.select('[aria-label="Indexed column 1"]', "8");
  await tab.press("Review and save");
  await tab.sees("ALTER TABLE", "dialog");
};
const pictures = {
  "console-records": [edited, WIDE, "light"],
  "console-dark": [edited, WIDE, "dark"],
  "console-phone": [records, PHONE, "light"],
  "console-change": [change, WIDE, "light"],
  "console-keys": [keys, WIDE, "light"],
  "console-roles": [role, WIDE, "light"],
  "console-activity": [activity, WIDE, "dark"],
};

await inChromium(async (browser) => {
  for (const [name, [show, size, scheme]] of Object.entries(pictures)) {
    if (wanted.length && !wanted.includes(name)) continue;
    const tab = await Tab.open(browser, `${url}/console`);
    await tab.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await tab.page.setViewport(size);
    await tab.signIn(key);
    await tab.sees("full key", ".who");
    await show(tab);
    await new Promise((done) => setTimeout(done, 500));
    const picture = sharp(await tab.page.screenshot()).png({ palette: true, colours: 32, dither: 0, effort: 10 });
    await picture.toFile(new URL(`../../docs/images/${name}.png`, import.meta.url).pathname);
    tab.check();
  }
});
