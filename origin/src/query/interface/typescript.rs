//! Writes the TypeScript types of an [`Interface`], which tell `@selkie/client` the tables and fields of a key.

use super::value::ValueType;
use super::{Id, Interface, TableInterface, TooLong, identifier, kind};
use crate::query::catalog::Column;
use serde_json::Value;
use shared::policy::Action;
use std::fmt::Write as _;

const HEAD: &str = "\
// The tables of the databases, as their keys may use them. Written by Selkie: write it again after a change of tables.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A geometry of RFC 7946. */
export interface GeoJson {
  type: string;
  coordinates?: Json[];
  geometries?: GeoJson[];
}

";

pub fn types(interface: &Interface) -> Result<String, TooLong> {
    let mut out = String::from(HEAD);
    out.push_str("export interface Database {\n");
    for (database, tables) in &interface.databases {
        line(&mut out, 2, &format!("{}: {{", property(database.as_str())));
        for table in tables {
            write_table(&mut out, table);
            interface.check_description_length(out.len())?;
        }
        line(&mut out, 2, "};");
    }
    out.push_str("}\n");
    Ok(out)
}

fn write_table(out: &mut String, table: &TableInterface) {
    line(out, 4, &format!("{}: {{", property(table.name())));
    for (name, action) in [("row", Action::Read), ("insert", Action::Insert), ("update", Action::Update)] {
        line(out, 6, &format!("{name}: {};", object(table.form(action))));
    }
    let key = match table.id() {
        None => "never".to_owned(),
        Some(Id::One(column)) => value(column),
        Some(Id::Several(_)) => "string".to_owned(),
        Some(Id::Hidden) => "number | string".to_owned(),
    };
    line(out, 6, &format!("key: {key};"));
    if table.relations.is_empty() {
        line(out, 6, "relations: {};");
    } else {
        line(out, 6, "relations: {");
        for relation in &table.relations {
            let far = Value::from(format!("{}.{}", table.database(), relation.table));
            let (name, kind) = (property(&relation.spelling), kind(relation));
            line(out, 8, &format!("{name}: {{ table: {far}; kind: \"{kind}\" }};"));
        }
        line(out, 6, "};");
    }
    line(out, 4, "};");
}

fn line(out: &mut String, indent: usize, text: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "{:indent$}{text}", "");
}

fn object(fields: Option<Vec<(&Column, bool)>>) -> String {
    let fields = fields.map(|fields| fields.into_iter().map(|(column, is_optional)| field(column, is_optional)));
    match fields.map(Iterator::collect::<Vec<_>>) {
        None => "never".to_owned(),
        // `{}` would take any value.
        Some(fields) if fields.is_empty() => "Record<string, never>".to_owned(),
        Some(fields) => format!("{{ {} }}", fields.join("; ")),
    }
}

fn field(column: &Column, is_optional: bool) -> String {
    let mark = if is_optional { "?" } else { "" };
    let null = if column.nullable && ValueType::of(column) != ValueType::Json { " | null" } else { "" };
    format!("{}{mark}: {}{null}", property(column.name.as_str()), value(column))
}

fn value(column: &Column) -> String {
    match ValueType::of(column) {
        ValueType::Integer { .. } | ValueType::Float => "number".to_owned(),
        ValueType::Long { .. } => "number | string".to_owned(),
        ValueType::Enum(members) if !members.is_empty() => {
            members.iter().map(|member| Value::from(member).to_string()).collect::<Vec<_>>().join(" | ")
        }
        ValueType::Json => "Json".to_owned(),
        ValueType::Geometry => "GeoJson".to_owned(),
        _ => "string".to_owned(),
    }
}

fn property(name: &str) -> String {
    if identifier::is_plain(name) { name.to_owned() } else { Value::from(name).to_string() }
}
