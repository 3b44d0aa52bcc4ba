//! Connections of the system's own, outside the projects' pools.

use std::time::Duration;

use mysql_async::{Conn, Opts, OptsBuilder};
use secrecy::{ExposeSecret, SecretString};

use super::pool::endpoint;
use crate::address::DatabaseAddress;

/// The driver's options for `user` at the address.
pub(super) fn options(
    address: &DatabaseAddress,
    user: &str,
    password: &SecretString,
) -> OptsBuilder {
    let builder = OptsBuilder::default()
        .user(Some(user))
        .pass(Some(password.expose_secret()))
        // A TCP address means TCP: the driver would else look for a socket behind it.
        .prefer_socket(false);
    endpoint(builder, &address.endpoint)
}

/// One connection within `limit`; `None` if the time ran out.
pub(super) async fn connect(
    options: impl Into<Opts>,
    limit: Duration,
) -> Option<mysql_async::Result<Conn>> {
    tokio::time::timeout(limit, Conn::new(options)).await.ok()
}
