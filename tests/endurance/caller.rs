//! A caller that follows the API's rules: it retries errors that are `retryable`, uses the next
//! edge when one does not answer, and sends the position of its last write with its reads.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::{Client, Method, RequestBuilder, header::HeaderMap};
use serde_json::Value;
use tokio::time::sleep;

use crate::tally::{Purpose, Tally};

/// Timeout of a request. The caller then sends the request to the next edge.
const ANSWER_MAX: Duration = Duration::from_secs(8);
/// Timeout of a request whose answer is read slowly on purpose.
const SLOW_MAX: Duration = Duration::from_secs(60);
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// Pause before a retry if there is no `Retry-After`, as after a broken connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum time of a request with its retries. After it, the request counts as refused.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Caller {
    pub(crate) number: u32,
    /// URLs of all edges; in a soak, of the edge and of the origin.
    edges: Arc<Vec<String>>,
    pub(crate) edge: usize,
    key: String,
    client: Client,
    pub(crate) tally: Arc<Tally>,
    position: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<Value>,
}

impl Request {
    pub(crate) fn new(method: Method, path: String) -> Self {
        Self { method, path, headers: Vec::new(), body: None }
    }

    pub(crate) fn json(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Number of failed attempts before it. Each may have been carried out.
    pub(crate) repeats: u64,
}

impl Answer {
    pub(crate) fn payload(&self) -> Value {
        self.whole().get_mut("payload").map(Value::take).unwrap_or_default()
    }

    /// Returns the body, which is JSON, with what is beside the payload.
    pub(crate) fn whole(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// An error that the caller may not retry, or a request without success for [`PATIENCE`].
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Code of the error response; `none` after [`PATIENCE`].
    pub(crate) code: String,
    /// `details.reason` of the error response, if it has one.
    pub(crate) reason: String,
    pub(crate) text: String,
    pub(crate) repeats: u64,
}

enum Attempt {
    Done(HeaderMap, Vec<u8>),
    /// The reason of a temporary failure, and the pause before the next attempt.
    Again(String, Duration),
    /// Code, reason and text of an error that may not be retried.
    Refused([String; 3]),
}

impl Caller {
    pub(crate) fn new(number: u32, edges: Arc<Vec<String>>, key: String, tally: Arc<Tally>) -> anyhow::Result<Self> {
        // Idle connections are closed earlier here than by workerd and the origin, since a request
        // on a connection that the other side closes would fail.
        let client = Client::builder().no_proxy().pool_idle_timeout(Duration::from_secs(2));
        let client = client.connect_timeout(CONNECT_MAX).timeout(ANSWER_MAX).build()?;
        let edge = number as usize % edges.len();
        Ok(Self { number, edges, edge, key, client, tally, position: None })
    }

    pub(crate) fn has_position(&self) -> bool {
        self.position.is_some()
    }

    /// Sends a write until it succeeds or is refused, and remembers its position.
    pub(crate) async fn write(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let answer = self.send(request).await?;
        self.tally.success(Purpose::Write);
        if let Some(position) = answer.headers.get("x-selkie-position").and_then(|value| value.to_str().ok()) {
            self.position = Some(position.to_owned());
        }
        Ok(answer)
    }

    /// Sends a read, with the position of the last write, until it succeeds or is refused.
    pub(crate) async fn read(&mut self, path: String) -> Result<Answer, Refusal> {
        let mut request = Request::new(Method::GET, path);
        if let Some(position) = &self.position {
            request = request.header("X-Selkie-After", position.clone());
        }
        let answer = self.send(&request).await?;
        self.tally.success(Purpose::Read);
        self.tally.tell(|told| {
            told.reads += 1;
            told.positioned += u64::from(self.position.is_some());
        });
        Ok(answer)
    }

    /// Sends a read without a position until it succeeds or is refused.
    pub(crate) async fn look(&mut self, path: String) -> Result<Answer, Refusal> {
        self.get(&Request::new(Method::GET, path)).await
    }

    /// Sends a read with its own headers, without a position, until it succeeds or is refused.
    pub(crate) async fn get(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let answer = self.send(request).await?;
        self.tally.success(Purpose::Read);
        self.tally.tell(|told| told.reads += 1);
        Ok(answer)
    }

    /// Sends a read with another key until it succeeds or is refused. An empty `key` sends no key.
    pub(crate) async fn read_as(&mut self, key: &str, path: String) -> Result<Answer, Refusal> {
        let own = std::mem::replace(&mut self.key, key.to_owned());
        let answer = self.look(path).await;
        self.key = own;
        answer
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Returns a request that is sent without retries, and whose answer may take [`SLOW_MAX`].
    pub(crate) fn builder_of_slow(&self, request: &Request) -> RequestBuilder {
        self.build(request).timeout(SLOW_MAX)
    }

    /// Sends a request until it succeeds or is refused. The tally counts its retries only.
    pub(crate) async fn send(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let began = Instant::now();
        let mut repeats = 0;
        loop {
            match self.attempt(request).await {
                Attempt::Done(headers, body) => return Ok(Answer { headers, body, repeats }),
                Attempt::Again(reason, pause) => {
                    let text = format!("no success within {PATIENCE:?}, at last: {reason}");
                    self.tally.tell(|told| {
                        told.retries += 1;
                        *told.reasons.entry(reason).or_default() += 1;
                    });
                    if began.elapsed() > PATIENCE {
                        return Err(Refusal { code: "none".to_owned(), reason: String::new(), text, repeats });
                    }
                    sleep(pause).await;
                }
                Attempt::Refused([code, reason, text]) => return Err(Refusal { code, reason, text, repeats }),
            }
            repeats += 1;
        }
    }

    fn build(&self, request: &Request) -> RequestBuilder {
        let url = format!("{}{}", self.edges[self.edge], request.path);
        let mut builder = self.client.request(request.method.clone(), url);
        if !self.key.is_empty() {
            builder = builder.bearer_auth(&self.key);
        }
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.json(body);
        }
        builder
    }

    async fn attempt(&mut self, request: &Request) -> Attempt {
        let builder = self.build(request);
        let received = async {
            let answer = builder.send().await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            Ok::<_, reqwest::Error>((status, headers, answer.bytes().await?.to_vec()))
        };
        let (status, headers, body) = match received.await {
            Ok(received) => received,
            Err(error) => {
                self.edge = (self.edge + 1) % self.edges.len();
                let kind = if error.is_timeout() { "no answer in time" } else { "connection broke" };
                return Attempt::Again(kind.to_owned(), PAUSE);
            }
        };
        if status.is_success() {
            return Attempt::Done(headers, body);
        }
        let text = || format!("{} {} → {status} {}", request.method, request.path, String::from_utf8_lossy(&body));
        let Ok(envelope) = serde_json::from_slice::<Value>(&body) else {
            return Attempt::Refused(["no JSON".to_owned(), String::new(), text()]);
        };
        let error = &envelope["error"];
        let code = error["code"].as_str().unwrap_or("no code").to_owned();
        if error["retryable"] != true {
            let reason = error["details"]["reason"].as_str().unwrap_or_default().to_owned();
            return Attempt::Refused([code, reason, text()]);
        }
        let seconds = headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        Attempt::Again(code, seconds.map_or(PAUSE, Duration::from_secs))
    }
}
