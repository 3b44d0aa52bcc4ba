//! Maps a database address to the driver's options.

use mysql_async::{ClientIdentity, OptsBuilder, SslOpts};
use secrecy::{ExposeSecret, SecretString};

use crate::address::{ClientCertificate, Endpoint, Tls, Verify};

pub(crate) fn options(endpoint: &Endpoint, user: &str, password: &SecretString) -> OptsBuilder {
    let options = OptsBuilder::default()
        .user(Some(user))
        .pass(Some(password.expose_secret()))
        // The driver would otherwise look for the server's socket, even for a TCP address.
        .prefer_socket(false);
    match endpoint {
        Endpoint::Socket(path) => options.socket(Some(path.to_string_lossy())),
        Endpoint::Tcp { host, port, tls } => {
            options.ip_or_hostname(host.clone()).tcp_port(*port).tcp_nodelay(true).ssl_opts(encryption(tls))
        }
    }
}

fn encryption(tls: &Tls) -> Option<SslOpts> {
    let Tls::Required { ca_file, verify, client } = tls else {
        return None;
    };
    let roots = ca_file.iter().cloned().map(Into::into).collect();
    let identity = |client: ClientCertificate| ClientIdentity::new(client.certificate.into(), client.key.into());
    Some(
        SslOpts::default()
            .with_root_certs(roots)
            .with_disable_built_in_roots(ca_file.is_some())
            .with_client_identity(client.clone().map(identity))
            .with_danger_skip_domain_validation(*verify != Verify::Identity)
            .with_danger_accept_invalid_certs(*verify == Verify::Nothing),
    )
}
