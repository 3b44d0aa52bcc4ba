//! Describes a table: the methods that the caller may use on it, and its fields.

use super::Tables;
use crate::database::schema_cache::SchemaAge;
use crate::http::respond;
use crate::query::catalog::relations::{Relation, RelationKind};
use crate::query::catalog::{Column, Kind, Members, Traits};
use crate::query::plan::access::TableAccess;
use crate::query::plan::related::visible;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use axum::response::Response;
use serde::Serialize;
use shared::error::Problem;
use shared::ident::{FieldName, TableName};
use shared::key::Grant;
use shared::operation::TablePath;
use shared::policy::{self, Action};
use std::sync::Arc;

pub(in crate::http) async fn describe(
    app: &Arc<ServiceState>,
    caller: &Caller,
    path: &TablePath,
) -> Result<Response, Problem> {
    let access = Tables::one(app, caller, path, SchemaAge::Cached).await?;
    let table = access.table();
    if !access.may(Action::Read) {
        return Err(policy::role_forbids(&format!("read the schema of {}.{}", path.database, path.table)));
    }
    let relations = app.schema_cache.relations(caller.project(), &path.database, SchemaAge::Cached).await?;
    let reads = |name: &TableName, column: &FieldName| {
        caller.reads(&TablePath { database: path.database.clone(), table: name.clone() }, column)
    };
    let relations = visible(&relations, &access, &reads);
    let fields = table.columns().iter().enumerate();
    let name_of = |at: &usize| table.column(*at).name.as_str();
    let full_text = table.full_text();
    let description = Description {
        kind: if table.traits().view { "view" } else { "table" },
        methods: methods(caller.grant(), table.traits(), |action| !table.is_broken() && access.may(action)),
        schema: fields.map(|(at, column)| Field::of(at, column, &access, caller)).collect(),
        full_text: full_text.iter().map(|index| index.iter().map(name_of).collect()).collect(),
        relations: relations.iter().map(|relation| Related::of(relation)).collect(),
    };
    let json = serde_json::to_vec(&description)
        .map_err(|error| Problem::internal("The schema can't be shown.", error.to_string()))?;
    Ok(respond::payload(&json))
}

pub(in crate::http) fn methods(grant: &Grant, traits: Traits, may: impl Fn(Action) -> bool) -> Vec<&'static str> {
    policy::table_methods(|action| {
        let is_possible = !traits.read_only || action == Action::Read;
        is_possible && may(action) && policy::permit(action, grant).is_ok()
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Description<'a> {
    kind: &'static str,
    methods: Vec<&'static str>,
    schema: Vec<Field<'a>>,
    /// The fields of each full-text index: a search must name exactly the fields of one.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    full_text: Vec<Vec<&'a str>>,
    relations: Vec<Related<'a>>,
}

#[derive(Serialize)]
struct Related<'a> {
    name: &'a str,
    kind: &'static str,
    table: &'a str,
    /// Fields of the described table. Each must equal the field at the same index of `references`.
    fields: Vec<&'a str>,
    /// The fields that must equal `fields`: of the link table `through` or, without a link table, of `table`.
    references: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    through: Option<&'a str>,
}

impl<'a> Related<'a> {
    fn of(relation: &'a Relation) -> Self {
        let names = |columns: &'a [FieldName]| columns.iter().map(FieldName::as_str).collect();
        Self {
            name: &relation.spelling,
            kind: match relation.kind {
                RelationKind::One => "one",
                RelationKind::Many => "many",
            },
            table: relation.table.as_str(),
            fields: names(&relation.columns),
            references: names(&relation.matches),
            through: relation.link.as_ref().map(|link| link.table.as_str()),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Field<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    type_text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_type: Option<&'static str>,
    required: bool,
    nullable: bool,
    default: Option<&'a str>,
    primary_key: bool,
    auto_increment: bool,
    generated: bool,
    /// True for an INVISIBLE column: a read returns it only if the read names it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invisible: bool,
    writable: bool,
    unique: bool,
    #[serde(skip_serializing_if = "Members::is_empty")]
    values: &'a Members,
    references: Option<Target<'a>>,
    comment: &'a str,
}

#[derive(Serialize)]
struct Target<'a> {
    table: &'a str,
    field: &'a str,
}

impl<'a> Field<'a> {
    fn of(at: usize, column: &'a Column, access: &'a TableAccess, caller: &Caller) -> Self {
        let table = access.table();
        Self {
            name: column.name.as_str(),
            type_text: &column.type_text,
            // MariaDB reports the type of a JSON column as longtext.
            json_type: (column.kind == Kind::Json).then_some("json"),
            required: column.required() && !access.sets(at),
            nullable: column.nullable,
            default: column.default.as_deref().filter(|default| !table.names_hidden(default)),
            primary_key: column.primary,
            auto_increment: column.auto_increment,
            generated: column.generated,
            invisible: column.invisible,
            writable: !column.generated && !table.traits().read_only && access.may_write(at),
            unique: !column.unique.is_empty(),
            values: &column.values,
            references: column
                .references
                .as_ref()
                .filter(|target| caller.sees(table.database(), target))
                .map(|target| Target { table: &target.table, field: &target.field }),
            comment: &column.comment,
        }
    }
}
