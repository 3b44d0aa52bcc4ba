//! Decides which MariaDB host new connections use: of `database_url` the first healthy host, until a failover; of
//! `replica_url` all healthy hosts in turn. Each host is probed every second, except the only host of a `database_url`.
//! A host is "left" when another host took over from it, or when a replica is lost: statements that run on it fail, and
//! projects' connections to it are not leased again.

mod pool;
mod probe;

pub(in crate::database) use pool::HostPools;
pub use probe::HostFacts;

use super::connect::options;
use super::error::{HostLost, means_lost};
use crate::address::{DatabaseAddress, Endpoint};
use mysql_async::Opts;
use probe::Health;
use secrecy::SecretString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Maximum wait of [`Hosts::pick`] for the result of a probe.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum number of attempts to open one connection; each may be to another host.
pub(in crate::database) const TRIES_MAX_COUNT: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRole {
    /// `database_url`: the nodes of a Galera cluster, or a primary and its possible successors. One host serves at a
    /// time.
    Serving,
    /// `replica_url`, for reads only: replicas, or nodes of the cluster. All healthy hosts are used in turn.
    Reading,
}

/// Clones share their state.
#[derive(Clone)]
pub struct Hosts(Arc<SharedHosts>);

struct SharedHosts {
    purpose: HostRole,
    address: DatabaseAddress,
    endpoints: Vec<Endpoint>,
    state: Mutex<HostsState>,
    wake: Vec<Notify>,
    verdicts: watch::Sender<u64>,
    /// Whether other servers may replicate from the serving host. If so, and if the host has a binary log, a write asks
    /// MariaDB for the position that it reached. On a Galera cluster, every write does.
    has_replicas: AtomicBool,
}

struct HostsState {
    hosts: Vec<HostState>,
    /// The index of the serving host; `None` before the first decision, for an only host, and for replicas.
    serving: Option<usize>,
    failovers: u64,
    last_read: usize,
    is_probing: bool,
}

struct HostState {
    /// The result of the last probe; `None` before the first one, and from a failed connection to the next one.
    health: Option<Health>,
    /// Cancelled when another host takes over from this host, or when this replica is lost. A new token then replaces the
    /// cancelled one.
    left: CancellationToken,
}

#[derive(Clone, Debug)]
pub(in crate::database) struct Host {
    pub(in crate::database) index: usize,
    /// Cancelled when the host is left; `None` for the only host of a `database_url`, which is never left.
    pub(in crate::database) left: Option<CancellationToken>,
}

#[derive(Clone, Debug, Default)]
pub struct HostsGauge {
    pub serving: Option<String>,
    pub count: usize,
    /// The number of healthy hosts. The only host of a `database_url` is not probed and counts as healthy.
    pub well: usize,
    pub failovers: u64,
}

impl std::fmt::Debug for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Hosts").field(&self.0.endpoints).finish()
    }
}

impl Hosts {
    pub fn new(address: &DatabaseAddress, purpose: HostRole) -> Self {
        let endpoints: Vec<Endpoint> = address.endpoints().cloned().collect();
        let host = || HostState { health: None, left: CancellationToken::new() };
        let state = HostsState {
            hosts: endpoints.iter().map(|_| host()).collect(),
            serving: None,
            failovers: 0,
            last_read: 0,
            is_probing: false,
        };
        Self(Arc::new(SharedHosts {
            purpose,
            address: address.clone(),
            wake: endpoints.iter().map(|_| Notify::new()).collect(),
            has_replicas: AtomicBool::new(endpoints.len() > 1),
            endpoints,
            state: Mutex::new(state),
            verdicts: watch::Sender::new(0),
        }))
    }

    /// Notes that `replica_url` names replicas of these hosts. Connections that are already open don't notice it.
    pub fn set_replicas(&self) {
        self.0.has_replicas.store(true, Ordering::Relaxed);
    }

    pub(in crate::database) fn has_replicas(&self) -> bool {
        self.0.has_replicas.load(Ordering::Relaxed)
    }

    pub(in crate::database) fn purpose(&self) -> HostRole {
        self.0.purpose
    }

    pub fn address(&self) -> &DatabaseAddress {
        &self.0.address
    }

    /// Returns one set of options for each host, in the order of the URL.
    pub(in crate::database) fn options(
        &self,
        user: &str,
        password: &SecretString,
        finish: impl Fn(mysql_async::OptsBuilder) -> mysql_async::OptsBuilder,
    ) -> Vec<Opts> {
        let of = |endpoint| finish(options(endpoint, user, password)).into();
        self.0.endpoints.iter().map(of).collect()
    }

    fn is_single(&self) -> bool {
        self.0.purpose == HostRole::Serving && self.0.endpoints.len() == 1
    }

    /// Returns the host for a new connection, and starts the probes on first use. [`HostRole::Serving`]: the serving or
    /// the first host, never `None`, after at most [`VERDICT_TIMEOUT`]. [`HostRole::Reading`]: a healthy replica
    /// without waiting, or `None`.
    pub(in crate::database) async fn pick(&self) -> Option<Host> {
        if self.is_single() {
            return Some(Host { index: 0, left: None });
        }
        let mut verdicts = self.0.verdicts.subscribe();
        self.probe();
        let picked = async {
            loop {
                verdicts.borrow_and_update();
                match self.0.state().pick(self.0.purpose) {
                    Pick::Due => {}
                    Pick::Host(index) => return Some(index),
                    Pick::None => return None,
                }
                if verdicts.changed().await.is_err() {
                    return None;
                }
            }
        };
        let picked = tokio::time::timeout(VERDICT_TIMEOUT, picked).await;
        let mut state = self.0.state();
        let index = match (picked, self.0.purpose) {
            (Ok(picked), _) => picked?,
            (Err(_), HostRole::Serving) => state.serving.unwrap_or(0),
            (Err(_), HostRole::Reading) => return None,
        };
        if self.0.purpose == HostRole::Reading {
            state.last_read = index;
        }
        let left = state.hosts.get(index)?.left.clone();
        Some(Host { index, left: Some(left) })
    }

    /// Returns whether a replica is healthy. Only for [`HostRole::Reading`]: a call would probe even an only host.
    pub(in crate::database) fn any_well(&self) -> bool {
        self.probe();
        self.0.state().hosts.iter().any(|host| host.health == Some(Health::Well))
    }

    pub(in crate::database) fn may_use(&self, host: &Host) -> bool {
        let Some(left) = &host.left else {
            return true;
        };
        let is_well = |host: &HostState| host.health == Some(Health::Well);
        !left.is_cancelled()
            && (self.0.purpose == HostRole::Serving || self.0.state().hosts.get(host.index).is_some_and(is_well))
    }

    /// Has the host probed after a failed connection. Returns whether another attempt, on any host, may succeed.
    pub(in crate::database) fn suspect(&self, host: &Host) -> bool {
        let Some(left) = &host.left else {
            return false;
        };
        if left.is_cancelled() {
            return true;
        }
        let mut state = self.0.state();
        let Some(suspected) = state.hosts.get_mut(host.index) else {
            return false;
        };
        match suspected.health {
            Some(Health::Well | Health::Behind) => {
                suspected.health = None;
                self.0.wake[host.index].notify_one();
                true
            }
            Some(Health::Lost(_)) => false,
            None => true,
        }
    }

    /// Cancels `work` when the host is left; calls [`Hosts::suspect`] if `work` fails because the host is lost.
    pub(in crate::database) async fn on<T>(
        &self,
        host: &Host,
        work: impl Future<Output = mysql_async::Result<T>>,
    ) -> mysql_async::Result<T> {
        let outcome = match &host.left {
            None => return work.await,
            Some(left) => tokio::select! {
                biased;
                outcome = work => outcome,
                () = left.cancelled() => Err(mysql_async::Error::Other(HostLost.into())),
            },
        };
        if outcome.as_ref().is_err_and(means_lost) {
            self.suspect(host);
        }
        outcome
    }

    pub(in crate::database) fn serving(&self) -> Host {
        let state = self.0.state();
        let index = state.serving.unwrap_or(0);
        let left = state.hosts.get(index).map(|host| host.left.clone());
        Host { index, left: left.filter(|_| !self.is_single()) }
    }

    pub fn gauge(&self) -> HostsGauge {
        let state = self.0.state();
        let well = state.hosts.iter().filter(|host| host.health == Some(Health::Well)).count();
        let serving = state.serving.or(self.is_single().then_some(0));
        HostsGauge {
            serving: serving.and_then(|index| self.0.endpoints.get(index)).map(ToString::to_string),
            count: self.0.endpoints.len(),
            well: if self.is_single() { 1 } else { well },
            failovers: state.failovers,
        }
    }

    /// Returns facts about each host, for `selkie doctor`. A host has 2 s to answer.
    pub async fn facts(&self) -> Vec<(String, Result<HostFacts, String>)> {
        let address = &self.0.address;
        let options = self.options(&address.admin_user, &address.admin_password, |options| options);
        let names = self.0.endpoints.iter().map(ToString::to_string);
        let asked = options.into_iter().map(|options| probe::facts(options, self.0.purpose));
        names.zip(futures_util::future::join_all(asked).await).collect()
    }

    /// Starts the tasks that probe the hosts, once. The tasks end after the last clone of this [`Hosts`] is dropped.
    fn probe(&self) {
        if std::mem::replace(&mut self.0.state().is_probing, true) {
            return;
        }
        let address = &self.0.address;
        let options = self.options(&address.admin_user, &address.admin_password, |options| options);
        for (index, options) in options.into_iter().enumerate() {
            let inner = Arc::downgrade(&self.0);
            tokio::spawn(probe::always(inner, index, options));
        }
    }
}

impl SharedHosts {
    // The state is valid after every step, so a poisoned lock can be used.
    fn state(&self) -> MutexGuard<'_, HostsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, index: usize, health: Health) {
        let mut state = self.state();
        let Some(host) = state.hosts.get_mut(index) else {
            return;
        };
        let before = host.health.replace(health);
        let name = &self.endpoints[index];
        if before.is_some_and(|before| before != health) || (before.is_none() && health != Health::Well) {
            tracing::info!(host = %name, state = health.words(), "a database host changed");
        }
        match self.purpose {
            HostRole::Serving => self.decide(&mut state),
            HostRole::Reading if matches!(health, Health::Lost(_)) => state.leave(index),
            HostRole::Reading => {}
        }
        drop(state);
        self.verdicts.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn decide(&self, state: &mut HostsState) {
        let next = state.next();
        let Some(next) = next.filter(|next| state.serving != Some(*next)) else {
            return;
        };
        let name = &self.endpoints[next];
        match state.serving.replace(next) {
            Some(before) => {
                state.failovers += 1;
                state.leave(before);
                tracing::warn!(from = %self.endpoints[before], to = %name, "another database host serves now");
            }
            None => tracing::info!(host = %name, "a database host serves"),
        }
    }
}

enum Pick {
    Host(usize),
    None,
    Due,
}

impl HostsState {
    fn pick(&self, purpose: HostRole) -> Pick {
        if purpose == HostRole::Serving {
            return match self.serving {
                Some(index) if self.hosts[index].health.is_some() => Pick::Host(index),
                _ => Pick::Due,
            };
        }
        let count = self.hosts.len();
        let well = (1..=count)
            .map(|step| (self.last_read + step) % count)
            .find(|index| self.hosts[*index].health == Some(Health::Well));
        match well {
            Some(index) => Pick::Host(index),
            None => Pick::None,
        }
    }

    /// Returns the first of: the serving host if healthy or being probed, a healthy host, the serving host if behind, a
    /// host that is behind, the serving host, host 0. `None` only before the first choice.
    fn next(&self) -> Option<usize> {
        let health = |index: usize| self.hosts[index].health;
        let first = |wanted: Health| (0..self.hosts.len()).find(|index| health(*index) == Some(wanted));
        let well = first(Health::Well);
        if let Some(serving) = self.serving {
            return match health(serving) {
                None | Some(Health::Well) => Some(serving),
                Some(Health::Behind) => Some(well.unwrap_or(serving)),
                Some(Health::Lost(_)) => Some(well.or_else(|| first(Health::Behind)).unwrap_or(serving)),
            };
        }
        let due = (0..self.hosts.len()).find(|index| health(*index).is_none());
        match (well, due) {
            // A host earlier in the list may prove healthy, and would then be chosen.
            (Some(well), Some(due)) if due < well => None,
            (Some(well), _) => Some(well),
            (None, Some(_)) => None,
            // No host is healthy. Choose one all the same, so that callers get the error of the connection to it.
            (None, None) => Some(first(Health::Behind).unwrap_or(0)),
        }
    }

    fn leave(&mut self, index: usize) {
        if let Some(host) = self.hosts.get_mut(index) {
            std::mem::take(&mut host.left).cancel();
        }
    }
}

#[cfg(test)]
mod tests;
