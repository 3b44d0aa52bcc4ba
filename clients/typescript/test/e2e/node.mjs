// Runs the calls in Node. The end-to-end suite starts it, with the service in the environment.
import * as client from "@selkie/client";
import { calls } from "./calls.mjs";
import { changes } from "./changes.mjs";

const {
  SELKIE_URL: url,
  SELKIE_KEY: key,
  SELKIE_FULL_KEY: fullKey,
  SELKIE_DATABASE: database,
  SELKIE_FOLDER: folder,
} = process.env;
await calls({ client, url, key, fullKey, database, folder });
await changes({ client, url, key, database });
console.log("all calls were answered");
