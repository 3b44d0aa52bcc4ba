//! References to ids that do not exist yet: where they may stand, how they are spelled, and what takes
//! their place.
//!
//! They are replaced in the text of an operation before its parser sees it: no parser knows of them,
//! and an id that came this way is bound and checked like one that the caller wrote.

use super::{Step, invalid};
use crate::error::Problem;
use crate::ident::shown;
use crate::json::{self, Value};
use crate::policy::Action;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;

/// The id that an insert of the same batch gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The insert's place in the batch.
    pub operation: usize,
    /// Which of its records, if it inserts a list of them.
    pub row: Option<usize>,
    /// Where the id is to stand.
    pub place: Place,
}

/// Where an id is to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// As a value in a body.
    Value,
    /// As the whole `{id}` of a path.
    Id,
    /// As one part of an `{id}` of several.
    Part,
}

/// Gives the JSON text of the id that a reference stands for.
pub type Fill<'a> = dyn FnMut(Reference) -> Result<String, Problem> + 'a;

/// What stands for an id until there is one, so that everything around it can be checked.
pub(super) const PLACEHOLDER: &str = "\"0\"";

const KEY: &str = "$ref";
const SPELLINGS: &str = "Write {\"$ref\": 0} for the id of operation 0, {\"$ref\": 0, \"row\": 2} for that of its third \
     record; in a path $ref:0 or $ref:0:2.";

impl Reference {
    /// Whether it names an insert before it, and one record of it.
    pub(super) fn check(self, earlier: &[Step]) -> Result<(), Problem> {
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

    /// What an object says, if it is a reference: any that has the key `$ref`.
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
        let place = Place::Value;
        Ok(operation.map(|operation| Self { operation, row, place }))
    }

    /// What a part of a path's `{id}` says, if it is a reference: any that begins with `$ref`. A record
    /// that is really called so is reached with an encoded `$`.
    fn spelled(part: &str, place: Place) -> Result<Option<Self>, Problem> {
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
        Ok(Some(Self { operation, row, place }))
    }
}

fn malformed(part: &str) -> Problem {
    invalid(format!("The reference can't be read at {}.", shown(part))).with_hint(SPELLINGS)
}

/// What of an id is encoded in a path: also `_`, lest the record `_schema` be taken for the schema. The
/// commas of a whole id separate its parts.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.');
const ENCODED_BUT_COMMAS: &AsciiSet = &ENCODED.remove(b',');

/// The path `/api/v1/crud/{db}/{table}/{id}` with the references of its `{id}` replaced.
pub(super) fn in_path<'a>(path: &'a str, fill: &mut Fill<'_>) -> Result<Cow<'a, str>, Problem> {
    let Some((at, id)) = path
        .rsplit_once('/')
        .map(|(before, id)| (before.len() + 1, id))
        .filter(|(_, id)| id.contains(KEY) && path.split('/').count() == ID_SEGMENT)
    else {
        return Ok(Cow::Borrowed(path));
    };
    let place = match id.contains(',') {
        true => Place::Part,
        false => Place::Id,
    };
    let mut parts = Vec::new();
    for part in id.split(',') {
        parts.push(match Reference::spelled(part, place)? {
            Some(reference) => segment(&fill(reference)?, place),
            None => part.to_owned(),
        });
    }
    Ok(Cow::Owned([&path[..at], &parts.join(",")].concat()))
}

/// Parts of a path with an `{id}`, the empty one before the first `/` included.
const ID_SEGMENT: usize = 7;

fn segment(json: &str, place: Place) -> String {
    let text = match json::value(json) {
        Ok(Value::Text(text)) => text.into(),
        _ => json.to_owned(),
    };
    let encoded = match place {
        Place::Id => ENCODED_BUT_COMMAS,
        Place::Part | Place::Value => ENCODED,
    };
    utf8_percent_encode(&text, encoded).to_string()
}

/// The text of a body with its references replaced: where a field's value stands in what is stored, and
/// anywhere in conditions. `path` is the operation's.
pub(super) fn in_body<'a>(
    action: Action,
    path: &str,
    body: &'a Value,
    fill: &mut Fill<'_>,
) -> Result<Cow<'a, str>, Problem> {
    let Value::Object(text) = body else {
        return Ok(body.to_json());
    };
    // A key may be written with escapes; most bodies have neither, and are not taken apart here.
    if !text.contains("\"$ref\"") && !text.contains("\\u") {
        return Ok(Cow::Borrowed(text));
    }
    // What can't be taken apart is left to the operation's own parser to refuse.
    let Ok(members) = json::members(text) else {
        return Ok(Cow::Borrowed(text));
    };
    let is_list = members.len() == 1;
    let is_one_record = path.split('/').count() == ID_SEGMENT;
    object(&members, |name, value| match (action, name) {
        (Action::Insert, "batchData") if is_list => rows(value, fill),
        (Action::Insert, _) => stored(value, fill),
        (Action::Update, _) if is_one_record => stored(value, fill),
        (Action::Update, "data") => row(value, fill).map(Cow::Owned),
        (Action::Update, "updateKeyValues") | (Action::Delete, "deleteKeyValues") => anywhere(value, fill),
        (Action::Query, "query") => conditions(value, fill),
        _ => Ok(value.to_json()),
    })
    .map(Cow::Owned)
}

/// An object, member by member.
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

/// A list, item by item.
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

/// A field's value: the value itself may be a reference, what is inside of it may not.
fn stored<'a>(value: &'a Value, fill: &mut Fill<'_>) -> Result<Cow<'a, str>, Problem> {
    if let Value::Object(text) = value
        && let Ok(members) = json::members(text)
        && let Some(reference) = Reference::of(&members)?
    {
        return fill(reference).map(Cow::Owned);
    }
    Ok(value.to_json())
}

/// Rows of `batchData`.
fn rows<'a>(value: &'a Value, fill: &mut Fill<'_>) -> Result<Cow<'a, str>, Problem> {
    let Value::List(text) = value else {
        return Ok(value.to_json());
    };
    list(text, |item| row(item, fill)).map(Cow::Owned)
}

/// An object of fields to store.
fn row(value: &Value, fill: &mut Fill<'_>) -> Result<String, Problem> {
    match value {
        Value::Object(text) => match json::members(text) {
            Ok(members) => object(&members, |_, value| stored(value, fill)),
            Err(_) => Ok(text.to_string()),
        },
        other => Ok(other.to_json().into_owned()),
    }
}

/// A map of fields to conditions: its keys are the caller's fields, whatever they are called.
fn conditions<'a>(value: &'a Value, fill: &mut Fill<'_>) -> Result<Cow<'a, str>, Problem> {
    match value {
        Value::Object(text) => match json::members(text) {
            Ok(members) => within(&members, fill).map(Cow::Owned),
            Err(_) => Ok(Cow::Borrowed(text)),
        },
        other => Ok(other.to_json()),
    }
}

/// A part of conditions, at any depth.
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
