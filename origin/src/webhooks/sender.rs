//! Sends one HTTP request to a webhook's endpoint. Judges the address at each connection, and follows no redirect.

use crate::networks::Networks;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response};
use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::OnceCell;
use url::{Host, Url};

/// Maximum time from the connection to the end of the answer.
const TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection stays open for the next delivery.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many bytes of an answer are kept, for people who look for the cause of a failure.
const RESPONSE_MAX_BYTES: usize = 1_024;
const AGENT: &str = concat!("Selkie/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, thiserror::Error)]
pub enum UrlFault {
    #[error("The option url is no URL, such as https://example.com/hook.")]
    Syntax,
    #[error("The option url must begin with https://, unless the operator allows a network for http:// too.")]
    Scheme,
    #[error("The option url has a user name or password.")]
    Credentials,
    #[error("The option url has an address of a network to which webhooks are not delivered.")]
    Network,
}

/// What came of sending a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// `None` if no answer came.
    pub status: Option<u16>,
    /// The beginning of the answer, or why none came.
    pub response: String,
    pub millis: u32,
    /// After how many seconds the endpoint wants the next attempt.
    pub retry_after: Option<u64>,
}

impl Attempt {
    pub fn has_succeeded(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// Whether the endpoint wants no further deliveries.
    pub fn is_refused_for_ever(&self) -> bool {
        self.status == Some(410)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Sender {
    networks: Networks,
    clients: Arc<OnceCell<Clients>>,
}

#[derive(Debug)]
struct Clients {
    /// For HTTPS: to public addresses too.
    encrypted: Client,
    plain: Client,
}

/// Resolves names to allowed addresses only.
struct Resolver {
    networks: Networks,
    is_plain: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the name has no address to which webhooks are delivered")]
struct NoAllowedAddress;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (networks, is_plain) = (self.networks.clone(), self.is_plain);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> =
                found.filter(|address| is_allowed(&networks, is_plain, address.ip())).collect();
            if allowed.is_empty() {
                return Err(NoAllowedAddress.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

fn is_allowed(networks: &Networks, is_plain: bool, address: IpAddr) -> bool {
    if is_plain { networks.is_named(address) } else { networks.is_allowed(address) }
}

impl Sender {
    pub(super) fn new(networks: Networks) -> Self {
        Self { networks, clients: Arc::default() }
    }

    /// Parses a URL. An address that is written in it is judged too, since no name is then resolved.
    pub(super) fn parse(&self, text: &str) -> Result<Url, UrlFault> {
        let url = Url::parse(text).map_err(|_| UrlFault::Syntax)?;
        let is_plain = match url.scheme() {
            "https" => false,
            "http" if self.networks.allows_some() => true,
            _ => return Err(UrlFault::Scheme),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlFault::Credentials);
        }
        let address = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::from(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::from(address)),
            Some(Host::Domain(_)) => None,
            None => return Err(UrlFault::Syntax),
        };
        match address {
            Some(address) if !is_allowed(&self.networks, is_plain, address) => Err(UrlFault::Network),
            _ => Ok(url),
        }
    }

    pub(super) async fn send(&self, url: &str, headers: [(&'static str, String); 3], body: String) -> Attempt {
        let began = Instant::now();
        let until = tokio::time::Instant::now() + TIMEOUT;
        let sent = tokio::time::timeout_at(until, self.try_to_send(url, headers, body)).await;
        let sent = match sent {
            Ok(Ok((attempt, response))) => {
                // The status counts, even if the answer's body does not end.
                let mut bytes = Vec::new();
                let _ = tokio::time::timeout_at(until, beginning(response, &mut bytes)).await;
                Ok(Ok(Attempt { response: String::from_utf8_lossy(&bytes).into_owned(), ..attempt }))
            }
            Ok(Err(why)) => Ok(Err(why)),
            Err(late) => Err(late),
        };
        let sent = sent.unwrap_or_else(|_| Err(format!("no answer came within {} s", TIMEOUT.as_secs())));
        let millis = u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX);
        match sent {
            Ok(attempt) => Attempt { millis, ..attempt },
            Err(why) => Attempt { status: None, response: why, millis, retry_after: None },
        }
    }

    async fn try_to_send(
        &self,
        url: &str,
        headers: [(&'static str, String); 3],
        body: String,
    ) -> Result<(Attempt, Response), String> {
        let url = self.parse(url).map_err(|fault| fault.to_string())?;
        let clients = self.clients.get_or_try_init(|| clients(self.networks.clone())).await?;
        let client = if url.scheme() == "https" { &clients.encrypted } else { &clients.plain };
        let request = client.post(url).header("content-type", "application/json").body(body);
        let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let response = request.send().await.map_err(|error| cause(&error.without_url()))?;
        let (status, retry_after) = (response.status().as_u16(), retry_after(&response));
        Ok((Attempt { status: Some(status), response: String::new(), millis: 0, retry_after }, response))
    }
}

fn clients(networks: Networks) -> BoxFuture<'static, Result<Clients, String>> {
    // Building a client reads the system's certificates, which blocks.
    let building = tokio::task::spawn_blocking(move || {
        // An error means that the same provider was installed before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let build = |is_plain| {
            Client::builder()
                .user_agent(AGENT)
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_max_idle_per_host(1)
                .pool_idle_timeout(IDLE_TIMEOUT)
                .redirect(reqwest::redirect::Policy::none())
                // A proxy would resolve names itself.
                .no_proxy()
                .dns_resolver(Resolver { networks: networks.clone(), is_plain })
                .https_only(!is_plain)
                .build()
                .map_err(|error| cause(&error))
        };
        Ok(Clients { encrypted: build(false)?, plain: build(true)? })
    });
    Box::pin(async move { building.await.map_err(|error| error.to_string())? })
}

fn cause(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Reads the header in seconds, or as a date.
fn retry_after(response: &Response) -> Option<u64> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let date =
        || httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok().map(|left| left.as_secs());
    text.parse().ok().or_else(date)
}

async fn beginning(mut response: Response, bytes: &mut Vec<u8>) {
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk[..chunk.len().min(RESPONSE_MAX_BYTES - bytes.len())]);
        if bytes.len() == RESPONSE_MAX_BYTES {
            break;
        }
    }
}
