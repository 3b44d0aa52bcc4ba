//! A read as a structure, encoded in every way that callers may use: all encodings must have the same outcome.
//!
//! | spelling | `query` | |
//! | --- | --- | --- |
//! | JSON for each option | `query={"views":5}` | numbers are numbers |
//! | brackets | `query[views]=5` | every leaf is text, or null without `=` |
//! | one option an item | `selectFields=id&selectFields=views`, `order=-id`, `count=True` | as Python's requests writes them |
//! | a body | `{"query":{"views":5}}` | the body of `POST …/query` |
//!
//! The structure has only values that brackets can express.

use crate::outcome::{self, Outcome};
use crate::request::Request;
use crate::statement::is_ours;
use crate::structure::Read;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;
use shared::limits::URL_MAX_BYTES;

const POSTS_PATH: &str = "/api/v1/crud/demo/posts";

/// Checks that all encodings of a read have the same outcome.
///
/// # Panics
/// Two outcomes differ.
pub fn agree(read: &Read) {
    let body = Json::Object(read.options().iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect());
    let post = format!("POST {POSTS_PATH}/query\n\n{body}");
    let meant = outcome_of(&post);
    if let Outcome::Ours(_, statements) = &meant {
        statements.iter().for_each(|statement| drop(is_ours(statement)));
    }
    for query in [in_json(read), in_items(read), in_brackets(read, Lists::Counted), in_brackets(read, Lists::Empty)] {
        if query.len() + POSTS_PATH.len() >= URL_MAX_BYTES {
            continue;
        }
        let get = format!("GET {POSTS_PATH}?{query}");
        same(&meant, &outcome_of(&get), &post, &get);
    }
}

fn outcome_of(request: &str) -> Outcome {
    outcome::of(&Request::read(request.as_bytes()).expect("a request"))
}

/// Checks that two outcomes are the same statements, or refusals with the same code: messages may quote the encoding.
fn same(meant: &Outcome, got: &Outcome, post: &str, get: &str) {
    match (meant, got) {
        (Outcome::Refused(meant), Outcome::Refused(got)) if meant.code() == got.code() => {}
        (meant, got) => assert_eq!(meant, got, "\n{post}\n{get}"),
    }
}

/// Characters to encode: all but those that a browser leaves unencoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

fn pair(name: &str, value: &str) -> String {
    format!("{}={}", utf8_percent_encode(name, ENCODED), utf8_percent_encode(value, ENCODED))
}

fn in_json(read: &Read) -> String {
    let pairs: Vec<String> = read
        .options()
        .iter()
        .map(|(name, value)| match value {
            Json::String(text) => pair(name, &word(text)),
            value => pair(name, &value.to_string()),
        })
        .collect();
    pairs.join("&")
}

/// Encodes a list as one option an item, if all items are names, and booleans as Python does.
fn in_items(read: &Read) -> String {
    let pairs = read.options().iter().flat_map(|(name, value)| match value {
        Json::Bool(flag) => vec![pair(name, if *flag { "True" } else { "False" })],
        Json::Array(items) if ["selectFields", "omitFields", "group", "order"].contains(name) => {
            let words: Option<Vec<_>> = items.iter().map(|item| item_word(name, item)).collect();
            match words {
                Some(words) if !words.is_empty() => words.iter().map(|word| pair(name, word)).collect(),
                _ => vec![pair(name, &value.to_string())],
            }
        }
        Json::String(text) => vec![pair(name, &word(text))],
        value => vec![pair(name, &value.to_string())],
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns a name, or a step of `order` by a name, as one word; `None` if it can't be one.
fn item_word(option: &str, item: &Json) -> Option<String> {
    let is_word = |name: &str| !name.is_empty() && !name.contains(',') && name.trim() == name && word(name) == name;
    let (name, prefix) = match (option, item) {
        ("order", Json::Object(step)) if step.keys().all(|key| key == "field" || key == "strategy") => {
            let prefix = match step.get("strategy").map_or(Some("asc"), Json::as_str)? {
                word if word.eq_ignore_ascii_case("desc") => "-",
                word if word.eq_ignore_ascii_case("asc") => "",
                _ => return None,
            };
            (step.get("field")?.as_str()?, prefix)
        }
        ("order", _) => return None,
        (_, name) => (name.as_str()?, ""),
    };
    (is_word(name) && !name.starts_with('-')).then(|| format!("{prefix}{name}"))
}

/// Encodes an option's word; a word that looks like JSON is written as JSON.
fn word(text: &str) -> String {
    match text.trim_start().starts_with(['[', '{', '"']) {
        true => Json::from(text).to_string(),
        false => text.to_owned(),
    }
}

/// How lists of scalars are written in brackets; lists of objects always have indices.
#[derive(Clone, Copy)]
enum Lists {
    /// With indices, `a[0]=x&a[1]=y`, as qs and PHP do.
    Counted,
    /// With empty brackets, `a[]=x&a[]=y`, as axios does.
    Empty,
}

fn in_brackets(read: &Read, lists: Lists) -> String {
    let mut pairs = Vec::new();
    for (name, value) in read.options() {
        match value {
            Json::String(text) => pairs.push(pair(name, &word(text))),
            value => grow(name, value, lists, &mut pairs),
        }
    }
    pairs.join("&")
}

fn grow(name: &str, value: &Json, lists: Lists, pairs: &mut Vec<String>) {
    match value {
        Json::Object(members) => {
            for (key, member) in members {
                grow(&format!("{name}[{key}]"), member, lists, pairs);
            }
        }
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                match (lists, item) {
                    (Lists::Empty, Json::String(_) | Json::Number(_) | Json::Null) => {
                        grow(&format!("{name}[]"), item, lists, pairs);
                    }
                    _ => grow(&format!("{name}[{at}]"), item, lists, pairs),
                }
            }
        }
        Json::Null => pairs.push(utf8_percent_encode(name, ENCODED).to_string()),
        Json::String(text) => pairs.push(pair(name, text)),
        scalar => pairs.push(pair(name, &scalar.to_string())),
    }
}
