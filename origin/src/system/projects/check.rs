//! Compares an account's rights with the rights that it should have. Does no I/O.

use std::collections::BTreeSet;

use crate::database::admin::{AccountState, DatabaseRights};

/// Rights that newer MariaDB servers include in `ALL PRIVILEGES` on a database.
const HARMLESS: [&str; 1] = ["SHOW CREATE ROUTINE"];

pub fn excess(state: &AccountState, allowed: &DatabaseRights) -> Vec<String> {
    let mut faults = Vec::new();
    if !state.global.is_empty() {
        faults.push(format!("it has {} on the whole server", list(&state.global)));
    }
    if !state.roles.is_empty() {
        faults.push(format!("it may take on the role {}", list(&state.roles)));
    }
    if !state.other.is_empty() {
        faults.push(format!("it has {}", list(&state.other)));
    }
    for (pattern, privileges) in &state.databases {
        let Some(allowed) = allowed.get(pattern) else {
            faults.push(format!("it has rights on `{pattern}`, which is not the project's"));
            continue;
        };
        let excess: BTreeSet<String> = privileges
            .iter()
            .filter(|name| !allowed.contains(*name) && !HARMLESS.contains(&name.as_str()))
            .cloned()
            .collect();
        if !excess.is_empty() {
            faults.push(format!("it has {} on `{pattern}`", list(&excess)));
        }
    }
    faults
}

pub fn lack(state: &AccountState, needed: &DatabaseRights) -> Vec<String> {
    needed
        .iter()
        .filter_map(|(pattern, needs)| {
            let has = state.databases.get(pattern);
            let lacks: BTreeSet<String> =
                needs.iter().filter(|name| !has.is_some_and(|has| has.contains(*name))).cloned().collect();
            (!lacks.is_empty()).then(|| format!("it lacks {} on `{pattern}`", list(&lacks)))
        })
        .collect()
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn reading() -> DatabaseRights {
        BTreeMap::from([("shop".to_owned(), set(&["SELECT", "SHOW VIEW"]))])
    }

    #[test]
    fn an_account_with_exactly_its_rights_has_no_fault() {
        let state = AccountState {
            databases: BTreeMap::from([("shop".to_owned(), set(&["SELECT", "SHOW VIEW"]))]),
            ..AccountState::default()
        };
        assert_eq!(excess(&state, &reading()), Vec::<String>::new());
        assert_eq!(lack(&state, &reading()), Vec::<String>::new());
    }

    #[test]
    fn too_much_and_too_little_are_both_named() {
        let state = AccountState {
            global: set(&["FILE"]),
            databases: BTreeMap::from([
                ("shop".to_owned(), set(&["SELECT", "DELETE"])),
                ("mysql".to_owned(), set(&["SELECT"])),
            ]),
            ..AccountState::default()
        };
        assert_eq!(lack(&state, &reading()), ["it lacks SHOW VIEW on `shop`"]);
        assert_eq!(
            excess(&state, &reading()),
            [
                "it has FILE on the whole server",
                "it has rights on `mysql`, which is not the project's",
                "it has DELETE on `shop`",
            ]
        );
    }
}
