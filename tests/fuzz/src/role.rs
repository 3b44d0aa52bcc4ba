//! The invariants that must hold for any role file:
//!
//! ```text
//! bytes → Role::parse → a clear fault, or a role → what it allows on the catalogue's tables
//! ```
//!
//! White space in the file does not change the role. A rule that needs a claim denies callers that
//! lack the claim. Each condition becomes valid SQL.

use crate::catalogue;
use crate::statement::is_ours;
use origin::query::catalog::Table;
use origin::query::plan::Param;
use origin::query::plan::access::{CallerRole, ProjectRole, Rights, check_fields, check_rows};
use origin::query::role::{Claims, Role};
use origin::query::sql;
use serde_json::{Map, Value as Json, json};
use shared::ident::RoleName;
use shared::operation::TablePath;
use shared::policy::Action;
use std::sync::Arc;

/// Maximum bytes of a fault's place or text: some escaped names of 80 characters in a sentence.
const FAULT_MAX_BYTES: usize = 4_800;

const ACTIONS: [Action; 4] = [Action::Read, Action::Insert, Action::Update, Action::Delete];

/// What a caller may do with a table. `None`: the table does not exist for the caller.
type Meaning = Option<Vec<Allowed>>;

#[derive(Debug, PartialEq)]
struct Allowed {
    action: Action,
    allowed: bool,
    fields: (Vec<String>, Vec<String>),
    condition: Option<(String, Vec<Param>)>,
}

/// Checks the invariants of a role file of any bytes.
///
/// # Panics
/// An invariant does not hold.
pub fn role(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    let parsed = Role::parse(text);
    assert_eq!(parsed, Role::parse(text), "the same file again");
    let spaced = spaced(text);
    match (parsed, Role::parse(&spaced)) {
        (Err(fault), _) => {
            for said in [&fault.place, &fault.fault] {
                assert!(!said.trim().is_empty() && said.len() <= FAULT_MAX_BYTES, "{} bytes: {said:?}", said.len());
                assert!(!said.chars().any(char::is_control), "{said:?}");
            }
        }
        // The added white space may make the file larger than allowed.
        (Ok(_), Err(fault)) => assert!(fault.fault.contains("larger than"), "{fault}: {spaced}"),
        (Ok(role), Ok(same)) => {
            let named: Map<_, _> = role.claims().into_iter().map(|name| (name.to_owned(), json!("7"))).collect();
            for claims in [Map::new(), named] {
                let meaning = meaning(&role, &claims);
                assert_eq!(meaning, self::meaning(&role, &claims), "the same role again");
                assert_eq!(meaning, self::meaning(&same, &claims), "{text}\n{spaced}");
            }
            denies_without_claims(&role);
        }
    }
}

fn rights(role: &Role, claims: &Map<String, Json>) -> Rights {
    let name = RoleName::parse("fuzzed").expect("a name");
    let claims = Claims::new(&claims.iter().map(|(name, value)| (name.clone(), value.clone())).collect());
    Rights::Role(Arc::new(CallerRole::new(Arc::new(ProjectRole::new(name, role.clone(), Arc::default())), claims)))
}

fn path(table: &Table) -> TablePath {
    TablePath { database: table.database().clone(), table: table.name().clone() }
}

/// Returns what the role's caller may do with each table.
fn meaning(role: &Role, claims: &Map<String, Json>) -> Vec<Meaning> {
    let rights = rights(role, claims);
    catalogue::all().iter().map(|table| of_table(role, &rights, table)).collect()
}

fn of_table(role: &Role, rights: &Rights, table: &Arc<Table>) -> Meaning {
    let known = role.rule(table.database(), table.name());
    assert_eq!(rights.check(&path(table)).is_ok(), known.is_some());
    let Ok(access) = rights.of(table) else {
        assert!(known.is_none(), "a table with a rule is hidden");
        return None;
    };
    let whole = Rights::Full.of(table).expect("full rights");
    let fits = known.is_some_and(|rule| {
        let mut rows = rule.rows();
        check_fields(rule, table).is_ok() && rows.all(|(action, rows)| check_rows(rows, &whole.scope(), action).is_ok())
    });
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let allowed = ACTIONS.map(|action| {
        let condition = access.condition(action).map(|rule| sql::condition(rule.clone(), &access.scope()));
        let (given, set) = access.fields(action);
        Allowed {
            action,
            allowed: access.may(action),
            fields: (owned(given), owned(set)),
            condition: condition.map(|statement| {
                let _ = is_ours(&statement);
                (statement.text().to_owned(), statement.params().to_vec())
            }),
        }
    });
    // A rule that omits a field that the table does not have allows nothing until it is mended.
    assert!(!fits || allowed.iter().any(|allowed| allowed.allowed), "a rule that fits its table allows something");
    Some(allowed.into())
}

/// Checks that conditions that need a claim are false for a caller without claims.
fn denies_without_claims(role: &Role) {
    let rights = rights(role, &Map::new());
    for table in catalogue::all() {
        let Some(rule) = role.rule(table.database(), table.name()) else {
            continue;
        };
        let access = rights.of(table).expect("a rule");
        let rows = [
            (Action::Read, rule.read.as_ref().and_then(|rule| rule.rows.as_ref())),
            (Action::Insert, rule.insert.as_ref().and_then(|rule| rule.rows.as_ref())),
            (Action::Update, rule.update.as_ref().and_then(|rule| rule.rows.as_ref())),
            (Action::Delete, rule.delete.as_ref().and_then(|rule| rule.rows.as_ref())),
        ];
        for (action, rows) in rows {
            let Some(rows) = rows else {
                assert_eq!(access.condition(action), None);
                continue;
            };
            let condition = access.condition(action).expect("a condition");
            if !rows.claims().is_empty() {
                assert_eq!(sql::condition(condition.clone(), &access.scope()).text(), "FALSE", "{action:?}");
            }
        }
    }
}

fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        let structural = !in_string && matches!(c, '{' | '}' | '[' | ']' | ':' | ',');
        spaced.push_str(if structural { " " } else { "" });
        spaced.push(c);
        spaced.push_str(if structural { "\n" } else { "" });
        match (in_string, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => in_string = !in_string,
            _ => {}
        }
    }
    spaced
}
