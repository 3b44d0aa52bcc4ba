//! References to the ids of earlier inserts in a batch: where they are allowed, and how they are written and replaced.
//! A reference is replaced in an operation's text before the text is parsed, so that its id is checked and bound like a
//! value that the caller wrote.

use super::{BatchStep, invalid};
use crate::error::Problem;
use crate::ident::shown;
use crate::json::{self, Value};
use crate::policy::Action;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The index of the insert in the batch, from 0.
    pub operation: usize,
    /// The index in the insert's `batchData`; `None` if the insert has a single record.
    pub row: Option<usize>,
    pub position: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Value,
    Id,
    Part,
}

pub type Fill<'a> = dyn FnMut(Reference) -> Result<String, Problem> + 'a;

/// JSON text that stands for an id that is not known yet.
pub(super) const PLACEHOLDER: &str = "\"0\"";

const KEY: &str = "$ref";
const SPELLINGS: &str = "Write {\"$ref\": 0} for the id of operation 0, {\"$ref\": 0, \"row\": 2} for that of its third \
     record; in a path $ref:0 or $ref:0:2.";

impl Reference {
    /// Fails with `invalid_body` if the reference does not name exactly one record of an earlier insert.
    pub(super) fn check(self, earlier: &[BatchStep]) -> Result<(), Problem> {
        let target = self.operation;
        let Some(step) = earlier.get(target) else {
            return Err(invalid(format!("It refers to operation {target}, which does not come before it.")));
        };
        if step.insert().is_none() {
            return Err(invalid(format!("It refers to operation {target}, which is no insert and gives no id.")));
        }
        match (step.batch_rows(), self.row) {
            (None, None) => Ok(()),
            (Some(count), Some(row)) if row < count => Ok(()),
            (Some(count), Some(row)) => Err(invalid(format!(
                "It refers to row {row} of operation {target}, which inserts {count}, counted from 0."
            ))),
            (Some(_), None) => Err(invalid(format!(
                "It refers to operation {target}, which inserts a list of records, without saying which of them."
            ))
            .with_hint(SPELLINGS)),
            (None, Some(row)) => {
                Err(invalid(format!("It refers to row {row} of operation {target}, which inserts a single record."))
                    .with_hint(SPELLINGS))
            }
        }
    }

    /// Returns the reference that an object is; `None` without `$ref`. Refuses members other than `$ref` and `row`.
    fn of(members: &[(Cow<'_, str>, Value)]) -> Result<Option<Self>, Problem> {
        if !members.iter().any(|(name, _)| name == KEY) {
            return Ok(None);
        }
        let (mut operation, mut row) = (None, None);
        for (name, value) in members {
            let number = match value {
                Value::Number(digits) => digits.parse().ok(),
                _ => None,
            };
            match (&**name, number) {
                (KEY, Some(number)) => operation = Some(number),
                ("row", Some(number)) => row = Some(number),
                _ => return Err(malformed(name)),
            }
        }
        let position = Position::Value;
        Ok(operation.map(|operation| Self { operation, row, position }))
    }

    /// Parses a reference in a path. A client must percent-encode the `$` of a record key that begins with `$ref`.
    fn spelled(part: &str, position: Position) -> Result<Option<Self>, Problem> {
        let Some(rest) = part.strip_prefix(KEY) else {
            return Ok(None);
        };
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        };
        let parts: Vec<&str> = rest.split(':').collect();
        let (operation, row) = match parts.as_slice() {
            ["", operation] => (number(operation), None),
            ["", operation, row] => match number(row) {
                Some(row) => (number(operation), Some(row)),
                None => (None, None),
            },
            _ => (None, None),
        };
        let operation = operation.ok_or_else(|| malformed(part))?;
        Ok(Some(Self { operation, row, position }))
    }
}

fn malformed(part: &str) -> Problem {
    invalid(format!("The reference can't be read at {}.", shown(part))).with_hint(SPELLINGS)
}

/// The percent-encoded characters. `_` is one, so that the id `_schema` is not taken for the route `_schema`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.');
const ENCODED_BUT_COMMAS: &AsciiSet = &ENCODED.remove(b',');

/// Replaces the references in a path; only `/api/v1/crud/{db}/{table}/{id}` may have some, in its id.
pub(super) fn in_path<'a>(path: &'a str, fill: &mut Fill<'_>) -> Result<Cow<'a, str>, Problem> {
    let Some((at, id)) = path
        .rsplit_once('/')
        .map(|(before, id)| (before.len() + 1, id))
        .filter(|(_, id)| id.contains(KEY) && path.split('/').count() == RECORD_PATH_SEGMENTS_COUNT)
    else {
        return Ok(Cow::Borrowed(path));
    };
    let position = match id.contains(',') {
        true => Position::Part,
        false => Position::Id,
    };
    let mut parts = Vec::new();
    for part in id.split(',') {
        parts.push(match Reference::spelled(part, position)? {
            Some(reference) => segment(&fill(reference)?, position),
            None => part.to_owned(),
        });
    }
    Ok(Cow::Owned([&path[..at], &parts.join(",")].concat()))
}

/// Number of segments of a path with an id, including the empty segment before the first `/`.
const RECORD_PATH_SEGMENTS_COUNT: usize = 7;

fn segment(json: &str, position: Position) -> String {
    let text = match json::value(json) {
        Ok(Value::Text(text)) => text.into(),
        _ => json.to_owned(),
    };
    let encoded = match position {
        Position::Id => ENCODED_BUT_COMMAS,
        Position::Part | Position::Value => ENCODED,
    };
    utf8_percent_encode(&text, encoded).to_string()
}

/// Replaces the references in a body. One may be the value of a field to store, or be anywhere in conditions.
pub(super) fn in_body<'a>(
    action: Action,
    path: &str,
    body: &'a Value,
    fill: &mut Fill<'_>,
) -> Result<Cow<'a, str>, Problem> {
    let Value::Object(text) = body else {
        return Ok(body.to_json());
    };
    // The key `$ref` may be written with `\u` escapes. Most bodies contain neither.
    if !text.contains("\"$ref\"") && !text.contains("\\u") {
        return Ok(Cow::Borrowed(text));
    }
    // The operation's own parser will refuse the body.
    let Ok(members) = json::members(text) else {
        return Ok(Cow::Borrowed(text));
    };
    let is_list = members.len() == 1;
    let is_one_record = path.split('/').count() == RECORD_PATH_SEGMENTS_COUNT;
    object(&members, |name, value| match (action, name) {
        (Action::Insert, "batchData") if is_list => rows(value, fill),
        (Action::Insert, _) => stored(value, fill),
        (Action::Update, _) if is_one_record => stored(value, fill),
        (Action::Update, "data") => row(value, fill).map(Cow::Owned),
        (Action::Update, "updateKeyValues") | (Action::Delete, "deleteKeyValues") => anywhere(value, fill),
        (Action::Query | Action::Update | Action::Delete, "query" | "where") => conditions(value, fill),
        _ => Ok(value.to_json()),
    })
    .map(Cow::Owned)
}

fn object<'v>(
    members: &'v [(Cow<'_, str>, Value)],
    mut replace: impl FnMut(&str, &'v Value) -> Result<Cow<'v, str>, Problem>,
) -> Result<String, Problem> {
    let mut out = String::from("{");
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(&Value::Text(name.as_ref().into()).to_json());
        out.push(':');
        out.push_str(&replace(name, value)?);
    }
    out.push('}');
    Ok(out)
}

fn list(text: &str, mut replace: impl FnMut(&Value) -> Result<String, Problem>) -> Result<String, Problem> {
    let Ok(items) = json::items(text, usize::MAX) else {
        return Ok(text.to_owned());
    };
    let mut out = String::from("[");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(&replace(item)?);
    }
    out.push(']');
    Ok(out)
}

/// Replaces a value to store if it is a reference. References within the value are not replaced.
fn stored<'a>(value: &'a Value, fill: &mut Fill<'_>) -> Result<Cow<'a, str>, Problem> {
    if let Value::Object(text) = value
        && let Ok(members) = json::members(text)
        && let Some(reference) = Reference::of(&members)?
    {
        return fill(reference).map(Cow::Owned);
    }
    Ok(value.to_json())
}

fn rows<'a>(value: &'a Value, fill: &mut Fill<'_>) -> Result<Cow<'a, str>, Problem> {
    let Value::List(text) = value else {
        return Ok(value.to_json());
    };
    list(text, |item| row(item, fill)).map(Cow::Owned)
}

fn row(value: &Value, fill: &mut Fill<'_>) -> Result<String, Problem> {
    match value {
        Value::Object(text) => match json::members(text) {
            Ok(members) => object(&members, |_, value| stored(value, fill)),
            Err(_) => Ok(text.to_string()),
        },
        other => Ok(other.to_json().into_owned()),
    }
}

/// Replaces the references in conditions, whose keys are field names, even if one is `$ref`.
fn conditions<'a>(value: &'a Value, fill: &mut Fill<'_>) -> Result<Cow<'a, str>, Problem> {
    match value {
        Value::Object(text) => match json::members(text) {
            Ok(members) => within(&members, fill).map(Cow::Owned),
            Err(_) => Ok(Cow::Borrowed(text)),
        },
        other => Ok(other.to_json()),
    }
}

fn anywhere<'a>(value: &'a Value, fill: &mut Fill<'_>) -> Result<Cow<'a, str>, Problem> {
    match value {
        Value::Object(text) => {
            let Ok(members) = json::members(text) else {
                return Ok(Cow::Borrowed(text));
            };
            match Reference::of(&members)? {
                Some(reference) => fill(reference).map(Cow::Owned),
                None => within(&members, fill).map(Cow::Owned),
            }
        }
        Value::List(text) => list(text, |item| anywhere(item, fill).map(Cow::into_owned)).map(Cow::Owned),
        other => Ok(other.to_json()),
    }
}

fn within(members: &[(Cow<'_, str>, Value)], fill: &mut Fill<'_>) -> Result<String, Problem> {
    object(members, |name, value| match name {
        "__query" => conditions(value, fill),
        _ => anywhere(value, fill),
    })
}
