//! Compares the answers that callers got with the content of every database, and with the files.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use machines::server::Server;
use mysql_async::prelude::Queryable as _;
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use crate::{
    caller::Caller,
    faults::{Kind, Stage},
    followers::{Followed, Followers},
    say,
    tally::{Messages, Tally, Told},
    work::DATABASE,
};
use clap::ValueEnum as _;

/// Maximum time without a success after a fault that [`Kind::is_bounded`].
const UNAVAILABLE_MAX: Duration = Duration::from_secs(5);
/// Maximum time after the load until all databases have the same content.
const SAME_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, PartialEq, Eq)]
struct Content {
    events: HashMap<u64, (u32, u32)>,
    counters: BTreeMap<u32, (u64, u64)>,
}

pub(crate) struct Verdict {
    told: Told,
    longest: BTreeMap<String, [Duration; 2]>,
    lost: Messages,
    doubled: Messages,
    wrong: Messages,
    /// Databases that differ from the first one.
    different: Vec<String>,
    followed: Followed,
}

/// Waits until all databases have the same content, and compares it with the tally. `caller` reads
/// the files. Returns an error if a database can't be read.
pub(crate) async fn judge(
    stage: &Stage,
    mut caller: Caller,
    tally: &Arc<Tally>,
    followers: Option<Followers>,
) -> Result<Verdict> {
    let (content, different) = contents(stage.servers()).await?;
    let followed = match followers {
        Some(followers) => followers.judge().await?,
        None => Followed::default(),
    };
    let told = tally.tell(|told| told.clone());
    let mut verdict = Verdict {
        longest: tally.longest(),
        lost: Messages::default(),
        doubled: Messages::default(),
        wrong: told.wrong.clone(),
        different,
        followed,
        told,
    };
    verdict.judge_events(&content);
    verdict.judge_counters(&content);
    verdict.judge_files(&mut caller).await;
    Ok(verdict)
}

/// Returns the content of the first database, and a message for each other database whose content
/// still differs after [`SAME_MAX`].
async fn contents(servers: &[Server]) -> Result<(Content, Vec<String>)> {
    let deadline = Instant::now() + SAME_MAX;
    loop {
        let first = content(servers.first().context("no database")?).await?;
        let mut different = Vec::new();
        for (index, server) in servers.iter().enumerate().skip(1) {
            let other = content(server).await?;
            if other != first {
                different.push(format!(
                    "database {} has {} events, database 1 has {}, or counters differ",
                    index + 1,
                    other.events.len(),
                    first.events.len()
                ));
            }
        }
        if different.is_empty() || Instant::now() > deadline {
            return Ok((first, different));
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn content(server: &Server) -> Result<Content> {
    let mut connection = server.connect().await?;
    let events: Vec<(u64, u32, u32)> =
        connection.query(format!("SELECT id, caller, number FROM {DATABASE}.events")).await?;
    let counters: Vec<(u32, u64, u64)> =
        connection.query(format!("SELECT id, version, total FROM {DATABASE}.counters")).await?;
    connection.disconnect().await?;
    Ok(Content {
        events: events.into_iter().map(|(id, caller, number)| (id, (caller, number))).collect(),
        counters: counters.into_iter().map(|(id, version, total)| (id, (version, total))).collect(),
    })
}

impl Verdict {
    fn judge_events(&mut self, content: &Content) {
        let mut ids: HashMap<(u32, u32), Vec<u64>> = HashMap::new();
        for (id, event) in &content.events {
            ids.entry(*event).or_default().push(*id);
        }
        for ((caller, number), ids) in ids.iter().filter(|(_, ids)| ids.len() > 1) {
            self.doubled.add(format!("event {number} of caller {caller} is there as {ids:?}"));
        }
        for (caller, number, id) in &self.told.inserts {
            match content.events.get(id) {
                Some(event) if *event == (*caller, *number) => {}
                Some(event) => {
                    self.wrong.add(format!("event {number} of caller {caller} got id {id}, which is {event:?}"));
                }
                None if ids.contains_key(&(*caller, *number)) => {
                    self.wrong.add(format!("event {number} of caller {caller} has another id than {id}"));
                }
                None => self.lost.add(format!("event {number} of caller {caller}, id {id}")),
            }
        }
        for (caller, number) in &self.told.batches {
            if !ids.contains_key(&(*caller, *number)) {
                self.lost.add(format!("event {number} of caller {caller}, of a batch"));
            }
        }
    }

    fn judge_counters(&mut self, content: &Content) {
        let zero = (0, 0);
        for (caller, acknowledged) in &self.told.versions {
            let (version, _) = content.counters.get(caller).unwrap_or(&zero);
            if version < acknowledged {
                self.lost.add(format!("caller {caller} set version {acknowledged}, and {version} is there"));
            } else if *version > acknowledged + 1 {
                // One more update may have been done without an answer.
                self.doubled.add(format!("caller {caller} set version {acknowledged}, and {version} is there"));
            }
        }
        for (caller, (done, repeats)) in &self.told.additions {
            let (_, total) = content.counters.get(caller).unwrap_or(&zero);
            if total < done {
                self.lost.add(format!("caller {caller} added {done}, and {total} is there"));
            } else if *total > done + repeats {
                self.doubled
                    .add(format!("caller {caller} added {done}, at most {repeats} twice, and {total} is there"));
            }
        }
    }

    async fn judge_files(&mut self, caller: &mut Caller) {
        for (path, checksum) in self.told.uploads.clone() {
            match caller.look(path.clone()).await {
                Ok(answer) if <[u8; 32]>::from(Sha256::digest(&answer.body)) == checksum => {}
                Ok(answer) => self.wrong.add(format!("{path} has other bytes ({})", answer.body.len())),
                Err(refusal) => self.lost.add(format!("{path}: {}", refusal.text)),
            }
        }
    }

    /// Returns a message for each fault after which nothing succeeded for [`UNAVAILABLE_MAX`].
    fn too_long(&self) -> Vec<String> {
        let bounded = Kind::value_variants().iter().filter(|kind| kind.is_bounded());
        bounded
            .filter(|kind| {
                let longest = self.longest.get(kind.title()).into_iter().flatten();
                longest.max().is_some_and(|longest| *longest >= UNAVAILABLE_MAX)
            })
            .map(|kind| format!("when {}, nothing succeeded for {UNAVAILABLE_MAX:?} or more", kind.title()))
            .collect()
    }

    /// Returns whether all checks passed. If `briefly`, durations are not checked.
    pub(crate) fn is_well(&self, briefly: bool) -> bool {
        let messages = [&self.lost, &self.doubled, &self.wrong, &self.told.refused, &self.told.stale];
        messages.iter().all(|messages| messages.count == 0)
            && self.different.is_empty()
            && self.followed.faults.iter().all(|(_, messages)| messages.count == 0)
            && (briefly || self.too_long().is_empty())
    }

    pub(crate) fn print(&self) -> Result<()> {
        let told = &self.told;
        let versions: u64 = told.versions.values().sum();
        let additions: u64 = told.additions.values().map(|(done, _)| done).sum();
        say("")?;
        say("| | |\n| --- | ---: |")?;
        for (name, count) in [
            ("requests that succeeded", told.requests),
            ("inserts acknowledged", told.inserts.len() as u64),
            ("updates acknowledged, batches included", versions + additions),
            ("batches acknowledged", told.batches.len() as u64),
            ("files acknowledged, at different paths", told.uploads.len() as u64),
            ("retries", told.retries),
            ("lost", self.lost.count),
            ("doubled", self.doubled.count),
            ("wrong ids or contents", self.wrong.count),
            ("errors that a caller could not retry", told.refused.count),
            ("reads with a position", told.positioned),
            ("of these, older than it", told.stale.count),
            ("reads without a position, older than the caller's last write", told.reordered),
            ("databases that differ at the end", self.different.len() as u64),
        ] {
            say(&format!("| {name} | {count} |"))?;
        }
        let steps = told.steps.iter().map(|(name, count)| (*name, count));
        for (name, count) in steps.chain(self.followed.counts.iter().map(|(name, count)| (name.as_str(), count))) {
            say(&format!("| {name} | {count} |"))?;
        }
        say("\n| fault | longest time without a success, s | without a write, s |\n| --- | ---: | ---: |")?;
        for (fault, [any, write]) in &self.longest {
            say(&format!("| {fault} | {:.2} | {:.2} |", any.as_secs_f64(), write.as_secs_f64()))?;
        }
        say("\nretried:")?;
        for (reason, count) in &told.reasons {
            say(&format!("  {count} × {reason}"))?;
        }
        let own = [
            ("lost", &self.lost),
            ("doubled", &self.doubled),
            ("wrong", &self.wrong),
            ("could not be retried", &told.refused),
            ("too old", &told.stale),
        ];
        for (what, messages) in
            own.into_iter().chain(self.followed.faults.iter().map(|(what, found)| (what.as_str(), found)))
        {
            for message in &messages.first {
                say(&format!("{what}: {message}"))?;
            }
        }
        for message in self.different.iter().chain(&self.too_long()) {
            say(message)?;
        }
        Ok(())
    }
}
