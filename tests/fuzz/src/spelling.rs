//! A read as a structure, in every spelling that callers may use: the same meaning, so the same outcome.
//!
//! | spelling | `query` | |
//! | --- | --- | --- |
//! | JSON for each option | `query={"views":5}` | numbers are numbers |
//! | brackets | `query[views]=5` | every leaf is text |
//! | a body | `{"query":{"views":5}}` | the POST twin |
//!
//! What brackets can't say (null, empty lists) is not made here.

use crate::catalogue::POSTS;
use crate::outcome::{self, Outcome};
use crate::request::Request;
use crate::statement::is_ours;
use arbitrary::{Arbitrary, Unstructured};
use origin::catalog::Kind;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;
use shared::limits::URL_MAX_BYTES;

const POSTS_PATH: &str = "/api/v1/crud/demo/posts";

/// Items of a list or members of a group that are made.
const PARTS_MAX_COUNT: usize = 12;
/// Groups in groups that are made.
const GROUPS_MAX_LEVELS: u8 = 4;

/// Options of a read, in order.
#[derive(Debug)]
pub struct Read {
    options: Vec<(&'static str, Json)>,
}

impl<'a> Arbitrary<'a> for Read {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let mut options = Vec::new();
        if u.arbitrary()? {
            options.push(("query", group(u, 0)?));
            if u.arbitrary()? {
                options.push(("searchOperator", joiner(u)?));
            }
        }
        for name in ["limit", "offset", "page"] {
            if u.ratio(1, 3)? {
                options.push((name, u.arbitrary::<u16>()?.into()));
            }
        }
        if u.arbitrary()? {
            let steps = parts(u, step)?;
            options.push(("order", one_or_all(u, steps)?));
        }
        if u.arbitrary()? {
            let name = *u.choose(&["selectFields", "omitFields"])?;
            let names: Vec<Json> = parts(u, |u| Ok(field(u)?.0.into()))?;
            options.push((name, names.into()));
        }
        Ok(Self { options })
    }
}

/// Checks that all spellings of a read come to the same.
///
/// # Panics
/// If two differ.
pub fn agree(read: &Read) {
    let body = Json::Object(
        read.options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
    );
    let post = format!("POST {POSTS_PATH}/query\n\n{body}");
    let meant = outcome_of(&post);
    if let Outcome::Ours(_, statements) = &meant {
        statements
            .iter()
            .for_each(|statement| drop(is_ours(statement)));
    }
    for query in [
        in_json(read),
        in_brackets(read, Lists::Counted),
        in_brackets(read, Lists::Empty),
    ] {
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

/// The same statements, or a refusal with the same code: its sentence may name the spelling.
fn same(meant: &Outcome, got: &Outcome, post: &str, get: &str) {
    match (meant, got) {
        (Outcome::Refused(meant), Outcome::Refused(got)) if meant.code() == got.code() => {}
        (meant, got) => assert_eq!(meant, got, "\n{post}\n{get}"),
    }
}

// The structure.

/// A field, and whether a number means the same to it as the number's text.
fn field(u: &mut Unstructured<'_>) -> arbitrary::Result<(String, bool)> {
    if u.ratio(1, 16)? {
        return Ok((label(u)?, false));
    }
    let (name, kind) = *u.choose(&POSTS)?;
    let numeric = matches!(
        kind,
        Kind::Integer | Kind::Decimal | Kind::Float | Kind::Text
    );
    Ok((name.to_owned(), numeric))
}

/// A group of conditions: labels are fields, or anything where the field is named apart.
fn group(u: &mut Unstructured<'_>, level: u8) -> arbitrary::Result<Json> {
    let members = parts(u, |u| {
        let (name, numeric) = field(u)?;
        if level < GROUPS_MAX_LEVELS && u.ratio(1, 5)? {
            return Ok((label(u)?, nested(u, level + 1)?));
        }
        if u.arbitrary()? {
            return Ok((name, scalar(u, numeric)?));
        }
        let mut parts = spelled(u, numeric)?;
        if u.ratio(1, 3)? {
            parts.push(("fieldName", name.into()));
            return Ok((label(u)?, object(parts)));
        }
        Ok((name, object(parts)))
    })?;
    Ok(Json::Object(members.into_iter().collect()))
}

fn nested(u: &mut Unstructured<'_>, level: u8) -> arbitrary::Result<Json> {
    let mut parts = vec![("__query", group(u, level)?)];
    if u.arbitrary()? {
        parts.push(("operator", joiner(u)?));
    }
    if u.arbitrary()? {
        parts.push(("not", u.arbitrary::<bool>()?.into()));
    }
    Ok(object(parts))
}

fn spelled(
    u: &mut Unstructured<'_>,
    numeric: bool,
) -> arbitrary::Result<Vec<(&'static str, Json)>> {
    const OPERATORS: [&str; 20] = [
        "=",
        "!=",
        ">",
        ">=",
        "<",
        "<=",
        "<=>",
        "LIKE",
        "not like",
        "IN",
        "NOT IN",
        "BETWEEN",
        "not between",
        "IS NULL",
        "IS NOT NULL",
        "REGEXP",
        "CONTAINS",
        "STARTS WITH",
        "ENDS WITH",
        "MATCH_BOOLEAN",
    ];
    let value = if u.ratio(1, 3)? {
        parts(u, |u| scalar(u, numeric))?.into()
    } else {
        scalar(u, numeric)?
    };
    let mut parts = vec![("value", value)];
    if u.arbitrary()? {
        let operator = if u.ratio(1, 16)? {
            word(u)?
        } else {
            (*u.choose(&OPERATORS)?).to_owned()
        };
        parts.push(("equality", operator.into()));
    }
    if u.ratio(1, 4)? {
        parts.push(("operator", joiner(u)?));
    }
    if u.ratio(1, 4)? {
        parts.push(("not", u.arbitrary::<bool>()?.into()));
    }
    Ok(parts)
}

fn step(u: &mut Unstructured<'_>) -> arbitrary::Result<Json> {
    let mut parts = vec![("field", field(u)?.0.into())];
    if u.arbitrary()? {
        parts.push(("strategy", (*u.choose(&["ASC", "desc"])?).into()));
    }
    Ok(object(parts))
}

fn joiner(u: &mut Unstructured<'_>) -> arbitrary::Result<Json> {
    u.choose(&["AND", "or", "XOR"]).map(|word| (*word).into())
}

fn scalar(u: &mut Unstructured<'_>, numeric: bool) -> arbitrary::Result<Json> {
    if numeric && u.arbitrary()? {
        return Ok(u.arbitrary::<i32>()?.into());
    }
    Ok(word(u)?.into())
}

/// Text that means trouble where it is not bound or quoted.
fn word(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    const TROUBLE: [&str; 10] = [
        "x' OR 1=1 -- ",
        "`; DROP TABLE posts",
        "?",
        "a\\",
        "%_|",
        "2026-11-20T10:00:00+02:00",
        "1e3",
        "true",
        "🦭",
        "\"",
    ];
    if u.arbitrary()? {
        return Ok((*u.choose(&TROUBLE)?).to_owned());
    }
    Ok(u.arbitrary::<&str>()?.to_owned())
}

/// A key that brackets can say: none inside it, and not a number, which would count a list.
fn label(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    let mut label = word(u)?.replace(['[', ']'], "");
    label.push('x');
    Ok(label)
}

fn object(parts: Vec<(&'static str, Json)>) -> Json {
    Json::Object(
        parts
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// One to some.
fn parts<'a, T>(
    u: &mut Unstructured<'a>,
    mut part: impl FnMut(&mut Unstructured<'a>) -> arbitrary::Result<T>,
) -> arbitrary::Result<Vec<T>> {
    let count = u.int_in_range(1..=PARTS_MAX_COUNT)?;
    let mut made = vec![part(u)?];
    while made.len() < count && !u.is_empty() {
        made.push(part(u)?);
    }
    Ok(made)
}

fn one_or_all(u: &mut Unstructured<'_>, mut parts: Vec<Json>) -> arbitrary::Result<Json> {
    Ok(if u.arbitrary()? {
        parts.remove(0)
    } else {
        parts.into()
    })
}

// The spellings.

/// What a browser leaves as it is, and no more.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

fn pair(name: &str, value: &str) -> String {
    format!(
        "{}={}",
        utf8_percent_encode(name, ENCODED),
        utf8_percent_encode(value, ENCODED)
    )
}

fn in_json(read: &Read) -> String {
    let pairs: Vec<String> = read
        .options
        .iter()
        .map(|(name, value)| match value {
            Json::String(word) => pair(name, word),
            value => pair(name, &value.to_string()),
        })
        .collect();
    pairs.join("&")
}

/// How lists of scalars are written; lists of objects are always counted.
#[derive(Clone, Copy)]
enum Lists {
    /// `a[0]=x&a[1]=y`, as qs and PHP do.
    Counted,
    /// `a[]=x&a[]=y`, as axios does.
    Empty,
}

fn in_brackets(read: &Read, lists: Lists) -> String {
    let mut pairs = Vec::new();
    for (name, value) in &read.options {
        grow(name, value, lists, &mut pairs);
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
                    (Lists::Empty, Json::String(_) | Json::Number(_)) => {
                        grow(&format!("{name}[]"), item, lists, pairs);
                    }
                    _ => grow(&format!("{name}[{at}]"), item, lists, pairs),
                }
            }
        }
        Json::String(text) => pairs.push(pair(name, text)),
        scalar => pairs.push(pair(name, &scalar.to_string())),
    }
}
