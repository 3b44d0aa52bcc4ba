//! The templates of operations in the OpenAPI document's JSON files: only the parts that differ between operations.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Stands for the name by which schemas and operation ids refer to a table or database.
const COMPONENT: &str = "@T@";
/// Stands for a table (`database.table`) or database in tags, summaries and descriptions.
const NAME: &str = "@N@";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Template {
    name: String,
    /// Another template, from which this template takes all but its name and method.
    #[serde(rename = "as")]
    same: Option<String>,
    method: String,
    pub(super) path: String,
    /// What the caller must be allowed to do for the operation to be listed, such as `read` or `batch`; `any` for an
    /// operation that every caller may use.
    pub(super) action: String,
    tag: Option<String>,
    summary: String,
    description: String,
    parameters: Vec<String>,
    body: Option<Value>,
    form: bool,
    payload: Value,
    members: Vec<String>,
    /// The media type of a response without an envelope.
    raw: Option<String>,
    tagged: bool,
    errors: String,
}

pub(super) fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text)
}

pub(super) fn completed(templates: &[Template]) -> Vec<Template> {
    let complete = |template: &Template| {
        let same = templates.iter().find(|other| template.same.as_ref() == Some(&other.name));
        same.map_or_else(
            || template.clone(),
            |same| Template { name: template.name.clone(), method: template.method.clone(), ..same.clone() },
        )
    };
    templates.iter().map(complete).collect()
}

#[derive(Debug, Default)]
pub(super) struct Operations(Vec<Template>);

impl FromIterator<Template> for Operations {
    fn from_iter<I: IntoIterator<Item = Template>>(templates: I) -> Self {
        Self(templates.into_iter().collect())
    }
}

impl Operations {
    pub(super) fn push(&mut self, template: Template) {
        self.0.push(template);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn path_item(&self) -> Map<String, Value> {
        self.0.iter().map(|template| (template.method.clone(), template.operation())).collect()
    }
}

impl Template {
    fn operation(&self) -> Value {
        // The id of an operation that belongs to no table and no database has no placeholder.
        let id = if self.path.starts_with('/') && self.tag.is_some() {
            self.name.clone()
        } else {
            format!("{COMPONENT}.{}", self.name)
        };
        let parameters = self.parameters.iter().map(|name| json!({"$ref": format!("#/components/parameters/{name}")}));
        let mut operation = json!({
            "operationId": id, "tags": [self.tag.as_deref().unwrap_or(NAME)],
            "summary": self.summary, "description": self.description,
            "parameters": parameters.collect::<Vec<_>>(), "responses": self.responses(),
        });
        if let (Some(body), Some(parts)) = (self.request_body(), operation.as_object_mut()) {
            parts.insert("requestBody".to_owned(), body);
        }
        operation
    }

    fn request_body(&self) -> Option<Value> {
        let mut content = json!({"application/json": {"schema": self.body.as_ref()?}});
        if self.form {
            content["multipart/form-data"] = json!({"schema": {"type": "object", "properties": {
                "type": {"enum": ["image", "video", "audio", "file"]}, "folder": {"type": "string"},
                "update": {"type": "boolean"}, "private": {"type": "boolean"},
                "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
            }}});
        }
        Some(json!({"required": true, "content": content}))
    }

    fn responses(&self) -> Value {
        let schema = match self.raw.as_deref() {
            None => Some(self.envelope()),
            Some("application/json") => Some(json!({"type": "object", "additionalProperties": true})),
            // Generators leave out responses of media types that they don't know.
            Some(_) => None,
        };
        let mut answer = json!({"description": "Done"});
        if let Some(schema) = schema {
            answer["content"] = json!({"application/json": {"schema": schema}});
        }
        if self.tagged {
            answer["headers"] = json!({"ETag": {"schema": {"type": "string"}}});
        }
        let mut responses = json!({"200": answer});
        if self.tagged {
            responses["304"] = json!({"$ref": "#/components/responses/Unchanged"});
        }
        for status in statuses(&self.errors) {
            responses[status.to_string()] = json!({"$ref": format!("#/components/responses/E{status}")});
        }
        responses
    }

    fn envelope(&self) -> Value {
        let mut properties = json!({"success": {"type": "boolean", "const": true}, "payload": self.payload});
        for name in &self.members {
            let member = if name == "token" { "next" } else { name };
            properties[member] = match name.as_str() {
                "count" => json!({"type": "integer", "description": "The total without paging"}),
                "next" => json!({"type": "string", "description": "The option after of the next page"}),
                "token" => json!({"type": "string", "description": "The option since of the next request"}),
                "upToDate" => json!({"type": "boolean", "description": "No further change was committed"}),
                "position" => {
                    json!({"type": "string", "description": "The position in MariaDB's log, as X-Selkie-Position"})
                }
                "more" => {
                    json!({"type": "boolean", "description": "Further records follow, without a cursor: offset goes on"})
                }
                "cut" => {
                    let at = json!({"type": "integer", "minimum": 0});
                    json!({"type": "array", "items": at, "description": "The operations whose lists go on"})
                }
                _ => json!({"type": "boolean", "description": "The key's role or the service withholds records"}),
            };
        }
        json!({"type": "object", "required": ["success", "payload"], "properties": properties})
    }
}

/// The statuses of an operation's errors. A `kind` that is not listed means a media operation.
fn statuses(kind: &str) -> Vec<u16> {
    const ANY: [u16; 11] = [400, 401, 403, 404, 414, 429, 431, 500, 502, 503, 504];
    let further: &[u16] = match kind {
        "describe" => &[],
        "read" => &[409, 422],
        "read_by_body" => &[409, 413, 415, 422],
        "write" => &[409, 413, 415, 422],
        "write_one" => &[409, 412, 413, 415, 422],
        // An operation of a batch may name a path that lacks its method.
        "batch" => &[405, 409, 412, 413, 415, 422],
        // An upload fails with 507 if the disk is full.
        _ => &[409, 413, 415, 507],
    };
    let mut statuses = [&ANY, further].concat();
    statuses.sort_unstable();
    statuses
}

#[derive(Debug)]
pub(super) struct TemplateText(Vec<TextPart>);

#[derive(Debug)]
enum TextPart {
    Text(String),
    Component,
    Name,
}

impl TemplateText {
    pub(super) fn new(operations: &Map<String, Value>) -> serde_json::Result<Self> {
        let text = serde_json::to_string(operations)?;
        let text = text.get(1..text.len() - 1).unwrap_or_default();
        let mut parts = Vec::new();
        for (at, piece) in text.split(COMPONENT).enumerate() {
            if at > 0 {
                parts.push(TextPart::Component);
            }
            for (at, piece) in piece.split(NAME).enumerate() {
                if at > 0 {
                    parts.push(TextPart::Name);
                }
                parts.push(TextPart::Text(piece.to_owned()));
            }
        }
        Ok(Self(parts))
    }

    pub(super) fn write(&self, component: &str, name: &str, out: &mut Vec<u8>) {
        let quoted = Value::from(name).to_string();
        let name = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        for part in &self.0 {
            out.extend_from_slice(match part {
                TextPart::Text(text) => text.as_bytes(),
                TextPart::Component => component.as_bytes(),
                TextPart::Name => name.as_bytes(),
            });
        }
    }
}
