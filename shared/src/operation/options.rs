//! Parses the options of a request to `(name, Value)` pairs, from query parameters (words, comma-separated lists, JSON,
//! bracket form `a[b]=c`) or from the members of a JSON body. Doesn't interpret the options.

mod brackets;

use super::field::FieldRef;
use super::route::decode;
use crate::error::{ErrorCode, Problem};
use crate::ident::{DatabaseName, FieldName, TableName, shown};
use crate::json::{self, Value};
use crate::limits::{FIELDS_MAX_COUNT, QUERY_MAX_PAIRS};
use brackets::Brackets;
use std::borrow::Cow;
use std::collections::BinaryHeap;

pub(super) type Options = Vec<(String, Value)>;

/// Maximum number of options that are read, since each name is compared with all before it. No valid request has as
/// many, so that one with more fails by the names read until then.
const OPTIONS_MAX_COUNT: usize = 40;

/// For these options, `name=a&name=b` means `name=a,b`: Python's requests repeats the name for each item of a list, as
/// does a loop over `URLSearchParams.append`.
const LISTS: [&str; 8] = ["selectFields", "select", "omitFields", "group", "order", "join", "include", "returning"];

pub(super) fn full_name(name: &str) -> &str {
    match name {
        "where" => "query",
        "select" => "selectFields",
        other => other,
    }
}

/// Sets an option. `of` is the enclosing option's name and a dot, or empty. Fails if the option is set already.
pub(super) fn put(slot: &mut Option<Value>, of: &str, name: &str, value: Value) -> Result<(), Problem> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(given_twice(of, full_name(name))),
    }
}

pub(super) fn given_twice(of: &str, full_name: &str) -> Problem {
    let names = if full_name == "query" { ["query", "where"] } else { ["selectFields", "select"] };
    let [one, other] = names.map(|name| format!("{of}{name}"));
    invalid(format!("{one} and {other} are two names of one option.")).with_hint("Give one of them.")
}

pub(super) fn pairs(query: Option<&str>, texts: &[&str]) -> Result<Options, Problem> {
    let (mut plain, mut repeats): (Options, Vec<(usize, Value)>) = (Vec::new(), Vec::new());
    let mut brackets = Brackets::default();
    let given = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    for (at, pair) in given.enumerate() {
        if plain.len() + brackets.count() > OPTIONS_MAX_COUNT {
            break;
        }
        if at == QUERY_MAX_PAIRS {
            return Err(invalid(format!("The query has more than {QUERY_MAX_PAIRS} parts."))
                .with_hint("Send lists as JSON, or the options as a body to the POST form, …/query."));
        }
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) => (name, Some(decode_part(value)?)),
            None => (pair, None),
        };
        let name = decode_part(name)?;
        if brackets.take(&name, value.as_deref())? {
            continue;
        }
        let known = plain.iter().position(|(known, _)| *known == name);
        if known.is_some() && !LISTS.contains(&&*name) {
            return Err(repeated(&name));
        }
        let value = value.unwrap_or_default();
        let value = if texts.contains(&&*name) { Value::Text(value.into()) } else { word_or_json(&name, &value)? };
        match known {
            Some(at) => repeats.push((at, value)),
            None => plain.push((name.into_owned(), value)),
        }
    }
    if !repeats.is_empty() {
        for (at, (_, value)) in plain.iter_mut().enumerate() {
            let others = repeats.iter().filter(|(of, _)| *of == at).map(|(_, value)| value);
            *value = together(value, others);
        }
    }
    for (name, value) in brackets.into_options() {
        if plain.iter().any(|(known, _)| *known == name) {
            return Err(repeated(&name));
        }
        plain.push((name, value));
    }
    Ok(plain)
}

pub(super) fn members(body: &[u8]) -> Result<Options, Problem> {
    Ok(json::body_members(body)?.into_iter().map(|(name, value)| (name.into_owned(), value)).collect())
}

pub(super) fn none(options: &Options) -> Result<(), Problem> {
    match options.first() {
        None => Ok(()),
        Some((name, _)) => Err(unknown(name, &[])),
    }
}

pub(super) const DATABASE: &str = "database";

pub(super) fn only_database(options: Options) -> Result<Option<DatabaseName>, Problem> {
    let mut database = None;
    for (name, value) in options {
        match value {
            Value::Text(text) if name == DATABASE => database = Some(DatabaseName::parse(&text)?),
            _ => return Err(unknown(&name, &[DATABASE])),
        }
    }
    Ok(database)
}

pub(super) fn unknown(name: &str, known: &[&str]) -> Problem {
    let problem = Problem::new(ErrorCode::InvalidQueryOption, format!("There is no option {} here.", shown(name)));
    if let Some((_, option, example)) = named_elsewhere(name, known) {
        return problem.with_hint(format!("The option is {option}: {example}."));
    }
    let near = crate::error::nearest(name, known.iter().copied());
    if !known.contains(&"query") {
        return match near {
            Some(near) => problem.with_hint(format!("Did you mean {}?", shown(near))),
            None if known.is_empty() => problem.with_hint("This request takes no options."),
            None => problem.with_hint(format!("Options: {}.", known.join(", "))),
        };
    }
    // Where there are conditions, an unknown option is often a field: only a small typing error of an option counts.
    let is_close =
        |near: &&str| 4 * strsim::osa_distance(&name.to_lowercase(), &near.to_lowercase()) <= name.chars().count();
    problem.with_hint(match near.filter(is_close) {
        Some(near) => format!("Did you mean {}?", shown(near)),
        None => format!("Options: {}. A condition on a field is query={{{}:…}}.", known.join(", "), shown(name)),
    })
}

/// Names in other interfaces, with the option of the same meaning, and an example.
const OTHER_NAMES: [(&[&str], &str, &str); 6] = [
    (&["filter", "filters", "conditions"], "query", r#"query={"views":{"gt":5}}"#),
    (&["fields", "columns", "attributes"], "selectFields", "select=id,title"),
    (&["sort", "sortBy", "sort_by", "orderBy", "order_by"], "order", "order=-id"),
    (&["perPage", "per_page", "pageSize", "page_size", "take", "top"], "limit", "limit=20"),
    (&["skip"], "offset", "offset=20"),
    (&["expand", "populate", "embed"], "include", "include=author"),
];

fn named_elsewhere(
    name: &str,
    known: &[&str],
) -> Option<&'static (&'static [&'static str], &'static str, &'static str)> {
    let is_meant = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    OTHER_NAMES.iter().find(|(names, option, _)| known.contains(option) && is_meant(names))
}

pub(super) fn wrong(name: &str, expected: &str, got: &Value) -> Problem {
    let message = format!("The option {name} must be {expected}, not {}.", got.shown());
    Problem::new(ErrorCode::InvalidQueryOption, message)
}

fn inside(list: &str) -> &str {
    let list = list.trim();
    list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list)
}

/// Joins the values of a repeated option to a list; returns `first` itself if there are no others.
fn together<'a>(first: &'a Value, others: impl Iterator<Item = &'a Value>) -> Value {
    let mut others = others.peekable();
    if others.peek().is_none() {
        return first.clone();
    }
    let items = |value: &Value| match value {
        Value::Text(words) => {
            let words = words.split(',').map(|word| Value::Text(word.trim().into()).to_json().into_owned());
            words.collect::<Vec<_>>().join(",")
        }
        Value::List(list) => inside(list).to_owned(),
        other => other.to_json().into_owned(),
    };
    let parts = std::iter::once(first).chain(others).map(items);
    let parts: Vec<_> = parts.filter(|part| !part.trim().is_empty()).collect();
    Value::List(format!("[{}]", parts.join(",")).into())
}

fn repeated(name: &str) -> Problem {
    Problem::new(ErrorCode::InvalidQueryOption, format!("The option {} is given more than once.", shown(name)))
        .with_hint("Give it once: a list is one JSON value, or numbered, name[0]=…&name[1]=….")
}

fn decode_part(text: &str) -> Result<Cow<'_, str>, Problem> {
    let decoded = match memchr::memchr(b'+', text.as_bytes()) {
        None => decode(text),
        Some(_) => decode(&text.replace('+', " ")).map(|decoded| Cow::Owned(decoded.into_owned())),
    };
    decoded.map_err(|fault| {
        Problem::new(ErrorCode::InvalidQueryOption, format!("The query part {} {fault}.", shown(text)))
            .with_hint("Percent-encode the query as UTF-8.")
    })
}

/// Parses text that begins with `[`, `{` or `"` as JSON. Any other text is itself the value.
fn word_or_json(name: &str, text: &str) -> Result<Value, Problem> {
    if !text.trim_start().starts_with(['[', '{', '"']) {
        return Ok(Value::Text(text.into()));
    }
    json::check(text.as_bytes())
        .and_then(|_| {
            json::value(text).map_err(|fault| {
                Problem::new(
                    ErrorCode::InvalidQueryOption,
                    format!("The option {} is not valid JSON: {fault}.", shown(name)),
                )
            })
        })
        .map_err(|problem| Problem::new(ErrorCode::InvalidQueryOption, problem.message().to_owned()))
}

/// Parses a number from 0 to `i64::MAX`, since some parts of MariaDB count rows in 63 bits. The text may end with `.0`,
/// as languages without integers write it.
pub fn parse_whole(text: &str) -> Option<u64> {
    let digits = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    };
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?;
    number.filter(|number| i64::try_from(*number).is_ok())
}

pub(super) fn whole_number(name: &str, value: &Value) -> Result<u64, Problem> {
    let (Value::Number(text) | Value::Text(text)) = value else {
        return Err(wrong(name, "a whole number", value));
    };
    let range = match name {
        "page" => "a whole number from 1 to 9223372036854775807",
        _ => "a whole number from 0 to 9223372036854775807",
    };
    parse_whole(text).ok_or_else(|| wrong(name, range, value))
}

/// Parses a boolean, also if written as `1` or `0` (by PHP), or as `True` or `False` (by Python).
pub(super) fn flag(name: &str, value: &Value) -> Result<bool, Problem> {
    match value {
        Value::Number(digit) if &**digit == "1" => Ok(true),
        Value::Number(digit) if &**digit == "0" => Ok(false),
        other => boolean(other).ok_or_else(|| wrong(name, "true or false", other)),
    }
}

/// Returns the options that are true, of a request that takes only flags.
pub(super) fn flags<'a>(options: &'a Options, known: &[&str]) -> Result<Vec<&'a str>, Problem> {
    let mut given = Vec::new();
    for (name, value) in options {
        if !known.contains(&name.as_str()) {
            return Err(unknown(name, known));
        }
        if flag(name, value)? {
            given.push(name.as_str());
        }
    }
    Ok(given)
}

pub(super) fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Text(word) if matches!(&**word, "true" | "True" | "1") => Some(true),
        Value::Text(word) if matches!(&**word, "false" | "False" | "0") => Some(false),
        _ => None,
    }
}

pub(super) fn invalid(message: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(ErrorCode::InvalidQueryOption, message)
}

/// Returns 1 to [`FIELDS_MAX_COUNT`] items: from JSON, comma-separated words, or one object alone.
pub(super) fn parts(name: &str, value: &Value, expected: &str) -> Result<Vec<Value>, Problem> {
    let parts = match value {
        Value::Text(text) if text.trim().is_empty() => Vec::new(),
        Value::Text(text) => {
            text.split(',').take(FIELDS_MAX_COUNT + 1).map(|part| Value::Text(part.trim().into())).collect()
        }
        Value::List(text) => items(name, text, FIELDS_MAX_COUNT)?,
        Value::Object(_) => vec![value.clone()],
        other => return Err(wrong(name, expected, other)),
    };
    if parts.is_empty() {
        return Err(invalid(format!("The option {name} names no field.")));
    }
    if parts.len() > FIELDS_MAX_COUNT {
        return Err(invalid(format!("The option {name} has more than {FIELDS_MAX_COUNT} names.")));
    }
    Ok(parts)
}

/// Returns 1 to [`FIELDS_MAX_COUNT`] distinct fields: from comma-separated names, or JSON as [`field`] accepts it.
pub(super) fn fields(name: &str, value: &Value) -> Result<Vec<FieldRef>, Problem> {
    const EXPECTED: &str = "a list of field names";
    let parts = parts(name, value, EXPECTED)?;
    let mut fields: Vec<FieldRef> = Vec::with_capacity(parts.len());
    for part in &parts {
        fields.push(field(name, EXPECTED, part)?);
    }
    match repeated_item(&fields) {
        Some(field) => Err(invalid(format!("The option {name} names {} more than once.", shown(&field.to_string())))),
        None => Ok(fields),
    }
}

/// Returns an item that occurs twice. Sorts, since comparing all pairs of thousands of items would be slow.
pub(super) fn repeated_item<T: Ord>(items: &[T]) -> Option<&T> {
    // A heap adds less code to the edge's wasm than a sort.
    let sorted = items.iter().collect::<BinaryHeap<&T>>().into_sorted_vec();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

pub(super) fn field(name: &str, expected: &str, value: &Value) -> Result<FieldRef, Problem> {
    let text = match value {
        Value::Text(text) => return FieldRef::parse(text),
        Value::Object(text) => text,
        other => return Err(wrong(name, expected, other)),
    };
    let (mut table, mut field) = (None, None);
    for (part, value) in object(name, text)? {
        match (&*part, &value) {
            ("tableName", Value::Text(text)) => table = Some(TableName::parse(text)?),
            ("fieldName", Value::Text(text)) => field = Some(FieldName::parse(text)?),
            ("tableName" | "fieldName", other) => {
                return Err(wrong(&format!("{name}.{part}"), "a name", other));
            }
            (other, _) => return Err(unknown_part(name, other, &["tableName", "fieldName"])),
        }
    }
    match (table, field) {
        (Some(table), Some(field)) => Ok(FieldRef::of(table, field)),
        (None, Some(field)) => Ok(field.into()),
        (_, None) => Err(missing_part(name, "fieldName")),
    }
}

pub(super) fn unknown_part(name: &str, part: &str, known: &[&str]) -> Problem {
    let problem = invalid(format!("The option {name} has no part {}.", shown(part)));
    let elsewhere = named_elsewhere(part, known).map(|(_, option, _)| *option);
    match elsewhere.or_else(|| crate::error::nearest(part, known.iter().copied())) {
        Some(near) => problem.with_hint(format!("Did you mean {}?", shown(near))),
        None => problem.with_hint(format!("Its parts are {}.", known.join(", "))),
    }
}

pub(super) fn missing_part(name: &str, part: &str) -> Problem {
    invalid(format!("The option {name} needs {part}."))
}

/// Returns at most `most` + 1 items. The caller refuses a longer list.
pub(super) fn items(name: &str, text: &str, most: usize) -> Result<Vec<Value>, Problem> {
    json::items(text, most).map_err(|fault| invalid_part(name, &fault))
}

pub(super) fn object<'a>(name: &str, text: &'a str) -> Result<Vec<(Cow<'a, str>, Value)>, Problem> {
    json::members(text).map_err(|fault| invalid_part(name, &fault))
}

fn invalid_part(name: &str, fault: &serde_json::Error) -> Problem {
    Problem::new(ErrorCode::InvalidQueryOption, format!("The option {name} can't be read: {fault}."))
}
