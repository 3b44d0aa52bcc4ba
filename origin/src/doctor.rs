//! Checks an installation, and says how to fix faults. Leaves no changes, except that it creates the directories of the
//! media store if they are missing.

mod accounts;
mod changes;
mod definers;
mod hosts;
mod issuers;
mod machine;
mod roles;
mod secrets;
mod webhooks;

use std::path::Path;

use serde::Serialize;

use crate::config::{Config, TlsFiles};
use crate::database::admin::{
    AdminError, CONNECTIONS_MAX_COUNT as ADMIN_CONNECTIONS, PROBE_CONNECTIONS, SCHEMA_VERSION, ServerFacts,
    WEBHOOK_CONNECTIONS,
};
use crate::database::media::CONNECTIONS_MAX_COUNT as MEDIA_CONNECTIONS;
use crate::database::{KILLS_MAX_COUNT, schema_cache};
use crate::system::System;
use crate::tls::Tls;

/// Major and minor versions of MariaDB with which the tests run.
const TESTED_MARIADB: [(u32, u32); 2] = [(10, 11), (11, 8)];
const OLDEST_MARIADB: (u32, u32) = (10, 6);

/// The difference between the clocks, in seconds, from which a warning is given.
const CLOCK_APART_WARN_SECONDS: f64 = 2.0;
const CLOCK_APART_FAIL_SECONDS: f64 = 60.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Ok,
    Warning,
    Wrong,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub verdict: Severity,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, verdict: Severity::Ok, message: message.into(), hint: None }
    }

    fn warning(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { check, verdict: Severity::Warning, message: message.into(), hint: Some(hint.into()) }
    }

    fn wrong(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { check, verdict: Severity::Wrong, message: message.into(), hint: Some(hint.into()) }
    }

    fn fault(check: &'static str, error: &AdminError) -> Self {
        let hint = error.hint().unwrap_or("look into MariaDB's log");
        Self::wrong(check, error.to_string(), hint)
    }
}

/// Runs all checks. If MariaDB or the system schema can't be used, leaves out the checks that need it.
pub async fn examine(system: &System, config: &Config) -> Vec<Finding> {
    let mut findings = vec![machine::data_dir(&config.data_dir), secret_file(&config.data_dir, config)];
    findings.push(machine::store(config).await);
    findings.extend(config.tls.as_ref().map(certificate));
    match system.admin.server_facts().await {
        Ok(facts) => {
            findings.extend(server(&facts, config));
            findings.push(prepared_xa(system).await);
            findings.extend(hosts::check(system, config).await);
            findings.extend(changes::check(system, config).await);
            findings.extend(inside(system, config).await);
        }
        Err(error) => findings.push(Finding::fault("database", &error)),
    }
    findings
}

fn secret_file(data_dir: &Path, config: &Config) -> Finding {
    if config.secret.is_some() {
        return Finding::ok("secret", "the installation secret comes from the configuration");
    }
    machine::secret_file(&data_dir.join("secret"))
}

fn certificate(files: &TlsFiles) -> Finding {
    match Tls::open(files) {
        Ok(_) => Finding::ok("tls", format!("the certificate {} has its key", files.certificate.display())),
        Err(error) => Finding::wrong(
            "tls",
            error.to_string(),
            "set tls_certificate to a PEM file of the certificate and its intermediates, and tls_key to its key",
        ),
    }
}

fn server(facts: &ServerFacts, config: &Config) -> Vec<Finding> {
    vec![version(facts), clock(facts), connections(facts, config.pool_total), engines(facts)]
}

fn version(facts: &ServerFacts) -> Finding {
    let version = &facts.version;
    let hint = format!("use MariaDB {}", TESTED_MARIADB.map(|(major, minor)| format!("{major}.{minor}")).join(" or "));
    match facts.mariadb() {
        Some(found) if TESTED_MARIADB.contains(&found) => Finding::ok("database", format!("MariaDB {version} answers")),
        Some(found) if found >= OLDEST_MARIADB => Finding::warning(
            "database",
            format!("MariaDB {version} answers; Selkie is not tested with this version"),
            hint,
        ),
        Some(_) => Finding::wrong("database", format!("MariaDB {version} is too old"), hint),
        None => Finding::wrong("database", format!("the server {version} is not MariaDB"), hint),
    }
}

fn clock(facts: &ServerFacts) -> Finding {
    let apart = (facts.clock - machine::clock()).abs();
    let message = format!("MariaDB's clock and this machine's are {apart:.1} s apart");
    let hint = "let both machines follow the same time servers (chrony, systemd-timesyncd)";
    if apart > CLOCK_APART_FAIL_SECONDS {
        Finding::wrong("clock", message, hint)
    } else if apart > CLOCK_APART_WARN_SECONDS {
        Finding::warning("clock", message, hint)
    } else {
        Finding::ok("clock", message)
    }
}

fn connections(facts: &ServerFacts, pool_total: usize) -> Finding {
    let needed = connections_needed(pool_total) as u64;
    let message = format!("MariaDB takes {} connections; this origin uses up to {needed}", facts.max_connections);
    if facts.max_connections < needed {
        Finding::warning("connections", message, "raise max_connections, or lower pool_total")
    } else {
        Finding::ok("connections", message)
    }
}

/// Returns the number of connections for statements, descriptions of tables, KILL statements, the administrator
/// account, deliveries of webhooks, and the two pools for media.
fn connections_needed(pool_total: usize) -> usize {
    let of_media = 2 * MEDIA_CONNECTIONS;
    pool_total
        + schema_cache::connections(pool_total)
        + KILLS_MAX_COUNT
        + ADMIN_CONNECTIONS
        + PROBE_CONNECTIONS
        + WEBHOOK_CONNECTIONS
        + of_media
}

fn engines(facts: &ServerFacts) -> Finding {
    if facts.far_reaching_engines.is_empty() {
        return Finding::ok("engines", "no storage engine reaches beyond MariaDB's own files");
    }
    let engines = facts.far_reaching_engines.join(", ");
    Finding::warning(
        "engines",
        format!("a full key can make tables of the engines {engines}, which reach other servers or files"),
        "uninstall those engines unless every project may do so",
    )
}

async fn prepared_xa(system: &System) -> Finding {
    let check = "xa";
    match system.admin.prepared_xa().await {
        Ok(0) => Finding::ok(check, "MariaDB holds no prepared XA transaction"),
        Ok(count) => Finding::warning(
            check,
            format!("MariaDB holds {count} prepared XA transactions, which keep their locks"),
            "list them with XA RECOVER FORMAT='SQL', and end each with XA COMMIT or XA ROLLBACK",
        ),
        Err(error) => Finding::fault(check, &error),
    }
}

async fn inside(system: &System, config: &Config) -> Vec<Finding> {
    let schema = schema(system).await;
    let is_readable = schema.verdict != Severity::Wrong;
    let mut findings = vec![schema];
    if is_readable {
        findings.extend(accounts::check(system).await);
        findings.extend(definers::check(system).await);
        findings.extend(keys(system).await);
        findings.extend(roles::check(system, config).await);
        findings.extend(issuers::check(system).await);
        findings.extend(webhooks::check(system).await);
    }
    findings.extend(accounts::unexpected_grants(system).await);
    findings
}

async fn schema(system: &System) -> Finding {
    match system.admin.schema_version().await {
        Ok(Some(found)) if found == SCHEMA_VERSION => {
            Finding::ok("schema", format!("the system schema has version {found}"))
        }
        Ok(Some(found)) if found > SCHEMA_VERSION => Finding::wrong(
            "schema",
            format!("the system schema has version {found}, this program knows {SCHEMA_VERSION}"),
            "run the newest selkie on every machine",
        ),
        Ok(Some(found)) => Finding::wrong(
            "schema",
            format!("the system schema has version {found}, this program needs {SCHEMA_VERSION}"),
            "start the origin once: it brings the schema up",
        ),
        Ok(None) => Finding::wrong(
            "schema",
            "there is no system schema yet",
            "start the origin once, or run `selkie init`: either makes it",
        ),
        Err(error) => Finding::fault("schema", &error),
    }
}

async fn keys(system: &System) -> Vec<Finding> {
    let check = "keys";
    let set = match system.keys.public_keys().await {
        Ok(set) => set,
        Err(error) => {
            let hint = error.hint().unwrap_or_default();
            return vec![Finding::wrong(check, error.to_string(), hint)];
        }
    };
    let rows = system.keys.list(None).await.unwrap_or_default();
    let now = crate::clock::now();
    let live = rows.iter().filter(|row| crate::system::keys::is_live(row, now)).count();
    let signing = set.kids().count();
    vec![
        Finding::ok(
            check,
            format!("{signing} signing keys verify, {live} of {} keys are neither revoked nor expired", rows.len()),
        ),
        Finding::ok(
            "edge",
            format!(
                "the edge must hold the public keys {}; `selkie key jwks` prints them",
                set.kids().collect::<Vec<_>>().join(" and ")
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mariadb_must_take_all_connections_of_an_origin() {
        // The formula of docs/settings.md.
        for pool_total in [16, 100, 10_000] {
            assert_eq!(connections_needed(pool_total), pool_total * 9 / 8 + 32);
        }
        for (max_connections, verdict) in [(143, Severity::Warning), (144, Severity::Ok)] {
            assert_eq!(connections(&ServerFacts { max_connections, ..facts("") }, 100).verdict, verdict);
        }
    }

    fn facts(version: &str) -> ServerFacts {
        ServerFacts { version: version.to_owned(), clock: 0.0, max_connections: 0, far_reaching_engines: Vec::new() }
    }

    #[test]
    fn a_version_that_the_tests_do_not_run_with_is_named() {
        for (found, verdict) in [
            ("10.11.19-MariaDB-0+deb12u1", Severity::Ok),
            ("11.8.9-MariaDB-0+deb13u1 from Debian", Severity::Ok),
            ("11.4.2-MariaDB", Severity::Warning),
            ("10.6.1-MariaDB", Severity::Warning),
            ("10.5.29-MariaDB", Severity::Wrong),
            ("8.0.36", Severity::Wrong),
        ] {
            let finding = version(&facts(found));
            assert_eq!(finding.verdict, verdict, "{found}");
            assert_eq!(finding.hint.as_deref(), (verdict != Severity::Ok).then_some("use MariaDB 10.11 or 11.8"));
        }
    }
}
