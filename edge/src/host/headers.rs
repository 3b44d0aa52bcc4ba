//! Reads and writes the heads of requests and responses with few calls of the runtime: three calls read all headers,
//! and a new head is passed as one JSON text. Except for `Accept-Encoding`, must not know the meaning of any header.

use crate::config::Region;
use crate::core::{self, Answer, CallerLocation, HeaderChange, RequestHeaders, RequestParts};
use shared::envelope::write_string;
use worker::js_sys::{Array, JSON, Reflect};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::web_sys::{Headers, ReadableStream, Request, RequestInit, Response, ResponseInit};

pub(crate) fn of_request(request: &Request) -> RequestParts {
    RequestParts {
        method: request.method(),
        url: request.url(),
        has_body: request.body().is_some(),
        headers: of(&request.headers()),
    }
}

/// Reads all headers by one call: JavaScript's `join` of the list of name-value pairs returns `name,value` lines.
pub(crate) fn of(headers: &Headers) -> core::Headers {
    core::Headers::parse(Array::from(headers).join("\n").into())
}

/// Returns the client's address and port, which only plain workerd reports; `None` on Cloudflare, which does not set
/// `clientIp`.
pub(crate) fn seen_address(request: &Request) -> Option<String> {
    let platform = Reflect::get(request, &"cf".into()).ok()?;
    Reflect::get(&platform, &"clientIp".into()).ok()?.as_string()
}

/// Returns the client's `Accept-Encoding`, or `identity` if it sent none: without the header, the runtime would add
/// codings of its own. Cloudflare replaces the header by the codings that it can produce, and keeps the client's value
/// in `cf`.
pub(crate) fn accepted_codings(request: &Request, head: &RequestParts) -> String {
    let platforms = head.headers.get("accept-encoding");
    let callers = platforms.and_then(|_| {
        let platform = Reflect::get(request, &"cf".into()).ok()?;
        Reflect::get(&platform, &"clientAcceptEncoding".into()).ok()?.as_string()
    });
    let accepted = callers.or_else(|| platforms.map(str::to_owned));
    accepted.filter(|accepted| !accepted.is_empty()).unwrap_or_else(|| "identity".to_owned())
}

/// Returns the client's continent and country, each `None` if the platform does not know it.
pub(crate) fn caller_location(request: &Request) -> CallerLocation {
    let platform = Reflect::get(request, &"cf".into()).unwrap_or(JsValue::UNDEFINED);
    let property = |name: &str| {
        let value = Reflect::get(&platform, &name.into()).ok()?;
        Region::parse(&value.as_string()?)
    };
    [property("continent"), property("country")]
}

/// Builds the head of a request to an origin. Uses `no-store`, since a response from Cloudflare's cache would have the
/// id of another request.
pub(crate) fn request_init(method: &str, headers: &RequestHeaders<'_>) -> Result<RequestInit, JsValue> {
    let mut text = Vec::with_capacity(1_024);
    text.extend_from_slice(br#"{"redirect":"manual","cache":"no-store","method":"#);
    write_string(&mut text, method);
    write_headers(&mut text, headers.iter().copied());
    parse(&text)
}

/// Builds the runtime's response. Its body is `answer.body` or, if that is empty, `stream`.
pub(crate) fn answer(answer: &Answer, stream: Option<&ReadableStream>) -> Result<Response, JsValue> {
    let mut text = Vec::with_capacity(1_024);
    text.extend_from_slice(format!(r#"{{"status":{}"#, answer.status).as_bytes());
    write_headers(&mut text, answer.headers());
    let init: ResponseInit = parse(&text)?;
    match &*answer.body {
        [] => Response::new_with_opt_readable_stream_and_init(stream, &init),
        // The body is copied, since it is in wasm's memory, which the runtime can't own.
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

/// Returns a copy of the response with its headers changed and the same body.
pub(crate) fn changed(response: &Response, changes: &[HeaderChange]) -> Result<Response, JsValue> {
    let init: &ResponseInit = response.unchecked_ref();
    let copy = Response::new_with_opt_readable_stream_and_init(response.body().as_ref(), init)?;
    let headers = copy.headers();
    for change in changes {
        match change {
            HeaderChange::Set(name, value) => headers.set(name, value)?,
            HeaderChange::Append(name, value) => headers.append(name, value)?,
            HeaderChange::Delete(name) => headers.delete(name)?,
        }
    }
    Ok(copy)
}
