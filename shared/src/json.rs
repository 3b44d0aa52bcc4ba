//! JSON as callers write it: exact numbers, no duplicate keys, bounded depth.
//!
//! [`Value`] keeps what a conversion would lose: a number's digits as written, an object's text as
//! written. Lists and objects stay text until somebody asks for their parts, so a value on its way to
//! a JSON column is never taken apart.

pub(crate) mod lexer;

use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::limits::{JSON_MEMBERS_MAX_COUNT, JSON_NESTING_MAX_LEVELS};
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

/// A JSON value, one level deep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number's text, exactly as written.
    Number(Box<str>),
    /// A string, unescaped.
    Text(Box<str>),
    /// A list's text, exactly as written.
    List(Box<str>),
    /// An object's text, exactly as written.
    Object(Box<str>),
}

impl Value {
    /// What kind of value it is, for messages: "a number", "a list" ….
    #[must_use]
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

    /// The JSON text of this value.
    #[must_use]
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

/// A JSON value, one level deep, whose lists and objects are not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Borrowed<'a> {
    /// Neither a list nor an object.
    Scalar(Value),
    /// A list's text, exactly as written.
    List(&'a str),
    /// An object's text, exactly as written.
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
        Ok(Self::Scalar(match text.as_bytes() {
            [b'[', ..] => return Ok(Self::List(text)),
            [b'{', ..] => return Ok(Self::Object(text)),
            [b'n', ..] => Value::Null,
            [b't', ..] => Value::Bool(true),
            [b'f', ..] => Value::Bool(false),
            // serde_json has checked the text: without a backslash, it is the string.
            [b'"', string @ .., b'"'] if memchr::memchr(b'\\', string).is_none() => {
                Value::Text(text[1..text.len() - 1].into())
            }
            [b'"', ..] => {
                let string = serde_json::from_str::<String>(text);
                Value::Text(string.map_err(de::Error::custom)?.into())
            }
            _ => Value::Number(text.into()),
        }))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Borrowed::deserialize(deserializer).map(Self::from)
    }
}

/// Checks a JSON text before anything parses it: UTF-8, and at most
/// [`JSON_NESTING_MAX_LEVELS`] levels. The byte-order mark that some programs write is skipped.
///
/// # Errors
/// `invalid_json`, naming the fault and its place.
pub fn check(body: &[u8]) -> Result<&str, Problem> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let text = std::str::from_utf8(body).map_err(|fault| {
        let place = fault.valid_up_to();
        Problem::new(
            ErrorCode::InvalidJson,
            format!("The body is not UTF-8: byte {place} is broken."),
        )
    })?;
    if nesting(text.as_bytes()) > JSON_NESTING_MAX_LEVELS {
        return Err(Problem::new(
            ErrorCode::InvalidJson,
            format!("The JSON nests deeper than {JSON_NESTING_MAX_LEVELS} levels."),
        ));
    }
    Ok(text)
}

/// The deepest level of brackets outside of strings.
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

/// The index behind the quote that ends a string whose characters begin at this index; the end of the text if no quote
/// does.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(rest) = text.get(at..) {
        match memchr::memchr2(b'"', b'\\', rest) {
            None => break,
            Some(found) if rest[found] == b'"' => return at + found + 1,
            // The byte behind a backslash ends no string.
            Some(found) => at += found + 2,
        }
    }
    text.len()
}

/// The members of an object, in order; a repeated key is an error.
///
/// # Errors
/// serde_json's message, or one that names the repeated key.
pub fn members(text: &str) -> Result<Vec<(Cow<'_, str>, Value)>, serde_json::Error> {
    serde_json::from_str::<Members<'_, _>>(text).map(|members| members.0)
}

/// The items of a list, in order: all of them, or `most` + 1 of a longer one, which its reader is to
/// refuse. A list of megabytes would otherwise take twenty times its text.
///
/// # Errors
/// serde_json's message.
pub fn items<'a, V: Deserialize<'a>>(
    text: &'a str,
    most: usize,
) -> Result<Vec<V>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let of = PhantomData;
    let items = Items { most, of }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(items)
}

/// The commas outside of strings: no list or object in the text has more parts than these and one.
#[must_use]
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

/// One value of any kind.
///
/// # Errors
/// serde_json's message.
pub fn value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

struct Members<'a, V>(Vec<(Cow<'a, str>, V)>);

struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Members<'de, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for MembersVisitor<V> {
            type Value = Members<'de, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(Cow<'de, str>, V)> = Vec::new();
                let mut seen = HashSet::new();
                while let Some(Key(key)) = map.next_key()? {
                    if members.len() == JSON_MEMBERS_MAX_COUNT {
                        return Err(de::Error::custom(format_args!(
                            "an object has more than {JSON_MEMBERS_MAX_COUNT} keys"
                        )));
                    }
                    if is_repeated(&members, &mut seen, &key) {
                        return Err(de::Error::custom(format_args!(
                            "the key {} is repeated",
                            shown(&key)
                        )));
                    }
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

/// Keys of an object up to which they are compared one by one, which is quicker than a set of few.
const FEW_KEYS: usize = 16;

fn is_repeated<'a, V>(
    members: &[(Cow<'a, str>, V)],
    seen: &mut HashSet<Cow<'a, str>>,
    key: &str,
) -> bool {
    if members.len() < FEW_KEYS {
        return members.iter().any(|(known, _)| known == key);
    }
    if seen.is_empty() {
        seen.extend(members.iter().map(|(known, _)| known.clone()));
    }
    !seen.insert(Cow::Owned(key.to_owned()))
}

struct Items<V> {
    most: usize,
    of: PhantomData<V>,
}

impl<'de, V: Deserialize<'de>> DeserializeSeed<'de> for Items<V> {
    type Value = Vec<V>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<V>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Items<V> {
    type Value = Vec<V>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<V>, A::Error> {
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

/// Returns the members of a request body, which must be one JSON object.
///
/// # Errors
/// `invalid_json` if the body is not JSON, `invalid_body` if it is not an object or repeats a key.
pub fn body_members<'a, V: Deserialize<'a>>(
    body: &'a [u8],
) -> Result<Vec<(Cow<'a, str>, V)>, Problem> {
    let text = check(body)?;
    let members = serde_json::from_str::<Members<'_, V>>(text);
    members
        .map(|members| members.0)
        .map_err(|fault| body_problem(text, &fault))
}

/// What serde_json says of half of a surrogate pair.
const SURROGATE_FAULTS: [&str; 2] = [
    "lone leading surrogate in hex escape",
    "unexpected end of hex escape",
];

/// Tells text that is not JSON from JSON of the wrong shape, once its members could not be read.
fn body_problem(text: &str, fault: &serde_json::Error) -> Problem {
    let text = text.trim_ascii();
    let Some(first) = text.bytes().next() else {
        return Problem::new(ErrorCode::InvalidJson, "The body is empty.")
            .with_hint("Send a JSON object.");
    };
    if let Err(syntax) = serde_json::from_str::<IgnoredAny>(text) {
        return malformed(&syntax.to_string());
    }
    // `IgnoredAny` accepts lone halves of surrogate pairs, and `members` those in nested values, which stay text.
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
    Problem::new(
        ErrorCode::InvalidBody,
        format!("The body must be one JSON object, not {kind}."),
    )
}

/// The problem of a body that is not JSON, for this reason.
pub(crate) fn malformed(reason: &str) -> Problem {
    Problem::new(
        ErrorCode::InvalidJson,
        format!("The body is not valid JSON: {reason}."),
    )
    .with_hint_if(
        reason
            .contains("control character")
            .then_some("Within a text, write a line break as \\n and a tab as \\t."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_and_objects_keep_their_text() {
        let members =
            members(r#"{"a": 1.50, "b": {"x": 1e2}, "c": "\u00e9", "d": [1], "e": null}"#).unwrap();
        assert_eq!(members[0].1, Value::Number("1.50".into()));
        assert_eq!(members[1].1, Value::Object(r#"{"x": 1e2}"#.into()));
        assert_eq!(members[2].1, Value::Text("é".into()));
        assert_eq!(members[3].1, Value::List("[1]".into()));
        assert_eq!(members[4].1, Value::Null);
    }

    #[test]
    fn a_value_of_every_kind_gives_its_kind_and_its_text() {
        for (text, kind, json) in [
            ("null", "null", "null"),
            ("true", "a boolean", "true"),
            ("false", "a boolean", "false"),
            ("-1.50e3", "a number", "-1.50e3"),
            (r#""\u00e9\"\n""#, "a string", r#""é\"\n""#),
            (" [1, 2] ", "a list", "[1, 2]"),
            (r#"{"a": 1.0}"#, "an object", r#"{"a": 1.0}"#),
        ] {
            let value = value(text).unwrap();
            assert_eq!((value.kind(), &*value.to_json()), (kind, json), "{text}");
        }
        assert!(value("1 2").is_err());
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_a_broken_byte_is_named() {
        assert_eq!(check(b"\xEF\xBB\xBF{}").unwrap(), "{}");
        let broken = check(b"{\"a\":\"\xff\"}").unwrap_err();
        assert_eq!(broken.message(), "The body is not UTF-8: byte 6 is broken.");
    }

    #[test]
    fn a_message_says_what_was_expected() {
        let told = |fault: serde_json::Error| fault.to_string();
        assert!(told(members("[]").err().unwrap()).contains("expected an object"));
        assert!(told(items::<Value>("{}", 3).unwrap_err()).contains("expected a list"));
        let repeated = told(members(r#"{"a":1,"a":2}"#).err().unwrap());
        assert!(repeated.contains("\"a\" is repeated"), "{repeated}");
    }

    #[test]
    fn a_repeated_key_is_refused_also_when_escaped() {
        assert_eq!(
            body_members::<Value>(br#"{"a":1,"\u0061":2}"#)
                .unwrap_err()
                .code(),
            ErrorCode::InvalidBody
        );
    }

    #[test]
    fn a_line_break_within_a_text_gets_a_hint() {
        let broken = body_members::<Value>(b"{\"a\":\"x\ny\"}").unwrap_err();
        assert!(broken.hint().unwrap().contains(r"\n"), "{broken}");
        assert_eq!(body_members::<Value>(b"{\"a\":1").unwrap_err().hint(), None);
    }

    #[test]
    fn a_repeated_key_is_found_among_many() {
        let keys: Vec<String> = (0..40).map(|at| format!("\"k{at}\":1")).collect();
        for count in [1, FEW_KEYS - 1, FEW_KEYS, FEW_KEYS + 1, 40] {
            let keys = keys[..count].join(",");
            assert_eq!(members(&format!("{{{keys}}}")).unwrap().len(), count);
            for repeated in [0, count - 1] {
                let object = format!("{{{keys},\"k{repeated}\":1}}");
                assert!(members(&object).is_err(), "{object}");
            }
        }
    }

    #[test]
    fn a_fault_is_named_with_its_place() {
        for (body, expected) in [
            ("{", "EOF while parsing an object at line 1 column 1"),
            ("{\"a\":1", "EOF while parsing an object at line 1 column 6"),
            ("{]", "key must be a string at line 1 column 2"),
            ("{\"a\" 1}", "expected `:` at line 1 column 6"),
            ("{\"a\":1,}", "key must be a string at line 1 column 8"),
            ("{\"a\":01}", "invalid number at line 1 column 7"),
            ("{\"a\":1.}", "invalid number at line 1 column 8"),
            ("{\"a\":[1 2]}", "expected `,` or `]` at line 1 column 9"),
            ("{\"a\":tru}", "expected ident at line 1 column 9"),
            ("{\"a\":'x'}", "expected value at line 1 column 6"),
            ("{\"a\":\"\\x\"}", "invalid escape at line 1 column 8"),
            (
                "{\"a\":\"\\ud800\"}",
                "a text holds half of a surrogate pair",
            ),
            (
                "{\"a\":\"\\udc00\"}",
                "a text holds half of a surrogate pair",
            ),
            (
                "{\"\\ud800\\u0041\":1}",
                "a text holds half of a surrogate pair",
            ),
            ("{} {}", "trailing characters at line 1 column 4"),
            (
                "{\n  \"a\": 1,\n  b\n}",
                "key must be a string at line 3 column 3",
            ),
        ] {
            let problem = body_members::<Value>(body.as_bytes()).unwrap_err();
            assert_eq!(problem.code(), ErrorCode::InvalidJson, "{body}");
            let message = format!("The body is not valid JSON: {expected}.");
            assert_eq!(problem.message(), message, "{body}");
        }
        for (body, message) in [
            (
                &b"{\"a\":\"\xe6\x97\xa5\xc3\"}"[..],
                "The body is not UTF-8: byte 9 is broken.",
            ),
            (b"\xef\xbb{}", "The body is not UTF-8: byte 0 is broken."),
            (b" \n", "The body is empty."),
        ] {
            assert_eq!(body_members::<Value>(body).unwrap_err().message(), message);
        }
    }

    #[test]
    fn a_lone_half_of_a_surrogate_pair_passes_in_nested_json() {
        assert!(body_members::<Value>(b"{\"a\":[\"\\ud800\"]}").is_ok());
    }

    #[test]
    fn what_is_no_json_and_what_is_no_object_are_told_apart() {
        for text in [
            "",
            "{",
            "{'a':1}",
            "{\"a\":NaN}",
            "{\"a\":\"\\ud800\"}",
            "{} {}",
        ] {
            assert_eq!(
                body_members::<Value>(text.as_bytes()).unwrap_err().code(),
                ErrorCode::InvalidJson,
                "{text}"
            );
        }
        for text in ["[]", "1", "null", "\"x\""] {
            assert_eq!(
                body_members::<Value>(text.as_bytes()).unwrap_err().code(),
                ErrorCode::InvalidBody,
                "{text}"
            );
        }
        assert_eq!(
            body_members::<Value>(b"{\"a\":\"\xff\"}")
                .unwrap_err()
                .code(),
            ErrorCode::InvalidJson
        );
    }

    #[test]
    fn a_body_of_the_wrong_kind_is_named_by_its_kind_and_not_repeated() {
        for (text, kind) in [
            (format!("{:?}", "x".repeat(5_000)), "a string"),
            ("-1.5e3".to_owned(), "a number"),
            (" [1]".to_owned(), "a list"),
            ("false".to_owned(), "a boolean"),
            ("null".to_owned(), "null"),
        ] {
            assert_eq!(
                body_members::<Value>(text.as_bytes())
                    .unwrap_err()
                    .message(),
                format!("The body must be one JSON object, not {kind}.")
            );
        }
    }

    #[test]
    fn a_long_list_is_read_only_as_far_as_its_refusal_needs() {
        assert_eq!(items::<Value>("[1, 2, 3]", 3).unwrap().len(), 3);
        assert_eq!(items::<Value>("[1, 2, 3, 4, 5, 6]", 3).unwrap().len(), 4);
        assert!(items::<Value>("[1, 2, 3, 4, x]", 3).is_err());
        assert!(items::<Value>("[1] 2", 3).is_err());
    }

    #[test]
    fn an_object_of_more_keys_than_a_table_has_columns_is_refused() {
        let object = |count: usize| {
            let members: Vec<_> = (0..count).map(|at| format!("\"k{at}\":1")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(members(&object(JSON_MEMBERS_MAX_COUNT)).is_ok());
        let refused =
            body_members::<Value>(object(JSON_MEMBERS_MAX_COUNT + 1).as_bytes()).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidBody);
    }

    #[test]
    fn commas_are_counted_outside_of_strings() {
        assert_eq!(commas(r#"{"a,\",":[1,2],"b":3}"#), 2);
        assert_eq!(commas(r#"["\\", ",", 1]"#), 2);
        assert_eq!(commas("[]"), 0);
    }

    #[test]
    fn nesting_counts_brackets_outside_of_strings() {
        let deep = "[".repeat(JSON_NESTING_MAX_LEVELS);
        assert!(check(deep.as_bytes()).is_ok());
        for too_deep in ["[", "{"] {
            assert!(check(format!("{deep}{too_deep}").as_bytes()).is_err());
        }
        assert!(check(format!("\"\\\"{deep}[\"").as_bytes()).is_ok());
        assert!(check(format!("\"\\\\\"{deep}[").as_bytes()).is_err());
        // Brackets beside each other are no deeper than one; one that closes nothing opens no level.
        assert!(check("[]{}".repeat(100).as_bytes()).is_ok());
        assert!(check(format!("]{deep}").as_bytes()).is_ok());
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = body_members::<Value>(&bytes);
        }
    }
}
