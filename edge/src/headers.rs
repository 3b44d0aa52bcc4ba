//! Heads of requests and answers, read and changed whole: one crossing between wasm and JavaScript each, where
//! every header would be one. Knows the worker's API; must not know what any header means.

use std::ops::Range;
use worker::wasm_bindgen::{self, JsValue, prelude::wasm_bindgen};
use worker::web_sys::{Headers, Request, Response};

#[wasm_bindgen(module = "/src/headers.js")]
extern "C" {
    #[wasm_bindgen(js_name = readHead)]
    fn read_head(request: &Request) -> String;
    #[wasm_bindgen(js_name = changedHeaders, catch)]
    fn changed_headers(headers: &Headers, changes: &str) -> Result<Headers, JsValue>;
    #[wasm_bindgen(js_name = changedResponse, catch)]
    fn changed_response(response: &Response, changes: &str) -> Result<Response, JsValue>;
    #[wasm_bindgen(js_name = newResponse, catch)]
    fn new_response(status: u16, changes: &str, body: Option<&[u8]>) -> Result<Response, JsValue>;
    #[wasm_bindgen(js_name = changeResponse, catch)]
    fn change_response(response: &Response, changes: &str) -> Result<(), JsValue>;
}

/// The head of a request: one piece of text, in lines, since no part of it can hold a line's end.
pub(crate) struct Head {
    text: String,
    lines: Vec<Range<usize>>,
}

/// Lines before the first header.
const HEADERS_AT: usize = 3;

impl Head {
    pub(crate) fn read(request: &Request) -> Self {
        let text = read_head(request);
        let mut start = 0;
        let lines = text
            .split('\n')
            .map(|line| {
                let range = start..start + line.len();
                start = range.end + 1;
                range
            })
            .collect();
        Self { text, lines }
    }

    fn line(&self, number: usize) -> &str {
        let range = self.lines.get(number).cloned();
        range
            .and_then(|range| self.text.get(range))
            .unwrap_or_default()
    }

    pub(crate) fn method(&self) -> &str {
        self.line(0)
    }

    pub(crate) fn url(&self) -> &str {
        self.line(1)
    }

    /// Whether there is a body, however long.
    pub(crate) fn has_body(&self) -> bool {
        !self.line(2).is_empty()
    }

    /// The value of a header, named in lower case; none for one that is not there.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut names = (HEADERS_AT..self.lines.len()).step_by(2);
        let at = names.find(|at| self.line(*at) == name)?;
        Some(self.line(at + 1))
    }
}

/// Changes to headers, in their order.
#[derive(Default)]
pub(crate) struct Changes {
    lines: String,
}

impl Changes {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.push('=', name, value);
    }

    pub(crate) fn append(&mut self, name: &str, value: &str) {
        self.push('+', name, value);
    }

    pub(crate) fn delete(&mut self, name: &str) {
        self.push('-', name, "");
    }

    /// A line's end, which no header can hold, would make two changes of one.
    fn push(&mut self, what: char, name: &str, value: &str) {
        if name.contains('\n') || value.contains('\n') {
            return;
        }
        self.lines.reserve(name.len() + value.len() + 3);
        self.lines.push(what);
        self.lines.push_str(name);
        self.lines.push('\n');
        self.lines.push_str(value);
        self.lines.push('\n');
    }

    /// A request's headers with these changes.
    pub(crate) fn of_request(&self, request: &Request) -> Result<Headers, JsValue> {
        changed_headers(&request.headers(), &self.lines)
    }

    /// An answer with these changes. Its body is never touched.
    pub(crate) fn of_response(&self, response: &Response) -> Result<Response, JsValue> {
        changed_response(response, &self.lines)
    }

    /// Changes an answer that can be changed.
    pub(crate) fn apply(&self, response: &Response) -> Result<(), JsValue> {
        change_response(response, &self.lines)
    }

    /// An answer with these headers only; an empty body is none.
    pub(crate) fn response(&self, status: u16, body: &[u8]) -> Result<Response, JsValue> {
        new_response(status, &self.lines, (!body.is_empty()).then_some(body))
    }
}
