//! Connection pools of the driver for the admin account, one for each host of `database_url`.

use super::{Hosts, TRIES_MAX_COUNT};
use crate::database::error::means_lost;
use mysql_async::{Conn, OptsBuilder, Pool};

#[derive(Clone, Debug)]
pub(in crate::database) struct HostPools {
    hosts: Hosts,
    pools: Vec<Pool>,
}

impl HostPools {
    pub(in crate::database) fn new(hosts: &Hosts, finish: impl Fn(OptsBuilder) -> OptsBuilder) -> Self {
        let address = hosts.address();
        let options = hosts.options(&address.admin_user, &address.admin_password, finish);
        Self { hosts: hosts.clone(), pools: options.into_iter().map(Pool::new).collect() }
    }

    /// Opens a connection, in up to [`TRIES_MAX_COUNT`] attempts while [`Hosts::suspect`] returns true.
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
