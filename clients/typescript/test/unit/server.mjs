// A server of prepared answers in place of the network, and what the client sent to it.
import { createClient } from "../../dist/index.js";

/** An answer: a payload, or an error of this status and code. */
export const success =
  (payload, more = {}) =>
  () =>
    Response.json({ success: true, payload, ...more });
export const failure =
  (status, code, { retryable = false, message = "No.", headers = {} } = {}) =>
  () =>
    Response.json(
      { success: false, payload: null, error: { code, message, retryable, requestId: "r" } },
      { status, headers },
    );
export const broken = () => {
  throw new TypeError("fetch failed");
};

/** Returns a client whose requests get the answers in turn, and the list of its requests. */
export function serve(answers, options = {}) {
  const sent = [];
  const fetch = async (url, { method, headers, body, signal }) => {
    signal.throwIfAborted();
    sent.push({
      method,
      path: url.replace("http://selkie.test/api/v1/", ""),
      headers,
      body: typeof body === "string" ? JSON.parse(body) : body,
    });
    const answer = answers.shift();
    if (!answer) throw new Error(`an unexpected request: ${method} ${url}`);
    return answer(signal);
  };
  const selkie = createClient({ url: "http://selkie.test/", key: "secret", fetch, ...options });
  return { selkie, sent };
}
