//! Checks whether MariaDB's binary log can serve the feed of changes.

use std::sync::Arc;

use super::Finding;
use crate::config::{ChangesConfig, Config};
use crate::database::log_reader::{LogError, LogExtent, LogSettings, LogSource};
use crate::system::System;

const CHECK: &str = "changes";
/// The hint of findings that only matter to the feed.
const OR_OFF: &str = "or set changes = \"off\"";

pub(super) async fn check(system: &System, config: &Config) -> Vec<Finding> {
    if config.changes == ChangesConfig::Off {
        return vec![Finding::ok(CHECK, "the feed of changes is switched off")];
    }
    let source = LogSource::new(&system.hosts);
    let settings = match source.settings().await {
        Ok(settings) => settings,
        Err(error) => return vec![fault(error)],
    };
    let mut findings = lacks(&settings);
    if findings.is_empty() {
        findings.push(match read(&source).await {
            Ok(()) => Finding::ok(CHECK, "MariaDB's binary log can be read"),
            Err(error) => fault(error),
        });
        findings.extend(cautions(&settings));
    }
    findings
}

fn lacks(settings: &LogSettings) -> Vec<Finding> {
    let finding = |lack| {
        let message = format!("MariaDB's binary log can't serve changes without {lack}");
        Finding::warning(CHECK, message, format!("set it in MariaDB's configuration and restart MariaDB, {OR_OFF}"))
    };
    settings.lacks().map(finding).collect()
}

fn cautions(settings: &LogSettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !settings.is_durable() {
        let message = "after a crash of the machine, MariaDB's binary log may lack committed changes";
        findings.push(Finding::warning(CHECK, message, "set sync_binlog=1"));
    }
    if settings.expires_after().is_none() {
        let message = "MariaDB never deletes files of its binary log";
        findings.push(Finding::warning(
            CHECK,
            message,
            "set binlog_expire_logs_seconds, such as 259200 for three days",
        ));
    } else if settings.expires_with_replicas_only() {
        let message = "MariaDB deletes files of its binary log only while replicas are connected";
        findings.push(Finding::warning(CHECK, message, "set slave_connections_needed_for_purge=0"));
    }
    findings
}

/// Opens the log as the feed does, at its end.
async fn read(source: &LogSource) -> Result<(), LogError> {
    let facts = source.facts().await?;
    let mut reader = source.open(facts.position, LogExtent::ToEnd, Arc::default()).await?;
    while reader.next().await?.is_some() {}
    Ok(())
}

fn fault(error: LogError) -> Finding {
    let hint = match &error {
        LogError::Unavailable(hint) => hint.clone(),
        _ => "look into MariaDB's log".into(),
    };
    let message = match error {
        LogError::Unavailable(_) => "MariaDB's binary log can't be read".to_owned(),
        error => error.to_string(),
    };
    Finding::warning(CHECK, message, format!("{}, {OR_OFF}", hint.trim_end_matches('.')))
}
