//! The paths and schemas of tables.

use super::template::{Operations, Template, TemplateText, completed};
use super::{Separator, WriteError, member};
use crate::query::catalog::Column;
use crate::query::catalog::relations::{Relation, RelationKind};
use crate::query::interface::value::{ValueType, or_null};
use crate::query::interface::{Id, Interface, TableInterface};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use shared::policy::Action;
use std::collections::HashMap;

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const PATHS: [&str; 4] = ["", "/_schema", "/query", "/{id}"];

pub(super) fn encoded(name: &str) -> String {
    utf8_percent_encode(name, ENCODED).to_string()
}

pub(super) fn paths(
    interface: &Interface,
    templates: &[Template],
    separator: &mut Separator<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let templates = completed(templates);
    let mut texts: HashMap<(&str, Vec<&'static str>), Option<TemplateText>> = HashMap::new();
    for table in interface.tables() {
        let (component, name) = (table.component(), table.full_name());
        let base = format!("/crud/{}/{}", encoded(table.database()), encoded(table.name()));
        for path in PATHS {
            let Some(allowed) = table.allowed_actions(path) else {
                continue;
            };
            let text = match texts.entry((path, allowed.clone())) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(new) => {
                    let is_offered =
                        |template: &&Template| template.path == path && allowed.contains(&template.action.as_str());
                    let operations: Operations = templates.iter().filter(is_offered).cloned().collect();
                    let item = operations.path_item();
                    new.insert((!operations.is_empty()).then(|| TemplateText::new(&item)).transpose()?)
                }
            };
            if let Some(text) = text {
                separator.write(out)?;
                serde_json::to_writer(&mut *out, &format!("{base}{path}"))?;
                out.extend_from_slice(b":{");
                if path == "/{id}" {
                    member("parameters", &json!([id_parameter(table)]), out)?;
                    out.push(b',');
                }
                text.write(&component, &name, out);
                out.push(b'}');
            }
        }
    }
    Ok(())
}

fn id_parameter(table: &TableInterface) -> Value {
    let (description, schema) = match table.id() {
        Some(Id::One(column)) => (column.name.as_str().to_owned(), id_schema(column)),
        Some(Id::Several(names)) => (
            format!("The values of {}, with commas between them", names.join(", ")),
            json!({"type": "string", "minLength": 1}),
        ),
        Some(Id::Hidden) | None => ("The record's key".to_owned(), json!({"type": "string", "minLength": 1})),
    };
    json!({"name": "id", "in": "path", "required": true, "description": description, "schema": schema})
}

/// The schema of an `{id}`. It has no bounds: an id beyond the column's range is valid, but finds no record.
fn id_schema(column: &Column) -> Value {
    match ValueType::of(column) {
        ValueType::Integer { .. } => json!({"type": "integer"}),
        ValueType::Long { .. } => json!({"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 1}]}),
        _ => json!({"type": "string", "minLength": 1}),
    }
}

pub(super) fn schemas(
    table: &TableInterface,
    interface: &Interface,
    separator: &mut Separator<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let component = table.component();
    let name = format!("{component}.selected");
    let selected = match table.may(Action::Read) {
        true => {
            separator.write(out)?;
            object(&name, &json!({"type": "object"}), record(table, interface), interface, out)?;
            let visible = table.table().visible_columns();
            let required: Vec<_> = visible.iter().map(|column| column.name.as_str()).collect();
            // Generators that check fields at run time (openapi-python-client) use the only part of `allOf` instead of
            // the record, so they also accept records of which a call selects fields.
            let head = json!({"type": "object", "required": required, "allOf": [reference(&name)]});
            separator.write(out)?;
            object(&component, &head, record(table, interface), interface, out)?;
            name.as_str()
        }
        false => "SelectedFields",
    };
    let selected = reference(selected);
    if table.may(Action::Insert) {
        separator.write(out)?;
        insert(table, &format!("{component}.insert"), interface, out)?;
    }
    if table.may(Action::Update) {
        separator.write(out)?;
        update(table, &format!("{component}.update"), interface, out)?;
    }
    let mut write = |part: &str, schema: &Value| {
        separator.write(out)?;
        Ok::<_, WriteError>(member(&format!("{component}{part}"), schema, out)?)
    };
    let number_or_null = || or_null(json!({"type": "integer"}));
    if table.may(Action::Insert) {
        let key = match table.id() {
            Some(Id::One(column)) => or_null(ValueType::of(column).schema_of_output()),
            Some(Id::Several(_)) => json!({}),
            None | Some(Id::Hidden) => number_or_null(),
        };
        let one = json!({"anyOf": [key, selected, {"type": "integer"}]});
        write(".inserted", &json!({"anyOf": [one, {"type": "array", "items": one}]}))?;
    }
    if table.may(Action::Update) || table.may(Action::Delete) {
        write(".written", &json!({"anyOf": [number_or_null(), selected]}))?;
        write(".writtenMany", &json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": selected}]}))?;
    }
    Ok(())
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// Writes an object schema property by property: all members of a table's ENUMs would be millions of JSON values.
fn object<'a>(
    name: &str,
    head: &Value,
    properties: impl Iterator<Item = (&'a str, Value)>,
    interface: &Interface,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    member(name, head, out)?;
    // Removes the closing brace of the head.
    out.pop();
    out.extend_from_slice(br#","properties":{"#);
    let mut separator = Separator::of(interface);
    for (name, schema) in properties {
        separator.write(out)?;
        member(name, &schema, out)?;
    }
    out.extend_from_slice(b"}}");
    Ok(())
}

fn record<'a>(table: &'a TableInterface, interface: &'a Interface) -> impl Iterator<Item = (&'a str, Value)> {
    let columns = table.columns().iter().map(|column| (column.name.as_str(), schema_of_output(column)));
    columns.chain(table.included().into_iter().map(|(name, relations)| {
        let schemas: Vec<_> = relations.iter().map(|relation| related(relation, table, interface)).collect();
        (name, if let [one] = schemas.as_slice() { one.clone() } else { json!({"anyOf": schemas}) })
    }))
}

fn schema_of_output(column: &Column) -> Value {
    let mut schema = ValueType::of(column).schema_of_output();
    if column.nullable {
        schema = or_null(schema);
    }
    if !column.comment.is_empty() {
        schema["description"] = json!(column.comment);
    }
    if column.generated {
        schema["readOnly"] = json!(true);
    }
    schema
}

fn related(relation: &Relation, table: &TableInterface, interface: &Interface) -> Value {
    let record = match interface.readable(table.database(), relation.table.as_str()) {
        Some(far) => reference(&far.component()),
        None => reference("SelectedFields"),
    };
    let description = format!("With include={}", relation.spelling);
    match relation.kind {
        RelationKind::One => json!({"anyOf": [record, {"type": "null"}], "description": description}),
        RelationKind::Many => json!({"type": "array", "items": record, "description": description}),
    }
}

fn insert(table: &TableInterface, name: &str, interface: &Interface, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let given = table.given(Action::Insert);
    let (_, set) = table.access.fields(Action::Insert);
    let is_required = |column: &&&Column| column.required() && !set.contains(&column.name.as_str());
    let required: Vec<_> = given.iter().filter(is_required).map(|column| column.name.as_str()).collect();
    let properties = given.iter().map(|column| {
        let schema = ValueType::of(column).schema_of_input();
        let takes_null = column.nullable || column.auto_increment;
        (column.name.as_str(), if takes_null { or_null(schema) } else { schema })
    });
    let head = json!({"type": "object", "additionalProperties": false, "required": required});
    object(name, &head, properties, interface, out)
}

fn update(table: &TableInterface, name: &str, interface: &Interface, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let given = table.given(Action::Update);
    let properties = given.iter().map(|column| {
        let kind = ValueType::of(column);
        let schema = kind.schema_of_input();
        let schema = if column.nullable || column.auto_increment { or_null(schema) } else { schema };
        let schema = match kind.is_number(column) {
            true => json!({"anyOf": [schema, reference("Add")]}),
            false => schema,
        };
        (column.name.as_str(), schema)
    });
    object(
        name,
        &json!({"type": "object", "additionalProperties": false, "minProperties": 1}),
        properties,
        interface,
        out,
    )
}

impl TableInterface {
    /// Returns the actions on the table that the caller may take at `path` (the table or `/{id}`), even those for which
    /// the path has no operation. Returns `None` for `/{id}` if the caller can't name records by an id.
    fn allowed_actions(&self, path: &str) -> Option<Vec<&'static str>> {
        let names = [
            ("read", Action::Read),
            ("insert", Action::Insert),
            ("update", Action::Update),
            ("delete", Action::Delete),
        ];
        let is_hidden = match (path, self.id()) {
            ("/{id}", None) => return None,
            ("/{id}", Some(Id::Hidden)) => true,
            _ => false,
        };
        let allowed = names.into_iter().filter(|(_, action)| self.may(*action));
        let allowed = allowed.filter(|(_, action)| !(is_hidden && *action == Action::Read));
        Some(allowed.map(|(name, _)| name).collect())
    }
}
