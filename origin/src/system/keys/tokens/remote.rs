//! The JWK set of an issuer that publishes it under a URL. A fetched set stays in use while the issuer can't be
//! reached. All times are seconds since 1970.

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::networks::Networks;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response};
use shared::key::{JwkSetFault, UnusableKey, VerificationKeys};
use shared::limits::{
    JWKS_FETCH_MAX_SECONDS, JWKS_FETCH_MIN_SECONDS, JWKS_FIRST_FETCH_MIN_SECONDS, JWKS_MAX_BYTES, JWKS_REFRESH_SECONDS,
};
use tokio::sync::watch;
use url::{Host, Url};

const REDIRECTS_MAX_COUNT: usize = 5;
/// How long a request waits for keys whose last fetch failed.
const RETRY_WAIT: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    #[error("it is no URL, such as https://id.example.com")]
    Syntax,
    #[error("it does not begin with https://, which only addresses of this machine need not")]
    Scheme,
    #[error("it holds a user name or password")]
    Credentials,
    #[error("it does not begin with https://")]
    Plain,
    #[error("its address is not public")]
    Network,
    #[error("its host has signs other than letters, digits, dots, hyphens and underscores")]
    Host,
}

/// From which addresses a set is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Any,
    /// As for issuers that were set over HTTP, whose URLs the operator has not seen.
    Public,
}

/// Parses a URL: HTTPS, or HTTP to `localhost` or a loopback address.
pub fn parse_url(text: &str) -> Result<Url, UrlFault> {
    let url = Url::parse(text).map_err(|_| UrlFault::Syntax)?;
    if !is_secure(&url) {
        return Err(UrlFault::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlFault::Credentials);
    }
    // Other signs would have a meaning in the header Content-Security-Policy of the console, which names issuers.
    let is_plain = |sign: u8| sign.is_ascii_alphanumeric() || b".-_".contains(&sign);
    if let Some(Host::Domain(name)) = url.host()
        && !name.bytes().all(is_plain)
    {
        return Err(UrlFault::Host);
    }
    Ok(url)
}

/// Parses a URL for [`Reach::Public`]. An address that is written in it is judged too, since no name is then resolved.
pub fn parse_public_url(text: &str) -> Result<Url, UrlFault> {
    let url = parse_url(text)?;
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::from(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::from(address)),
        _ => None,
    };
    match address {
        _ if url.scheme() != "https" => Err(UrlFault::Plain),
        Some(address) if !Networks::default().is_allowed(address) => Err(UrlFault::Network),
        _ => Ok(url),
    }
}

/// Resolves names to public addresses only.
struct PublicResolver;

#[derive(Debug, thiserror::Error)]
#[error("the name has no public address")]
struct NoPublicAddress;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> =
                found.filter(|address| Networks::default().is_allowed(address.ip())).collect();
            if public.is_empty() {
                return Err(NoPublicAddress.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

fn is_secure(url: &Url) -> bool {
    url.host().is_some() && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url)))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchFault {
    #[error("it can't be reached: {0}")]
    Unreachable(String),
    #[error("it answers with status {0}")]
    Status(u16),
    #[error("{0}")]
    Set(#[from] JwkSetFault),
}

impl From<reqwest::Error> for FetchFault {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self::Unreachable(text)
    }
}

pub async fn fetch(url: &Url, reach: Reach) -> Result<(VerificationKeys, Vec<UnusableKey>), FetchFault> {
    let is_local = is_loopback(url);
    // Building the client reads the system's certificates, which blocks.
    let client = tokio::task::spawn_blocking(move || client(is_local, reach)).await;
    let client = client.map_err(|error| FetchFault::Unreachable(error.to_string()))??;
    let response = client.get(url.clone()).header("accept", "application/json").send().await?;
    if response.status().as_u16() != 200 {
        return Err(FetchFault::Status(response.status().as_u16()));
    }
    let text = read(response).await?;
    Ok(VerificationKeys::parse(&text)?)
}

fn client(is_local: bool, reach: Reach) -> Result<Client, reqwest::Error> {
    // The client needs a process-wide crypto provider. An error means that the same provider was installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .timeout(Duration::from_secs(JWKS_FETCH_MAX_SECONDS))
        .redirect(Policy::custom(follow))
        // A set is fetched only every few minutes.
        .pool_max_idle_per_host(0);
    match reach {
        // A proxy would resolve names itself, and a redirect could name an address.
        Reach::Public => {
            client.no_proxy().redirect(Policy::none()).dns_resolver(PublicResolver).https_only(true).build()
        }
        Reach::Any if is_local => client.no_proxy().build(),
        Reach::Any => client.build(),
    }
}

/// Follows a redirect, unless it leads from HTTPS to HTTP.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_scheme = attempt.previous().iter().all(|url| url.scheme() == attempt.url().scheme());
    if attempt.previous().len() > REDIRECTS_MAX_COUNT {
        attempt.error("too many redirects")
    } else if !keeps_scheme || !is_secure(attempt.url()) {
        attempt.error("it redirects to another scheme than HTTPS")
    } else {
        attempt.follow()
    }
}

async fn read(mut response: Response) -> Result<String, FetchFault> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > JWKS_MAX_BYTES {
            return Err(JwkSetFault::TooLarge.into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8(bytes).map_err(|_| JwkSetFault::NotAJwkSet)?)
}

#[derive(Debug)]
pub(super) struct RemoteKeys {
    url: Url,
    reach: Reach,
    state: Mutex<RemoteState>,
}

#[derive(Debug, Default)]
struct RemoteState {
    keys: Option<Arc<VerificationKeys>>,
    fetched_at: u64,
    asked_at: Option<u64>,
    /// Whether the last fetch failed.
    has_failed: bool,
    flight: Option<watch::Receiver<()>>,
}

impl RemoteKeys {
    pub(super) fn new(url: Url, reach: Reach) -> Self {
        Self { url, reach, state: Mutex::default() }
    }

    pub(super) fn is_of(&self, url: &Url, reach: Reach) -> bool {
        self.url == *url && self.reach == reach
    }

    /// Returns the cached keys; if older than [`JWKS_REFRESH_SECONDS`], also fetches new ones. Without any, waits for the
    /// first fetch, and for another one after it has failed for [`RETRY_WAIT`] at most: an issuer that does not answer must
    /// not hold up requests. `None` if there are no keys then.
    pub(super) async fn keys(self: &Arc<Self>, now: u64) -> Option<Arc<VerificationKeys>> {
        let (flight, time) = {
            let mut state = self.state();
            if let Some(keys) = state.keys.clone() {
                if now.abs_diff(state.fetched_at) >= JWKS_REFRESH_SECONDS {
                    self.begin_fetch(&mut state, now);
                }
                return Some(keys);
            }
            let time = if state.has_failed { RETRY_WAIT } else { Duration::from_secs(JWKS_FETCH_MAX_SECONDS) };
            (self.begin_fetch(&mut state, now)?, time)
        };
        let _ = tokio::time::timeout(time, wait(flight)).await;
        self.state().keys.clone()
    }

    /// Fetches the keys and returns them, or the old keys if that failed; `None` if the last fetch began less than
    /// [`JWKS_FETCH_MIN_SECONDS`] ago.
    pub(super) async fn newer(self: &Arc<Self>, now: u64) -> Option<Arc<VerificationKeys>> {
        let flight = self.begin_fetch(&mut self.state(), now);
        wait(flight?).await;
        self.state().keys.clone()
    }

    /// Begins a fetch or joins the running one. A fetch continues if its callers are cancelled.
    fn begin_fetch(self: &Arc<Self>, state: &mut RemoteState, now: u64) -> Option<watch::Receiver<()>> {
        // A closed channel here means that the fetch has panicked: a fetch that ends normally removes it from `state`.
        if let Some(flight) = state.flight.as_ref().filter(|flight| flight.has_changed().is_ok()) {
            return Some(flight.clone());
        }
        let pause = if state.keys.is_some() { JWKS_FETCH_MIN_SECONDS } else { JWKS_FIRST_FETCH_MIN_SECONDS };
        if state.asked_at.is_some_and(|asked_at| now.abs_diff(asked_at) < pause) {
            return None;
        }
        let (sender, flight) = watch::channel(());
        state.asked_at = Some(now);
        state.flight = Some(flight.clone());
        let remote = Arc::clone(self);
        tokio::spawn(async move {
            let began = Instant::now();
            let fetched = fetch(&remote.url, remote.reach).await;
            let mut state = remote.state();
            state.has_failed = fetched.is_err();
            // The pause is counted from the end, since an attempt may take longer than the pause.
            state.asked_at = Some(now + began.elapsed().as_secs());
            match fetched {
                Ok((keys, _)) => {
                    state.keys = Some(Arc::new(keys));
                    state.fetched_at = now;
                }
                Err(error) => {
                    tracing::warn!(url = remote.url.as_str(), %error, "the keys of an issuer can't be fetched");
                }
            }
            state.flight = None;
            drop(state);
            drop(sender);
        });
        Some(flight)
    }

    fn state(&self) -> MutexGuard<'_, RemoteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn wait(mut flight: watch::Receiver<()>) {
    while flight.changed().await.is_ok() {}
}

#[cfg(test)]
mod tests;
