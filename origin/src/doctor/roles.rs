//! Checks which data roles and read keys can see: columns with names like secrets, tables without a rule of their own,
//! and roles that no longer fit the schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::ident::{DatabaseName, FieldName, ProjectName, RoleName, TableName};
use shared::key::Access;

use super::Finding;
use super::secrets::is_secret;
use crate::config::Config;
use crate::database::admin::{AdminError, KeyGrant, KeyRow, ListedRole, RoleRow};
use crate::database::schema_cache::SchemaCache;
use crate::query::role::{Pattern, Role, TableRule};
use crate::system::System;
use crate::system::keys::is_live;
use crate::system::roles::{RoleError, check_table, schema};

const CHECK: &str = "roles";

const NAMES_MAX_COUNT: usize = 5;

struct SeenTable {
    database: DatabaseName,
    name: TableName,
    columns: Vec<FieldName>,
}

/// The roles of a project and its keys that are neither revoked nor expired.
struct Readers<'a> {
    project: &'a ProjectName,
    roles: Vec<(&'a RoleName, Role)>,
    keys: Vec<&'a KeyRow>,
}

/// Checks the roles of all projects. If a project's read account can't log in, checks only that the project's roles can
/// be read and that the roles of its keys exist.
pub(super) async fn check(system: &System, config: &Config) -> Vec<Finding> {
    match examine(system, config).await {
        Ok(findings) if findings.is_empty() => vec![Finding::ok(
            CHECK,
            "roles fit the schema, and no role or read key sees a column that is named like a secret",
        )],
        Ok(findings) => findings,
        Err(error) => vec![Finding::fault(CHECK, &error)],
    }
}

async fn examine(system: &System, config: &Config) -> Result<Vec<Finding>, AdminError> {
    let roles = system.admin.roles(None, None, u64::MAX).await?;
    let mut keys = system.admin.keys(None).await?;
    let now = crate::clock::now();
    keys.retain(|key| is_live(key, now));
    let tables = schema(config, system, system.projects.unrepaired_accounts());
    let mut findings = Vec::new();
    for project in system.admin.projects().await? {
        let mut readers = Readers {
            project: &project.name,
            roles: Vec::new(),
            keys: keys.iter().filter(|key| key.project == project.name).collect(),
        };
        for listed in roles.iter().filter(|role| role.project == project.name) {
            let Some(row) = system.admin.role(&project.name, &listed.name).await? else {
                continue;
            };
            match Role::parse(&row.definition) {
                Ok(role) => readers.roles.push((&listed.name, role)),
                Err(fault) => findings.push(unreadable(&row, &fault.to_string())),
            }
        }
        findings.extend(readers.without_role(&roles));
        let account = system.projects.account(&project.name, Access::Read);
        let columns = match system.admin.visible_columns(&account).await {
            Ok(columns) => columns,
            // The check of the accounts reports this error.
            Err(AdminError::Login { .. }) => continue,
            // Code of the project can end the connection.
            Err(error) => {
                findings.push(Finding::wrong(
                    CHECK,
                    format!("the tables of project {} can't be listed: {error}", project.name),
                    "drop the view or the function that prevents it",
                ));
                continue;
            }
        };
        let seen = grouped(columns);
        findings.extend(readers.misfits(&tables).await);
        findings.extend(seen.iter().flat_map(|table| readers.secrets(table)));
        findings.extend(readers.open_tables(&seen));
    }
    Ok(findings)
}

/// Groups columns by table. The columns of a table must be adjacent.
fn grouped(columns: Vec<(DatabaseName, TableName, FieldName)>) -> Vec<SeenTable> {
    let mut tables: Vec<SeenTable> = Vec::new();
    for (database, name, column) in columns {
        match tables.last_mut() {
            Some(table) if table.database == database && table.name == name => table.columns.push(column),
            _ => tables.push(SeenTable { database, name, columns: vec![column] }),
        }
    }
    tables
}

fn unreadable(row: &RoleRow, fault: &str) -> Finding {
    Finding::wrong(
        CHECK,
        format!("the role {} of project {} can't be read, so its keys fail: {fault}", row.name, row.project),
        "set it anew with `selkie role set`",
    )
}

impl Readers<'_> {
    fn without_role(&self, roles: &[ListedRole]) -> Vec<Finding> {
        let exists = |name: &RoleName| roles.iter().any(|role| role.project == *self.project && role.name == *name);
        let mut missing: BTreeMap<&RoleName, Vec<String>> = BTreeMap::new();
        for key in &self.keys {
            if let KeyGrant::Role(role) = &key.grant
                && !exists(role)
            {
                missing.entry(role).or_default().push(key.id.to_string());
            }
        }
        let project = self.project;
        let found = missing.into_iter().map(|(role, keys)| {
            Finding::warning(
                CHECK,
                format!("project {project} has no role {role}, so these keys are refused: {}", list(&keys)),
                format!("`selkie role set {role}` makes the role; `selkie key revoke` ends a key"),
            )
        });
        found.collect()
    }

    /// Finds missing tables or fields, and values that no longer fit their fields.
    async fn misfits(&self, tables: &Arc<SchemaCache>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, role) in &self.roles {
            for (pattern, rule) in role.tables() {
                let whose = format!("the role {name} of project {}", self.project);
                let hint = format!("change its file (`selkie role show {name}`), and set it again");
                match check_table(self.project, pattern, rule, tables).await {
                    Ok(_) => {}
                    Err(RoleError::Fault(fault)) => {
                        findings.push(Finding::warning(CHECK, format!("{whose} is wrong at {fault}"), hint));
                    }
                    Err(error) => findings.push(Finding::warning(
                        CHECK,
                        format!("{whose} can't be checked: {error}"),
                        error.hint().unwrap_or_else(|| "run `selkie doctor` again".to_owned()),
                    )),
                }
            }
        }
        findings
    }

    /// Finds columns that look like secrets. Columns that the same roles and keys can see make one finding.
    fn secrets(&self, table: &SeenTable) -> Vec<Finding> {
        let mut by_readers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for column in table.columns.iter().filter(|column| is_secret(column.as_str())) {
            if let Some(readers) = self.of(table, column) {
                by_readers.entry(readers).or_default().push(column.to_string());
            }
        }
        let SeenTable { database, name, .. } = table;
        let found = by_readers.into_iter().map(|(readers, columns)| {
            Finding::warning(
                CHECK,
                format!("named like secrets in {database}.{name}: {}; seen by {readers}", columns.join(", ")),
                format!(
                    "leave them out of roles (\"fields\": {{\"omit\": [\"{}\"]}}); a read key sees every column, so \
                     issue keys with a role instead",
                    columns.join("\", \"")
                ),
            )
        });
        found.collect()
    }

    /// Returns the roles and keys that can see a column, without full keys, which see every column.
    fn of(&self, table: &SeenTable, column: &FieldName) -> Option<String> {
        let sees = |role: &Role| {
            let rule = role.rule(&table.database, &table.name);
            rule.and_then(|rule| rule.read.as_ref()).is_some_and(|read| read.fields.has(column))
        };
        let roles: Vec<String> =
            self.roles.iter().filter(|(_, role)| sees(role)).map(|(name, _)| name.to_string()).collect();
        let is_read = |key: &&&KeyRow| key.grant == KeyGrant::Access(Access::Read);
        let keys: Vec<String> = self.keys.iter().filter(is_read).map(|key| key.id.to_string()).collect();
        let project = self.project;
        let mut readers = Vec::new();
        if !roles.is_empty() {
            readers.push(format!("the {} of project {project}", counted("role", &roles)));
        }
        if !keys.is_empty() {
            readers.push(format!("the {}", counted("read key", &keys)));
        }
        (!readers.is_empty()).then(|| readers.join(" and "))
    }

    /// Finds roles with a row rule for some table that reach all records of other tables through a pattern: perhaps an
    /// oversight.
    fn open_tables(&self, tables: &[SeenTable]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, role) in &self.roles {
            let is_own = |pattern: &Pattern| matches!(pattern, Pattern::Table(..));
            if !role.tables().iter().any(|(pattern, rule)| is_own(pattern) && has_rows(rule)) {
                continue;
            }
            let is_named = |table: &SeenTable| {
                let named = Pattern::Table(table.database.clone(), table.name.clone());
                role.tables().iter().any(|(pattern, _)| *pattern == named)
            };
            let is_open = |table: &&SeenTable| {
                !is_named(table) && role.rule(&table.database, &table.name).is_some_and(reaches_all)
            };
            let open: Vec<String> =
                tables.iter().filter(is_open).map(|table| format!("{}.{}", table.database, table.name)).collect();
            if !open.is_empty() {
                findings.push(Finding::warning(
                    CHECK,
                    format!(
                        "the role {name} of project {} has row rules, but reaches all records of {} through a pattern",
                        self.project,
                        list(&open)
                    ),
                    "give each of these tables an entry of its own: {} for nothing, {\"read\": true} for what is meant",
                ));
            }
        }
        findings
    }
}

fn has_rows(rule: &TableRule) -> bool {
    let writes = [&rule.insert, &rule.update].into_iter().flatten();
    rule.read.as_ref().is_some_and(|read| read.rows.is_some())
        || writes.into_iter().any(|write| write.rows.is_some())
        || rule.delete.as_ref().is_some_and(|delete| delete.rows.is_some())
}

fn reaches_all(rule: &TableRule) -> bool {
    rule.read.as_ref().is_some_and(|read| read.rows.is_none())
        || rule.update.as_ref().is_some_and(|update| update.rows.is_none())
        || rule.delete.as_ref().is_some_and(|delete| delete.rows.is_none())
}

fn counted(noun: &str, names: &[String]) -> String {
    let ending = if names.len() == 1 { "" } else { "s" };
    format!("{noun}{ending} {}", list(names))
}

fn list(names: &[String]) -> String {
    match names.split_at_checked(NAMES_MAX_COUNT) {
        Some((first, rest)) if !rest.is_empty() => format!("{} and {} more", first.join(", "), rest.len()),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn table(name: &str, columns: &[&str]) -> SeenTable {
        SeenTable {
            database: DatabaseName::parse("shop").unwrap(),
            name: TableName::parse(name).unwrap(),
            columns: columns.iter().map(|name| FieldName::parse(name).unwrap()).collect(),
        }
    }

    fn key(grant: KeyGrant) -> KeyRow {
        KeyRow {
            id: Uuid::nil(),
            project: ProjectName::parse("web").unwrap(),
            name: String::new(),
            grant,
            kid: String::new(),
            created_at: 0,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
            created_by: None,
        }
    }

    /// Returns the messages of a check with the role `clerk` and one key.
    fn messages(role: &str, key: &KeyRow, check: impl Fn(&Readers<'_>) -> Vec<Finding>) -> Vec<String> {
        let (project, clerk) = (ProjectName::parse("web").unwrap(), RoleName::parse("clerk").unwrap());
        let roles = vec![(&clerk, Role::parse(role).unwrap())];
        let readers = Readers { project: &project, roles, keys: vec![key] };
        check(&readers).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_secret_is_reported_for_those_that_see_it() {
        let users = table("users", &["id", "name", "password_hash", "iban"]);
        let (full, read) = (key(KeyGrant::Access(Access::Full)), key(KeyGrant::Access(Access::Read)));
        let omits = r#"{"tables": {"shop.*": {"read": {"fields": {"omit": ["password_hash"]}}}}}"#;
        let check = |readers: &Readers<'_>| readers.secrets(&users);
        let nil = Uuid::nil();
        assert_eq!(
            messages(omits, &full, check),
            ["named like secrets in shop.users: iban; seen by the role clerk of project web"]
        );
        assert_eq!(
            messages(omits, &read, check),
            [
                format!("named like secrets in shop.users: password_hash; seen by the read key {nil}"),
                format!(
                    "named like secrets in shop.users: iban; seen by the role clerk of project web and the read key {nil}"
                ),
            ]
        );
        for blind in
            [r#"{"tables": {"*": {"insert": true}}}"#, r#"{"tables": {"*": {"read": true}, "shop.users": {}}}"#]
        {
            assert_eq!(messages(blind, &full, check), Vec::<String>::new());
        }
    }

    #[test]
    fn a_table_behind_a_pattern_is_reported_beside_row_rules() {
        let tables = [table("orders", &["id"]), table("notes", &["id"]), table("logs", &["id"])];
        let full = key(KeyGrant::Access(Access::Full));
        let check = |readers: &Readers<'_>| readers.open_tables(&tables);
        let role =
            |rest: &str| format!(r#"{{"tables": {{"shop.orders": {{"read": {{"rows": {{"id": 1}}}}}}{rest}}}}}"#);
        assert_eq!(
            messages(&role(r#", "shop.*": {"read": true}, "shop.logs": {}"#), &full, check),
            ["the role clerk of project web has row rules, but reaches all records of shop.notes through a pattern"]
        );
        for closed in ["", r#", "shop.*": {"read": {"rows": {"id": 2}}}"#, r#", "*": {"insert": true}"#] {
            assert_eq!(messages(&role(closed), &full, check), Vec::<String>::new(), "{closed}");
        }
        assert_eq!(messages(r#"{"tables": {"*": {"read": true}}}"#, &full, check), Vec::<String>::new());
    }

    #[test]
    fn a_key_without_its_role_is_reported() {
        let gone = key(KeyGrant::Role(RoleName::parse("gone").unwrap()));
        let found = messages("{}", &gone, |readers| readers.without_role(&[]));
        assert_eq!(found, [format!("project web has no role gone, so these keys are refused: {}", Uuid::nil())]);
    }

    #[test]
    fn a_long_list_is_counted() {
        let names: Vec<String> = (0..7).map(|at| at.to_string()).collect();
        assert_eq!(list(&names), "0, 1, 2, 3, 4 and 2 more");
        assert_eq!(list(&names[..5]), "0, 1, 2, 3, 4");
    }
}
