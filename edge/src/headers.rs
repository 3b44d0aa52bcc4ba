//! Heads of requests and answers, read and changed whole: one crossing between wasm and JavaScript each, where
//! every header would be one. Knows the worker's API; must not know what any header means.

use crate::gateway::{Changes, Head};
use worker::wasm_bindgen::{self, JsValue, prelude::wasm_bindgen};
use worker::web_sys::{Headers, Request, Response};

#[wasm_bindgen(module = "/src/headers.js")]
extern "C" {
    #[wasm_bindgen(js_name = readHead)]
    fn read_head(request: &Request) -> String;
    #[wasm_bindgen(js_name = readAnswer)]
    fn read_answer(response: &Response) -> String;
    #[wasm_bindgen(js_name = clientAddress)]
    fn client_address(request: &Request) -> Option<String>;
    #[wasm_bindgen(js_name = changedHeaders, catch)]
    fn changed_headers(headers: &Headers, changes: &str) -> Result<Headers, JsValue>;
    #[wasm_bindgen(js_name = changedResponse, catch)]
    fn changed_response(response: &Response, changes: &str) -> Result<Response, JsValue>;
    #[wasm_bindgen(js_name = newResponse, catch)]
    fn new_response(status: u16, changes: &str, body: Option<&[u8]>) -> Result<Response, JsValue>;
    #[wasm_bindgen(js_name = changeResponse, catch)]
    fn change_response(response: &Response, changes: &str) -> Result<(), JsValue>;
}

/// A request's head.
pub(crate) fn of_request(request: &Request) -> Head {
    Head::of_request(read_head(request))
}

/// An answer's head.
pub(crate) fn of_answer(response: &Response) -> Head {
    Head::of_answer(read_answer(response))
}

/// The caller's address, with its port, where the runtime itself tells.
pub(crate) fn seen_address(request: &Request) -> Option<String> {
    client_address(request)
}

/// A request's headers with these changes.
pub(crate) fn changed(request: &Request, changes: &Changes) -> Result<Headers, JsValue> {
    changed_headers(&request.headers(), changes.lines())
}

/// An answer with these changes. Its body is never touched.
pub(crate) fn changed_answer(response: &Response, changes: &Changes) -> Result<Response, JsValue> {
    changed_response(response, changes.lines())
}

/// Changes an answer that can be changed.
pub(crate) fn change(response: &Response, changes: &Changes) -> Result<(), JsValue> {
    change_response(response, changes.lines())
}

/// An answer with these headers only; an empty body is none.
pub(crate) fn answer(status: u16, changes: &Changes, body: &[u8]) -> Result<Response, JsValue> {
    new_response(status, changes.lines(), (!body.is_empty()).then_some(body))
}
