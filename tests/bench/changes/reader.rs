//! Readers of the feed of changes: pages, event streams and long polls.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};

use crate::{http::Connection, selkie::Endpoint};

#[derive(Debug, Clone)]
pub(super) struct Reader {
    endpoint: Endpoint,
    /// `<table>?`, or `<table>?<options>&`.
    from: String,
}

pub(super) struct Page {
    pub(super) body: String,
    pub(super) changes: usize,
    pub(super) next: String,
    pub(super) up_to_date: bool,
}

impl Reader {
    pub(super) fn new(endpoint: &Endpoint, table: &str) -> Self {
        Self { endpoint: endpoint.clone(), from: format!("{table}?") }
    }

    /// Reads only the records of one customer.
    pub(super) fn of_customer(&self, customer: usize) -> Self {
        Self { from: format!("{}query=%7B%22customer%22%3A{customer}%7D&", self.from), ..self.clone() }
    }

    pub(super) async fn connect(&self) -> Result<Connection> {
        Ok(Connection::open(self.endpoint.address).await?)
    }

    /// Returns the token of the present.
    pub(super) async fn now(&self, connection: &mut Connection) -> Result<String> {
        Ok(self.page(connection, "").await?.next)
    }

    pub(super) async fn since(&self, connection: &mut Connection, token: &str) -> Result<Page> {
        self.page(connection, &format!("since={token}&limit=1000")).await
    }

    /// Returns when there is a change, or after 25 s.
    pub(super) async fn poll(&self, connection: &mut Connection, token: &str) -> Result<Page> {
        self.page(connection, &format!("since={token}&wait=25s")).await
    }

    async fn page(&self, connection: &mut Connection, options: &str) -> Result<Page> {
        let mut request = Vec::new();
        self.endpoint.requests.get(format_args!("{}{options}", self.path()), &mut request);
        let (status, body) = connection.fetch(&request).await?;
        let body = String::from_utf8(body)?;
        ensure!(status == 200, "{status}: {body}");
        let (_, next) = body.rsplit_once(r#""next":""#).context("no token")?;
        let (next, rest) = next.split_once('"').context("half a token")?;
        let (next, up_to_date) = (next.to_owned(), rest.contains(r#""upToDate":true"#));
        Ok(Page { changes: body.matches(r#"{"type":"#).count(), next, up_to_date, body })
    }

    /// Reads an event stream to its end, from the present on or from a token.
    pub(super) async fn stream(&self, since: Option<&str>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        let options = since.map(|token| format!("since={token}")).unwrap_or_default();
        let requests = &self.endpoint.requests;
        let request = format!(
            "GET {}{options} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
            self.path(),
            requests.host,
            requests.key
        );
        let answer = self.connect().await?.exchange(request.as_bytes(), &mut seen).await?;
        ensure!(answer.status == 200, "an event stream is answered {}", answer.status);
        Ok(())
    }

    /// Reads an event stream; calls `seen` with the JSON of each event.
    pub(super) async fn events(&self, since: Option<&str>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        let mut half = Vec::new();
        let read = |bytes: &[u8]| {
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                half.extend_from_slice(line);
                if line.ends_with(b"\n") {
                    if let Some(json) = half.strip_prefix(b"data: ") {
                        seen(json);
                    }
                    half.clear();
                }
            }
        };
        self.stream(since, read).await
    }

    /// Reads as another origin of the same installation answers.
    pub(super) fn at(&self, address: SocketAddr) -> Self {
        let mut reader = self.clone();
        reader.endpoint.address = address;
        reader
    }

    fn path(&self) -> String {
        format!("/api/v1/changes/{}/{}", self.endpoint.requests.database, self.from)
    }
}

/// Returns whether an event is a change; others tell the end of a transaction.
pub(super) fn is_change(json: &[u8]) -> bool {
    json.starts_with(br#"{"type":"#)
}

/// Returns the key of a change.
pub(super) fn key(json: &[u8]) -> Option<usize> {
    const BEFORE: &[u8] = br#""key":"#;
    let at = json.windows(BEFORE.len()).position(|bytes| bytes == BEFORE)? + BEFORE.len();
    let digits = json[at..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
}
