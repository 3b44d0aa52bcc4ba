//! Checks that nothing in a project's databases runs with the rights of an account that isn't the project's own. A
//! full key can change what such a view, routine, trigger or event calls and reads, and so use these rights.

use std::collections::BTreeMap;

use shared::key::Access;

use super::Finding;
use crate::system::System;
use crate::system::projects::{Presence, ProjectError};

const CHECK: &str = "definers";

const NAMED_MAX_COUNT: usize = 10;

pub(super) async fn check(system: &System) -> Vec<Finding> {
    match examine(system).await {
        Ok(findings) if findings.is_empty() => {
            vec![Finding::ok(CHECK, "all code of the projects runs with the rights of the projects' own accounts")]
        }
        Ok(findings) => findings,
        Err(error) => {
            vec![Finding::wrong(CHECK, error.to_string(), error.hint().unwrap_or_default())]
        }
    }
}

async fn examine(system: &System) -> Result<Vec<Finding>, ProjectError> {
    let mut foreign: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for database in system.projects.databases(None).await? {
        if database.presence == Presence::Missing {
            continue;
        }
        let own = [Access::Full, Access::Read].map(|access| system.projects.account(&database.project, access).user);
        for (object, definer) in system.admin.definers(&database.name).await? {
            let user = definer.rsplit_once('@').map_or(definer.as_str(), |(user, _)| user);
            if !own.iter().any(|own| own == user) {
                foreign.entry((database.project.to_string(), definer)).or_default().push(object);
            }
        }
    }
    Ok(foreign.into_iter().map(|((project, definer), objects)| finding(&project, &definer, &objects)).collect())
}

fn finding(project: &str, definer: &str, objects: &[String]) -> Finding {
    let mut names = objects[..objects.len().min(NAMED_MAX_COUNT)].join(", ");
    if objects.len() > NAMED_MAX_COUNT {
        names.push_str(&format!(" and {} more", objects.len() - NAMED_MAX_COUNT));
    }
    Finding::warning(
        CHECK,
        format!("project {project}: with the rights of {definer} run {names}"),
        "full keys of the project can change what these call: create them again with a full key, unless this is meant",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut() {
        let objects: Vec<String> = (1..=12).map(|n| format!("view a.v{n}")).collect();
        let message = finding("shop", "root@localhost", &objects).message;
        assert!(message.ends_with("view a.v9, view a.v10 and 2 more"), "{message}");
    }
}
