//! Connection pools of the driver for the administrator account, one pool for each host. Only the
//! pool of the serving host is used.

use super::{Hosts, TRIES_MAX_COUNT};
use crate::database::error::means_lost;
use mysql_async::{Conn, OptsBuilder, Pool};

/// The pools of the administrator account. Clones share the connections.
#[derive(Clone, Debug)]
pub(in crate::database) struct HostPools {
    hosts: Hosts,
    /// One pool for each host, in the order of the URL.
    pools: Vec<Pool>,
}

impl HostPools {
    /// Creates the pools, without connecting. `finish` sets further options of a pool.
    pub(in crate::database) fn new(hosts: &Hosts, finish: impl Fn(OptsBuilder) -> OptsBuilder) -> Self {
        let address = hosts.address();
        let options = hosts.options(&address.admin_user, &address.admin_password, finish);
        Self { hosts: hosts.clone(), pools: options.into_iter().map(Pool::new).collect() }
    }

    /// Returns a connection to the serving host. If the host is lost meanwhile, tries again, for at
    /// most [`TRIES_MAX_COUNT`] attempts.
    pub(in crate::database) async fn get_conn(&self) -> mysql_async::Result<Conn> {
        let mut tries = 1;
        loop {
            let host = self.hosts.pick().await;
            let lost = || mysql_async::Error::Other(crate::database::error::HostLost.into());
            let host = host.ok_or_else(lost)?;
            let pool = self.pools.get(host.index).ok_or_else(lost)?;
            match self.hosts.on(&host, pool.get_conn()).await {
                Err(error) if means_lost(&error) && tries < TRIES_MAX_COUNT && self.hosts.suspect(&host) => tries += 1,
                outcome => return outcome,
            }
        }
    }

    /// Runs work on a connection, and cancels it with an error when the serving host is left.
    pub(in crate::database) async fn on<T>(
        &self,
        work: impl Future<Output = mysql_async::Result<T>>,
    ) -> mysql_async::Result<T> {
        let host = self.hosts.serving();
        self.hosts.on(&host, work).await
    }

    /// Waits until the serving host is left; forever if there is only one host.
    pub(in crate::database) async fn left(&self) {
        match self.hosts.serving().left {
            Some(left) => left.cancelled_owned().await,
            None => std::future::pending().await,
        }
    }

    pub(in crate::database) async fn disconnect(self) {
        for pool in self.pools {
            let _ = pool.disconnect().await;
        }
    }
}
