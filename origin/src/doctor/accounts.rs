//! Checks MariaDB's accounts: the accounts of each project can log in and have exactly the rights that they should
//! have, and there are no accounts of former projects, no anonymous accounts and no rights that everybody has.

use std::collections::{BTreeMap, BTreeSet};

use shared::ident::ProjectName;
use shared::key::Access;

use super::Finding;
use crate::database::admin::{
    AccountState, AdminError, DatabaseRights, DatabaseRow, LoginCheck, Rights, exact_pattern, rights_on,
};
use crate::system::System;
use crate::system::projects::{excess, lack, spellings};

const CHECK: &str = "grants";

pub(super) async fn check(system: &System) -> Vec<Finding> {
    match examine(system).await {
        Ok(findings) => findings,
        Err(error) => vec![Finding::fault(CHECK, &error)],
    }
}

async fn examine(system: &System) -> Result<Vec<Finding>, AdminError> {
    let projects = system.admin.projects().await?;
    let owned = system.admin.owned_databases().await?;
    let nameless: Vec<String> = system
        .admin
        .strange_grants()
        .await?
        .iter()
        .flatten()
        .filter_map(|grant| grant.nameless_host().map(str::to_owned))
        .collect();
    let mut shadowed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut findings = Vec::new();
    for row in &projects {
        let of_it = owned.iter().filter(|database| database.project == row.name);
        let databases: Vec<DatabaseRow> = of_it.cloned().collect();
        for access in [Access::Full, Access::Read] {
            let account = system.projects.account(&row.name, access);
            let check = system.admin.check_login(&account).await?;
            if let Some(host) = shadowing(&check, &nameless) {
                shadowed.entry(host.to_owned()).or_default().push(account.user);
                continue;
            }
            findings.push(judge(system, &row.name, access, &databases, check));
        }
    }
    // Anonymous accounts are listed first: the accounts that they shadow can only be checked once they are removed.
    findings.splice(0..0, shadowed.iter().map(|(host, names)| shadow(host, names)));
    findings.extend(left_over(system, projects.iter().map(|row| &row.name)).await?);
    Ok(findings)
}

/// Returns the host of the anonymous account that caused MariaDB to refuse a log-in. MariaDB prefers accounts with a
/// specific host, so an anonymous account for a given host takes precedence over a named account for any host.
fn shadowing<'a>(check: &LoginCheck, nameless: &'a [String]) -> Option<&'a str> {
    let LoginCheck::Refused(message) = check else {
        return None;
    };
    // MariaDB's message is: "Access denied for user 'name'@'host' (using password: YES)".
    let (_, rest) = message.split_once("'@'")?;
    let (host, _) = rest.split_once('\'')?;
    nameless.iter().map(String::as_str).find(|nameless| nameless.eq_ignore_ascii_case(host))
}

fn shadow(host: &str, names: &[String]) -> Finding {
    Finding::wrong(
        CHECK,
        format!(
            "the account ''@'{host}', which has no name, shadows {}: MariaDB takes their log-ins from \
             {host} for it, and refuses them",
            names.join(", ")
        ),
        format!("drop it: DROP USER ''@'{host}'"),
    )
}

fn judge(
    system: &System,
    project: &ProjectName,
    access: Access,
    databases: &[DatabaseRow],
    check: LoginCheck,
) -> Finding {
    let name = system.projects.account(project, access).user;
    let rights = Rights::of(access);
    let state = match check {
        LoginCheck::Welcome(state) => state,
        LoginCheck::Refused(message) => {
            return Finding::wrong(CHECK, format!("MariaDB refuses {name}: {message}"), mend(system, project));
        }
    };
    let faults = if system.projects.is_ready_made(project) {
        let wanted = spellings(project, rights, databases);
        let mut faults = excess(&state, &wanted);
        faults.extend(missing(&state, &wanted, databases));
        faults
    } else {
        let wanted = rights_on(project, rights, databases);
        let mut faults = excess(&state, &wanted);
        faults.extend(lack(&state, &wanted));
        faults
    };
    if faults.is_empty() {
        return Finding::ok(CHECK, format!("{name} has exactly its rights"));
    }
    Finding::wrong(CHECK, format!("{name}: {}", faults.join("; ")), mend(system, project))
}

/// Returns the missing rights. A grant may name a database with or without escapes; `<project>_…` needs no rights.
fn missing(state: &AccountState, wanted: &DatabaseRights, databases: &[DatabaseRow]) -> Vec<String> {
    let spelled = |row: &DatabaseRow| {
        let plain = row.name.as_str();
        if state.databases.contains_key(plain) { plain.to_owned() } else { exact_pattern(&row.name) }
    };
    let mut needed = wanted.clone();
    let spelled: BTreeSet<String> = databases.iter().map(spelled).collect();
    needed.retain(|pattern, _| spelled.contains(pattern));
    lack(state, &needed)
}

fn mend(system: &System, project: &ProjectName) -> String {
    if system.projects.is_ready_made(project) {
        format!("mend the grants of the accounts under [accounts.{project}]")
    } else {
        format!("`selkie project create {project}` sets its accounts right; so does a start of the origin")
    }
}

/// Finds accounts that have names like Selkie's, but that no project uses.
async fn left_over(system: &System, projects: impl Iterator<Item = &ProjectName>) -> Result<Vec<Finding>, AdminError> {
    let known: BTreeSet<String> = projects
        .flat_map(|project| [Access::Full, Access::Read].map(|access| system.projects.account(project, access).user))
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

/// Finds rights that every account has, such as those on the schema `test` of a newly installed MariaDB.
pub(super) async fn unexpected_grants(system: &System) -> Vec<Finding> {
    match system.admin.strange_grants().await {
        Err(error) => vec![Finding::fault(CHECK, &error)],
        Ok(None) => vec![Finding::warning(
            CHECK,
            "the admin account may not read MariaDB's accounts: rights of others could not be checked",
            "give it SELECT on mysql.*",
        )],
        Ok(Some(grants)) if grants.is_empty() => {
            vec![Finding::ok(CHECK, "there are neither anonymous accounts nor rights of everybody")]
        }
        Ok(Some(grants)) => grants
            .iter()
            .map(|grant| match &grant.pattern {
                None => Finding::warning(
                    CHECK,
                    format!("the anonymous account {} may shadow a project's account", grant.grantee),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(host: &str) -> LoginCheck {
        LoginCheck::Refused(format!("Access denied for user 'selkie-default-rw'@'{host}' (using password: YES)"))
    }

    #[test]
    fn a_refused_login_is_explained_by_the_anonymous_account_of_its_host() {
        let nameless = ["localhost".to_owned(), "db.example".to_owned()];
        for (check, expected) in [
            (refused("localhost"), Some("localhost")),
            (refused("DB.example"), Some("db.example")),
            (refused("10.0.0.1"), None),
            (LoginCheck::Refused("Too many connections".to_owned()), None),
            (LoginCheck::Welcome(AccountState::default()), None),
        ] {
            assert_eq!(shadowing(&check, &nameless), expected, "{check:?}");
        }
        let finding = shadow("localhost", &["selkie-default-rw".to_owned()]);
        assert!(finding.message.contains("shadows selkie-default-rw"), "{}", finding.message);
        assert_eq!(finding.hint.as_deref(), Some("drop it: DROP USER ''@'localhost'"));
    }
}
