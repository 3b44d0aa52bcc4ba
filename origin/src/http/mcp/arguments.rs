//! Turns the arguments of a tool call into an API request, without I/O. Checks only the names of arguments and the
//! values that form the method and path; the API checks the others.

use super::api::ApiRequest;
use super::tools::ToolName;
use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::shown;
use std::borrow::Cow;

/// The limit of a read that has neither `id` nor `limit`.
const DEFAULT_LIMIT: u64 = 100;

/// The characters that are percent-encoded: all but RFC 3986's unreserved ones.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) const DATABASES: &str = "/api/v1/crud";

pub(super) fn path<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().fold(DATABASES.to_owned(), |path, name| path + "/" + &encoded(name))
}

fn encoded(text: &str) -> String {
    // A URL parser would resolve an unencoded segment of dots as a relative path.
    match text {
        "." | ".." => text.replace('.', "%2E"),
        _ => utf8_percent_encode(text, ENCODED).to_string(),
    }
}

/// Builds the API request of a tool call. A null argument counts as not given.
pub(super) fn request(tool: ToolName, arguments: Map<String, Value>) -> Result<ApiRequest, Problem> {
    let mut given = Arguments { tool, values: arguments };
    given.check_names()?;
    given.values.retain(|_, value| !value.is_null());
    match tool {
        ToolName::ListTables => Ok(ApiRequest::get(match given.text("database")? {
            Some(database) => path([&*database]),
            None => DATABASES.to_owned(),
        })),
        ToolName::DescribeTable => Ok(ApiRequest::get(given.table()? + "/_schema")),
        ToolName::ReadRecords => read(given),
        ToolName::WriteRecords => write(given),
        ToolName::RunSql => {
            let query = given.required_text("query")?;
            given.values.insert("query".to_owned(), query.into());
            Ok(post("/api/v1/sql".to_owned(), given.values))
        }
        ToolName::UploadFile => upload(given),
    }
}

fn post(target: String, body: Map<String, Value>) -> ApiRequest {
    ApiRequest { method: Method::POST, target, body: Some(Value::Object(body)) }
}

fn read(mut given: Arguments) -> Result<ApiRequest, Problem> {
    let table = given.table()?;
    if let Some(id) = given.id()? {
        return Ok(ApiRequest::get(format!("{table}/{id}{}", query_string(given.values))));
    }
    given.values.entry("limit").or_insert(DEFAULT_LIMIT.into());
    Ok(post(table + "/query", given.values))
}

fn write(mut given: Arguments) -> Result<ApiRequest, Problem> {
    let table = given.table()?;
    let action = given.required_text("action")?;
    let mut options = Map::new();
    for (argument, option) in [
        ("on_conflict", "onConflict"),
        ("returning", "returning"),
        ("max_affected", "maxAffected"),
        ("dry_run", "dryRun"),
    ] {
        match (option, given.values.remove(argument)) {
            (_, None | Some(Value::Bool(false))) => {}
            ("returning", Some(Value::Array(names))) if names == ["*"] => {
                options.insert(option.to_owned(), "*".into());
            }
            (_, Some(value)) => {
                options.insert(option.to_owned(), value);
            }
        }
    }
    let (method, target, body) = match &*action {
        "insert" => {
            let Some(records) = given.values.remove("records") else {
                return Err(given.missing("records", "insert"));
            };
            (Method::POST, table, Some(json!({"batchData": records})))
        }
        "update" => {
            let Some(data) = given.values.remove("data") else {
                return Err(given.missing("data", "update"));
            };
            match given.target("update")? {
                Target::One(id) => (Method::PUT, format!("{table}/{id}"), Some(data)),
                Target::Many(query) => (Method::PUT, table, Some(json!({"query": query, "data": data}))),
            }
        }
        "delete" => match given.target("delete")? {
            Target::One(id) => (Method::DELETE, format!("{table}/{id}"), None),
            Target::Many(query) => (Method::DELETE, table, Some(json!({"query": query}))),
        },
        other => {
            return Err(
                given.fault(&format!("there is no action {}.", shown(other)), "Actions: insert, update, delete.")
            );
        }
    };
    if let Some(idle) = given.values.keys().next() {
        return Err(given.fault(&format!("{} does not go with {action}.", shown(idle)), "Leave it out."));
    }
    Ok(ApiRequest { method, target: target + &query_string(options), body })
}

fn upload(mut given: Arguments) -> Result<ApiRequest, Problem> {
    let name = given.required_text("name")?;
    let (content, is_text) = match (given.text("text")?, given.text("base64")?) {
        (Some(text), None) => (STANDARD.encode(text), true),
        (None, Some(base64)) => (base64, false),
        _ => return Err(given.fault("give either text or base64.", "Text files as text, others as base64.")),
    };
    let mime = match given.text("mime")? {
        Some(mime) => mime,
        None => {
            let of_name = mime_guess::from_path(&name).first_raw();
            of_name.unwrap_or(if is_text { "text/plain" } else { "application/octet-stream" }).to_owned()
        }
    };
    let kind = mime.split('/').next().filter(|kind| ["image", "video", "audio"].contains(kind)).unwrap_or("file");
    let mut body = given.values;
    body.insert("type".to_owned(), kind.into());
    let content = format!("data:{mime};base64,{content}");
    body.insert("media".to_owned(), json!([{"name": name, "base64": content}]));
    Ok(post("/api/v1/media".to_owned(), body))
}

enum Target {
    One(String),
    Many(Value),
}

struct Arguments {
    tool: ToolName,
    values: Map<String, Value>,
}

impl Arguments {
    fn check_names(&self) -> Result<(), Problem> {
        let known = |name: &str| self.tool.arguments().any(|argument| argument == name);
        let Some(unknown) = self.values.keys().find(|name| !known(name)) else {
            return Ok(());
        };
        let hint = match nearest(unknown, self.tool.arguments()) {
            Some(near) => format!("Did you mean \"{near}\"?"),
            None => format!("Arguments: {}.", self.tool.arguments().collect::<Vec<_>>().join(", ")),
        };
        Err(self.fault(&format!("there is no argument {}.", shown(unknown)), hint))
    }

    fn table(&mut self) -> Result<String, Problem> {
        let (database, table) = (self.required_text("database")?, self.required_text("table")?);
        Ok(path([&*database, &*table]))
    }

    /// Returns the percent-encoded `{id}`; commas join the parts of a composite key.
    fn id(&mut self) -> Result<Option<String>, Problem> {
        let part = |value: &Value| match value {
            Value::String(text) if !text.is_empty() => Some(encoded(text)),
            Value::Number(number) => Some(encoded(&number.to_string())),
            _ => None,
        };
        let id = match self.values.remove("id") {
            None => return Ok(None),
            Some(Value::Array(parts)) => parts
                .iter()
                .map(part)
                .collect::<Option<Vec<_>>>()
                .map(|parts| parts.join(","))
                .filter(|id| !id.is_empty()),
            Some(value) => part(&value),
        };
        let wrong = || self.fault("id is no text, number or list of these.", "Give the value of the primary key.");
        id.map(Some).ok_or_else(wrong)
    }

    fn target(&mut self, action: &str) -> Result<Target, Problem> {
        let query = match (self.values.remove("query"), self.values.remove("where")) {
            (Some(_), Some(_)) => return Err(self.fault("query and where are two names of one argument.", "Give one.")),
            (query, other) => query.or(other),
        };
        match (self.id()?, query) {
            (Some(id), None) => Ok(Target::One(id)),
            (None, Some(query)) => Ok(Target::Many(query)),
            (None, None) => Err(self.missing("id or query", action)),
            (Some(_), Some(_)) => Err(self.fault("give id or query, not both.", "query finds records by conditions.")),
        }
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.values.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.fault(&format!("{name} is no text."), "Give it as a string.")),
        }
    }

    fn required_text(&mut self, name: &str) -> Result<String, Problem> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| {
            self.fault(&format!("{name} is missing."), "The input schema of the tool says which arguments it needs.")
        })
    }

    fn missing(&self, what: &str, action: &str) -> Problem {
        self.fault(
            &format!("{action} needs {what}."),
            "The input schema of the tool says which arguments each action takes.",
        )
    }

    fn fault(&self, fault: &str, hint: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(ErrorCode::InvalidBody, format!("{}: {fault}", self.tool.as_str())).with_hint(hint)
    }
}

fn query_string(options: Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in options {
        let value = match value {
            Value::String(text) => text,
            value => value.to_string(),
        };
        text.push(if text.is_empty() { '?' } else { '&' });
        text += &(encoded(&name) + "=" + &encoded(&value));
    }
    text
}

#[cfg(test)]
mod tests;
