//! Callers that send prepared requests. Each sends its next request when the last one is answered.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use shared::{
    ident::ProjectName,
    key::{Access, KeyClaims, KeySet, SigningKey},
};
use tokio::time::timeout;

use crate::{http::Connection, load::Outcome};

/// Maximum time of an answer; longer than any should take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Requests {
    texts: Vec<Vec<u8>>,
    next: AtomicUsize,
}

impl Requests {
    /// Creates requests of the same path, one for each key.
    pub(super) fn new(path: &str, keys: &[String]) -> Arc<Self> {
        let texts = keys.iter().map(|key| request(path, key)).collect();
        Arc::new(Self { texts, next: AtomicUsize::new(0) })
    }

    fn next(&self) -> &[u8] {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        &self.texts[number % self.texts.len()]
    }

    pub(super) fn any(&self) -> &[u8] {
        &self.texts[0]
    }
}

fn request(path: &str, key: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer {key}\r\nAccept: application/json\r\n\
         Accept-Encoding: gzip, deflate\r\nUser-Agent: bench/1.0\r\n\r\n"
    )
    .into_bytes()
}

/// Returns the installation's public keys as a JWK set, and `count` different valid API keys signed by them.
pub(super) fn keys(count: usize, now: Duration) -> Result<(String, Vec<String>)> {
    let signing = SigningKey::from_seed("01a1fe91-341c-7651-b215-93e1164c4edf", &[7; 32]);
    let project = ProjectName::parse("bench").map_err(|_| anyhow::anyhow!("a name"))?;
    let jwks = KeySet::new(vec![signing.public()])?.to_jwks();
    let seconds = now.as_secs();
    let keys = (0..count as u64).map(|number| {
        let mut random = [0; 10];
        random[2..].copy_from_slice(&number.to_be_bytes());
        let id = uuid::Builder::from_unix_timestamp_millis(seconds * 1_000, &random).into_uuid();
        let claims = KeyClaims::new(id, &project, Access::Read, seconds, None);
        signing.sign(&claims)
    });
    Ok((jwks, keys.collect::<Result<_, _>>()?))
}

/// Runs `callers` for `duration`, on a thread of their own. Any answer but a success is an error.
pub(super) async fn drive(
    address: SocketAddr,
    requests: Arc<Requests>,
    callers: u16,
    duration: Duration,
) -> Result<Outcome> {
    let thread = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let mut connections = Vec::new();
            for _ in 0..callers {
                connections.push(Connection::open(address).await.context("connecting")?);
            }
            let began = Instant::now();
            let tasks: Vec<_> = connections
                .into_iter()
                .map(|connection| tokio::spawn(call(connection, Arc::clone(&requests), began + duration)))
                .collect();
            let mut outcome = Outcome::new()?;
            for task in tasks {
                outcome.merge(&task.await.context("a caller")??)?;
            }
            outcome.elapsed = began.elapsed();
            Ok(outcome)
        })
    });
    thread.await.context("the callers' thread")?
}

async fn call(mut connection: Connection, requests: Arc<Requests>, end: Instant) -> Result<Outcome> {
    let mut outcome = Outcome::new()?;
    loop {
        let from = Instant::now();
        if from >= end {
            return Ok(outcome);
        }
        let answer = timeout(ANSWER_TIMEOUT, connection.call(requests.next())).await.context("no answer in time")??;
        if answer.status != 200 {
            bail!("answered {} in place of 200", answer.status);
        }
        outcome.record(from.elapsed(), answer.began.duration_since(from), answer.bytes);
    }
}
