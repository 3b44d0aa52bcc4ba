//! The two hosts, a call through one of them, and its answer. Knows HTTP and the envelope, no table.
//!
//! Every answer is entered in the ledger, which holds all of them against what the interface says of *every* response.

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

/// Where a request goes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Host {
    /// `selkie` itself.
    Origin,
    /// The worker in front of it.
    Edge,
}

impl Host {
    /// `http://127.0.0.1:port`.
    pub(crate) fn url(self) -> &'static str {
        match self {
            Host::Origin => &shared().origin,
            Host::Edge => shared().edge.as_deref().expect("the edge is shut"),
        }
    }

    /// A call with the full key of the project `default`.
    pub(crate) fn call(self, method: Method, path: &str) -> Call {
        Call::new(self.url(), method, path).key(&shared().full_key)
    }

    pub(crate) fn get(self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    /// A POST with a JSON body.
    pub(crate) fn post(self, path: &str, body: &Value) -> Call {
        self.call(Method::POST, path).json(body)
    }

    /// `POST /api/v1/sql` with a full key.
    pub(crate) fn sql(self, body: &Value) -> Call {
        self.post("/api/v1/sql", body)
    }
}

/// One request, being made.
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

    /// The same call of another server.
    pub(crate) fn at(mut self, base: &str) -> Self {
        base.clone_into(&mut self.base);
        self
    }

    /// Sets (or replaces) the key: `Bearer <key>`.
    pub(crate) fn key(self, key: &str) -> Self {
        self.authorization(&format!("Bearer {key}"))
    }

    /// Sets the `Authorization` header as it is.
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

    /// A body without any `Content-Type`.
    pub(crate) fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// The request as reqwest has it, for cases that read the answer piecemeal.
    pub(crate) fn request(&self) -> reqwest::RequestBuilder {
        let mut request = client().request(self.method.clone(), format!("{}{}", self.base, self.path));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match &self.body {
            Some(body) => request.body(body.clone()),
            None => request,
        }
    }

    /// Sends it and reads the whole answer. Panics if there is none.
    pub(crate) async fn send(self) -> Answer {
        let what = self.to_string();
        match self.attempt().await {
            Ok(answer) => answer,
            Err(error) => panic!("no answer to {what}: {error:?}"),
        }
    }

    /// Sends it; a connection that can't be made, or breaks, is an error.
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

/// One answer, read to its end.
pub(crate) struct Answer {
    /// The request, for messages.
    pub(crate) what: String,
    pub(crate) method: Method,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Whether a file's bytes were asked for.
    pub(crate) fn is_file(&self) -> bool {
        let path = self.what.split_once("://").map_or("", |(_, url)| url);
        path.split_once('/').is_some_and(|(_, path)| path.starts_with("media/"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a readable header"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap_or_else(|_| panic!("no UTF-8: {self}"))
    }

    /// The body, whatever it says.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self}"))
    }

    /// The payload of a success.
    #[track_caller]
    pub(crate) fn payload(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{self}");
        let mut body = self.json();
        assert_eq!(body["success"], true, "{self}");
        assert!(body.get("payload").is_some(), "no payload: {self}");
        body["payload"].take()
    }

    /// The error of a refusal with exactly this code, and the code's own status.
    #[track_caller]
    pub(crate) fn refused(&self, code: ErrorCode) -> Value {
        let mut body = self.json();
        assert_eq!(body["success"], false, "expected {}: {self}", code.as_str());
        assert_eq!(body["error"]["code"], code.as_str(), "{self}");
        assert_eq!(self.status.as_u16(), code.status(), "{self}");
        body["error"].take()
    }

    /// The code of a refusal, or `ok`.
    pub(crate) fn code(&self) -> String {
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(body) if body["success"] == true => "ok".to_owned(),
            Ok(body) => body["error"]["code"].as_str().unwrap_or("no code").to_owned(),
            Err(_) => format!("status {} without JSON", self.status),
        }
    }

    /// The fields of a record as their exact JSON texts, so that no digit is lost in reading.
    #[track_caller]
    pub(crate) fn raw_record(&self) -> RawRecord {
        let body: Raw<BTreeMap<String, Box<RawValue>>> = self.read();
        texts(body.payload)
    }

    /// The same of the first of several rows.
    #[track_caller]
    pub(crate) fn raw_row(&self) -> RawRecord {
        let body: Raw<Vec<BTreeMap<String, Box<RawValue>>>> = self.read();
        texts(body.payload.into_iter().next().unwrap_or_else(|| panic!("no row: {self}")))
    }

    /// The body as a type of the case's own.
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

/// Field names and their exact JSON texts.
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

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        // Well before workerd ends an idle connection (after 5 s), and the origin (after 10 s): one that ends just when
        // a request is sent on it gives no answer, and a POST is not sent again.
        let builder = Client::builder()
            .no_proxy()
            .pool_idle_timeout(Duration::from_secs(2))
            .redirect(reqwest::redirect::Policy::none());
        builder.timeout(Duration::from_secs(300)).build().expect("a client")
    })
}

/// Whether the answer says that its body is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.split(';').next().is_some_and(|mime| mime.trim() == "application/json"))
}

/// A name or value, percent-encoded for a path or a query.
pub(crate) fn enc(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// `name=<encoded JSON>`.
pub(crate) fn option(name: &str, value: &Value) -> String {
    format!("{name}={}", enc(&value.to_string()))
}
