// A to-do list: log-in, paging, a live filter, an avatar. Whose to-dos these are, the role of the user's token decides.
import { createClient, isSelkieError } from "./client.js";

const $ = (id) => document.getElementById(id);
const { url, database } = await (await fetch("config.json")).json();
let name, token;

/** Returns the user's token; asks the log-in for another one when it has expired. */
async function userToken(expired) {
  if (expired || !token)
    token = await (await fetch(`login?name=${encodeURIComponent(name)}`, { method: "POST" })).text();
  return token;
}

const selkie = createClient({ url, key: userToken });
const todos = selkie.table(`${database}.todos`);

let reading = new AbortController();
/** Shows the first page of what fits the filter, or adds the page after a cursor. A newer call ends an older one. */
async function show(after) {
  reading.abort();
  reading = new AbortController();
  const text = $("filter").value;
  const where = text ? { title: { contains: text } } : {};
  const page = await todos.list({ where, order: "-id", limit: 5, after, count: true, signal: reading.signal });
  const items = page.map(item);
  if (after) $("list").append(...items);
  else $("list").replaceChildren(...items);
  $("count").textContent = `${page.count} to do or done`;
  $("more").hidden = !page.next;
  $("more").onclick = () => attempt(() => show(page.next));
}

/** Makes the list item of a to-do. */
function item({ id, title, done }) {
  const li = document.createElement("li");
  li.innerHTML = '<input type="checkbox"><span></span><button>Delete</button>';
  const [box, label, button] = li.children;
  label.textContent = title;
  box.checked = done;
  li.className = done ? "done" : "";
  box.onchange = () =>
    attempt(async () => {
      await todos.update(id, { done: box.checked });
      li.className = box.checked ? "done" : "";
    });
  button.onclick = () =>
    attempt(async () => {
      await todos.remove(id);
      await show();
    });
  return li;
}

async function showAvatar() {
  const [avatar] = await selkie.media.list({ folder: `avatars/${name}`, limit: 1 });
  if (avatar) $("avatar").src = avatar.thumbnailUrl ?? avatar.url;
}

/** Runs an action and shows its error, unless a newer read ended it. */
async function attempt(action) {
  $("error").textContent = "";
  try {
    await action();
  } catch (error) {
    if (error.name !== "AbortError")
      $("error").textContent = isSelkieError(error, "role_forbids") ? "You may not do that." : error.message;
  }
}

/** Calls `action` with the form's only field, and empties it. */
const onSubmit = (form, field, action) => {
  $(form).onsubmit = (event) => {
    event.preventDefault();
    const { value } = $(form).elements[field];
    $(form).reset();
    attempt(() => action(value));
  };
};

onSubmit("login", "name", async (value) => {
  [name, token] = [value, undefined];
  $("user").textContent = name;
  await Promise.all([show(), showAvatar()]);
  $("login").hidden = true;
  document.querySelector("main").hidden = false;
});
onSubmit("add", "title", async (title) => {
  await todos.insert({ title });
  await show();
});
$("filter").oninput = () => attempt(() => show());
$("picture").onchange = () =>
  attempt(async () => {
    await selkie.media.upload($("picture").files[0], { name: "avatar.png", update: true });
    await showAvatar();
  });
