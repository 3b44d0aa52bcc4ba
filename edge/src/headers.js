// What wasm asks of the runtime about a whole head at once: each crossing between the two has its price, and each
// header would be one. Lists come and go as text, one item a line, which no header can hold.

/** Method, URL, "body" if there is one, then each header's name and its value. */
export function readHead(request) {
  return withHeaders(`${request.method}\n${request.url}\n${request.body === null ? "" : "body"}`, request.headers);
}

/** Status, then each header's name and its value. */
export function readAnswer(response) {
  return withHeaders(`${response.status}`, response.headers);
}

function withHeaders(text, headers) {
  headers.forEach((value, name) => {
    text += `\n${name}\n${value}`;
  });
  return text;
}

/** The caller's address as plain workerd saw it. */
export function clientAddress(request) {
  return request.cf?.clientIp;
}

/** A copy of them, changed. */
export function changedHeaders(headers, changes) {
  const copy = new Headers(headers);
  change(copy, changes);
  return copy;
}

/** The same answer with its headers changed; its body is not touched. */
export function changedResponse(response, changes) {
  const copy = new Response(response.body, response);
  change(copy.headers, changes);
  return copy;
}

/** Changes an answer that can be changed. */
export function changeResponse(response, changes) {
  change(response.headers, changes);
}

/** An answer of our own; the body is wasm's memory, of which the runtime needs a copy. */
export function newResponse(status, changes, body) {
  const response = new Response(body?.slice(), { status });
  change(response.headers, changes);
  return response;
}

/** Each change is a line with what is done and a name, and one with the value. */
function change(headers, changes) {
  const lines = changes.split("\n");
  for (let at = 0; at + 1 < lines.length; at += 2) {
    const name = lines[at].slice(1);
    switch (lines[at][0]) {
      case "-":
        headers.delete(name);
        break;
      case "+":
        headers.append(name, lines[at + 1]);
        break;
      default:
        headers.set(name, lines[at + 1]);
    }
  }
}
