//! Writes the OpenAPI 3.1 document of an [`Interface`]. Parts that don't depend on the tables are JSON files in
//! `openapi/`. The document is written table by table into one text, since thousands of tables would be millions of
//! JSON values.

mod tables;
mod template;

use super::{Interface, TableInterface, TooLong, identifier};
use serde_json::{Map, Value, json};
use shared::error::{ErrorCode, Problem};
use shared::policy::Action;
use std::collections::BTreeMap;
use template::{Operations, Template};

const COMPONENTS: &str = include_str!("openapi/components.json");
const OF_TABLE: &str = include_str!("openapi/operations.json");
const OF_DATABASE: &str = include_str!("openapi/database.json");
const SERVICES: &str = include_str!("openapi/services.json");

/// Initial buffer capacity in bytes, without tables.
const USUAL_BYTES: usize = 40_000;
const TABLE_USUAL_BYTES: usize = 16_000;

const ABOUT: &str = "What the key that fetched this document may do. The schema is read live: fetch the document again after \
                     a change of tables or of the key's role. Each GET also answers HEAD.";

pub fn document(interface: &Interface) -> Result<Vec<u8>, Problem> {
    let mut out = Vec::with_capacity(USUAL_BYTES + TABLE_USUAL_BYTES * interface.tables().count());
    match write(interface, &mut out) {
        Ok(()) => Ok(out),
        Err(WriteError::TooLong(error)) => Err(error.into_problem()),
        Err(WriteError::Json(error)) => {
            Err(Problem::internal("The OpenAPI document can't be written.", error.to_string()))
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

fn write(interface: &Interface, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let head = json!({"title": "Selkie", "version": "1", "description": ABOUT});
    out.extend_from_slice(br#"{"openapi":"3.1.0","info":"#);
    serde_json::to_writer(&mut *out, &head)?;
    out.extend_from_slice(br#","servers":[{"url":"/api/v1"}],"security":[{"key":[]}],"tags":"#);
    serde_json::to_writer(&mut *out, &tags(interface))?;
    out.extend_from_slice(br#","paths":{"#);
    paths(interface, out)?;
    out.extend_from_slice(br#"},"components":{"#);
    components(interface, out)?;
    out.extend_from_slice(b"}}");
    Ok(())
}

fn tags(interface: &Interface) -> Vec<Value> {
    let services = [
        ("Descriptions", "What there is", true),
        ("SQL", "Statements of your own", interface.sql.is_some()),
        ("Schema", "Definitions of tables", interface.may(Action::Schema)),
        ("Batch", "Several operations in one transaction", interface.may(Action::Batch)),
        ("Changes", "What changed in tables", interface.offers("follow")),
        ("Management", "Keys, roles and figures of the project", interface.may(Action::ListKeys)),
        ("Media", "Files", interface.media.read || interface.media.upload || interface.media.delete),
    ];
    let services = services.into_iter().filter(|(.., is_there)| *is_there);
    let services = services.map(|(name, text, _)| json!({"name": name, "description": text}));
    let tables = interface.tables().map(|table| {
        let kind = if table.table().traits().view { "view" } else { "table" };
        json!({"name": table.full_name(), "description": format!("Records of a {kind}")})
    });
    services.chain(tables).collect()
}

fn paths(interface: &Interface, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let mut separator = Separator::of(interface);
    let services: Vec<Template> = template::read(SERVICES)?;
    let services = services.into_iter().filter(|template| interface.offers(&template.action));
    let mut by_path: BTreeMap<String, Operations> = BTreeMap::new();
    for template in services {
        let path = template.path.clone();
        by_path.entry(path).or_default().push(template);
    }
    for (path, operations) in &by_path {
        separator.write(out)?;
        serde_json::to_writer(&mut *out, path)?;
        out.push(b':');
        serde_json::to_writer(&mut *out, &operations.path_item())?;
    }
    let of_database: Operations = template::read::<Vec<Template>>(OF_DATABASE)?.into_iter().collect();
    let of_database = template::TemplateText::new(&of_database.path_item())?;
    for (name, _) in &interface.databases {
        separator.write(out)?;
        let (component, name) = (identifier::component(name.as_str()), name.as_str());
        serde_json::to_writer(&mut *out, &format!("/crud/{}", tables::encoded(name)))?;
        out.extend_from_slice(b":{");
        of_database.write(&component, name, out);
        out.push(b'}');
    }
    tables::paths(interface, &template::read::<Vec<Template>>(OF_TABLE)?, &mut separator, out)
}

fn components(interface: &Interface, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let mut fixed: BTreeMap<String, Map<String, Value>> = template::read(COMPONENTS)?;
    fixed.insert("responses".to_owned(), responses());
    let mut separator = Separator::of(interface);
    for (kind, parts) in &fixed {
        separator.write(out)?;
        serde_json::to_writer(&mut *out, kind)?;
        out.extend_from_slice(b":{");
        let mut inner = Separator::of(interface);
        for (name, part) in parts {
            inner.write(out)?;
            member(name, part, out)?;
        }
        if kind == "schemas" {
            interface.tables().try_for_each(|table| tables::schemas(table, interface, &mut inner, out))?;
        }
        out.push(b'}');
    }
    Ok(())
}

/// Returns the responses that operations refer to: `E` and the status for errors (`E404`), `Unchanged` for status 304.
fn responses() -> Map<String, Value> {
    let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in ErrorCode::ALL {
        codes.entry(code.status()).or_default().push(code.as_str());
    }
    let response = |(status, codes): (u16, Vec<&str>)| {
        let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}});
        (format!("E{status}"), json!({"description": codes.join(", "), "content": content}))
    };
    let unchanged =
        ("Unchanged".to_owned(), json!({"description": "The entity tag is still the one in If-None-Match"}));
    codes.into_iter().map(response).chain([unchanged]).collect()
}

fn member(name: &str, value: &Value, out: &mut Vec<u8>) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *out, name)?;
    out.push(b':');
    serde_json::to_writer(&mut *out, value)
}

struct Separator<'a> {
    interface: &'a Interface,
    written: usize,
}

impl<'a> Separator<'a> {
    fn of(interface: &'a Interface) -> Self {
        Self { interface, written: 0 }
    }

    /// Writes a comma, except the first time. Fails if the document is too long already.
    fn write(&mut self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        self.interface.check_description_length(out.len())?;
        if self.written > 0 {
            out.push(b',');
        }
        self.written += 1;
        Ok(())
    }
}

impl Interface {
    fn offers(&self, action: &str) -> bool {
        let writes = self.tables().any(|table| table.actions.iter().any(|action| *action != Action::Read));
        match action {
            "sql" => self.sql.is_some(),
            "schema" => self.may(Action::Schema),
            "manage" => self.may(Action::ListKeys),
            "batch" => self.may(Action::Batch) && (writes || self.may(Action::ListKeys)),
            "follow" => self.may(Action::Follow) && self.tables().any(|table| table.may(Action::Read)),
            "media_read" => self.media.read,
            "media_sign" => self.media.read && self.may(Action::SignMedia),
            "media_upload" => self.media.upload && self.may(Action::Upload),
            "media_delete" => self.media.delete && self.may(Action::DeleteMedia),
            "any" => true,
            _ => false,
        }
    }
}

impl TableInterface {
    fn full_name(&self) -> String {
        format!("{}.{}", self.database(), self.name())
    }

    fn component(&self) -> String {
        format!("{}.{}", identifier::component(self.database()), identifier::component(self.name()))
    }
}
