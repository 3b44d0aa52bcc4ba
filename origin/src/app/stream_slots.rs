//! Limits the number of responses that are being streamed.

use crate::database::PoolSettings;
use crate::shares::Shares;
use shared::key::Access;
use std::time::Duration;

/// Limits of streamed responses. A stream occupies a MariaDB connection for as long as its client reads. So the streams
/// of full keys, and separately those of read keys, may use at most half of `pool_size` in each project and half of
/// `pool_total` in all projects together.
#[derive(Debug)]
pub struct StreamSlots {
    full: Shares,
    read: Shares,
    spares: Shares,
    timeout: Duration,
}

impl StreamSlots {
    /// Creates the limits for these pool sizes. `timeout` is the maximum duration of a stream.
    #[must_use]
    pub fn new(pools: PoolSettings, timeout: Duration) -> Self {
        let half = |count: usize| (count / 2).max(1) as u64;
        let shares = || Shares::new(half(pools.total), half(pools.size));
        Self { full: shares(), read: shares(), spares: shares(), timeout }
    }

    /// Returns the limits of streams for read keys; full keys have limits of the same size.
    #[must_use]
    pub fn shares(&self) -> &Shares {
        &self.read
    }

    /// Returns the limits for reads that need two connections: one for the records, one for their related records.
    pub(crate) fn spares(&self) -> &Shares {
        &self.spares
    }

    /// Returns the maximum duration of a streamed response.
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
