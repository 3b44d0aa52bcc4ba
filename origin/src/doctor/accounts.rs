//! Checks of MariaDB's accounts: each project's two have exactly their rights and can log in; nobody
//! else has rights on everybody's behalf.

use std::collections::BTreeSet;

use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;

use super::Finding;
use crate::db::admin::{AccountState, AdminError, LoginCheck, Rights, patterns};
use crate::projects::{excess, lack, spellings};
use crate::system::System;

const CHECK: &str = "grants";

/// The projects' accounts.
pub(super) async fn check(system: &System) -> Vec<Finding> {
    match examine(system).await {
        Ok(findings) => findings,
        Err(error) => vec![Finding::fault(CHECK, &error)],
    }
}

async fn examine(system: &System) -> Result<Vec<Finding>, AdminError> {
    let projects = system.admin.projects().await?;
    let owned = system.admin.owned_databases().await?;
    let mut findings = Vec::new();
    for row in &projects {
        let of = |(name, owner): &(DatabaseName, ProjectName)| {
            (*owner == row.name).then(|| name.clone())
        };
        let databases: Vec<DatabaseName> = owned.iter().filter_map(of).collect();
        for access in [Access::Full, Access::Read] {
            findings.push(account(system, &row.name, access, &databases).await?);
        }
    }
    findings.extend(left_over(system, projects.iter().map(|row| &row.name)).await?);
    Ok(findings)
}

async fn account(
    system: &System,
    project: &ProjectName,
    access: Access,
    databases: &[DatabaseName],
) -> Result<Finding, AdminError> {
    let account = system.projects.account(project, access);
    let name = &account.user;
    let rights = Rights::of(access);
    let state = match system.admin.check_login(&account).await? {
        LoginCheck::Welcome(state) => state,
        LoginCheck::Refused(message) => {
            return Ok(Finding::wrong(
                CHECK,
                format!("MariaDB refuses {name}: {message}"),
                mend(system, project),
            ));
        }
    };
    let faults = if system.projects.is_ready_made(project) {
        let mut faults = excess(&state, rights, &spellings(project, databases));
        faults.extend(missing(&state, rights, databases));
        faults
    } else {
        let patterns = patterns(project, databases);
        let mut faults = excess(&state, rights, &patterns);
        faults.extend(lack(&state, rights, &patterns));
        faults
    };
    if faults.is_empty() {
        return Ok(Finding::ok(CHECK, format!("{name} has exactly its rights")));
    }
    Ok(Finding::wrong(
        CHECK,
        format!("{name}: {}", faults.join("; ")),
        mend(system, project),
    ))
}

/// What a ready-made account lacks on databases that are recorded; either spelling of a name will do.
fn missing(state: &AccountState, rights: Rights, databases: &[DatabaseName]) -> Vec<String> {
    let is_granted = |name: &DatabaseName| state.databases.contains_key(name.as_str());
    let plain: BTreeSet<String> = databases
        .iter()
        .filter(|name| is_granted(name))
        .map(|name| name.as_str().to_owned())
        .collect();
    let escaped: Vec<DatabaseName> = databases
        .iter()
        .filter(|name| !is_granted(name))
        .cloned()
        .collect();
    let mut faults = lack(state, rights, &plain);
    faults.extend(lack(
        state,
        rights,
        &crate::db::admin::exact_patterns(&escaped),
    ));
    faults
}

fn mend(system: &System, project: &ProjectName) -> String {
    if system.projects.is_ready_made(project) {
        format!("mend the grants of the accounts under [accounts.{project}]")
    } else {
        format!(
            "`selkie project create {project}` sets its accounts right; so does a start of the origin"
        )
    }
}

/// Accounts named like ours of projects that don't exist.
async fn left_over(
    system: &System,
    projects: impl Iterator<Item = &ProjectName>,
) -> Result<Vec<Finding>, AdminError> {
    let known: BTreeSet<String> = projects
        .flat_map(|project| {
            [Access::Full, Access::Read].map(|access| system.projects.account(project, access).user)
        })
        .collect();
    let accounts = system.admin.accounts().await?;
    Ok(accounts
        .keys()
        .filter(|(user, _)| !known.contains(user))
        .map(|(user, host)| {
            Finding::warning(
                CHECK,
                format!("the account '{user}'@'{host}' belongs to no project"),
                format!("drop it: DROP USER '{user}'@'{host}'"),
            )
        })
        .collect())
}

/// Accounts without a name, and rights of everybody, such as those on the test schema that a fresh
/// MariaDB may bring along.
pub(super) async fn strangers(system: &System) -> Vec<Finding> {
    match system.admin.strange_grants().await {
        Err(error) => vec![Finding::fault(CHECK, &error)],
        Ok(None) => vec![Finding::warning(
            CHECK,
            "the admin account may not read MariaDB's accounts: rights of others could not be checked",
            "give it SELECT on mysql.*",
        )],
        Ok(Some(grants)) if grants.is_empty() => {
            vec![Finding::ok(CHECK, "no account is nameless, and everybody has no rights")]
        }
        Ok(Some(grants)) => grants
            .iter()
            .map(|grant| match &grant.pattern {
                None => Finding::warning(
                    CHECK,
                    format!("the account {} needs no name, and may stand in for a project's", grant.grantee),
                    format!("drop it: DROP USER {}", grant.grantee),
                ),
                Some(pattern) => Finding::wrong(
                    CHECK,
                    format!("{} has rights on `{pattern}`, so every project has them", grant.grantee),
                    "run mariadb-secure-installation, or delete that row of mysql.db and FLUSH PRIVILEGES",
                ),
            })
            .collect(),
    }
}
