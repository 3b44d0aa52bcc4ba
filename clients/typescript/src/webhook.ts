// Verifies deliveries of webhooks, as Standard Webhooks demands. Must not know how requests are received.
import type { AnyDatabase, AnyTable, Change } from "./types.js";

/** A change, and the id of the webhook's subscription through which it is seen. */
export type WebhookChange = Change<AnyDatabase, AnyTable, {}> & {
  subscription: string;
  position: string;
  at: string;
};

export interface WebhookBody {
  changes: WebhookChange[];
  /** Changes since then may be missing: read the records again. */
  resync?: { reason: string; since: string };
  /** Sent by hand, to test the endpoint. */
  test?: true;
}

/** A `Headers`, or an object with the headers of the request, such as Node's. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface WebhookOptions {
  /** How far the time of the signature may be from now, 300 by default. */
  readonly toleranceSeconds?: number;
}

const PREFIX = "whsec_";
const VERSION = "v1,";
const TOLERANCE_SECONDS = 300;
const HMAC = { name: "HMAC", hash: "SHA-256" };

/**
 * Returns the body of a delivery if it is signed with one of the secrets (`whsec_…`), else throws. `body` is the text of
 * the request, before it is parsed.
 */
export async function verifyWebhook(
  body: string,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS }: WebhookOptions = {},
): Promise<WebhookBody> {
  if (typeof body !== "string") throw new Error("The body must be the text of the request, before it is parsed.");
  const keys = await Promise.all([secrets].flat().map(keyOf));
  if (!keys.length) throw new Error("A secret is needed to verify a webhook.");
  const id = header(headers, "webhook-id");
  const time = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature").split(" ");
  if (!/^\d+$/.test(time)) throw new Error("The header webhook-timestamp is no time.");
  // False for NaN too.
  if (!(Math.abs(Math.floor(Date.now() / 1000) - Number(time)) <= toleranceSeconds))
    throw new Error(`The webhook's timestamp is not within ${toleranceSeconds} s of this machine's time.`);
  const signed = new TextEncoder().encode(`${id}.${time}.${body}`);
  for (const signature of signatures) {
    const bytes = signature.startsWith(VERSION) && bytesOf(signature.slice(VERSION.length));
    for (const key of bytes ? keys : [])
      if (await crypto.subtle.verify("HMAC", key, bytes as Bytes, signed)) return JSON.parse(body) as WebhookBody;
  }
  throw new Error("The webhook's signature is not of this body and these secrets.");
}

type Bytes = Uint8Array<ArrayBuffer>;

function header(headers: WebhookHeaders, name: string): string {
  const found =
    typeof headers.get === "function"
      ? headers.get(name)
      : Object.entries(headers).find(([own]) => own.toLowerCase() === name)?.[1];
  const value = [found ?? []].flat().join(" ");
  if (!value) throw new Error(`The request has no header ${name}.`);
  return value;
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const bytes = bytesOf(String(secret).replace(PREFIX, ""));
  if (!bytes?.length) throw new Error(`A webhook's secret must be ${PREFIX} and Base64.`);
  return crypto.subtle.importKey("raw", bytes, HMAC, false, ["verify"]);
}

/** Returns undefined for text that is not Base64. */
function bytesOf(base64: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0));
  } catch {
    return undefined;
  }
}
