//! What follows the written tables during the load: a reader of the feed for each table, and an endpoint of a webhook.
//! Judges at the end whether they were told of every change.

use std::{
    collections::HashSet,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use reqwest::Method;
use serde_json::json;
use tokio::{task::JoinHandle, time::sleep};

use crate::{
    caller::{Caller, Refusal, Request},
    copy::{FOLLOWED, Records, listed},
    follower::Follower,
    random::Random,
    receiver::Receiver,
    tally::Messages,
    work::DATABASE,
};

const WEBHOOK: &str = "/api/v1/webhooks/endurance";
/// Maximum time after the load until the endpoint has every change. The endpoint works then, but an attempt before may
/// have waited for its answer in vain, and a killed origin may have to start.
const DELIVERED_MAX: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) struct Followers {
    caller: Caller,
    feeds: Vec<Follower>,
    following: Vec<JoinHandle<Follower>>,
    receiver: Receiver,
}

/// Rows of the report, and what must not be.
#[derive(Default)]
pub(crate) struct Followed {
    pub(crate) counts: Vec<(String, u64)>,
    pub(crate) faults: Vec<(String, Messages)>,
}

impl Followers {
    /// Follows the tables from now on. `caller` returns a caller for each follower.
    pub(crate) async fn begin(caller: impl Fn() -> Result<Caller>, home: Ipv4Addr, seed: u64) -> Result<Self> {
        let receiver = Receiver::start(home, Random::new(seed)).await?;
        let mut manager = caller()?;
        let subscriptions = FOLLOWED.map(|table| json!({"id": table, "database": DATABASE, "table": table}));
        let body = json!({"name": "endurance", "url": receiver.url, "subscriptions": subscriptions});
        let made = manager.send(&Request::new(Method::POST, "/api/v1/webhooks".to_owned()).json(body)).await;
        let made = made.map_err(|refusal| anyhow::anyhow!("making the webhook: {}", refusal.text))?.payload();
        receiver.set_secret(made["secret"].as_str().unwrap_or_default());
        let mut feeds = Vec::new();
        for table in FOLLOWED {
            match Follower::begin(caller()?, table).await {
                Ok(feed) => feeds.push(feed),
                Err(refusal) => bail!("following {table}: {}", refusal.text),
            }
        }
        Ok(Self { caller: manager, feeds, following: Vec::new(), receiver })
    }

    pub(crate) fn follow(&mut self, end: Instant) {
        self.following = self.feeds.drain(..).map(|feed| tokio::spawn(feed.follow(end))).collect();
    }

    /// Compares what was told with what lists answer. All databases must have the same content.
    pub(crate) async fn judge(mut self) -> Result<Followed> {
        self.receiver.calm_down();
        for feed in self.following.drain(..) {
            self.feeds.push(feed.await?);
        }
        let mut followed = Followed::default();
        match self.compare(&mut followed).await {
            Ok(()) => {}
            Err(refusal) => {
                let mut refused = Messages::default();
                refused.add(refusal.text);
                followed.fault("followers: could not be judged", refused);
            }
        }
        Ok(followed)
    }

    async fn compare(&mut self, followed: &mut Followed) -> Result<(), Refusal> {
        let listed = listed(&mut self.caller).await?;
        for feed in &mut self.feeds {
            feed.finish().await?;
            followed.add_feed(feed, &listed);
        }
        self.wait_for_deliveries(&listed).await?;
        followed.add_webhook(&self.receiver, &listed);
        Ok(())
    }

    /// Waits until the endpoint has every change, for [`DELIVERED_MAX`] at most. A delivery that waits for its next attempt
    /// is sent now.
    async fn wait_for_deliveries(&mut self, listed: &Records) -> Result<(), Refusal> {
        let deadline = Instant::now() + DELIVERED_MAX;
        let mut sent = HashSet::new();
        while self.receiver.received().copy.differences(listed, &FOLLOWED).count > 0 && Instant::now() < deadline {
            let deliveries = self.caller.look(format!("{WEBHOOK}/deliveries")).await?.payload();
            for delivery in deliveries.as_array().into_iter().flatten().filter(|one| one["state"] == "waiting") {
                if sent.insert((delivery["id"].clone(), delivery["attempts"].clone())) {
                    let request = Request::new(Method::POST, format!("{WEBHOOK}/deliveries/{}", delivery["id"]));
                    self.caller.send(&request).await?;
                }
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }
}

impl Followed {
    fn count(&mut self, name: &str, count: u64) {
        self.counts.push((name.to_owned(), count));
    }

    fn fault(&mut self, name: &str, messages: Messages) {
        self.count(name, messages.count);
        self.faults.push((name.to_owned(), messages));
    }

    fn add_feed(&mut self, feed: &Follower, listed: &Records) {
        let (copy, table) = (&feed.copy, feed.table);
        self.count(&format!("feed of {table}: changes"), copy.changes);
        self.count(&format!("feed of {table}: pages"), feed.pages);
        self.fault(&format!("feed of {table}: lost"), copy.differences(listed, &[table]));
        self.fault(&format!("feed of {table}: skipped, or in another order"), copy.gaps.clone());
        self.fault(&format!("feed of {table}: doubled"), Messages { count: copy.repeats, first: Vec::new() });
        self.fault(&format!("feed of {table}: had to begin again"), feed.resyncs.clone());
    }

    fn add_webhook(&mut self, receiver: &Receiver, listed: &Records) {
        let received = receiver.received();
        let copy = &received.copy;
        self.count("webhook: changes", copy.changes);
        self.count("webhook: deliveries", received.accepted.len() as u64);
        self.count("webhook: attempts", received.attempts);
        self.count("webhook: attempts that the endpoint failed", received.refused);
        self.count("webhook: changes repeated", copy.repeats);
        self.fault("webhook: lost", copy.differences(listed, &FOLLOWED));
        self.fault("webhook: skipped, or in another order", copy.gaps.clone());
        self.fault("webhook: wrong signature, time or id", received.wrong.clone());
        self.fault("webhook: told to read the tables again", received.resyncs.clone());
    }
}
