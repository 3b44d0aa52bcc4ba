//! Writes the Python types of an [`Interface`]: a `TypedDict` for each form of a table's records.

use super::identifier;
use super::value::ValueType;
use super::{Interface, TableInterface, TooLong};
use crate::query::catalog::Column;
use crate::query::unique_names::UniqueNames;
use serde_json::Value;
use shared::policy::Action;
use std::fmt::Write as _;

const HEAD: &str = "\
\"\"\"The tables of the databases, as their keys may use them. Written by Selkie: write it again after a change of tables.\"\"\"

from __future__ import annotations

from typing import Any, Literal, NotRequired, Optional, TypedDict, Union

";

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

pub fn types(interface: &Interface) -> Result<String, TooLong> {
    let mut out = String::from(HEAD);
    let mut names = UniqueNames::default();
    for table in interface.tables() {
        let name = format!("{}{}", identifier::pascal(table.database()), identifier::pascal(table.name()));
        let name = if identifier::is_plain(&name) { name } else { format!("Table{name}") };
        let name = names.unique(&name, "");
        for (suffix, action) in [("", Action::Read), ("Insert", Action::Insert), ("Update", Action::Update)] {
            if let Some(fields) = table.form(action) {
                let name = if suffix.is_empty() { name.clone() } else { names.unique(&format!("{name}{suffix}"), "") };
                write_type(&mut out, &name, table, &fields);
            }
        }
        interface.check_description_length(out.len())?;
    }
    Ok(out)
}

fn write_type(out: &mut String, name: &str, table: &TableInterface, fields: &[(&Column, bool)]) {
    let is_field = |name: &str| identifier::is_plain(name) && !name.starts_with("__") && !KEYWORDS.contains(&name);
    let full_name = Value::from(format!("{}.{}", table.database(), table.name()));
    // Writing to a string can't fail.
    if fields.iter().all(|(column, _)| is_field(column.name.as_str())) {
        let _ = writeln!(out, "\nclass {name}(TypedDict):\n    {full_name}\n");
        for (column, is_optional) in fields {
            let _ = writeln!(out, "    {}: {}", column.name, annotation(column, *is_optional));
        }
    } else {
        let _ = writeln!(out, "\n# {full_name}\n{name} = TypedDict({}, {{", Value::from(name));
        for (column, is_optional) in fields {
            let (field, annotation) = (Value::from(column.name.as_str()), annotation(column, *is_optional));
            let _ = writeln!(out, "    {field}: {annotation},");
        }
        out.push_str("})\n");
    }
    out.push('\n');
}

fn annotation(column: &Column, is_optional: bool) -> String {
    let value = match ValueType::of(column) {
        ValueType::Integer { .. } => "int".to_owned(),
        ValueType::Long { .. } => "Union[int, str]".to_owned(),
        ValueType::Float => "float".to_owned(),
        ValueType::Enum(members) if !members.is_empty() => {
            let members: Vec<_> = members.iter().map(|member| Value::from(member).to_string()).collect();
            format!("Literal[{}]", members.join(", "))
        }
        ValueType::Json => "Any".to_owned(),
        ValueType::Geometry => "dict[str, Any]".to_owned(),
        _ => "str".to_owned(),
    };
    let value = if column.nullable { format!("Optional[{value}]") } else { value };
    if is_optional { format!("NotRequired[{value}]") } else { value }
}
