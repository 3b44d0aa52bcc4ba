//! How many answers may be streamed at once.

use crate::database::PoolSettings;
use crate::shares::Shares;
use shared::key::Access;
use std::time::Duration;

/// The slots of streamed answers. Each holds a connection to MariaDB for as long as its client reads, so that a
/// project may use half of the connections of each of its accounts for streams, and all projects half of all.
#[derive(Debug)]
pub struct StreamSlots {
    full: Shares,
    read: Shares,
    timeout: Duration,
}

impl StreamSlots {
    /// Slots for streams over these pools, each of which lasts at most `timeout`.
    #[must_use]
    pub fn new(pools: PoolSettings, timeout: Duration) -> Self {
        let half = |count: usize| (count / 2).max(1) as u64;
        let shares = || Shares::new(half(pools.total), half(pools.size));
        Self { full: shares(), read: shares(), timeout }
    }

    /// The slots of read keys; full keys have as many.
    #[must_use]
    pub fn shares(&self) -> &Shares {
        &self.read
    }

    /// Returns how long a stream may last.
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
