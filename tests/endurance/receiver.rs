//! An endpoint of a webhook that fails now and then: it answers 500, never answers, or closes the connection. Checks each
//! attempt, and keeps a copy of what it has accepted.

use std::{
    collections::{HashMap, HashSet},
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use anyhow::Result;
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use machines::signature::sign;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::{net::TcpListener, task::AbortHandle, time::sleep};

use crate::{copy::Copy, random::Random, tally::Messages};

/// Ranges of random durations in milliseconds: of the times in which the endpoint works, and in which it fails.
const WORKS_MS: (u64, u64) = (5_000, 15_000);
const FAILS_MS: (u64, u64) = (1_000, 4_000);
/// How far the time of an attempt may be from this machine's, in seconds.
const TIMESTAMP_MAX: u64 = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Accepts,
    Fails,
    Hangs,
    Closes,
}

#[derive(Debug, Default)]
pub(crate) struct Received {
    mode: Mode,
    secret: String,
    pub(crate) copy: Copy,
    pub(crate) attempts: u64,
    /// Attempts that the endpoint did not accept.
    pub(crate) refused: u64,
    /// The accepted deliveries by `webhook-id`.
    pub(crate) accepted: HashSet<String>,
    /// Reasons for which changes are missing, as deliveries say.
    pub(crate) resyncs: Messages,
    bodies: HashMap<String, [u8; 32]>,
    ids: HashMap<[u8; 32], String>,
    /// Attempts with a wrong signature or time, or with an id that is not the one of their body.
    pub(crate) wrong: Messages,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    received: Arc<Mutex<Received>>,
    tasks: [AbortHandle; 2],
}

impl Receiver {
    /// Starts the endpoint. Its failures follow `random`.
    pub(crate) async fn start(address: Ipv4Addr, random: Random) -> Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let received = Arc::<Mutex<Received>>::default();
        let serving = tokio::spawn(serve(listener, Arc::clone(&received)));
        let failing = tokio::spawn(fail(random, Arc::clone(&received)));
        Ok(Self { url, received, tasks: [serving.abort_handle(), failing.abort_handle()] })
    }

    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        lock(&self.received)
    }

    pub(crate) fn set_secret(&self, secret: &str) {
        secret.clone_into(&mut self.received().secret);
    }

    /// Ends the failures.
    pub(crate) fn calm_down(&self) {
        self.tasks[1].abort();
        self.received().mode = Mode::Accepts;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn lock(received: &Mutex<Received>) -> MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn fail(mut random: Random, received: Arc<Mutex<Received>>) {
    loop {
        sleep(random.duration(WORKS_MS)).await;
        lock(&received).mode = match random.below(3) {
            0 => Mode::Fails,
            1 => Mode::Hangs,
            _ => Mode::Closes,
        };
        sleep(random.duration(FAILS_MS)).await;
        lock(&received).mode = Mode::Accepts;
    }
}

async fn serve(listener: TcpListener, received: Arc<Mutex<Received>>) {
    while let Ok((socket, _)) = listener.accept().await {
        let received = Arc::clone(&received);
        tokio::spawn(async move {
            let answer = service_fn(move |request| answer(request, Arc::clone(&received)));
            // An error means that this endpoint or the origin closed the connection.
            let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

async fn answer(request: Request<Incoming>, received: Arc<Mutex<Received>>) -> io::Result<Response<Empty<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let mode = lock(&received).take(&head.headers, &body);
    let mut answer = Response::new(Empty::new());
    *answer.status_mut() = match mode {
        Mode::Accepts => StatusCode::NO_CONTENT,
        Mode::Fails => StatusCode::INTERNAL_SERVER_ERROR,
        Mode::Hangs => std::future::pending().await,
        // The error closes the connection.
        Mode::Closes => return Err(io::Error::other("closed on purpose")),
    };
    Ok(answer)
}

impl Received {
    /// Checks an attempt, and applies its changes if the endpoint works now.
    fn take(&mut self, headers: &HeaderMap, body: &[u8]) -> Mode {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (id, time) = (header("webhook-id"), header("webhook-timestamp"));
        self.attempts += 1;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let expected = sign(&self.secret, id, time, body);
        if !header("webhook-signature").split(' ').any(|signature| Some(signature) == expected.as_deref())
            || !time.parse().is_ok_and(|time: u64| now.abs_diff(time) <= TIMESTAMP_MAX)
        {
            self.wrong.add(format!("{id} of {time} is signed wrongly"));
        }
        let digest = <[u8; 32]>::from(Sha256::digest(body));
        let has_own_id = *self.ids.entry(digest).or_insert_with(|| id.to_owned()) == id;
        let has_own_body = *self.bodies.entry(id.to_owned()).or_insert(digest) == digest;
        if !has_own_id || !has_own_body {
            self.wrong.add(format!("{id} came with another body, or its body with another id"));
        }
        if self.mode != Mode::Accepts {
            self.refused += 1;
            return self.mode;
        }
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let changes = body["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.copy.apply(changes, "");
        if let Some(reason) = body["resync"]["reason"].as_str() {
            self.resyncs.add(reason.to_owned());
        }
        self.accepted.insert(id.to_owned());
        self.mode
    }
}
