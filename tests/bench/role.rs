//! What part a contender plays in the comparison: which workloads it takes part in, and whom it is compared with.

use serde::Serialize;

use crate::{peers, workload::Workload};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The bare driver with as many connections as the servers have.
    Floor,
    /// The bare driver with as many connections as there are callers: the floor that others are compared with, since its
    /// latencies are those of equally many.
    WideFloor,
    Hello,
    Values,
    Streamed,
    Origin,
    PassThrough,
    Edge,
    /// A server of another project.
    Peer,
    /// An endpoint of an installation that was not started here.
    Running,
}

impl Role {
    pub(crate) fn takes_part(self, workload: Workload) -> bool {
        match self {
            // MariaDB has no room for a thousand connections.
            Self::Floor => workload != Workload::Storm,
            // Elsewhere there are fewer callers than connections, and it would be the other floor once more.
            Self::WideFloor => matches!(workload, Workload::W1 | Workload::W2 | Workload::W3 | Workload::Mixed),
            Self::Hello => matches!(workload, Workload::W1 | Workload::Lone | Workload::Storm),
            Self::Peer => peers::WORKLOADS.contains(&workload),
            // A million rows say nothing of a worker that a hundred thousand don't.
            Self::PassThrough | Self::Edge => workload != Workload::Million,
            Self::Values | Self::Streamed | Self::Origin | Self::Running => true,
        }
    }

    /// At whose rate it is measured in an open loop; none for those that say nothing there.
    pub(crate) const fn league(self) -> Option<League> {
        match self {
            Self::Floor | Self::Hello | Self::Peer => None,
            Self::WideFloor | Self::Values | Self::Streamed | Self::Origin | Self::Running => Some(League::Direct),
            Self::PassThrough | Self::Edge => Some(League::Workers),
        }
    }
}

/// Who can be sent the same number of requests a second: workerd carries a fraction of what a server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum League {
    Direct,
    Workers,
}

impl League {
    pub(crate) const BOTH: [Self; 2] = [Self::Direct, Self::Workers];
}
