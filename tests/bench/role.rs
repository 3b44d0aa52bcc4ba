//! A contender's role in the comparison: its workloads, and the contenders to compare with.

use serde::Serialize;

use crate::{peers, workload::Workload};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The bare driver with as many connections as the servers have.
    Floor,
    /// The bare driver with as many connections as there are callers: the floor for latencies.
    WideFloor,
    Hello,
    Values,
    Streamed,
    Origin,
    PassThrough,
    Edge,
    Peer,
    /// An endpoint of an installation that was not started here.
    Running,
}

impl Role {
    pub(crate) fn takes_part(self, workload: Workload) -> bool {
        let is_related = matches!(workload, Workload::Stories | Workload::Related);
        match self {
            // The hand-written servers have no such routes.
            Self::Values | Self::Streamed if is_related => false,
            // The private MariaDB doesn't allow a thousand connections.
            Self::Floor => workload != Workload::Storm,
            // Other workloads have fewer callers than connections, so the result would equal the result of `Floor`.
            Self::WideFloor => matches!(workload, Workload::W1 | Workload::W2 | Workload::W3 | Workload::Mixed),
            Self::Hello => matches!(workload, Workload::W1 | Workload::Lone | Workload::Storm),
            Self::Peer => peers::WORKLOADS.contains(&workload),
            // A million rows show nothing about a worker that 100,000 rows don't.
            Self::PassThrough | Self::Edge => workload != Workload::Million,
            Self::Values | Self::Streamed | Self::Origin | Self::Running => true,
        }
    }

    /// Returns the league at whose rate the contender is measured in an open loop; `None` if it isn't.
    pub(crate) const fn league(self) -> Option<League> {
        match self {
            Self::Floor | Self::Hello | Self::Peer => None,
            Self::WideFloor | Self::Values | Self::Streamed | Self::Origin | Self::Running => Some(League::Direct),
            Self::PassThrough | Self::Edge => Some(League::Workers),
        }
    }
}

/// Contenders that are measured at the same rate. workerd has its own league, since it handles a fraction of a server's
/// rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum League {
    Direct,
    Workers,
}

impl League {
    pub(crate) const BOTH: [Self; 2] = [Self::Direct, Self::Workers];
}
