// The key of this tab, the client that acts with it, and the address of what is shown. It must not know any view.
import { createClient, type Selkie } from "@selkie/client";
import { computed, signal } from "@preact/signals";

const KEY = "selkie.key";
const KEPT = "selkie.";

/** What a key says about itself. The service decides; this only hides what it would refuse. */
export interface Holder {
  access: "full" | "read" | "role";
  project: string | undefined;
  name: string | undefined;
}

export const key = signal<string | null>(sessionStorage.getItem(KEY));
export const client = computed<Selkie | null>(() => (key.value ? clientOf(key.value) : null));
export const holder = computed<Holder>(() => holderOf(key.value ?? ""));

export const clientOf = (own: string): Selkie => createClient({ url: location.origin, key: own });

/** Returns the client. Views are shown only to who is signed in. */
export function api(): Selkie {
  if (!client.value) throw new Error("Nobody is signed in.");
  return client.value;
}

/** Returns the calls on a table, by its database and name: `shop.orders`. */
export const tableOf = (name: string) => api().table(name as `${string}.${string}`);

function holderOf(token: string): Holder {
  try {
    const part = token.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/");
    const bytes = Uint8Array.from(atob(part), (byte) => byte.charCodeAt(0));
    const claims = JSON.parse(new TextDecoder().decode(bytes));
    const access = claims.acc === "full" || claims.acc === "read" ? claims.acc : "role";
    return { access, project: claims.prj, name: claims.rol ?? claims.role ?? undefined };
  } catch {
    return { access: "role", project: undefined, name: undefined };
  }
}

export function signIn(own: string): void {
  sessionStorage.setItem(KEY, own);
  key.value = own;
}

/** Forgets the key and everything else that this tab keeps, such as edits and statements. */
export function signOut(): void {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(KEPT)) sessionStorage.removeItem(name);
  key.value = null;
  location.hash = "";
}

/** Reads what this tab keeps under the name, or `otherwise`. */
export function kept<T>(name: string, otherwise: T): T {
  try {
    const text = sessionStorage.getItem(KEPT + name);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

/** Keeps a value for this tab. A full storage keeps nothing, and breaks nothing. */
export function keep(name: string, value: unknown): void {
  try {
    if (value === undefined) sessionStorage.removeItem(KEPT + name);
    else sessionStorage.setItem(KEPT + name, JSON.stringify(value));
  } catch {
    // The quota is used up.
  }
}

/** What is shown: `#/data/shop/orders?…`. */
export interface Route {
  view: string;
  parts: string[];
  options: URLSearchParams;
}

function read(): Route {
  const [path = "", options = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  try {
    const [view = "", ...parts] = path.split("/").map((part) => decodeURIComponent(part));
    return { view, parts, options: new URLSearchParams(options) };
  } catch {
    // The address is not one of ours.
    return { view: "", parts: [], options: new URLSearchParams() };
  }
}

export const route = signal<Route>(read());
addEventListener("hashchange", () => (route.value = read()));

/** Returns the address of a view. */
export function to(view: string, parts: string[] = [], options: Record<string, unknown> = {}): string {
  const path = [view, ...parts.map(encodeURIComponent)].join("/");
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]));
  return `#/${path}${given.length ? `?${search}` : ""}`;
}
