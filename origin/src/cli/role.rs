//! `selkie role`: sets, lists, shows, checks and removes the roles of a project.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use shared::ident::{DatabaseName, ProjectName, RoleName, TableName};
use shared::key::RoleClaims;
use shared::operation::TablePath;
use shared::policy::Action;

use super::system::{Opened, ProjectFilter, note, project, read, time};
use super::{CliError, Context, TextTable};
use crate::query::plan::Param;
use crate::query::plan::access::TableAccess;
use crate::query::role::{Claims, SqlRule, TableRule};
use crate::query::sql;
use crate::system::System;
use crate::system::roles::{Roles, schema};

#[derive(Debug, Subcommand)]
pub enum RoleCommand {
    /// Create a role from a file, or replace it; origins follow within a second
    Set(SetArgs),
    /// List roles
    List(ProjectFilter),
    /// Print a role's file
    Show(NamedArgs),
    /// Remove a role; its keys are refused from then on
    Remove(NamedArgs),
    /// Print what a caller may do with a table, and the SQL conditions
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub struct NamedArgs {
    /// The role
    #[arg(value_name = "NAME", value_parser = role)]
    name: RoleName,
    /// The project of the role
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
}

#[derive(Debug, Args)]
pub struct SetArgs {
    #[command(flatten)]
    named: NamedArgs,
    /// The role file, or - for standard input
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    named: NamedArgs,
    /// The table, with its database: shop.orders
    #[arg(long, value_name = "TABLE", value_parser = table_path)]
    table: TablePath,
    /// The caller's claims, as JSON
    #[arg(long = "as", value_name = "CLAIMS", default_value = "{}", value_parser = claims)]
    claims: RoleClaims,
}

pub(super) fn role(text: &str) -> Result<RoleName, String> {
    RoleName::parse(text).map_err(|problem| match problem.hint() {
        Some(hint) => format!("{} {hint}", problem.message()),
        None => problem.message().to_owned(),
    })
}

fn claims(text: &str) -> Result<RoleClaims, String> {
    serde_json::from_str(text).map_err(|error| format!("it must be a JSON object such as {{\"sub\": 7}}: {error}"))
}

fn table_path(text: &str) -> Result<TablePath, String> {
    let (database, table) = text.split_once('.').ok_or("it must be a table with its database, such as shop.orders")?;
    let said = |problem: shared::error::Problem| problem.message().to_owned();
    Ok(TablePath {
        database: DatabaseName::parse(database).map_err(said)?,
        table: TableName::parse(table).map_err(said)?,
    })
}

impl RoleCommand {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let opened = Opened::migrated(context).await?;
        let roles = Roles::new(opened.system.admin.clone(), opened.system.projects.clone());
        let outcome = match self {
            Self::Set(args) => args.run(context, &roles, &opened.system).await,
            Self::List(filter) => list(filter, context, &roles).await,
            Self::Show(args) => args.show(context, &roles).await,
            Self::Remove(args) => args.remove(context, &roles).await,
            Self::Check(args) => args.run(context, &roles, &opened.system).await,
        };
        opened.close(outcome).await
    }
}

#[derive(Serialize)]
struct NamedAnswer<'a> {
    project: &'a str,
    role: &'a str,
}

impl NamedArgs {
    fn answer(&self) -> NamedAnswer<'_> {
        NamedAnswer { project: self.project.as_str(), role: self.name.as_str() }
    }

    async fn show(self, context: &Context, roles: &Roles) -> Result<(), CliError> {
        let row = roles.get(&self.project, &self.name).await?;
        let value = serde_json::from_str::<serde_json::Value>(&row.definition)
            .map_err(|error| CliError::Output(error.into()))?;
        context.output.answer(&value, |_| row.definition.trim_end().to_owned())
    }

    async fn remove(self, context: &Context, roles: &Roles) -> Result<(), CliError> {
        roles.remove(&self.project, &self.name).await?;
        context.output.answer(&self.answer(), |answer| {
            format!(
                "role {} of project {} is removed; its keys are refused within a second",
                answer.role, answer.project
            )
        })
    }
}

impl SetArgs {
    async fn run(self, context: &Context, roles: &Roles, system: &System) -> Result<(), CliError> {
        let definition = read("role file", &self.file)?;
        let source = system.projects.account_source();
        let (named, tables) = (&self.named, schema(&context.config, system, source));
        for warning in roles.set(&named.project, &named.name, &definition, &tables).await? {
            note(&format!("selkie: warning: {warning}"));
        }
        context.output.answer(&named.answer(), |answer| {
            format!("role {} of project {} is set; it acts within a second", answer.role, answer.project)
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoleLine {
    project: String,
    role: String,
    created_at: String,
    updated_at: String,
}

async fn list(filter: ProjectFilter, context: &Context, roles: &Roles) -> Result<(), CliError> {
    let rows = roles.page(filter.project.as_ref(), None, u64::MAX).await?;
    let lines: Vec<_> = rows
        .iter()
        .map(|row| RoleLine {
            project: row.project.to_string(),
            role: row.name.to_string(),
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
        })
        .collect();
    context.output.answer(&lines, |lines| {
        let mut table = TextTable::new(["project", "role", "created", "updated"]);
        for line in lines {
            let RoleLine { project, role, created_at, updated_at } = line;
            table.row([project.clone(), role.clone(), created_at.clone(), updated_at.clone()]);
        }
        table.to_string()
    })
}

#[derive(Default, Serialize)]
struct AllowedAction {
    action: &'static str,
    allowed: bool,
    fields: Vec<String>,
    set: Vec<String>,
    /// Foreign keys that may point to records that the caller may not read.
    unchecked: Vec<String>,
    /// The SQL condition; `None` for all records, and if the action is not allowed.
    condition: Option<String>,
    params: Vec<String>,
}

impl CheckArgs {
    async fn run(self, context: &Context, roles: &Roles, system: &System) -> Result<(), CliError> {
        let source = system.projects.account_source();
        let (named, tables) = (&self.named, schema(&context.config, system, source));
        let claims = Claims::new(&self.claims);
        let (caller, access) = roles.access(&named.project, &named.name, claims, &self.table, &tables).await?;
        let actions = [
            ("read", Action::Read),
            ("insert", Action::Insert),
            ("update", Action::Update),
            ("delete", Action::Delete),
        ];
        let rule = caller.role().rule(&self.table.database, &self.table.table);
        let mut allowed: Vec<_> =
            actions.into_iter().map(|(name, action)| allowed(name, action, &access, rule)).collect();
        allowed.push(AllowedAction {
            action: "sql",
            allowed: caller.role().sql() == SqlRule::Read,
            ..AllowedAction::default()
        });
        context
            .output
            .answer(&allowed, |allowed| allowed.iter().map(AllowedAction::text).collect::<Vec<_>>().join("\n"))
    }
}

fn allowed(name: &'static str, action: Action, access: &TableAccess, rule: Option<&TableRule>) -> AllowedAction {
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (fields, set) = match action {
        Action::Read => (access.table().columns().iter().map(|column| column.name.as_str()).collect(), Vec::new()),
        Action::Insert | Action::Update => access.fields(action),
        _ => (Vec::new(), Vec::new()),
    };
    let written = rule.and_then(|rule| match action {
        Action::Insert => rule.insert.as_ref(),
        Action::Update => rule.update.as_ref(),
        _ => None,
    });
    let unchecked = written.iter().flat_map(|rule| &rule.unchecked).map(ToString::to_string).collect();
    let is_allowed = access.may(action);
    let statement = access.condition(action).map(|rule| sql::condition(rule.clone(), &access.scope()));
    AllowedAction {
        action: name,
        allowed: is_allowed,
        fields: if is_allowed { owned(fields) } else { Vec::new() },
        set: if is_allowed { owned(set) } else { Vec::new() },
        unchecked,
        condition: statement.as_ref().map(|statement| statement.text().to_owned()),
        params: statement.iter().flat_map(|statement| statement.params()).map(shown).collect(),
    }
}

fn shown(param: &Param) -> String {
    match param {
        Param::Null => "NULL".to_owned(),
        Param::Int(number) => number.to_string(),
        Param::UInt(number) => number.to_string(),
        Param::Float(number) => number.to_string(),
        Param::Double(number) => number.to_string(),
        Param::Text(text) => shared::ident::shown(text),
        Param::Bytes(bytes) => format!("{} bytes", bytes.len()),
    }
}

impl AllowedAction {
    fn text(&self) -> String {
        if !self.allowed {
            return format!("{}: no", self.action);
        }
        let mut text = format!("{}: yes", self.action);
        for (label, names) in [("fields", &self.fields), ("set by the role", &self.set), ("unchecked", &self.unchecked)]
        {
            if !names.is_empty() {
                text.push_str(&format!("\n  {label}: {}", names.join(", ")));
            }
        }
        match &self.condition {
            Some(condition) if self.params.is_empty() => text.push_str(&format!("\n  records: {condition}")),
            Some(condition) => {
                text.push_str(&format!("\n  records: {condition}, with {}", self.params.join(", ")));
            }
            None => text.push_str("\n  records: all"),
        }
        text
    }
}
