//! Checks the hosts of `database_url` and `replica_url`: whether each can be used, and the settings
//! of cluster nodes.

use super::Finding;
use crate::config::Config;
use crate::database::hosts::{HostFacts, HostRole, Hosts};
use crate::system::System;

const CHECK: &str = "hosts";

/// Checks the hosts, but not a `database_url` that names a single server that is no cluster node.
pub(super) async fn check(system: &System, config: &Config) -> Vec<Finding> {
    let facts = system.hosts.facts().await;
    let is_cluster = facts.iter().any(|(_, facts)| facts.as_ref().is_ok_and(|facts| facts.is_galera));
    let mut findings = Vec::new();
    if facts.len() > 1 || is_cluster {
        findings.extend(facts.into_iter().map(|(host, facts)| finding(&host, facts, "database_url")));
    }
    if let Some(address) = &config.replica_url {
        let replicas = Hosts::new(address, HostRole::Reading).facts().await;
        findings.extend(replicas.into_iter().map(|(host, facts)| finding(&host, facts, "replica_url")));
    }
    findings
}

fn finding(host: &str, facts: Result<HostFacts, String>, setting: &str) -> Finding {
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => {
            let message = format!("the host {host} of {setting} does not answer: {error}");
            return Finding::wrong(CHECK, message, "start it, or correct the setting");
        }
    };
    if facts.is_galera && facts.cluster_status != "Primary" {
        let message = format!("the cluster node {host} is not in the primary component ({})", facts.cluster_status);
        return Finding::wrong(CHECK, message, "let it reach the other nodes; wsrep_cluster_status must be Primary");
    }
    if facts.is_galera && facts.binlog_format != "ROW" {
        let message = format!("the cluster node {host} has binlog_format {}", facts.binlog_format);
        return Finding::wrong(CHECK, message, "set binlog_format=ROW, the only format that Galera supports");
    }
    let message = format!("the host {host} of {setting} is {}", facts.state);
    match facts.is_well {
        true => Finding::ok(CHECK, message),
        false => Finding::warning(CHECK, message, "see docs/scale.md"),
    }
}
