// Shows the OpenAPI document of the key that the user types in. Only this script's memory holds the key.
"use strict";

const entry = document.getElementById("entry");
const database = document.getElementById("database");
const said = document.getElementById("said");

/** The key with which the shown document was read, and with which calls are made. */
let key = "";

async function ask(path) {
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${key}` }, credentials: "omit" });
  const body = await answer.json();
  if (!answer.ok) throw new Error(`${body.error.message} ${body.error.hint ?? ""}`);
  return body;
}

async function listDatabases() {
  const { payload } = await ask("/api/v1/crud");
  const names = ["", ...payload.map((one) => one.name)];
  database.replaceChildren(...names.map((name) => new Option(name || "all", name)));
  // Showing many tables takes long, so the page begins with one database.
  database.value = names[1] ?? "";
  database.disabled = false;
}

async function show() {
  const chosen = database.value ? `?database=${encodeURIComponent(database.value)}` : "";
  const spec = await ask(`/api/v1/openapi.json${chosen}`);
  SwaggerUIBundle({
    spec,
    dom_id: "#document",
    deepLinking: false,
    defaultModelsExpandDepth: -1,
    docExpansion: "none",
    filter: true,
    // The document is never sent to a validator.
    validatorUrl: null,
    tryItOutEnabled: true,
    requestInterceptor: (request) => {
      if (new URL(request.url, location.href).origin === location.origin) {
        request.headers.Authorization = `Bearer ${key}`;
      }
      request.credentials = "omit";
      return request;
    },
  });
  said.textContent = `${Object.keys(spec.paths).length} paths. Calls are made with the key.`;
}

async function attempt(step) {
  try {
    await step();
  } catch (error) {
    said.textContent = error.message;
  }
}

entry.addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = document.getElementById("key").value.trim();
  attempt(async () => {
    if (typed !== key) {
      key = typed;
      await listDatabases();
    }
    await show();
  });
});
database.addEventListener("change", () => attempt(show));
