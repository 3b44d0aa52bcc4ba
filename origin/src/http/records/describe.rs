//! Describes a table: the methods that an API key may use, and the fields.

use crate::app::App;
use crate::http::respond;
use crate::query::catalog::{Column, Kind, Table};
use axum::response::Response;
use serde::Serialize;
use shared::error::Problem;
use shared::key::Principal;
use shared::operation::TablePath;
use shared::policy;
use std::sync::Arc;

/// Handles `OPTIONS …/{table}` and `GET …/{table}/_schema`.
pub(in crate::http) async fn describe(
    app: &Arc<App>,
    principal: &Principal,
    path: &TablePath,
) -> Result<Response, Problem> {
    let table = app.schema_cache.table(principal.project(), path).await?;
    let description = Description {
        methods: match table.traits().read_only {
            true => policy::READ_METHODS,
            false => policy::table_methods(principal.access()),
        },
        schema: table.columns().iter().map(|column| Field::of(column, &table)).collect(),
    };
    let json = serde_json::to_vec(&description)
        .map_err(|error| Problem::internal("The schema can't be shown.", error.to_string()))?;
    Ok(respond::payload(&json))
}

#[derive(Serialize)]
struct Description<'a> {
    methods: &'static [&'static str],
    schema: Vec<Field<'a>>,
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
    writable: bool,
    unique: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    values: &'a [String],
    references: Option<Target<'a>>,
    comment: &'a str,
}

#[derive(Serialize)]
struct Target<'a> {
    table: &'a str,
    field: &'a str,
}

impl<'a> Field<'a> {
    fn of(column: &'a Column, table: &Table) -> Self {
        Self {
            name: column.name.as_str(),
            type_text: &column.type_text,
            // MariaDB reports the type of a JSON column as longtext.
            json_type: (column.kind == Kind::Json).then_some("json"),
            required: column.required(),
            nullable: column.nullable,
            default: column.default.as_deref(),
            primary_key: column.primary,
            auto_increment: column.auto_increment,
            generated: column.generated,
            writable: !column.generated && !table.traits().read_only,
            unique: column.unique,
            values: &column.values,
            references: column.references.as_ref().map(|target| Target { table: &target.table, field: &target.field }),
            comment: &column.comment,
        }
    }
}
