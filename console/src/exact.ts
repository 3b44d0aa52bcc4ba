// Keeps the digits of numbers in JSON documents that JavaScript would round: such a number is a marked text in the page,
// and is a number again where it is shown, edited or sent. It must not know what the documents are.

/** Begins a text that stands for a number: a character of no script, which no keyboard types. */
const MARK = "\ue000#";
/** A text, or a number outside of texts. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARKED = new RegExp(`"${MARK}([-+.eE\\d]+)"`, "g");
/** Every number of as many digits or fewer is exact. */
const SAFE_DIGITS = 15;

/** Returns whether JavaScript would write the number differently, beyond another form of its exponent. */
function isRounded(literal: string): boolean {
  if (/[eE]/.test(literal)) return !Number.isFinite(Number(literal));
  return literal.replace(/[-.]/g, "").length > SAFE_DIGITS && String(Number(literal)) !== literal;
}

/** Returns JSON in which each number that would be rounded is a marked text. */
export const marked = (json: string): string =>
  json.replace(TOKENS, (token) => (token[0] !== '"' && isRounded(token) ? `"${MARK}${token}"` : token));

/** Returns JSON in which marked texts are numbers again. */
export const unmarked = (json: string): string => json.replace(MARKED, "$1");

/** `fetch` for JSON with numbers of any length. */
export async function exactFetch(address: string, init: RequestInit): Promise<Response> {
  const { body } = init;
  const response = await fetch(address, typeof body === "string" ? { ...init, body: unmarked(body) } : init);
  if (!response.headers.get("content-type")?.startsWith("application/json")) return response;
  const { status, statusText, headers } = response;
  // The statuses without a body allow none here either.
  const text = marked(await response.text());
  return new Response(text || null, { status, statusText, headers });
}
