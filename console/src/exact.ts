// Preserves numbers in JSON that JavaScript would round: such a number is a marked string within
// the page, and becomes a number again where it is shown, edited or sent. Must not know what the
// JSON means.

/** The prefix of a marked string. Its first character is for private use: no keyboard types it. */
const MARK = "\ue000#";
/** Matches a JSON string, or a number outside of strings. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARKED = new RegExp(`"${MARK}([-+.eE\\d]+)"`, "g");
/** JavaScript represents every number of up to this many digits exactly. */
const SAFE_DIGITS = 15;

/** Returns whether JavaScript would round the number. Of a number with an exponent, returns only
 * whether it is out of range. */
function isRounded(literal: string): boolean {
  if (/[eE]/.test(literal)) return !Number.isFinite(Number(literal));
  return literal.replace(/[-.]/g, "").length > SAFE_DIGITS && String(Number(literal)) !== literal;
}

/** Returns JSON in which each number that would be rounded is a marked string. */
export const marked = (json: string): string =>
  json.replace(TOKENS, (token) => (token[0] !== '"' && isRounded(token) ? `"${MARK}${token}"` : token));

/** Returns JSON in which the marked strings are numbers again. */
export const unmarked = (json: string): string => json.replace(MARKED, "$1");

/** Returns whether a string stands for a number that would be rounded. */
export const isMarked = (value: unknown): boolean => typeof value === "string" && value.startsWith(MARK);

/** Works like `fetch`, but rounds no number in the JSON of requests and responses. */
export async function exactFetch(address: string, init: RequestInit): Promise<Response> {
  const { body } = init;
  const response = await fetch(address, typeof body === "string" ? { ...init, body: unmarked(body) } : init);
  if (!response.headers.get("content-type")?.startsWith("application/json")) return response;
  const { status, statusText, headers } = response;
  // `Response` throws if a status without a body, such as 204, gets an empty text instead of null.
  const text = marked(await response.text());
  return new Response(text || null, { status, statusText, headers });
}
