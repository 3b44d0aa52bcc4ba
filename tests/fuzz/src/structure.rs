//! A read as a structure, made from the fuzzer's bytes, with every option. Most fields and tables exist.
//!
//! Leaves out what brackets can't express, such as empty lists.

use crate::catalogue::POSTS;
use arbitrary::{Arbitrary, Unstructured};
use origin::query::catalog::Kind;
use serde_json::Value as Json;

/// Maximum number of generated items of a list or members of a group.
const PARTS_MAX_COUNT: usize = 12;
/// Maximum depth of generated groups.
const GROUPS_MAX_LEVELS: u8 = 4;

/// Tables that can be joined, and aliases in conditions.
const TABLES: [&str; 5] = ["users", "links", "log", "u", "posts"];
/// Fields of the joined tables that `posts` doesn't have.
const JOINED_FIELDS: [&str; 7] = ["name", "boss_id", "note", "post_id", "user_id", "state", "line"];

#[derive(Debug)]
pub struct Read {
    options: Vec<(&'static str, Json)>,
}

impl Read {
    #[must_use]
    pub fn options(&self) -> &[(&'static str, Json)] {
        &self.options
    }
}

impl<'a> Arbitrary<'a> for Read {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let mut options = Vec::new();
        if u.ratio(1, 4)? {
            let joins: Vec<Json> = parts(u, join)?;
            options.push(("join", joins.into()));
        }
        if u.arbitrary()? {
            options.push(("query", group(u, 0)?));
            if u.ratio(1, 3)? {
                options.push(("searchOperator", joiner(u)?));
            }
        }
        for name in ["limit", "offset", "page"] {
            if u.ratio(1, 4)? {
                options.push((name, u.arbitrary::<u16>()?.into()));
            }
        }
        for name in ["count", "distinct", "explain"] {
            if u.ratio(1, 8)? {
                options.push((name, u.arbitrary::<bool>()?.into()));
            }
        }
        if u.arbitrary()? {
            let steps = parts(u, step)?;
            options.push(("order", one_or_all(u, steps)?));
        }
        if u.arbitrary()? {
            options.push(selection(u)?);
        }
        if u.ratio(1, 6)? {
            let fields: Vec<Json> = parts(u, |u| Ok(field(u)?.0.into()))?;
            options.push(("group", one_or_all(u, fields)?));
        }
        if u.ratio(1, 6)? {
            options.push(("fullTextSearch", search(u)?));
        }
        if u.ratio(1, 8)? {
            options.push(("after", word(u)?.into()));
        }
        Ok(Self { options })
    }
}

fn selection(u: &mut Unstructured<'_>) -> arbitrary::Result<(&'static str, Json)> {
    const AGGREGATES: [&str; 6] = ["COUNT", "sum", "AVG", "MIN", "MAX", "COUNT_DISTINCT"];
    let name = *u.choose(&["selectFields", "selectFields", "omitFields"])?;
    let items: Vec<Json> = parts(u, |u| {
        let field: Json = place(u)?;
        if !u.ratio(1, 3)? {
            return Ok(field);
        }
        let mut parts = vec![("fieldName", field)];
        if u.arbitrary()? {
            parts.push(("alias", label(u)?.into()));
        }
        if u.arbitrary()? {
            parts.push(("aggregate", (*u.choose(&AGGREGATES)?).into()));
        }
        Ok(object(parts))
    })?;
    Ok((name, items.into()))
}

fn join(u: &mut Unstructured<'_>) -> arbitrary::Result<Json> {
    const KINDS: [&str; 4] = ["INNER JOIN", "join", "LEFT JOIN", "right join"];
    let mut parts_of_it = vec![("tableName", (*u.choose(&TABLES)?).into()), ("joinType", (*u.choose(&KINDS)?).into())];
    if u.arbitrary()? {
        let alias = if u.arbitrary()? { "u".to_owned() } else { label(u)? };
        parts_of_it.push(("alias", alias.into()));
    }
    let matches = parts(u, |u| {
        let mut pair = vec![("source", place(u)?)];
        if u.ratio(1, 3)? {
            pair.push(("targetLiteral", word(u)?.into()));
        } else {
            pair.push(("target", place(u)?));
        }
        Ok(object(pair))
    })?;
    parts_of_it.push(("match", one_or_all(u, matches)?));
    if u.ratio(1, 4)? {
        parts_of_it.push(("operator", joiner(u)?));
    }
    if u.ratio(1, 4)? {
        parts_of_it.push(("nest", u.arbitrary::<bool>()?.into()));
    }
    if u.ratio(1, 3)? {
        parts_of_it.push(selection(u)?);
    }
    Ok(object(parts_of_it))
}

fn search(u: &mut Unstructured<'_>) -> arbitrary::Result<Json> {
    let fields: Vec<Json> = parts(u, |u| Ok(field(u)?.0.into()))?;
    let mut parts = vec![("fields", fields.into()), ("searchTerm", word(u)?.into())];
    if u.arbitrary()? {
        let mode = u.choose(&["natural", "BOOLEAN", "expansion", "fuzzy"])?;
        parts.push(("mode", (*mode).into()));
    }
    if u.arbitrary()? {
        parts.push(("scoreAlias", label(u)?.into()));
    }
    Ok(object(parts))
}

/// Returns a field's name, with or without its table.
fn place(u: &mut Unstructured<'_>) -> arbitrary::Result<Json> {
    let name = field(u)?.0;
    if !u.ratio(1, 4)? {
        return Ok(name.into());
    }
    let table = *u.choose(&TABLES)?;
    Ok(object(vec![("tableName", table.into()), ("fieldName", name.into())]))
}

/// Returns a field's name, and whether the field is numeric, so that a number and its text mean the same.
fn field(u: &mut Unstructured<'_>) -> arbitrary::Result<(String, bool)> {
    if u.ratio(1, 16)? {
        return Ok((label(u)?, false));
    }
    if u.ratio(1, 4)? {
        return Ok(((*u.choose(&JOINED_FIELDS)?).to_owned(), false));
    }
    let (name, kind) = *u.choose(&POSTS)?;
    let numeric = matches!(kind, Kind::Integer | Kind::Decimal | Kind::Float | Kind::Text);
    Ok((name.to_owned(), numeric))
}

/// Returns a group of conditions. Labels are fields, or any text where the condition names its field.
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
            if u.arbitrary()? {
                parts.push(("tableName", (*u.choose(&TABLES)?).into()));
            }
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

fn spelled(u: &mut Unstructured<'_>, numeric: bool) -> arbitrary::Result<Vec<(&'static str, Json)>> {
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
    let value = if u.ratio(1, 3)? { parts(u, |u| scalar(u, numeric))?.into() } else { scalar(u, numeric)? };
    let mut parts = vec![("value", value)];
    if u.arbitrary()? {
        let operator = if u.ratio(1, 16)? { word(u)? } else { (*u.choose(&OPERATORS)?).to_owned() };
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
    let mut parts = vec![("field", place(u)?)];
    if u.arbitrary()? {
        parts.push(("strategy", (*u.choose(&["ASC", "desc"])?).into()));
    }
    Ok(object(parts))
}

fn joiner(u: &mut Unstructured<'_>) -> arbitrary::Result<Json> {
    u.choose(&["AND", "or", "XOR"]).map(|word| (*word).into())
}

fn scalar(u: &mut Unstructured<'_>, numeric: bool) -> arbitrary::Result<Json> {
    if u.ratio(1, 12)? {
        return Ok(Json::Null);
    }
    if numeric && u.arbitrary()? {
        return Ok(u.arbitrary::<i32>()?.into());
    }
    Ok(word(u)?.into())
}

/// Returns text that does harm if it is neither bound nor quoted.
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

/// Returns a key for brackets: without brackets in it, and not a number, which would be a list's index.
fn label(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    let mut label = word(u)?.replace(['[', ']'], "");
    label.push('x');
    Ok(label)
}

fn object(parts: Vec<(&'static str, Json)>) -> Json {
    Json::Object(parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

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
    Ok(if u.arbitrary()? { parts.remove(0) } else { parts.into() })
}
