//! Parses the option `include`: related records in each record of the response. Relations are foreign keys.

use super::order::{self, Order};
use super::select::{Selection, selection};
use crate::error::Problem;
use crate::ident::FieldName;
use crate::json::Value;
use crate::limits::{INCLUDE_MAX_COUNT, INCLUDE_MAX_DEPTH, RELATION_NAME_MAX_BYTES};
use crate::operation::filter::{self, Condition};
use crate::operation::options;

#[derive(Clone, Debug, PartialEq, Hash)]
#[non_exhaustive]
pub struct Include {
    /// The relation as the caller names it, such as `author` or `comments.post_id`. Only the origin knows the foreign
    /// keys.
    pub relation: Box<str>,
    pub alias: Option<FieldName>,
    pub select: Selection,
    pub filter: Option<Condition>,
    pub order: Vec<Order>,
    /// Maximum related records for each record; `None` for all.
    pub limit: Option<u64>,
    pub includes: Vec<Include>,
}

const PARTS: [&str; 9] =
    ["relation", "as", "selectFields", "omitFields", "query", "searchOperator", "order", "limit", "include"];

/// Parses `include`, with at most [`INCLUDE_MAX_COUNT`] relations and [`INCLUDE_MAX_DEPTH`] levels.
pub(super) fn includes(value: &Value) -> Result<Vec<Include>, Problem> {
    let mut count = 0;
    level(value, 1, &mut count)
}

fn level(value: &Value, depth: usize, count: &mut usize) -> Result<Vec<Include>, Problem> {
    const EXPECTED: &str = "names of relations, or a list of names and {relation, …}";
    if depth > INCLUDE_MAX_DEPTH {
        return Err(options::invalid(format!("The option include is nested deeper than {INCLUDE_MAX_DEPTH} levels.")));
    }
    let parts = match value {
        Value::Text(text) => text.split(',').take(INCLUDE_MAX_COUNT + 1).map(|name| Value::Text(name.into())).collect(),
        Value::List(text) => options::items("include", text, INCLUDE_MAX_COUNT)?,
        Value::Object(_) => vec![value.clone()],
        other => return Err(options::wrong("include", EXPECTED, other)),
    };
    *count += parts.len();
    if *count > INCLUDE_MAX_COUNT {
        return Err(options::invalid(format!("The option include has more than {INCLUDE_MAX_COUNT} relations."))
            .with_hint("Read the others in further requests."));
    }
    parts
        .iter()
        .map(|part| match part {
            Value::Text(name) => Ok(Include::named(relation(name)?)),
            Value::Object(text) => include(text, depth, count),
            other => Err(options::wrong("include", EXPECTED, other)),
        })
        .collect()
}

impl Include {
    fn named(relation: Box<str>) -> Self {
        Self {
            relation,
            alias: None,
            select: Selection::All,
            filter: None,
            order: Vec::new(),
            limit: None,
            includes: Vec::new(),
        }
    }
}

fn relation(name: &str) -> Result<Box<str>, Problem> {
    match name.trim() {
        "" => Err(options::invalid("The option include has an empty name.")),
        name if name.len() > RELATION_NAME_MAX_BYTES => Err(options::invalid(format!(
            "The option include has a name of more than {RELATION_NAME_MAX_BYTES} bytes."
        ))),
        name => Ok(name.into()),
    }
}

fn include(text: &str, depth: usize, count: &mut usize) -> Result<Include, Problem> {
    let (mut name, mut alias, mut limit, mut includes) = (None, None, None, Vec::new());
    let (mut select, mut omit, mut query, mut joiner, mut order) = (None, None, None, None, Vec::new());
    for (part, value) in options::object("include", text)? {
        match (options::full_name(&part), &value) {
            ("relation", Value::Text(text)) => name = Some(relation(text)?),
            ("as", Value::Text(text)) => alias = Some(FieldName::parse(text)?),
            ("selectFields", _) => options::put(&mut select, "include.", &part, value)?,
            ("omitFields", _) => omit = Some(value),
            ("query", _) => options::put(&mut query, "include.", &part, value)?,
            ("searchOperator", _) => joiner = Some(filter::joiner("include.searchOperator", &value)?),
            ("order", _) => order = order::orders(&value)?,
            ("limit", _) => limit = Some(options::whole_number("include.limit", &value)?),
            ("include", _) => includes = level(&value, depth + 1, count)?,
            ("as", Value::Null) => {}
            (known, other) if PARTS.contains(&known) => {
                return Err(options::wrong(&format!("include.{known}"), "a string", other));
            }
            _ => return Err(options::unknown_part("include", &part, &PARTS)),
        }
    }
    if query.is_none() && joiner.is_some() {
        return Err(options::invalid("The option include.searchOperator needs include.query."));
    }
    let filter = match query {
        Some(query) => {
            filter::check_extent(&query)?;
            Condition::from_query(&query, joiner.unwrap_or_default())?
        }
        None => None,
    };
    Ok(Include {
        relation: name.ok_or_else(|| options::missing_part("include", "a relation"))?,
        alias,
        select: selection(select.as_ref(), omit.as_ref())?,
        filter,
        order,
        limit,
        includes,
    })
}
