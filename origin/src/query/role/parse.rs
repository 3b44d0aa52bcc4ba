//! Parses role files. Each error names the place in the file, such as `tables."shop.orders".read.rows`.

use super::{
    DeleteRule, Fields, MediaDeletion, MediaReading, MediaRule, Pattern, ReadRule, Role, SqlRule, TableRule, Template,
    UploadRule, WriteRule,
};
use shared::ident::{DatabaseName, FieldName, TableName, shown};
use shared::json::{self, Value};
use shared::limits::{FIELDS_MAX_COUNT, ROLE_MAX_BYTES, ROLE_TABLES_MAX_COUNT};
use shared::operation::filter::{Condition, Joiner};
use shared::rate::RateLimit;
use std::borrow::Cow;
use std::time::Duration;

/// Maximum folders whose files a role may read: each adds two conditions to a list of files.
const MEDIA_FOLDERS_MAX_COUNT: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct RoleFault {
    pub place: String,
    pub fault: String,
}

fn fault<T>(place: &str, fault: impl Into<String>) -> Result<T, RoleFault> {
    Err(RoleFault { place: place.to_owned(), fault: fault.into() })
}

impl Role {
    pub fn parse(text: &str) -> Result<Self, RoleFault> {
        const WHOLE: &str = "the role";
        if text.len() > ROLE_MAX_BYTES {
            return fault(WHOLE, format!("it is larger than {ROLE_MAX_BYTES} bytes"));
        }
        let text = match json::check(text.as_bytes()) {
            Ok(text) => text.trim(),
            Err(problem) => return fault(WHOLE, problem.message()),
        };
        let value = json::value(text).or_else(|error| fault(WHOLE, format!("it is no JSON: {error}")))?;
        let mut role = Self::default();
        for (key, value) in members(WHOLE, &value)? {
            match &*key {
                "tables" => role.tables = tables(&value)?,
                "media" => role.media = media(&value)?,
                "sql" => role.sql = sql(&value)?,
                "maxRows" => role.max_rows = Some(count("maxRows", &value)?),
                "timeout" => role.timeout = Some(time("timeout", &value)?),
                "rateLimit" => {
                    let limit = words("rateLimit", &value).map(RateLimit::parse)?;
                    let wrong = || fault("rateLimit", format!("it must be {}", RateLimit::EXPECTED));
                    role.rate_limit = Some(limit.map_or_else(wrong, Ok)?);
                }
                other => return unknown("", other, &["tables", "media", "sql", "maxRows", "timeout", "rateLimit"]),
            }
        }
        if role.sql == SqlRule::Read {
            role.check_sql()?;
        }
        Ok(role)
    }
}

impl Role {
    /// SQL shows all that the project's read-only account reads, so that a role with SQL may hide nothing.
    fn check_sql(&self) -> Result<(), RoleFault> {
        if !self.tables.iter().any(|(pattern, _)| *pattern == Pattern::All) {
            return fault(
                "sql",
                "SQL reads all tables, so the role must too: its tables must have \"*\": {\"read\": true}",
            );
        }
        for (pattern, rule) in &self.tables {
            let place = shown(&pattern.to_string());
            let Some(read) = &rule.read else {
                return fault("sql", format!("SQL reads all tables, but the role may not read tables.{place}"));
            };
            let writes = [&rule.insert, &rule.update].into_iter().flatten();
            let limits = [&read.fields].into_iter().chain(writes.map(|write| &write.fields));
            if rule.rows().next().is_some() || limits.into_iter().any(|fields| *fields != Fields::All) {
                let why =
                    "SQL reads all records and fields of all tables, but the role limits rows or fields of tables.";
                return fault("sql", format!("{why}{place}"));
            }
        }
        Ok(())
    }
}

fn sql(value: &Value) -> Result<SqlRule, RoleFault> {
    match value {
        Value::Bool(false) => Ok(SqlRule::None),
        Value::Text(word) if &**word == "read" => Ok(SqlRule::Read),
        _ => fault("sql", "it must be \"read\" or false"),
    }
}

fn tables(value: &Value) -> Result<Vec<(Pattern, TableRule)>, RoleFault> {
    let members = members("tables", value)?;
    if members.len() > ROLE_TABLES_MAX_COUNT {
        return fault("tables", format!("it names more than {ROLE_TABLES_MAX_COUNT} tables"));
    }
    let mut tables = Vec::with_capacity(members.len());
    for (name, rule) in &members {
        let place = format!("tables.{}", shown(name));
        let pattern = pattern(&place, name)?;
        if tables.iter().any(|(known, _)| *known == pattern) {
            return fault(&place, "another entry stands for the same tables");
        }
        let of_table = matches!(pattern, Pattern::Table(..));
        tables.push((pattern, TableRule { of_table, ..table_rule(&place, rule)? }));
    }
    Ok(tables)
}

/// Parses the name of a rule. The database ends at the first dot.
fn pattern(place: &str, name: &str) -> Result<Pattern, RoleFault> {
    if matches!(name, "*" | "*.*") {
        return Ok(Pattern::All);
    }
    let Some((database, table)) = name.split_once('.') else {
        return fault(place, "it must be a table with its database, such as shop.orders, or shop.* or *");
    };
    let wrong = |problem: shared::error::Problem| RoleFault {
        place: place.to_owned(),
        fault: problem.message().trim_end_matches('.').to_owned(),
    };
    let database = DatabaseName::parse(database).map_err(wrong)?;
    if database.is_system() {
        return fault(place, "no key reaches MariaDB's or Selkie's own databases");
    }
    match table {
        "*" => Ok(Pattern::Database(database)),
        table => Ok(Pattern::Table(database, TableName::parse(table).map_err(wrong)?)),
    }
}

fn table_rule(place: &str, value: &Value) -> Result<TableRule, RoleFault> {
    const ACTIONS: [&str; 4] = ["read", "insert", "update", "delete"];
    let mut rule = TableRule::default();
    for (action, value) in members(place, value)? {
        let place = format!("{place}.{action}");
        let parts: &[&str] = match &*action {
            "read" => &["fields", "rows"],
            "insert" | "update" => &["fields", "set", "rows", "unchecked"],
            "delete" => &["rows"],
            other => return unknown(place.trim_end_matches(other).trim_end_matches('.'), other, &ACTIONS),
        };
        let Some(parts) = allowed(&place, &value, parts)? else {
            continue;
        };
        let Parts { fields, set, rows, unchecked } = parts;
        match &*action {
            "read" => rule.read = (fields != Fields::Only(Vec::new())).then_some(ReadRule { fields, rows }),
            "insert" => rule.insert = Some(WriteRule { fields, set, rows, unchecked }),
            "update" => rule.update = Some(WriteRule { fields, set, rows, unchecked }),
            _ => rule.delete = Some(DeleteRule { rows }),
        }
    }
    Ok(rule)
}

#[derive(Default)]
struct Parts {
    fields: Fields,
    set: Vec<(FieldName, Template)>,
    rows: Option<Template>,
    unchecked: Vec<FieldName>,
}

fn allowed(place: &str, value: &Value, parts: &[&str]) -> Result<Option<Parts>, RoleFault> {
    match value {
        Value::Bool(true) => return Ok(Some(Parts::default())),
        Value::Bool(false) => return Ok(None),
        _ => {}
    }
    let mut found = Parts::default();
    for (part, value) in members(place, value)? {
        let within = format!("{place}.{part}");
        match &*part {
            known if !parts.contains(&known) => return unknown(place, known, parts),
            "fields" => found.fields = fields(&within, &value)?,
            "set" => found.set = set(&within, &value)?,
            "unchecked" => found.unchecked = field_list(&within, &value)?,
            _ => found.rows = row_condition(&within, &value)?,
        }
    }
    if let Some((name, _)) = found.set.iter().find(|(name, _)| found.fields.names().contains(name))
        && matches!(found.fields, Fields::Only(_))
    {
        return fault(place, format!("{} is both in fields and in set", shown(name.as_str())));
    }
    Ok(Some(found))
}

fn fields(place: &str, value: &Value) -> Result<Fields, RoleFault> {
    if matches!(value, Value::List(_)) {
        return field_list(place, value).map(Fields::Only);
    }
    match members(place, value)?.as_slice() {
        [(key, value)] if key == "omit" => field_list(&format!("{place}.omit"), value).map(Fields::Except),
        _ => fault(place, "it must be a list of fields, or {\"omit\": [\"field\"]}"),
    }
}

fn field_list(place: &str, value: &Value) -> Result<Vec<FieldName>, RoleFault> {
    let Value::List(text) = value else {
        return fault(place, format!("it must be a list of fields, not {}", value.kind()));
    };
    let items = json::items(text, FIELDS_MAX_COUNT).or_else(|error| fault(place, error.to_string()))?;
    if items.len() > FIELDS_MAX_COUNT {
        return fault(place, format!("it names more than {FIELDS_MAX_COUNT} fields"));
    }
    items.iter().map(|item| words(place, item).and_then(|name| field(place, name))).collect()
}

fn set(place: &str, value: &Value) -> Result<Vec<(FieldName, Template)>, RoleFault> {
    let members = members(place, value)?.into_iter().map(|(name, value)| {
        let name = field(place, &name)?;
        let value = template(&format!("{place}.{}", shown(name.as_str())), &value)?;
        Ok((name, value))
    });
    members.collect()
}

/// Parses a role's condition on rows. Returns `None` if it is empty. The values of claims are known only when a
/// caller's token is; here, the condition is checked with a fixed string in place of each claim.
fn row_condition(place: &str, value: &Value) -> Result<Option<Template>, RoleFault> {
    let template = template(place, value)?;
    let Some(example) = template.fill_with(|_| Some("\"claim\"".to_owned())) else {
        return fault(place, "it can't be read");
    };
    match Condition::from_query(&example, Joiner::And) {
        Ok(condition) => Ok(condition.map(|condition| template.with_related(&condition))),
        Err(problem) => fault(place, problem.message()),
    }
}

fn template(place: &str, value: &Value) -> Result<Template, RoleFault> {
    Template::new(value).or_else(|wrong| fault(place, wrong))
}

fn media(value: &Value) -> Result<MediaRule, RoleFault> {
    let mut rule = MediaRule::default();
    for (key, value) in members("media", value)? {
        match (&*key, &value) {
            ("read", value) => rule.read = media_reading(value)?,
            ("upload", value) => rule.upload = upload(value)?,
            ("delete", Value::Bool(false)) => rule.delete = MediaDeletion::None,
            ("delete", Value::Text(word)) if &**word == "own" => rule.delete = MediaDeletion::Own,
            ("delete", Value::Text(word)) if &**word == "all" => rule.delete = MediaDeletion::All,
            ("delete", _) => return fault("media.delete", "it must be \"own\", \"all\" or false"),
            (other, _) => return unknown("media", other, &["read", "upload", "delete"]),
        }
    }
    Ok(rule)
}

/// Parses `media.read`: `true`, `false`, `"own"`, `{"folder": "a/{claim}"}`, or a list of the last two.
fn media_reading(value: &Value) -> Result<MediaReading, RoleFault> {
    const PLACE: &str = "media.read";
    let parts = match value {
        Value::Bool(true) => return Ok(MediaReading::All),
        Value::Bool(false) => return Ok(MediaReading::default()),
        Value::List(text) => json::items(text, FIELDS_MAX_COUNT).or_else(|error| fault(PLACE, error.to_string()))?,
        one => vec![one.clone()],
    };
    let (mut own, mut folders) = (false, Vec::new());
    for part in &parts {
        match part {
            Value::Text(word) if &**word == "own" => own = true,
            Value::Object(_) => match members(PLACE, part)?.as_slice() {
                [(key, value)] if key == "folder" => match folder("media.read.folder", value)?.trim_matches('/') {
                    "" => return fault("media.read.folder", "it is empty; \"read\": true allows all folders"),
                    name => folders.push(name.into()),
                },
                _ => return fault(PLACE, "an object in it must be {\"folder\": \"name\"}"),
            },
            _ => {
                return fault(
                    PLACE,
                    "it must be true, false, \"own\", {\"folder\": \"name\"}, or a list of the last two",
                );
            }
        }
    }
    if folders.len() > MEDIA_FOLDERS_MAX_COUNT {
        return fault(PLACE, format!("it names more than {MEDIA_FOLDERS_MAX_COUNT} folders"));
    }
    Ok(MediaReading::Some { own, folders })
}

fn folder<'a>(place: &str, value: &'a Value) -> Result<&'a str, RoleFault> {
    let folder = words(place, value)?;
    if folder.matches('{').count() != folder.matches('}').count() {
        return fault(place, "a claim in it is written as {name}");
    }
    Ok(folder)
}

fn upload(value: &Value) -> Result<Option<UploadRule>, RoleFault> {
    const PLACE: &str = "media.upload";
    match value {
        Value::Bool(true) => return Ok(Some(UploadRule::default())),
        Value::Bool(false) => return Ok(None),
        _ => {}
    }
    let mut rule = UploadRule::default();
    for (key, value) in members(PLACE, value)? {
        let place = format!("{PLACE}.{key}");
        match (&*key, &value) {
            ("folder", value) => rule.folder = Some(folder(&place, value)?.into()),
            ("types", Value::List(text)) => {
                let items = json::items(text, FIELDS_MAX_COUNT).or_else(|error| fault(&place, error.to_string()))?;
                for item in &items {
                    let name = words(&place, item)?;
                    if name.split('/').count() != 2 || name.split('/').any(str::is_empty) {
                        return fault(&place, format!("{} is no media type, such as image/*", shown(name)));
                    }
                    rule.types.push(name.to_ascii_lowercase().into());
                }
            }
            ("types", _) => return fault(&place, "it must be a list of media types"),
            ("maxBytes", value) => rule.max_bytes = Some(count(&place, value)?),
            (other, _) => return unknown(PLACE, other, &["folder", "types", "maxBytes"]),
        }
    }
    Ok(Some(rule))
}

fn members<'a>(place: &str, value: &'a Value) -> Result<Vec<(Cow<'a, str>, Value)>, RoleFault> {
    match value {
        Value::Object(text) => json::members(text).or_else(|error| fault(place, error.to_string())),
        other => fault(place, format!("it must be an object, not {}", other.kind())),
    }
}

fn words<'a>(place: &str, value: &'a Value) -> Result<&'a str, RoleFault> {
    match value {
        Value::Text(text) => Ok(text),
        other => fault(place, format!("it must be a string, not {}", other.kind())),
    }
}

fn field(place: &str, name: &str) -> Result<FieldName, RoleFault> {
    FieldName::parse(name).or_else(|problem| fault(place, problem.message().trim_end_matches('.')))
}

fn count(place: &str, value: &Value) -> Result<u64, RoleFault> {
    match value {
        Value::Number(text) => text.parse().ok().filter(|count| *count > 0),
        _ => None,
    }
    .map_or_else(|| fault(place, "it must be a whole number of at least 1"), Ok)
}

fn time(place: &str, value: &Value) -> Result<Duration, RoleFault> {
    let time = humantime::parse_duration(words(place, value)?).ok().filter(|time| *time >= Duration::from_millis(1));
    time.map_or_else(|| fault(place, "it must be a time such as 5s or 500ms"), Ok)
}

fn unknown<T>(place: &str, part: &str, known: &[&str]) -> Result<T, RoleFault> {
    let place = if place.is_empty() { "the role" } else { place };
    let near = shared::error::nearest(part, known.iter().copied());
    let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    fault(place, format!("it has no part {}; its parts are {}{hint}", shown(part), known.join(", ")))
}

#[cfg(test)]
mod tests;
