//! Maps a database address to the driver's options.

use std::time::Duration;

use mysql_async::{Conn, Opts, OptsBuilder, SslOpts};
use secrecy::{ExposeSecret, SecretString};

use crate::address::{DatabaseAddress, Endpoint, Tls, Verify};

/// Returns the driver's options for `user` at the address.
pub(crate) fn options(address: &DatabaseAddress, user: &str, password: &SecretString) -> OptsBuilder {
    let options = OptsBuilder::default()
        .user(Some(user))
        .pass(Some(password.expose_secret()))
        // The driver would otherwise look for the server's socket, even for a TCP address.
        .prefer_socket(false);
    match &address.endpoint {
        Endpoint::Socket(path) => options.socket(Some(path.to_string_lossy())),
        Endpoint::Tcp { host, port, tls } => {
            options.ip_or_hostname(host.clone()).tcp_port(*port).tcp_nodelay(true).ssl_opts(encryption(tls))
        }
    }
}

fn encryption(tls: &Tls) -> Option<SslOpts> {
    let Tls::Required { ca_file, verify } = tls else {
        return None;
    };
    let roots = ca_file.iter().cloned().map(Into::into).collect();
    Some(
        SslOpts::default()
            .with_root_certs(roots)
            .with_danger_skip_domain_validation(*verify != Verify::Identity)
            .with_danger_accept_invalid_certs(*verify == Verify::Nothing),
    )
}

/// Opens a connection outside any pool; `None` if `limit` elapsed.
pub(crate) async fn connect(options: impl Into<Opts>, limit: Duration) -> Option<mysql_async::Result<Conn>> {
    tokio::time::timeout(limit, Conn::new(options)).await.ok()
}
