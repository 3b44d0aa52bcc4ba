// The API key of this tab, or the token of its user, the client that uses it, and the route in the address. Must not know any view.
import { createClient, type Selkie } from "@selkie/client";
import { computed, signal } from "@preact/signals";
import { exactFetch } from "./exact";
import { claimsOf, type Issuer } from "./oidc";

const KEY = "selkie.key";
const KEPT = "selkie.";
/** The name under which the user's own key is stored while a role is tested. */
const OWN = "selkie.own";
/** The prefix of all names that are stored while a role is tested, so that the test does not mix
 * with the user's own edits. */
const KEPT_IN_TEST = "selkie.test.";
const LINK = "#link=";
/** The name under which is kept what a user's token does not say: the project, and what it may do there. */
const USER = "user";
const UNAUTHORIZED = 401;

/** The content of a key's token, used only to hide actions that the server would refuse. */
interface Holder {
  access: "full" | "read" | "role";
  project: string | undefined;
  name: string | undefined;
  id: string | undefined;
  /** Seconds since 1970. */
  endsAt: number | undefined;
  /** By whom the user signed in, if not with a key. */
  issuer?: Issuer;
}

export const key = signal<string | null>(sessionStorage.getItem(KEY));
export const client = computed<Selkie | null>(() => (key.value ? clientOf(key.value) : null));
export const holder = computed<Holder>(() => ({
  ...holderOf(key.value ?? ""),
  ...kept<Partial<Holder>>(USER, {}),
}));

/** The key that the service last refused, as of a key that was revoked or has expired. */
export const refusedKey = signal<string | null>(null);

export const clientOf = (own: string): Selkie =>
  createClient({
    url: location.origin,
    key: own,
    fetch: async (address, init) => {
      const response = await exactFetch(address, init);
      if (response.status === UNAUTHORIZED) refusedKey.value = own;
      return response;
    },
  });

/** Returns the client. Throws if nobody is signed in; views are shown only after signing in. */
export function api(): Selkie {
  if (!client.value) throw new Error("Nobody is signed in.");
  return client.value;
}

export const tableOf = (name: string) => api().table(name as `${string}.${string}`);

export function holderOf(token: string): Holder {
  const { acc, prj, rol, role, sub, exp } = (claimsOf(token) ?? {}) as Record<string, never>;
  const access = acc === "full" || acc === "read" ? acc : "role";
  return { access, project: prj, name: rol ?? role ?? undefined, id: sub, endsAt: exp };
}

export function signIn(own: string): void {
  sessionStorage.setItem(KEY, own);
  key.value = own;
}

/** Signs in with a user's token. Another user's edits are dropped first; the own ones stay when a token has ended. */
export function signInAs(token: string, user: Pick<Holder, "access" | "project" | "name"> & { issuer: Issuer }): void {
  const { id, issuer } = holder.value;
  const isSame = id === holderOf(token).id && issuer?.issuer === user.issuer.issuer && issuer.project === user.project;
  if (key.value && !isSame) signOut();
  keep(USER, user);
  signIn(token);
}

/** The token of the link by which the console was opened, until the user accepts or declines it. */
export const link = signal<string | null>(null);

function takeLink(): void {
  if (!location.hash.startsWith(LINK)) return;
  link.value = location.hash.slice(LINK.length);
  history.replaceState(null, "", location.pathname);
}
takeLink();

/** Exchanges the link's token for a key, and signs in with it instead of the present key. `signOut` revokes this key. */
export async function signInByLink(token: string): Promise<void> {
  const created = await clientOf(token).request<{ key: string }>("POST", "keys", { body: {}, retries: 0 });
  if (key.value) signOut();
  keep("linked", true);
  signIn(created.key);
}

export const isTesting = (): boolean => sessionStorage.getItem(OWN) !== null;

/** Shows the console as a key with a role sees it, until `endTest`. Reloads the page, so that
 * nothing remains on it that the role may not see. */
export function beginTest(roleKey: string): void {
  sessionStorage.setItem(OWN, key.value ?? "");
  sessionStorage.setItem(KEY, roleKey);
  location.hash = "";
  location.reload();
}

/** Revokes the key of the test, and shows the console as the user's own key sees it. */
export async function endTest(): Promise<void> {
  // If it fails, the key ends soon.
  await clientOf(sessionStorage.getItem(OWN) ?? "")
    .request("DELETE", `keys/${holder.value.id}`)
    .catch(() => undefined);
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(KEPT_IN_TEST)) sessionStorage.removeItem(name);
  sessionStorage.setItem(KEY, sessionStorage.getItem(OWN) ?? "");
  sessionStorage.removeItem(OWN);
  location.hash = "#/roles";
  location.reload();
}

/** Deletes the key and everything else that this tab stores, such as edits and statements. Revokes
 * the key if it came from a link. */
export function signOut(): void {
  if (kept("linked", false) && !isTesting() && holder.value.id) {
    // Not awaited: if it fails, the key still expires within a day.
    void api()
      .request("DELETE", `keys/${holder.value.id}`, { query: { own: true } })
      .catch(() => undefined);
  }
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(KEPT)) sessionStorage.removeItem(name);
  key.value = null;
  location.hash = "";
}

const keptAs = (name: string): string => (isTesting() ? KEPT_IN_TEST : KEPT) + name;

/** Reads what this tab keeps under the name, or `otherwise`. */
export function kept<T>(name: string, otherwise: T): T {
  try {
    const text = sessionStorage.getItem(keptAs(name));
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

/** Returns the names, after the prefix, under which this tab keeps something. */
export const keptNames = (prefix: string): string[] =>
  Object.keys(sessionStorage)
    .filter((name) => name.startsWith(keptAs(prefix)))
    .map((name) => name.slice(keptAs(prefix).length));

/** Stores a value for this tab; undefined removes it. Does nothing if the storage is full. */
export function keep(name: string, value: unknown): void {
  try {
    if (value === undefined) sessionStorage.removeItem(keptAs(name));
    else sessionStorage.setItem(keptAs(name), JSON.stringify(value));
  } catch {
    // The storage quota is used up.
  }
}

const rememberedAs = (name: string): string => `selkie:${holder.value.project}:${name}`;

/** Reads what this browser remembers for the project, also after the sign-out; it holds no values of records. */
export function remembered<T>(name: string, otherwise: T): T {
  try {
    return (JSON.parse(localStorage.getItem(rememberedAs(name)) ?? "null") as T | null) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Stores a value for this browser; undefined removes it. Does nothing if the storage is full. */
export function remember(name: string, value: unknown): void {
  try {
    if (value === undefined) localStorage.removeItem(rememberedAs(name));
    else localStorage.setItem(rememberedAs(name), JSON.stringify(value));
  } catch {
    // The storage quota is used up.
  }
}

/** The view that the address names, such as `#/data/shop/orders?…`. */
interface Route {
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
    // The address has an invalid `%` sequence.
    return { view: "", parts: [], options: new URLSearchParams() };
  }
}

export const route = signal<Route>(read());
addEventListener("hashchange", () => {
  takeLink();
  route.value = read();
});

export function to(view: string, parts: string[] = [], options: Record<string, unknown> = {}): string {
  const path = [view, ...parts.map(encodeURIComponent)].join("/");
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(
    given.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
  return `#/${path}${given.length ? `?${search}` : ""}`;
}
