//! The requests of each caller during the load. Each caller has its own records, so it knows what
//! its reads must return. Writes can be retried safely: inserts by `Idempotency-Key`, updates and
//! batches by `If-Match`, uploads by `update`. Additions can't; their retries are counted.

use std::{fmt::Write as _, time::Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    caller::{Caller, Refusal, Request},
    random::Random,
};

/// The database of the load. The project `default` may create it by SQL because of its prefix.
pub(crate) const DATABASE: &str = "default_endurance";
/// One caller in this many uploads files; the others work on records, so that a stuck upload does
/// not delay them.
const UPLOADER_EACH: u32 = 6;
/// Extension of private files.
pub(crate) const PRIVATE: &str = "own";

/// Statements that create the tables. [`counters`] returns the statement that fills `counters`.
pub(crate) const TABLES: [&str; 2] = [
    "CREATE TABLE events (id BIGINT PRIMARY KEY AUTO_INCREMENT, caller INT NOT NULL, number INT NOT NULL, \
     note VARCHAR(200) NOT NULL, KEY (caller, number))",
    "CREATE TABLE counters (id INT PRIMARY KEY, version BIGINT NOT NULL DEFAULT 0, total BIGINT NOT NULL DEFAULT 0)",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steps {
    /// Writes that must be neither lost nor done twice, and reads of them, without pauses.
    Durable,
    Mixed,
}

pub(crate) struct Worker {
    pub(crate) caller: Caller,
    pub(crate) random: Random,
    steps: Steps,
    run: String,
    /// Number of the caller's last event, acknowledged or not.
    pub(crate) number: u32,
    last: Option<(u64, u32)>,
    version: u64,
    total: u64,
}

impl Worker {
    /// Creates a worker. `run` is a prefix of its idempotency keys that no other run has.
    pub(crate) fn new(caller: Caller, steps: Steps, seed: u64, run: String) -> Self {
        let random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(u64::from(caller.number)));
        Self { caller, random, steps, run, number: 0, last: None, version: 0, total: 0 }
    }

    /// Runs steps until `end`, and records every refusal in the tally.
    pub(crate) async fn work(mut self, end: Instant) {
        let uploads = self.caller.number % UPLOADER_EACH == UPLOADER_EACH - 1;
        while Instant::now() < end {
            let result = match self.steps {
                Steps::Durable if uploads => self.upload().await,
                Steps::Durable => self.step().await,
                Steps::Mixed if uploads => self.files_step().await,
                Steps::Mixed => self.mixed_step().await,
            };
            if let Err(refusal) = result {
                let text = format!("caller {}, {}: {}", self.caller.number, refusal.code, refusal.text);
                self.caller.tally.tell(|told| told.refused.add(text));
            }
        }
    }

    pub(crate) async fn step(&mut self) -> Result<(), Refusal> {
        match self.random.below(10) {
            0..=3 => self.insert().await,
            4 => self.set_version().await,
            5 => self.add().await,
            6 => self.batch().await,
            7 => self.check_event().await,
            8 => self.check_counter().await,
            _ => self.look().await,
        }
    }

    async fn insert(&mut self) -> Result<(), Refusal> {
        self.number += 1;
        let (caller, number) = (self.caller.number, self.number);
        let request = Request::new(Method::POST, format!("/api/v1/crud/{DATABASE}/events"))
            .header("Idempotency-Key", format!("{}-{caller}-{number}", self.run))
            .json(json!({"caller": caller, "number": number, "note": "insert"}));
        let answer = self.caller.write(&request).await?;
        let payload = answer.payload();
        let Some(id) = payload.as_u64() else {
            self.caller.tally.tell(|told| told.wrong.add(format!("an insert answers {payload}, not an id")));
            return Ok(());
        };
        self.caller.tally.tell(|told| told.inserts.push((caller, number, id)));
        self.last = Some((id, number));
        if self.random.below(2) == 0 { self.check_event().await } else { Ok(()) }
    }

    /// Reads the last acknowledged event by its id. Records another content as wrong, and a missing
    /// event as stale if the caller has a position.
    async fn check_event(&mut self) -> Result<(), Refusal> {
        let Some((id, number)) = self.last else { return Ok(()) };
        let positioned = self.caller.has_position();
        let caller = self.caller.number;
        match self.caller.read(format!("/api/v1/crud/{DATABASE}/events/{id}")).await {
            Ok(answer) => {
                let event = answer.payload();
                if event["caller"] != caller || event["number"] != number {
                    let text = format!("event {id} is {event}, not number {number} of caller {caller}");
                    self.caller.tally.tell(|told| told.wrong.add(text));
                }
                Ok(())
            }
            Err(refusal) if refusal.code == "record_not_found" => {
                if positioned {
                    let text = format!("caller {caller} does not find its event {number} ({id})");
                    self.caller.tally.tell(|told| told.stale.add(text));
                }
                Ok(())
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Reads the caller's counter and returns its version, total and ETag. Returns `None` if the
    /// read was older than the caller's last write, and records it as stale if the caller has a
    /// position.
    async fn counter(&mut self) -> Result<Option<(u64, u64, String)>, Refusal> {
        let caller = self.caller.number;
        let positioned = self.caller.has_position();
        let answer = self.caller.read(format!("/api/v1/crud/{DATABASE}/counters/{caller}")).await?;
        let etag = answer.headers.get("etag").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let counter = answer.payload();
        let (version, total) = (counter["version"].as_u64(), counter["total"].as_u64());
        let (version, total) = (version.unwrap_or_default(), total.unwrap_or_default());
        if version >= self.version && total >= self.total {
            return Ok(Some((version, total, etag)));
        }
        if positioned {
            let text = format!(
                "caller {caller} reads version {version} and total {total}, after {} and {}",
                self.version, self.total
            );
            self.caller.tally.tell(|told| told.stale.add(text));
        }
        Ok(None)
    }

    async fn check_counter(&mut self) -> Result<(), Refusal> {
        self.counter().await.map(|_| ())
    }

    async fn set_version(&mut self) -> Result<(), Refusal> {
        let caller = self.caller.number;
        self.raise(|next, etag| {
            Request::new(Method::PUT, format!("/api/v1/crud/{DATABASE}/counters/{caller}"))
                .header("If-Match", etag)
                .json(json!({"version": next}))
        })
        .await
        .map(|_| ())
    }

    async fn batch(&mut self) -> Result<(), Refusal> {
        self.number += 1;
        let (caller, number) = (self.caller.number, self.number);
        let done = self
            .raise(|next, etag| {
                Request::new(Method::POST, "/api/v1/batch".to_owned()).json(json!({"operations": [
                    {"method": "PUT", "path": format!("{DATABASE}/counters/{caller}"), "ifMatch": etag,
                        "body": {"version": next}},
                    {"method": "POST", "path": format!("{DATABASE}/events"),
                        "body": {"caller": caller, "number": number, "note": "batch"}},
                ]}))
            })
            .await?;
        if done {
            self.caller.tally.tell(|told| told.batches.push((caller, number)));
        }
        Ok(())
    }

    /// Reads the counter and sends a write that increases its version. Returns `false` if the read
    /// was stale, so that nothing was written. A 412 after a failed attempt may mean that this
    /// attempt was carried out: the next read shows it.
    async fn raise(&mut self, request: impl Fn(u64, String) -> Request) -> Result<bool, Refusal> {
        let Some((version, _, etag)) = self.counter().await? else { return Ok(false) };
        let next = version + 1;
        match self.caller.write(&request(next, etag)).await {
            Ok(_) => {}
            Err(refusal) if refusal.code == "precondition_failed" && refusal.repeats > 0 => {
                // The earlier attempt may have been carried out, but its position is unknown.
                // Repeats until a read shows the new version, or another attempt succeeds.
                loop {
                    let Some((now, _, etag)) = self.counter().await? else { continue };
                    if now == next {
                        break;
                    }
                    match self.caller.write(&request(next, etag)).await {
                        Ok(_) => break,
                        Err(refusal) if refusal.code == "precondition_failed" => {}
                        Err(refusal) => return Err(refusal),
                    }
                }
            }
            // Without a position, the read may have been answered by a node that lagged behind.
            Err(refusal) if refusal.code == "precondition_failed" && !self.caller.has_position() => return Ok(false),
            Err(refusal) => return Err(refusal),
        }
        self.version = next;
        let caller = self.caller.number;
        self.caller.tally.tell(|told| told.versions.insert(caller, next));
        Ok(true)
    }

    /// Adds one to the total by `$add`. A retry may add twice, so attempts are counted.
    async fn add(&mut self) -> Result<(), Refusal> {
        let caller = self.caller.number;
        let path = format!("/api/v1/crud/{DATABASE}/counters/{caller}");
        let request = Request::new(Method::PUT, path).json(json!({"total": {"$add": 1}}));
        let answer = self.caller.write(&request).await;
        let repeats = match &answer {
            Ok(answer) => answer.repeats,
            Err(refusal) => refusal.repeats + 1,
        };
        let done = u64::from(answer.is_ok());
        self.caller.tally.tell(|told| {
            let additions = told.additions.entry(caller).or_default();
            *additions = (additions.0 + done, additions.1 + repeats);
        });
        self.total += done;
        answer.map(|_| ())
    }

    /// Reads the caller's latest events without a position. The answer may be stale, but must not
    /// contain events of other callers.
    async fn look(&mut self) -> Result<(), Refusal> {
        let caller = self.caller.number;
        let path = format!("/api/v1/crud/{DATABASE}/events?query=%7B%22caller%22%3A{caller}%7D&order=-number&limit=20");
        let payload = self.caller.look(path).await?.payload();
        let events = payload.as_array().map(Vec::as_slice).unwrap_or_default();
        let strange = events.iter().find(|event| event["caller"] != caller);
        if let Some(event) = strange {
            let text = format!("a list of caller {caller} has {event}");
            self.caller.tally.tell(|told| told.wrong.add(text));
        }
        let newest = events.first().and_then(|event| event["number"].as_u64()).unwrap_or_default();
        if self.last.is_some_and(|(_, number)| newest < u64::from(number)) {
            self.caller.tally.tell(|told| told.reordered += 1);
        }
        Ok(())
    }

    /// Uploads a file of random bytes under one of 50 names, and reads it in one of three cases.
    pub(crate) async fn upload(&mut self) -> Result<(), Refusal> {
        let length = usize::try_from(self.random.below(20_000)).unwrap_or_default() + 1;
        let bytes: Vec<u8> = (0..length).map(|_| u8::try_from(self.random.below(256)).unwrap_or_default()).collect();
        let url = self.upload_as("bin", "application/octet-stream", &bytes).await?["url"].clone();
        if self.random.below(3) == 0 {
            self.fetch(url.as_str().unwrap_or_default(), &bytes).await?;
        }
        Ok(())
    }

    /// Uploads a file under one of 50 names with this extension, which replaces an earlier file of
    /// the same name. The extension [`PRIVATE`] makes it private. Returns its metadata.
    pub(crate) async fn upload_as(&mut self, extension: &str, mime: &str, bytes: &[u8]) -> Result<Value, Refusal> {
        let name = format!("{}.{extension}", self.random.below(50));
        let folder = format!("callers/{}", self.caller.number);
        let kind = if mime.starts_with("image/") { "image" } else { "file" };
        let body = json!({"type": kind, "folder": folder, "update": true, "private": extension == PRIVATE, "media": [{
            "name": name, "base64": format!("data:{mime};base64,{}", STANDARD.encode(bytes)),
        }]});
        let path = format!("/media/default/{folder}/{name}");
        let answer = self.caller.write(&Request::new(Method::POST, "/api/v1/media".to_owned()).json(body)).await;
        let known = answer.as_ref().ok().map(|_| <[u8; 32]>::from(Sha256::digest(bytes)));
        self.caller.tally.tell(|told| {
            // After a refusal, either version may be stored, so the file is not checked at the end.
            told.uploads.retain(|(other, _)| *other != path);
            told.uploads.extend(known.map(|checksum| (path.clone(), checksum)));
        });
        Ok(answer?.payload()[0].clone())
    }

    pub(crate) async fn fetch(&mut self, url: &str, expected: &[u8]) -> Result<(), Refusal> {
        let path = path_of(url);
        let answer = self.caller.look(path.clone()).await?;
        if answer.body != expected {
            let text = format!("{path} has {} bytes, not the {} sent", answer.body.len(), expected.len());
            self.caller.tally.tell(|told| told.wrong.add(text));
        }
        Ok(())
    }
}

/// Returns the path and query of a URL; an empty text if the URL has no scheme or no path.
pub(crate) fn path_of(url: &str) -> String {
    let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    path.map_or_else(String::new, |(_, path)| format!("/{path}"))
}

/// Returns the statement that inserts a counter for each caller.
pub(crate) fn counters(callers: u32) -> String {
    let mut statement = "INSERT INTO counters (id) VALUES ".to_owned();
    for caller in 0..callers {
        // Writing to a string can't fail.
        let _ = write!(statement, "{}({caller})", if caller == 0 { "" } else { ", " });
    }
    statement
}

/// Returns the body of a request to `/api/v1/sql` that runs `query` in [`DATABASE`].
pub(crate) fn sql(query: &str) -> Value {
    json!({"query": query, "database": DATABASE})
}
