//! Limits the number of responses that are being streamed.

use crate::database::PoolSettings;
use crate::project_quota::ProjectQuota;
use shared::key::Access;
use std::time::Duration;

/// A stream occupies a MariaDB connection for as long as its client reads, so the streams of each account of a project
/// may use at most half of `pool_size` (and half as much again for callers with few streams), and half of `pool_total`
/// in all projects.
#[derive(Debug)]
pub struct StreamSlots {
    full: ProjectQuota,
    read: ProjectQuota,
    second_connections: ProjectQuota,
    timeout: Duration,
}

impl StreamSlots {
    pub fn new(pools: PoolSettings, timeout: Duration) -> Self {
        let half = |count: usize| (count / 2).max(1) as u64;
        let shares = || ProjectQuota::with_callers(half(pools.total), half(pools.size));
        Self { full: shares(), read: shares(), second_connections: shares(), timeout }
    }

    /// Returns the limits for read accounts; the limits for full accounts have the same size.
    pub fn shares(&self) -> &ProjectQuota {
        &self.read
    }

    pub(crate) fn second_connections(&self) -> &ProjectQuota {
        &self.second_connections
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn of(&self, access: Access) -> &ProjectQuota {
        match access {
            Access::Full => &self.full,
            Access::Read => &self.read,
        }
    }
}
