//! The two hosts, a call through one of them, and its answer. Knows HTTP and the envelope, but no table.
//!
//! Every answer is passed to `ledger.rs`, which checks the promises of the API that hold for *every* response.

use crate::ledger;
use crate::service::shared;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use serde_json::value::RawValue;
use shared::error::ErrorCode;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Host {
    Origin,
    Edge,
}

impl Host {
    /// Returns the host's base URL, such as `http://127.0.0.1:8080`.
    pub(crate) fn url(self) -> &'static str {
        match self {
            Host::Origin => &shared().origin,
            Host::Edge => shared().edge.as_deref().expect("the edge is shut"),
        }
    }

    pub(crate) fn call(self, method: Method, path: &str) -> Call {
        Call::new(self.url(), method, path).key(&shared().full_key)
    }

    pub(crate) fn get(self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(self, path: &str, body: &Value) -> Call {
        self.call(Method::POST, path).json(body)
    }

    /// Builds a call of `POST /api/v1/sql` with the full key.
    pub(crate) fn sql(self, body: &Value) -> Call {
        self.post("/api/v1/sql", body)
    }
}

#[derive(Clone)]
pub(crate) struct Call {
    base: String,
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Call {
    pub(crate) fn new(base: &str, method: Method, path: &str) -> Self {
        Self { base: base.to_owned(), method, path: path.to_owned(), headers: Vec::new(), body: None }
    }

    /// Sends the same call to the server at `base` instead.
    pub(crate) fn at(mut self, base: &str) -> Self {
        base.clone_into(&mut self.base);
        self
    }

    /// Sets or replaces the key: `Authorization: Bearer <key>`.
    pub(crate) fn key(self, key: &str) -> Self {
        self.authorization(&format!("Bearer {key}"))
    }

    pub(crate) fn authorization(mut self, value: &str) -> Self {
        self = self.no_key();
        self.header("authorization", value)
    }

    pub(crate) fn no_key(mut self) -> Self {
        self.headers.retain(|(name, _)| name != "authorization");
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.bytes(body.to_string()).header("content-type", "application/json")
    }

    /// Sets a body without a `Content-Type`.
    pub(crate) fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    pub(crate) fn request(&self) -> reqwest::RequestBuilder {
        let mut request = client(&self.base).request(self.method.clone(), format!("{}{}", self.base, self.path));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match &self.body {
            Some(body) => request.body(body.clone()),
            None => request,
        }
    }

    /// Sends the request and reads the whole answer. Panics if no answer arrives.
    pub(crate) async fn send(self) -> Answer {
        let what = self.to_string();
        match self.attempt().await {
            Ok(answer) => answer,
            Err(error) => panic!("no answer to {what}: {error:?}"),
        }
    }

    /// Sends the request and reads the whole answer. Returns an error if the connection fails or breaks.
    pub(crate) async fn attempt(self) -> Result<Answer, reqwest::Error> {
        let response = self.request().send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await?.to_vec();
        let answer = Answer { what: self.to_string(), method: self.method, status, headers, body };
        ledger::enter(&answer);
        Ok(answer)
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path: String = self.path.chars().take(300).collect();
        write!(f, "{} {}{path}", self.method, self.base)?;
        if let Some(body) = &self.body {
            write!(f, " {}", excerpt(body))?;
        }
        Ok(())
    }
}

pub(crate) struct Answer {
    pub(crate) what: String,
    pub(crate) method: Method,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Returns whether the request was for the bytes of a file.
    pub(crate) fn is_file(&self) -> bool {
        self.path().starts_with("media/")
    }

    /// Returns whether the request was for a page for browsers.
    pub(crate) fn is_page(&self) -> bool {
        ["", "docs", "console"].iter().any(|page| {
            let rest = self.path().strip_prefix(page);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns the path and query of the request without the slash before them.
    fn path(&self) -> &str {
        let url = self.what.split_once("://").map_or("", |(_, url)| url);
        url.split_once('/').map_or("", |(_, path)| path)
    }

    /// Returns whether the request was a message of the Model Context Protocol.
    pub(crate) fn is_mcp(&self) -> bool {
        let path = self.what.split_once("://").map_or("", |(_, url)| url);
        path.split_once('/').is_some_and(|(_, path)| path.split([' ', '?']).next() == Some("mcp"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a readable header"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap_or_else(|_| panic!("no UTF-8: {self}"))
    }

    /// Returns the body parsed as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self}"))
    }

    /// Returns the payload. Panics if the answer is an error.
    #[track_caller]
    pub(crate) fn payload(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{self}");
        let mut body = self.json();
        assert_eq!(body["success"], true, "{self}");
        assert!(body.get("payload").is_some(), "no payload: {self}");
        body["payload"].take()
    }

    /// Returns the error of an error response. Panics unless it has this code and the code's status.
    #[track_caller]
    pub(crate) fn refused(&self, code: ErrorCode) -> Value {
        let mut body = self.json();
        assert_eq!(body["success"], false, "expected {}: {self}", code.as_str());
        assert_eq!(body["error"]["code"], code.as_str(), "{self}");
        assert_eq!(self.status.as_u16(), code.status(), "{self}");
        body["error"].take()
    }

    /// Returns the code of an error response; `ok` for a success.
    pub(crate) fn code(&self) -> String {
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(body) if body["success"] == true => "ok".to_owned(),
            Ok(body) => body["error"]["code"].as_str().unwrap_or("no code").to_owned(),
            Err(_) => format!("status {} without JSON", self.status),
        }
    }

    /// Returns the payload's fields as exact JSON texts, so that parsing loses no digit of a number.
    #[track_caller]
    pub(crate) fn raw_record(&self) -> RawRecord {
        let body: Raw<BTreeMap<String, Box<RawValue>>> = self.read();
        texts(body.payload)
    }

    /// Returns the fields of the payload's first row as exact JSON texts.
    #[track_caller]
    pub(crate) fn raw_row(&self) -> RawRecord {
        let body: Raw<Vec<BTreeMap<String, Box<RawValue>>>> = self.read();
        texts(body.payload.into_iter().next().unwrap_or_else(|| panic!("no row: {self}")))
    }

    /// Parses the body as the type that the case expects.
    #[track_caller]
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("another shape ({error}): {self}"))
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n    → {} {}", self.what, self.status.as_u16(), excerpt(&self.body))
    }
}

pub(crate) type RawRecord = BTreeMap<String, String>;

#[derive(serde::Deserialize)]
struct Raw<T> {
    payload: T,
}

fn texts(fields: BTreeMap<String, Box<RawValue>>) -> RawRecord {
    fields.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect()
}

fn excerpt(body: &[u8]) -> String {
    const EXCERPT_MAX_CHARS: usize = 900;
    let text = String::from_utf8_lossy(body);
    let mut excerpt: String = text.chars().take(EXCERPT_MAX_CHARS).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    excerpt
}

/// Returns the client for a server. Only connections to the common origin are used again: workerd closes some idle
/// connections without announcing it, for example after an answer that broke off, and a request sent at that moment gets
/// no answer.
fn client(base: &str) -> &'static Client {
    static CLIENTS: OnceLock<[Client; 2]> = OnceLock::new();
    let [reusing, other] = CLIENTS.get_or_init(|| {
        [usize::MAX, 0].map(|idle_max| {
            // Much shorter than the 10 s after which the origin closes an idle connection.
            let idle = Duration::from_millis(500);
            let builder = Client::builder().no_proxy().pool_idle_timeout(idle).pool_max_idle_per_host(idle_max);
            let builder = builder.redirect(reqwest::redirect::Policy::none());
            builder.timeout(Duration::from_secs(300)).build().expect("a client")
        })
    });
    if base == shared().origin { reusing } else { other }
}

/// Returns whether `Content-Type` says that the body is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.split(';').next().is_some_and(|mime| mime.trim() == "application/json"))
}

/// Percent-encodes a name or value for a path or a query.
pub(crate) fn enc(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

pub(crate) fn option(name: &str, value: &Value) -> String {
    format!("{name}={}", enc(&value.to_string()))
}
