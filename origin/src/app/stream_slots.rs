//! Limits how many responses may be streamed at once.

use crate::database::PoolSettings;
use crate::shares::Shares;
use shared::key::Access;
use std::time::Duration;

/// Slots of streamed responses. Each stream holds a connection to MariaDB for as long as its client reads, so streams
/// may use at most half of the connections of each account, and half of all.
#[derive(Debug)]
pub struct StreamSlots {
    full: Shares,
    read: Shares,
    timeout: Duration,
}

impl StreamSlots {
    /// Creates the slots for these pools' sizes. `timeout` is the longest duration of a stream.
    #[must_use]
    pub fn new(pools: PoolSettings, timeout: Duration) -> Self {
        let half = |count: usize| (count / 2).max(1) as u64;
        let shares = || Shares::new(half(pools.total), half(pools.size));
        Self { full: shares(), read: shares(), timeout }
    }

    /// Returns the slots of read keys; full keys have as many of their own.
    #[must_use]
    pub fn shares(&self) -> &Shares {
        &self.read
    }

    /// Returns the longest duration of a stream.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn of(&self, access: Access) -> &Shares {
        match access {
            Access::Full => &self.full,
            Access::Read => &self.read,
        }
    }
}
