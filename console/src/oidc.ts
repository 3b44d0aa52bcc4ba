// Signing in by an issuer of the project: the code flow of OpenID Connect, with PKCE. Must not know how it is shown.
import { signal } from "@preact/signals";
import { texts } from "./texts";

const words = texts.signIn;
/** The name under which the tab stores what it began, until the issuer sends the user back. */
const BEGUN = "selkie.signIn";
const RANDOM_BYTES = 32;
/** How many bytes of an issuer's hash its redirect URI has. */
const ID_BYTES = 8;

/** An issuer whose users may sign in here, as the service lists it for everybody. */
export interface Issuer {
  project: string;
  issuer: string;
  /** What the claim `aud` of the token contains that the service accepts. */
  audience: string;
  clientId: string;
}

interface Begun {
  issuer: Issuer;
  tokenEndpoint: string;
  redirectUri: string;
  state: string;
  nonce: string;
  verifier: string;
  /** The view to which the user wants to go. */
  view: string;
}

/** What the issuer sent with the user who came back. */
export const answer = signal<URLSearchParams | null>(null);

function takeAnswer(): void {
  const options = new URLSearchParams(location.search);
  if (!options.has("state") || !(options.has("code") || options.has("error"))) return;
  answer.value = options;
  // The code is not left in the address.
  history.replaceState(null, "", `/console${begun()?.view ?? ""}`);
}
/** The address to which the user came back. */
const cameTo = location.origin + location.pathname;
takeAnswer();

function begun(): Begun | null {
  return JSON.parse(sessionStorage.getItem(BEGUN) ?? "null") as Begun | null;
}

/** Returns the issuers whose users may sign in; none if they can't be read. */
export async function issuers(): Promise<Issuer[]> {
  const response = await fetch("/console/issuers.json");
  return response.ok ? ((await response.json()) as Issuer[]) : [];
}

/**
 * Returns the address to which an issuer sends users back. Each issuer has its own, so that no issuer can let another one
 * send its code here, and get it from the console ("mix-up", RFC 9700, section 4.4).
 */
export async function redirectUri(issuer: string): Promise<string> {
  const digest = new Uint8Array(await sha256(issuer));
  const id = Array.from(digest.slice(0, ID_BYTES), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${location.origin}/console/sign-in-${id}`;
}

const sha256 = (text: string): Promise<ArrayBuffer> => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));

/** Sends the user to the issuer. */
export async function begin(issuer: Issuer): Promise<void> {
  if (!crypto.subtle) throw new Error(words.notSecure);
  const provider = await read(`${issuer.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  if (provider.issuer !== issuer.issuer) throw new Error(words.otherIssuer(String(provider.issuer)));
  const [authorization, token] = [provider.authorization_endpoint, provider.token_endpoint].map(addressOf);
  if (!authorization || !token) throw new Error(words.noEndpoints);
  if (token.origin !== new URL(issuer.issuer).origin) throw new Error(words.farTokens(token.origin));
  const [state, nonce, verifier] = [random(), random(), random()];
  const back = await redirectUri(issuer.issuer);
  const own: Begun = {
    issuer,
    tokenEndpoint: token.href,
    redirectUri: back,
    state,
    nonce,
    verifier,
    view: location.hash,
  };
  sessionStorage.setItem(BEGUN, JSON.stringify(own));
  const options = {
    response_type: "code",
    client_id: issuer.clientId,
    redirect_uri: back,
    scope: "openid",
    state,
    nonce,
    code_challenge: base64url(new Uint8Array(await sha256(verifier))),
    code_challenge_method: "S256",
    // Some issuers make tokens for an API only if it is named.
    ...(issuer.audience === issuer.clientId ? {} : { audience: issuer.audience }),
  };
  for (const [name, value] of Object.entries(options)) authorization.searchParams.set(name, value);
  location.assign(authorization);
}

function addressOf(text: unknown): URL | undefined {
  const address = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  return address && ["https:", "http:"].includes(address.protocol) ? address : undefined;
}

/** Exchanges the code of the answer for a token that the service accepts. */
export async function finish(options: URLSearchParams): Promise<{ issuer: Issuer; token: string }> {
  const own = begun();
  // Each answer is used once.
  sessionStorage.removeItem(BEGUN);
  if (!own || options.get("state") !== own.state || cameTo !== own.redirectUri) throw new Error(words.notBegun);
  const { issuer, clientId, audience } = own.issuer;
  const from = options.get("iss");
  if (from !== null && from !== issuer) throw new Error(words.otherIssuer(from));
  if (options.has("error")) throw new Error(words.refused(options.get("error_description") ?? options.get("error")!));
  const body = new URLSearchParams({
    grant_type: "authorization_code",
    code: options.get("code")!,
    redirect_uri: own.redirectUri,
    client_id: clientId,
    code_verifier: own.verifier,
  });
  const tokens = await read(own.tokenEndpoint, body);
  const identity = claimsOf(tokens.id_token);
  // The token comes from the issuer itself, so its signature needs no check here; the service checks it.
  const isMeant = identity?.iss === issuer && hasAudience(identity, clientId) && identity.nonce === own.nonce;
  if (!isMeant) throw new Error(words.wrongToken);
  const token = [tokens.access_token, tokens.id_token].find((text) => {
    const claims = claimsOf(text);
    return claims?.iss === issuer && hasAudience(claims, audience);
  });
  if (typeof token !== "string") throw new Error(words.noToken(audience));
  return { issuer: own.issuer, token };
}

/** Reads a JSON object of the issuer. */
async function read(address: string, body?: URLSearchParams): Promise<Record<string, unknown>> {
  const method = body ? "POST" : "GET";
  const response = await fetch(address, { method, body: body ?? null, credentials: "omit" }).catch(() => {
    throw new Error(words.unreachable(new URL(address).origin));
  });
  const found = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (!response.ok) throw new Error(words.refused(String(found.error_description ?? found.error ?? response.status)));
  return found;
}

type Claims = Record<string, unknown>;

const hasAudience = ({ aud }: Claims, audience: string): boolean =>
  Array.isArray(aud) ? aud.includes(audience) : aud === audience;

/** Returns the claims of a token, whose signature is not checked; undefined for what is no JWT. */
export function claimsOf(token: unknown): Claims | undefined {
  try {
    const part = String(token).split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/");
    const bytes = Uint8Array.from(atob(part), (byte) => byte.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) as Claims;
  } catch {
    return undefined;
  }
}
