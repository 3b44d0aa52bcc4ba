//! Parses the JSON of requests: numbers stay exact, parsed objects have no duplicate keys, and the depth is bounded.
//! [`Value`] keeps numbers, lists and objects as text, so that a value for a JSON column is stored as it was written.

pub(crate) mod lexer;
mod parts;

use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::limits::{JSON_MEMBERS_MAX_COUNT, JSON_NESTING_MAX_LEVELS};
pub(crate) use parts::RawParts;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Box<str>),
    Text(Box<str>),
    List(Box<str>),
    Object(Box<str>),
}

impl Value {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Returns the value for messages: a text, a number of at most 40 characters, or the kind of another value.
    pub fn shown(&self) -> String {
        const NUMBER_MAX_BYTES: usize = 40;
        match self {
            Self::Text(text) => shown(text),
            Self::Number(text) if text.len() <= NUMBER_MAX_BYTES => text.to_string(),
            other => other.kind().to_owned(),
        }
    }

    /// Parses `text`, which serde_json has validated. Fails for a lone surrogate such as `"\ud800"`, which serde_json
    /// accepts.
    pub(crate) fn of(text: &str) -> Result<Self, serde_json::Error> {
        Ok(match text.as_bytes() {
            [b'[', ..] => Self::List(text.into()),
            [b'{', ..] => Self::Object(text.into()),
            [b'n', ..] => Self::Null,
            [b't', ..] => Self::Bool(true),
            [b'f', ..] => Self::Bool(false),
            [b'"', ..] => Self::Text(string(text)?.into()),
            _ => Self::Number(text.into()),
        })
    }

    pub fn to_json(&self) -> Cow<'_, str> {
        match self {
            Self::Null => Cow::Borrowed("null"),
            Self::Bool(true) => Cow::Borrowed("true"),
            Self::Bool(false) => Cow::Borrowed("false"),
            Self::Number(text) | Self::List(text) | Self::Object(text) => Cow::Borrowed(text),
            Self::Text(text) => Cow::Owned(serde_json::Value::from(&**text).to_string()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Borrowed<'a> {
    Scalar(Value),
    List(&'a str),
    Object(&'a str),
}

impl From<Borrowed<'_>> for Value {
    fn from(value: Borrowed<'_>) -> Self {
        match value {
            Borrowed::Scalar(value) => value,
            Borrowed::List(text) => Self::List(text.into()),
            Borrowed::Object(text) => Self::Object(text.into()),
        }
    }
}

impl<'de> Deserialize<'de> for Borrowed<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        match text.as_bytes() {
            [b'[', ..] => Ok(Self::List(text)),
            [b'{', ..] => Ok(Self::Object(text)),
            _ => Value::of(text).map(Self::Scalar).map_err(de::Error::custom),
        }
    }
}

/// Decodes a string; fails as [`Value::of`] does.
pub(crate) fn string(text: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    match text.as_bytes() {
        [b'"', string @ .., b'"'] if memchr::memchr(b'\\', string).is_none() => Ok((&text[1..text.len() - 1]).into()),
        _ => serde_json::from_str::<String>(text).map(Cow::Owned),
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Borrowed::deserialize(deserializer).map(Self::from)
    }
}

/// Returns the body as text without a byte-order mark. Fails with `invalid_json` if the body is not UTF-8 or nests
/// deeper than [`JSON_NESTING_MAX_LEVELS`] levels.
pub fn check(body: &[u8]) -> Result<&str, Problem> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let text = std::str::from_utf8(body).map_err(|fault| {
        let place = fault.valid_up_to();
        Problem::new(ErrorCode::InvalidJson, format!("The body is not UTF-8: byte {place} is broken."))
    })?;
    if nesting(text.as_bytes()) > JSON_NESTING_MAX_LEVELS {
        return Err(Problem::new(
            ErrorCode::InvalidJson,
            format!("The JSON nests deeper than {JSON_NESTING_MAX_LEVELS} levels."),
        ));
    }
    Ok(text)
}

fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut at) = (0usize, 0usize, 0);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(text, at),
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the index after a string's closing quote, or the end of the text if there is none. `at` is the index of the
/// string's first character.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(rest) = text.get(at..) {
        match memchr::memchr2(b'"', b'\\', rest) {
            None => break,
            Some(found) if rest[found] == b'"' => return at + found + 1,
            // The byte after a backslash never ends the string.
            Some(found) => at += found + 2,
        }
    }
    text.len()
}

/// Returns the members in order. Fails for a repeated key or more than [`JSON_MEMBERS_MAX_COUNT`] keys.
pub fn members(text: &str) -> Result<Vec<(Cow<'_, str>, Value)>, serde_json::Error> {
    serde_json::from_str::<ObjectMembers<'_, _>>(text).map(|members| members.0)
}

/// Returns the first `most` + 1 items, so that the caller can refuse a longer list without the memory for all items:
/// parsed items take up to twenty times the memory of their text.
pub fn items(text: &str, most: usize) -> Result<Vec<Value>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let items = Items { most }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(items)
}

/// Counts the commas outside of strings. No list or object in the text has more parts than this number plus one.
pub fn commas(text: &str) -> usize {
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

pub fn value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

struct ObjectMembers<'a, V>(Vec<(Cow<'a, str>, V)>);

struct MemberName<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for MemberName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = MemberName<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for ObjectMembers<'de, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for MembersVisitor<V> {
            type Value = ObjectMembers<'de, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(Cow<'de, str>, V)> = Vec::new();
                let mut seen = HashSet::new();
                while let Some(MemberName(key)) = map.next_key()? {
                    if members.len() == JSON_MEMBERS_MAX_COUNT {
                        return Err(de::Error::custom(format_args!(
                            "an object has more than {JSON_MEMBERS_MAX_COUNT} keys"
                        )));
                    }
                    if is_repeated(&members, &mut seen, &key) {
                        return Err(de::Error::custom(format_args!("the key {} is repeated", shown(&key))));
                    }
                    members.push((key, map.next_value()?));
                }
                Ok(ObjectMembers(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

/// Number of keys up to which comparing with each key is faster than a hash set.
const FEW_KEYS: usize = 16;

fn is_repeated<'a, V>(members: &[(Cow<'a, str>, V)], seen: &mut HashSet<Cow<'a, str>>, key: &str) -> bool {
    if members.len() < FEW_KEYS {
        return members.iter().any(|(known, _)| known == key);
    }
    if seen.is_empty() {
        seen.extend(members.iter().map(|(known, _)| known.clone()));
    }
    !seen.insert(Cow::Owned(key.to_owned()))
}

struct Items {
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Items {
    type Value = Vec<Value>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Value>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items {
    type Value = Vec<Value>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Value>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
            if items.len() > self.most {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(items)
    }
}

/// Returns the members of a body that is an object. Fails with `invalid_json` if it is not UTF-8 or not JSON, or nests
/// too deep; with `invalid_body` if it is no object, repeats a key or has more than [`JSON_MEMBERS_MAX_COUNT`].
pub fn body_members<'a, V: Deserialize<'a>>(body: &'a [u8]) -> Result<Vec<(Cow<'a, str>, V)>, Problem> {
    let text = check(body)?;
    let members = serde_json::from_str::<ObjectMembers<'_, V>>(text);
    members.map(|members| members.0).map_err(|fault| body_problem(text, &fault))
}

const SURROGATE_FAULTS: [&str; 2] = ["lone leading surrogate in hex escape", "unexpected end of hex escape"];

fn body_problem(text: &str, fault: &serde_json::Error) -> Problem {
    let text = text.trim_ascii();
    let Some(first) = text.bytes().next() else {
        return Problem::new(ErrorCode::InvalidJson, "The body is empty.").with_hint("Send a JSON object.");
    };
    if let Err(syntax) = serde_json::from_str::<IgnoredAny>(text) {
        return malformed(&syntax.to_string());
    }
    // `IgnoredAny` accepts lone surrogates everywhere; `members` accepts them only in nested values.
    let is_half = members(text).is_err_and(|fault| {
        let fault = fault.to_string();
        SURROGATE_FAULTS.iter().any(|half| fault.starts_with(half))
    });
    if is_half {
        return malformed("a text holds half of a surrogate pair");
    }
    let kind = match first {
        b'{' => {
            let message = format!("The body can't be taken: {fault}.");
            return Problem::new(ErrorCode::InvalidBody, message);
        }
        b'[' => "a list",
        b'"' => "a string",
        b't' | b'f' => "a boolean",
        b'n' => "null",
        _ => "a number",
    };
    Problem::new(ErrorCode::InvalidBody, format!("The body must be one JSON object, not {kind}."))
}

pub(crate) fn malformed(reason: &str) -> Problem {
    Problem::new(ErrorCode::InvalidJson, format!("The body is not valid JSON: {reason}.")).with_hint_if(
        reason.contains("control character").then_some("Within a text, write a line break as \\n and a tab as \\t."),
    )
}

#[cfg(test)]
mod tests;
