//! Runs a courier for each webhook while this origin holds the lease in MariaDB.

use super::courier::{Courier, Ended};
use super::recorder::Recorder;
use super::{ChangeSource, Webhooks};
use crate::database::admin::AdminError;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The lease is renewed each [`RENEW_EVERY`], so another origin takes over within the sum of both.
const LEASE_SECONDS: u64 = 6;
const RENEW_EVERY: Duration = Duration::from_secs(2);

struct Running {
    version: u64,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

struct Dispatcher {
    webhooks: Webhooks,
    source: Arc<dyn ChangeSource>,
    recorder: Recorder,
    holder: Uuid,
    couriers: HashMap<Uuid, Running>,
    /// When the lease ends, if it is not renewed.
    leased_until: Instant,
}

impl Webhooks {
    /// Delivers until `stop` is cancelled. Of several origins, only the one with the lease delivers.
    pub async fn run(self, source: Arc<dyn ChangeSource>, stop: CancellationToken) {
        let mut dispatcher = Dispatcher {
            recorder: Recorder::start(self.0.admin.clone()),
            webhooks: self,
            source,
            holder: Uuid::now_v7(),
            couriers: HashMap::new(),
            leased_until: Instant::now(),
        };
        let mut tick = tokio::time::interval(RENEW_EVERY);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = tick.tick() => {}
                () = dispatcher.webhooks.0.changed.notified() => {}
            }
            if let Err(error) = dispatcher.turn().await {
                tracing::warn!(%error, "webhooks can't be read");
            }
            if Instant::now() >= dispatcher.leased_until {
                dispatcher.stop_all();
            }
        }
        dispatcher.end().await;
    }
}

impl Dispatcher {
    /// Prolongs the lease, and starts and stops couriers after the present definitions.
    async fn turn(&mut self) -> Result<(), AdminError> {
        let admin = &self.webhooks.0.admin;
        let defined = admin.running_webhooks().await?;
        if defined.is_empty() && self.couriers.is_empty() {
            return Ok(());
        }
        let asked_at = Instant::now();
        if !admin.hold_webhook_lease(self.holder, LEASE_SECONDS).await? {
            self.leased_until = asked_at;
            return Ok(());
        }
        self.leased_until = asked_at + Duration::from_secs(LEASE_SECONDS);
        let defined: HashMap<Uuid, u64> =
            defined.iter().filter_map(|(id, version)| Some((Uuid::try_parse(id).ok()?, *version))).collect();
        // A courier that was stopped stays until it has ended: the next one of its webhook waits for it.
        self.couriers.retain(|id, running| {
            let is_defined = defined.contains_key(id);
            if !is_defined {
                running.stop.cancel();
            }
            is_defined || !running.task.is_finished()
        });
        for (id, version) in defined {
            let known = self.couriers.get(&id);
            if known.is_some_and(|running| running.version == version && !running.task.is_finished()) {
                continue;
            }
            let before = self.couriers.remove(&id);
            self.couriers.insert(id, self.start(id, version, before));
        }
        Ok(())
    }

    /// Starts a courier, after the end of the one before.
    fn start(&self, id: Uuid, version: u64, before: Option<Running>) -> Running {
        let (webhooks, source, recorder) = (self.webhooks.clone(), Arc::clone(&self.source), self.recorder.clone());
        let stop = CancellationToken::new();
        let of_courier = stop.clone();
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                before.stop.cancel();
                let _ = before.task.await;
            }
            match Courier::open(&webhooks, &source, &recorder, id, of_courier).await {
                Ok(Some(courier)) => {
                    if let Ended::Refused = courier.run().await {
                        tracing::info!(webhook = %id, "the endpoint of a webhook wants no more deliveries");
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, webhook = %id, "a webhook can't be read"),
            }
        });
        Running { version, stop, task }
    }

    fn stop_all(&self) {
        for running in self.couriers.values() {
            running.stop.cancel();
        }
    }

    /// Lets attempts that are under way end, and then gives the lease to other origins.
    async fn end(mut self) {
        let ending: Vec<Running> = self.couriers.drain().map(|(_, running)| running).collect();
        if ending.is_empty() {
            return;
        }
        for running in &ending {
            running.stop.cancel();
        }
        for running in ending {
            let _ = running.task.await;
        }
        let _ = self.webhooks.0.admin.release_webhook_lease(self.holder).await;
    }
}
