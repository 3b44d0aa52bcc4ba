//! Writes the Rust types of an [`Interface`]: a `serde` struct for each form of a table's records, and ENUM types.

use super::identifier;
use super::value::ValueType;
use super::{Interface, TableInterface, TooLong};
use crate::query::catalog::Column;
use crate::query::unique_names::UniqueNames;
use shared::policy::Action;
use std::fmt::Write as _;

const HEAD: &str = "\
//! The tables of the databases, as their keys may use them. Written by Selkie: write it again after a change of tables.

use serde::{Deserialize, Serialize};

/// An integer, which answers have as digits if it is beyond ±(2^53−1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Integer {
    Number(i64),
    Digits(String),
}
";

const KEYWORDS: [&str; 46] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where",
];
/// Keywords to which a `_` is added, since most of them can't name a field even with `r#`.
const RESERVED: [&str; 5] = ["crate", "self", "super", "while", "yield"];

pub fn types(interface: &Interface) -> Result<String, TooLong> {
    let mut out = String::from(HEAD);
    let mut names = UniqueNames::default();
    names.unique("Integer", "");
    for table in interface.tables() {
        let name = format!("{}{}", identifier::pascal(table.database()), identifier::pascal(table.name()));
        let name = if identifier::is_plain(&name) { name } else { format!("Table{name}") };
        let name = names.unique(&name, "");
        let enums = Enums::of(table, &name, &mut names);
        enums.write(&mut out);
        for (suffix, action) in [("", Action::Read), ("Insert", Action::Insert), ("Update", Action::Update)] {
            if let Some(fields) = table.form(action) {
                let name = if suffix.is_empty() { name.clone() } else { names.unique(&format!("{name}{suffix}"), "") };
                write_struct(&mut out, &name, &enums, &fields);
            }
        }
        interface.check_description_length(out.len())?;
    }
    Ok(out)
}

struct Enums<'a>(Vec<(&'a Column, String)>);

impl<'a> Enums<'a> {
    fn of(table: &'a TableInterface, prefix: &str, names: &mut UniqueNames) -> Self {
        let mut columns: Vec<&Column> = table.columns().iter().map(|column| &**column).collect();
        for column in table.given(Action::Insert).into_iter().chain(table.given(Action::Update)) {
            if !columns.iter().any(|known| known.name == column.name) {
                columns.push(column);
            }
        }
        let columns = columns.into_iter();
        let enums =
            columns.filter(|column| matches!(ValueType::of(column), ValueType::Enum(members) if !members.is_empty()));
        Self(
            enums
                .map(|column| {
                    (column, names.unique(&format!("{prefix}{}", identifier::pascal(column.name.as_str())), ""))
                })
                .collect(),
        )
    }

    fn write(&self, out: &mut String) {
        for (column, name) in &self.0 {
            // Writing to a string can't fail.
            let _ = writeln!(
                out,
                "\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]\npub enum {name} {{"
            );
            let mut variants = UniqueNames::default();
            for member in column.values.iter() {
                let variant = identifier::pascal(member);
                let is_name = identifier::is_plain(&variant) && variant != "Self";
                let variant = variants.unique(&if is_name { variant } else { format!("Member{variant}") }, "");
                let _ = writeln!(out, "    #[serde(rename = {})]\n    {variant},", quoted(member));
            }
            out.push_str("}\n");
        }
    }

    fn name(&self, column: &Column) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.name == column.name).map(|(_, name)| name.as_str())
    }
}

fn write_struct(out: &mut String, name: &str, enums: &Enums<'_>, fields: &[(&Column, bool)]) {
    let _ = writeln!(out, "\n#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]\npub struct {name} {{");
    let mut names = UniqueNames::default();
    for (column, is_optional) in fields {
        let own = column.name.as_str();
        let mut field = identifier::snake(own);
        if RESERVED.contains(&field.as_str()) {
            field.push('_');
        }
        let field = names.unique(&field, "");
        if field != own {
            let _ = writeln!(out, "    #[serde(rename = {})]", quoted(own));
        }
        let value = value(column, enums);
        let value = if column.nullable { format!("Option<{value}>") } else { value };
        let value = match is_optional {
            true => {
                // The outer `None` leaves the field out, the inner one is null.
                out.push_str("    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n");
                format!("Option<{value}>")
            }
            false => value,
        };
        let field = match field.as_str() {
            word if KEYWORDS.contains(&word) => format!("r#{word}"),
            word => word.to_owned(),
        };
        let _ = writeln!(out, "    pub {field}: {value},");
    }
    out.push_str("}\n");
}

fn value(column: &Column, enums: &Enums<'_>) -> String {
    let name = match ValueType::of(column) {
        ValueType::Integer { .. } => "i64",
        ValueType::Long { .. } => "Integer",
        ValueType::Float => "f64",
        ValueType::Json | ValueType::Geometry => "serde_json::Value",
        ValueType::Enum(_) => enums.name(column).unwrap_or("String"),
        _ => "String",
    };
    name.to_owned()
}

fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            c if c.is_control() => literal.extend(c.escape_unicode()),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}
