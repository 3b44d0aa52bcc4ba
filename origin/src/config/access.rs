//! The settings `require_edge` and `trusted_networks`, which restrict who may call the origin, `console`, `project_sign_in`
//! and `changes`.

use std::net::IpAddr;

use ipnet::IpNet;

use super::value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessConfig {
    Open,
    /// Only the edge and peers in trusted networks may call. Any peer may request `/healthz`.
    Restricted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleConfig {
    Served,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangesConfig {
    /// A private MariaDB logs changes, and the feed of changes is served.
    Served,
    Off,
}

pub(super) fn changes(text: &str) -> Result<ChangesConfig, String> {
    value::switch(text, ChangesConfig::Served, ChangesConfig::Off)
}

pub(super) fn console(text: &str) -> Result<ConsoleConfig, String> {
    value::switch(text, ConsoleConfig::Served, ConsoleConfig::Off)
}

/// Says who may set an issuer's client id, with which the issuer's users sign in to the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInClients {
    OfOperator,
    OfProjects,
}

pub(super) fn project_sign_in(text: &str) -> Result<SignInClients, String> {
    value::switch(text, SignInClients::OfProjects, SignInClients::OfOperator)
}

pub(super) fn require_edge(text: &str) -> Result<AccessConfig, String> {
    value::switch(text, AccessConfig::Restricted, AccessConfig::Open)
}

pub(crate) fn networks(text: &str) -> Result<Vec<IpNet>, String> {
    let network = |entry: &str| {
        let single = entry.parse::<IpAddr>().map(IpNet::from);
        entry.parse::<IpNet>().or(single)
    };
    text.split(',')
        .map(|entry| network(entry.trim()))
        .collect::<Result<_, _>>()
        .map_err(|_| "a comma list of networks such as 10.0.0.0/8,fd00::/8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0", "example.org", "10.0.0.0/8,", "*"] {
            assert!(networks(text).is_err(), "{text:?}");
        }
    }
}
