//! A client of the HTTP API: sends a request, repeats it after a temporary failure, and reads the response's envelope.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use shared::fingerprint::hex;
use shared::ident::{DatabaseName, TableName, shown};
use url::Url;

use super::TransferError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of attempts. Without the header Retry-After, the pauses are 40 seconds in total.
pub(super) const ATTEMPTS_MAX_COUNT: u32 = 10;
pub(super) const BACK_OFF_MIN: Duration = Duration::from_millis(100);
pub(super) const BACK_OFF_MAX: Duration = Duration::from_secs(15);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRef {
    pub database: DatabaseName,
    pub table: TableName,
}

impl std::str::FromStr for TableRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (database, table) = text.split_once('.').ok_or("it must be a database and a table, such as demo.posts")?;
        let database = DatabaseName::parse(database).map_err(|problem| problem.message().to_owned())?;
        let table = TableName::parse(table).map_err(|problem| problem.message().to_owned())?;
        Ok(Self { database, table })
    }
}

impl std::fmt::Display for TableRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// An error of the API. For a server error without an envelope, `code` is the HTTP status.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ApiError {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    #[serde(default)]
    pub(super) details: Details,
    #[serde(default)]
    retryable: bool,
    #[serde(skip)]
    pub(super) others: Vec<ApiError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Details {
    pub(super) row: Option<usize>,
    pub(super) field: Option<String>,
    pub(super) reason: Option<String>,
}

impl From<ApiError> for TransferError {
    fn from(refusal: ApiError) -> Self {
        Self::Failed { message: format!("{} ({})", refusal.message, refusal.code), hint: refusal.hint }
    }
}

#[derive(Deserialize)]
struct ResponseEnvelope {
    success: bool,
    #[serde(default)]
    payload: Option<Box<RawValue>>,
    error: Option<ApiError>,
    #[serde(default)]
    errors: Vec<ApiError>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Field {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) sql_type: String,
    pub(super) json_type: Option<String>,
    pub(super) required: bool,
    generated: bool,
    pub(super) auto_increment: bool,
    pub(super) writable: bool,
}

impl Field {
    pub(super) fn is_generated(&self) -> bool {
        self.generated
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Schema {
    pub(super) methods: Vec<String>,
    #[serde(rename = "schema")]
    pub(super) fields: Vec<Field>,
}

pub(super) struct InsertRequest<'a> {
    pub(super) content_type: &'static str,
    pub(super) on_conflict: Option<&'static str>,
    pub(super) idempotency_key: &'a str,
    pub(super) body: Bytes,
}

/// A client of the API. Its `Debug` hides the key.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
    base: Url,
    key: SecretString,
}

pub(super) enum NoAnswer {
    Refused(Box<ApiError>),
    Failed(TransferError),
}

impl From<NoAnswer> for TransferError {
    fn from(error: NoAnswer) -> Self {
        match error {
            NoAnswer::Refused(refusal) => (*refusal).into(),
            NoAnswer::Failed(error) => error,
        }
    }
}

impl Api {
    /// Makes a client. `read_timeout` limits each wait for further bytes. Blocks to read the system's certificates.
    pub fn new(base: &str, key: SecretString, read_timeout: Option<Duration>) -> Result<Self, TransferError> {
        let wrong =
            || TransferError::usage(format!("{} is no URL of an API", shown(base)), "such as https://api.example.org");
        let mut base = Url::parse(base).map_err(|_| wrong())?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() || base.query().is_some() {
            return Err(wrong());
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        // The client needs a process-wide crypto provider. An error means that it was set before, to the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would turn a POST into a GET.
            .redirect(Policy::none());
        let client = match read_timeout {
            Some(timeout) => client.read_timeout(timeout),
            None => client,
        };
        let is_loopback = matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let client = if is_loopback { client.no_proxy() } else { client };
        let client = client.build().map_err(|error| failed("the HTTP client can't be made", &error))?;
        Ok(Self { client, base, key })
    }

    /// Returns the identity of URL and key. An import must be continued with the same identity: for a key with a role,
    /// the server keeps the idempotency keys apart from those of other keys.
    pub fn identity(&self) -> String {
        let digest = Sha256::digest(self.key.expose_secret().as_bytes());
        format!("{} {}", self.base, hex(&digest))
    }

    pub(super) fn api_url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "v1"]).extend(segments);
        }
        url
    }

    fn url(&self, table: &TableRef, last: &str) -> Url {
        let segments = ["crud", table.database.as_str(), table.table.as_str(), last];
        self.api_url(if last.is_empty() { &segments[..3] } else { &segments })
    }

    pub(super) async fn schema(&self, table: &TableRef) -> Result<Option<Schema>, TransferError> {
        let answer = self.call(Method::GET, self.url(table, "_schema"), &HeaderMap::new(), Bytes::new()).await;
        match answer {
            Err(NoAnswer::Refused(refusal)) if refusal.code == "table_not_found" => Ok(None),
            answer => {
                let schema = serde_json::from_str(answer?.get());
                schema.map(Some).map_err(|error| self.strange(&error.to_string()))
            }
        }
    }

    /// Inserts all rows or none, at most once for each idempotency key. Returns the number of rows, without those that
    /// `onConflict` left unchanged.
    pub(super) async fn insert(&self, table: &TableRef, insert: InsertRequest<'_>) -> Result<u64, NoAnswer> {
        let mut url = self.url(table, "");
        if let Some(choice) = insert.on_conflict {
            url.query_pairs_mut().append_pair("onConflict", choice);
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(insert.content_type));
        let key = insert.idempotency_key.parse().map_err(|_| NoAnswer::Failed(self.strange("a bad key")))?;
        headers.insert("idempotency-key", key);
        let payload = self.call(Method::POST, url, &headers, insert.body).await?;
        let ids: Vec<&RawValue> =
            serde_json::from_str(payload.get()).map_err(|error| NoAnswer::Failed(self.strange(&error.to_string())))?;
        Ok(ids.iter().filter(|id| id.get() != "null").count() as u64)
    }

    pub(super) async fn sql(&self, database: &DatabaseName, statement: &str) -> Result<(), TransferError> {
        let url = self.api_url(&["sql"]);
        let body = serde_json::json!({ "database": database.as_str(), "query": statement }).to_string();
        self.call(Method::POST, url, &json_headers(), body.into()).await?;
        Ok(())
    }

    pub async fn types(&self, extension: &str, database: Option<&DatabaseName>) -> Result<String, TransferError> {
        let mut url = self.api_url(&[&format!("types.{extension}")]);
        url.query_pairs_mut().extend_pairs(database.map(|name| ("database", name.as_str())));
        let answer = match (self.send(Method::GET, url, &HeaderMap::new(), Bytes::new()).await, database) {
            (Err(NoAnswer::Refused(refusal)), Some(name)) if refusal.code == "database_not_found" => {
                let message = format!("the project has no database {name}");
                return Err(TransferError::Failed { message, hint: refusal.hint });
            }
            (answer, _) => answer?,
        };
        answer.text().await.map_err(|error| failed("the answer ended early", &error))
    }

    pub(super) async fn read(
        &self,
        table: &TableRef,
        options: &Value,
        accept: &str,
    ) -> Result<Response, TransferError> {
        let mut headers = json_headers();
        headers.insert(ACCEPT, accept.parse().map_err(|_| self.strange("a bad form"))?);
        let body = options.to_string().into();
        Ok(self.send(Method::POST, self.url(table, "query"), &headers, body).await?)
    }

    /// Opens an event stream of changes. `options` are of the query string.
    pub(super) async fn changes(
        &self,
        table: &TableRef,
        options: &[(&str, String)],
        last_event_id: Option<&str>,
        attempts_max_count: u32,
    ) -> Result<Response, NoAnswer> {
        let mut url = self.api_url(&["changes", table.database.as_str(), table.table.as_str()]);
        url.query_pairs_mut().extend_pairs(options);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event_id {
            let id = id.parse().map_err(|_| NoAnswer::Failed(self.strange("a bad token")))?;
            headers.insert("last-event-id", id);
        }
        self.send_up_to(attempts_max_count, Method::GET, url, &headers, Bytes::new()).await
    }

    async fn call(
        &self,
        method: Method,
        url: Url,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Box<RawValue>, NoAnswer> {
        self.call_up_to(ATTEMPTS_MAX_COUNT, method, url, headers, body).await
    }

    pub(super) async fn call_up_to(
        &self,
        attempts_max_count: u32,
        method: Method,
        url: Url,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Box<RawValue>, NoAnswer> {
        let broken = |error: &reqwest::Error| NoAnswer::Failed(failed("the answer ended early", error));
        let response = self.send_up_to(attempts_max_count, method, url, headers, body).await?;
        let answer = response.bytes().await.map_err(|error| broken(&error))?;
        let envelope: ResponseEnvelope =
            serde_json::from_slice(&answer).map_err(|error| NoAnswer::Failed(self.strange(&error.to_string())))?;
        envelope.payload.ok_or_else(|| NoAnswer::Failed(self.strange("it has no payload")))
    }

    async fn send(&self, method: Method, url: Url, headers: &HeaderMap, body: Bytes) -> Result<Response, NoAnswer> {
        self.send_up_to(ATTEMPTS_MAX_COUNT, method, url, headers, body).await
    }

    /// Sends a request, several times if necessary. A request that is sent more than once may be repeated: a read, an
    /// insert with an idempotency key, a PUT, and a CREATE TABLE, which fails if the table exists.
    async fn send_up_to(
        &self,
        attempts_max_count: u32,
        method: Method,
        url: Url,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response, NoAnswer> {
        let mut back_off = BACK_OFF_MIN;
        for attempt in 1.. {
            let request = self
                .client
                .request(method.clone(), url.clone())
                .headers(headers.clone())
                .header(AUTHORIZATION, format!("Bearer {}", self.key.expose_secret()))
                .body(body.clone());
            let (error, pause) = match request.send().await {
                Ok(response) if response.status() == StatusCode::OK => return Ok(response),
                Ok(response) => {
                    let pause = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                    let error = self.refusal(response).await;
                    let is_passing = match &error {
                        NoAnswer::Refused(refusal) => refusal.retryable && refusal.code != "query_timeout",
                        NoAnswer::Failed(_) => false,
                    };
                    if !is_passing {
                        return Err(error);
                    }
                    (error, pause.map(Duration::from_secs))
                }
                Err(error) => {
                    let message = format!("{} can't be reached", self.base);
                    (NoAnswer::Failed(failed(&message, &error)), None)
                }
            };
            if attempt == attempts_max_count {
                return Err(error);
            }
            tokio::time::sleep(pause.unwrap_or(back_off).min(BACK_OFF_MAX)).await;
            back_off = (back_off * 2).min(BACK_OFF_MAX);
        }
        Err(NoAnswer::Failed(self.strange("no attempt was made")))
    }

    async fn refusal(&self, response: Response) -> NoAnswer {
        let status = response.status();
        if status.is_redirection() {
            let message = format!("{} redirects to another address", self.base);
            return NoAnswer::Failed(TransferError::failed(message, "name that address by --url"));
        }
        let body = response.bytes().await.unwrap_or_default();
        match serde_json::from_slice::<ResponseEnvelope>(&body) {
            Ok(ResponseEnvelope { success: false, error: Some(first), errors, .. }) => {
                NoAnswer::Refused(Box::new(ApiError { others: errors.into_iter().skip(1).collect(), ..first }))
            }
            // A proxy's own error page has no envelope.
            _ if status.is_server_error() => NoAnswer::Refused(Box::new(ApiError {
                code: status.as_u16().to_string(),
                message: format!("{} answers with status {status}.", self.base),
                hint: None,
                details: Details::default(),
                retryable: true,
                others: Vec::new(),
            })),
            _ => NoAnswer::Failed(self.strange(&format!("its status is {status}"))),
        }
    }

    pub(super) fn strange(&self, fault: &str) -> TransferError {
        let message = format!("the answer of {} is none of Selkie's API: {fault}", self.base);
        TransferError::failed(message, "--url is the address of an origin or an edge, without /api")
    }
}

pub(super) fn json_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}

pub(super) fn failed(what: &str, error: &reqwest::Error) -> TransferError {
    let mut text = what.to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    TransferError::Failed { message: text, hint: None }
}
