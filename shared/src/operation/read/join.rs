//! Parses the option `join`: other tables to read together with the main one.

use super::select::{Selection, selection};
use crate::error::{Problem, nearest};
use crate::fingerprint::unordered;
use crate::ident::{TableName, shown};
use crate::json::Value;
use crate::limits::{JOIN_MATCH_MAX_COUNT, JOIN_MAX_ITEMS};
use crate::operation::field::FieldRef;
use crate::operation::filter::{Joiner, joiner};
use crate::operation::options;
use std::hash::{Hash, Hasher};

#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Join {
    /// The table is in the database of the main table.
    pub table: TableName,
    pub alias: Option<TableName>,
    pub kind: JoinKind,
    /// There is at least one condition.
    pub matches: Vec<Match>,
    pub joiner: Joiner,
    pub select: Selection,
    pub form: JoinForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinKind {
    Inner,
    /// Keeps records of the preceding tables that have no match.
    Left,
    /// Keeps records of the joined table that have no match.
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinForm {
    Flat,
    /// The joined fields are an object under the name or alias of the joined table.
    Nested,
}

#[derive(Clone, Debug, PartialEq, Hash)]
#[non_exhaustive]
pub struct Match {
    /// A field without a table is looked up first in the main table.
    pub source: FieldRef,
    pub target: JoinTarget,
}

/// What a field must equal. A literal list means one of its values; a literal null means IS NULL.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum JoinTarget {
    /// A field without a table is looked up first in the joined table.
    Field(FieldRef),
    Literal(Value),
}

/// The order of the conditions makes no difference.
impl Hash for Join {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { table, alias, kind, matches, joiner, select, form } = self;
        (table, alias, kind).hash(state);
        unordered(matches, state);
        (joiner, select, form).hash(state);
    }
}

const KINDS: [(&str, JoinKind); 9] = [
    ("INNER JOIN", JoinKind::Inner),
    ("JOIN", JoinKind::Inner),
    ("LEFT JOIN", JoinKind::Left),
    ("RIGHT JOIN", JoinKind::Right),
    ("LEFT OUTER JOIN", JoinKind::Left),
    ("RIGHT OUTER JOIN", JoinKind::Right),
    ("INNER", JoinKind::Inner),
    ("LEFT", JoinKind::Left),
    ("RIGHT", JoinKind::Right),
];

const PARTS: [&str; 8] = ["tableName", "alias", "joinType", "match", "operator", "selectFields", "omitFields", "nest"];
const MATCH_PARTS: [&str; 3] = ["source", "target", "targetLiteral"];

pub(super) fn joins(value: &Value) -> Result<Vec<Join>, Problem> {
    const EXPECTED: &str = "a list of {tableName, joinType, match, …}";
    let items = match value {
        Value::Object(_) => vec![value.clone()],
        Value::List(text) => options::items("join", text, JOIN_MAX_ITEMS)?,
        other => return Err(options::wrong("join", EXPECTED, other)),
    };
    if items.len() > JOIN_MAX_ITEMS {
        return Err(options::invalid(format!("The option join has more than {JOIN_MAX_ITEMS} tables.")));
    }
    items
        .iter()
        .map(|item| match item {
            Value::Object(text) => join(text),
            other => Err(options::wrong("join", EXPECTED, other)),
        })
        .collect()
}

fn join(text: &str) -> Result<Join, Problem> {
    let (mut table, mut alias, mut matches, mut select, mut omit) = (None, None, None, None, None);
    let (mut kind, mut how, mut form) = (JoinKind::Inner, Joiner::And, JoinForm::Flat);
    for (name, value) in options::object("join", text)? {
        match (options::full_name(&name), &value) {
            ("tableName", Value::Text(name)) => table = Some(TableName::parse(name)?),
            ("alias", Value::Text(name)) => alias = Some(TableName::parse(name)?),
            ("joinType", Value::Text(word)) => kind = named_kind(word)?,
            ("match", _) => matches = Some(all_matches(&value)?),
            ("operator", _) => how = joiner("join.operator", &value)?,
            ("selectFields", _) => options::put(&mut select, "join.", &name, value)?,
            ("omitFields", _) => omit = Some(value),
            ("nest", _) => form = named_form(&value)?,
            ("alias", Value::Null) => {}
            (known, other) if PARTS.contains(&known) => {
                return Err(options::wrong(&format!("join.{known}"), "a string", other));
            }
            _ => return Err(options::unknown_part("join", &name, &PARTS)),
        }
    }
    Ok(Join {
        table: table.ok_or_else(|| options::missing_part("join", "a tableName"))?,
        alias,
        kind,
        matches: matches
            .ok_or_else(|| options::missing_part("join", "a match"))
            .map_err(|problem| {
                problem.with_hint("Say what partners have in common: {\"match\": {\"source\": \"a field of the root\", \"target\": \"a field of the joined table\"}}.")
            })?,
        joiner: how,
        select: match (&select, &omit) {
            (Some(none), None) if is_empty(none) => Selection::Only(Vec::new()),
            _ => selection(select.as_ref(), omit.as_ref())?,
        },
        form,
    })
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::List(text) if text.get(1..).is_some_and(|rest| rest.trim_start().starts_with(']')))
}

fn named_form(value: &Value) -> Result<JoinForm, Problem> {
    Ok(match options::flag("join.nest", value)? {
        true => JoinForm::Nested,
        false => JoinForm::Flat,
    })
}

fn named_kind(word: &str) -> Result<JoinKind, Problem> {
    let folded = word.split_ascii_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase();
    KINDS.iter().find(|(name, _)| *name == folded).map(|(_, kind)| *kind).ok_or_else(|| {
        let near = nearest(&folded, KINDS.iter().map(|(name, _)| *name));
        options::invalid(format!("The option join knows no joinType {}.", shown(word))).with_hint(match near {
            Some(near) => format!("Did you mean {}?", shown(near)),
            None => "Use INNER JOIN, JOIN, LEFT JOIN or RIGHT JOIN.".to_owned(),
        })
    })
}

fn all_matches(value: &Value) -> Result<Vec<Match>, Problem> {
    const EXPECTED: &str = "an object {source, target} or {source, targetLiteral}, or a list of them";
    let items = match value {
        Value::Object(_) => vec![value.clone()],
        Value::List(text) => options::items("join.match", text, JOIN_MATCH_MAX_COUNT)?,
        other => return Err(options::wrong("join.match", EXPECTED, other)),
    };
    if items.is_empty() {
        return Err(options::invalid("The option join.match is empty."));
    }
    if items.len() > JOIN_MATCH_MAX_COUNT {
        return Err(options::invalid(format!("The option join.match has more than {JOIN_MATCH_MAX_COUNT} items.")));
    }
    items
        .iter()
        .map(|item| match item {
            Value::Object(text) => one_match(text),
            other => Err(options::wrong("join.match", EXPECTED, other)),
        })
        .collect()
}

fn one_match(text: &str) -> Result<Match, Problem> {
    const EXPECTED: &str = "a field's name or {tableName, fieldName}";
    let (mut source, mut target) = (None, None);
    for (name, value) in options::object("join.match", text)? {
        let twice = target.is_some() && matches!(&*name, "target" | "targetLiteral");
        match &*name {
            _ if twice => {
                return Err(options::invalid("The option join.match has both target and targetLiteral."));
            }
            "source" => {
                source = Some(options::field("join.match.source", EXPECTED, &value)?);
            }
            "target" => {
                let field = options::field("join.match.target", EXPECTED, &value)?;
                target = Some(JoinTarget::Field(field));
            }
            "targetLiteral" => target = Some(JoinTarget::Literal(value)),
            other => return Err(options::unknown_part("join.match", other, &MATCH_PARTS)),
        }
    }
    Ok(Match {
        source: source.ok_or_else(|| options::missing_part("join.match", "a source"))?,
        target: target.ok_or_else(|| options::missing_part("join.match", "a target or targetLiteral"))?,
    })
}
