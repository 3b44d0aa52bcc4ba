//! Heads of requests and answers in as few calls of the runtime as possible: a whole head is read by three, and the head
//! of a new request or answer is one piece of JSON. Must not know what any header means.

use crate::config::Region;
use crate::core::{self, Answer, CallerLocation, Change, Head, RequestHeaders};
use shared::envelope::write_string;
use worker::js_sys::{Array, JSON, Reflect};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::web_sys::{Headers, ReadableStream, Request, RequestInit, Response, ResponseInit};

/// Reads a request's head.
pub(crate) fn of_request(request: &Request) -> Head {
    Head {
        method: request.method(),
        url: request.url(),
        has_body: request.body().is_some(),
        headers: of(&request.headers()),
    }
}

/// Reads all headers: a list of pairs, joined, is a line for each pair with a comma between its parts.
pub(crate) fn of(headers: &Headers) -> core::Headers {
    core::Headers::parse(Array::from(headers).join("\n").into())
}

/// Returns the caller's address, with its port, where the runtime knows it (plain workerd).
pub(crate) fn seen_address(request: &Request) -> Option<String> {
    let platform = Reflect::get(request, &"cf".into()).ok()?;
    Reflect::get(&platform, &"clientIp".into()).ok()?.as_string()
}

/// Returns the codings in which the caller takes an answer. The platform replaces the header by what it can recode, and
/// keeps the caller's own value. Without the header the runtime would ask for codings of its own.
pub(crate) fn accepted_codings(request: &Request, head: &Head) -> String {
    let platforms = head.headers.get("accept-encoding");
    let callers = platforms.and_then(|_| {
        let platform = Reflect::get(request, &"cf".into()).ok()?;
        Reflect::get(&platform, &"clientAcceptEncoding".into()).ok()?.as_string()
    });
    let accepted = callers.or_else(|| platforms.map(str::to_owned));
    accepted.filter(|accepted| !accepted.is_empty()).unwrap_or_else(|| "identity".to_owned())
}

/// Returns where the caller is, as far as the platform knows.
pub(crate) fn caller_location(request: &Request) -> CallerLocation {
    let platform = Reflect::get(request, &"cf".into()).unwrap_or(JsValue::UNDEFINED);
    let property = |name: &str| {
        let value = Reflect::get(&platform, &name.into()).ok()?;
        Region::parse(&value.as_string()?)
    };
    [property("continent"), property("country")]
}

/// Returns the head of a request to an origin. Cloudflare's own cache must not answer it: it would do so under another
/// request's id.
pub(crate) fn request_init(method: &str, headers: &RequestHeaders<'_>) -> Result<RequestInit, JsValue> {
    let mut text = Vec::with_capacity(1_024);
    text.extend_from_slice(br#"{"redirect":"manual","cache":"no-store","method":"#);
    write_string(&mut text, method);
    write_headers(&mut text, headers.iter().copied());
    parse(&text)
}

/// Makes an answer, whose body is its own or a stream.
pub(crate) fn answer(answer: &Answer, stream: Option<&ReadableStream>) -> Result<Response, JsValue> {
    let mut text = Vec::with_capacity(1_024);
    text.extend_from_slice(format!(r#"{{"status":{}"#, answer.status).as_bytes());
    write_headers(&mut text, answer.headers());
    let init: ResponseInit = parse(&text)?;
    match &*answer.body {
        [] => Response::new_with_opt_readable_stream_and_init(stream, &init),
        // The body is wasm's memory, of which the runtime needs a copy.
        body => {
            let copy = worker::js_sys::Uint8Array::from(body);
            Response::new_with_opt_js_u8_array_and_init(Some(&copy), &init)
        }
    }
}

fn write_headers<'a, 'b>(text: &mut Vec<u8>, headers: impl Iterator<Item = (&'a str, &'b str)>) {
    text.extend_from_slice(br#","headers":{"#);
    for (number, (name, value)) in headers.enumerate() {
        if number > 0 {
            text.push(b',');
        }
        write_string(text, name);
        text.push(b':');
        write_string(text, value);
    }
    text.extend_from_slice(b"}}");
}

fn parse<T: JsCast>(text: &[u8]) -> Result<T, JsValue> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    JSON::parse(text).map(JsCast::unchecked_into)
}

/// Returns the same answer with its headers changed. Its body is not touched.
pub(crate) fn changed(response: &Response, changes: &[Change]) -> Result<Response, JsValue> {
    let init: &ResponseInit = response.unchecked_ref();
    let copy = Response::new_with_opt_readable_stream_and_init(response.body().as_ref(), init)?;
    let headers = copy.headers();
    for change in changes {
        match change {
            Change::Set(name, value) => headers.set(name, value)?,
            Change::Append(name, value) => headers.append(name, value)?,
            Change::Delete(name) => headers.delete(name)?,
        }
    }
    Ok(copy)
}
