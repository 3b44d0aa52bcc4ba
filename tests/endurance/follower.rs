//! Follows the changes of a table by pages of the feed during the load, from the token of the page before.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    caller::{Answer, Caller, Refusal, Request},
    copy::Copy,
    tally::Messages,
    work::DATABASE,
};

/// Pause after an error that may not be retried, which the tally records.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Follower {
    caller: Caller,
    pub(crate) table: &'static str,
    token: String,
    pub(crate) copy: Copy,
    pub(crate) pages: u64,
    /// Reasons for which the feed had to begin again. This cluster gives none: its nodes log the same GTIDs, and no replica
    /// is promoted.
    pub(crate) resyncs: Messages,
}

impl Follower {
    /// Follows a table from now on.
    pub(crate) async fn begin(caller: Caller, table: &'static str) -> Result<Self, Refusal> {
        let (copy, resyncs) = (Copy::default(), Messages::default());
        let mut new = Self { caller, table, token: String::new(), copy, pages: 0, resyncs };
        new.token = text(&new.get("?limit=1").await?.whole()["next"]);
        Ok(new)
    }

    /// Reads pages until `end`. Records every refusal in the tally.
    pub(crate) async fn follow(mut self, end: Instant) -> Self {
        while Instant::now() < end {
            if let Err(refusal) = self.page().await {
                let text = format!("the changes of {}, {}: {}", self.table, refusal.code, refusal.text);
                self.caller.tally.tell(|told| told.refused.add(text));
                sleep(PAUSE).await;
            }
        }
        self
    }

    /// Reads what is left.
    pub(crate) async fn finish(&mut self) -> Result<(), Refusal> {
        while !self.page().await? {}
        Ok(())
    }

    /// Reads the next page. Returns whether the page is empty and reaches the end of the log.
    async fn page(&mut self) -> Result<bool, Refusal> {
        let answer = match self.get(&format!("?since={}&wait=2s&limit=100", self.token)).await {
            Err(refusal) if refusal.code == "resync_required" => {
                self.resyncs.add(refusal.reason);
                return self.read_again().await.map(|()| false);
            }
            answer => answer?.whole(),
        };
        let changes = answer["payload"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.copy.apply(changes, self.table);
        self.token = text(&answer["next"]);
        self.pages += 1;
        Ok(changes.is_empty() && answer["upToDate"] == true)
    }

    async fn read_again(&mut self) -> Result<(), Refusal> {
        loop {
            let snapshot = self.get("?snapshot=true").await?;
            let lines = snapshot.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let mut messages: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap_or_default()).collect();
            // Without its last line, the snapshot is incomplete.
            if let Some(next) = messages.pop().and_then(|last| Some(last.get("next")?.as_str()?.to_owned())) {
                self.copy.replace(self.table, &messages);
                self.token = next;
                return Ok(());
            }
        }
    }

    async fn get(&mut self, rest: &str) -> Result<Answer, Refusal> {
        let path = format!("/api/v1/changes/{DATABASE}/{}{rest}", self.table);
        self.caller.send(&Request::new(Method::GET, path)).await
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
