//! Conditions on records: the options `query`, `updateKeyValues` and `deleteKeyValues`. Values stay as written, since
//! only the origin's schema cache knows the fields' types.

mod operator;
mod parse;

use super::field::FieldRef;
use crate::error::{ErrorCode, Problem};
use crate::fingerprint::unordered;
use crate::json::{self, Value};
use crate::limits::CONDITION_COMMAS_MAX_COUNT;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;

pub use operator::{equalities, short_names, short_operators};
pub(in crate::operation) use parse::joiner;

pub(in crate::operation) fn check_extent(conditions: &Value) -> Result<(), Problem> {
    match conditions {
        Value::Object(text) | Value::List(text) if json::commas(text) > CONDITION_COMMAS_MAX_COUNT => {
            Err(Problem::new(ErrorCode::InvalidFilter, "The conditions hold too many values together.")
                .with_hint("Spread them over several requests."))
        }
        _ => Ok(()),
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    Test(FieldRef, Test),
    /// All conditions hold; true for an empty list.
    All(Vec<Condition>),
    /// At least one condition holds; false for an empty list.
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Related(Related),
}

#[derive(Clone, Debug, PartialEq, Hash)]
#[non_exhaustive]
pub struct Related {
    pub relation: Box<str>,
    pub quantifier: Quantifier,
    /// The condition on related records; `None` if every related record meets it.
    pub condition: Option<Box<Condition>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    Some,
    None,
    /// All related records meet the condition; true without related records.
    Every,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    Compare(Comparison, Value),
    /// The field has one of the values; a null among them means IS NULL.
    In(Vec<Value>),
    Between(Value, Value),
    IsNull,
    Like(Value),
    Regexp(Value),
    Text(TextPosition, String),
    Match(MatchMode, String),
}

impl Condition {
    pub fn related(&self) -> Vec<&Related> {
        match self {
            Self::Test(..) => Vec::new(),
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::related).collect(),
            Self::Not(part) => part.related(),
            Self::Related(related) => vec![related],
        }
    }
}

impl Test {
    pub fn values(&self) -> Vec<&Value> {
        match self {
            Self::Compare(_, value) => vec![value],
            Self::In(values) => values.iter().collect(),
            Self::Between(low, high) => vec![low, high],
            Self::Like(_) | Self::Regexp(_) | Self::Text(..) | Self::Match(..) | Self::IsNull => Vec::new(),
        }
    }

    pub fn has_value(&self, text: &str) -> bool {
        let is = |value: &Value| matches!(value, Value::Text(found) if **found == *text);
        match self {
            Self::Compare(_, value) | Self::Like(value) | Self::Regexp(value) => is(value),
            Self::In(values) => values.iter().any(is),
            Self::Between(low, high) => is(low) || is(high),
            Self::Text(_, found) | Self::Match(_, found) => found == text,
            Self::IsNull => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// `<=>`: equal, or both NULL.
    NullSafeEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextPosition {
    Within,
    Start,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchMode {
    Natural,
    /// Boolean mode: the term has operators such as `+`, `-` and `*`.
    Boolean,
    /// Query expansion: searches again with words of the best matches.
    Expansion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Joiner {
    #[default]
    And,
    Or,
}

/// The conditions of `All`, and those of `Any`, have the same hash in any order.
impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::Test(field, test) => (field, test).hash(state),
            Self::All(conditions) | Self::Any(conditions) => unordered(conditions, state),
            Self::Not(condition) => condition.hash(state),
            Self::Related(related) => related.hash(state),
        }
    }
}

/// The values of `In` have the same hash in any order.
impl Hash for Test {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::Compare(comparison, value) => (comparison, value).hash(state),
            Self::In(values) => unordered(values, state),
            Self::Between(low, high) => (low, high).hash(state),
            Self::IsNull => {}
            Self::Like(value) | Self::Regexp(value) => value.hash(state),
            Self::Text(position, text) => (position, text).hash(state),
            Self::Match(mode, term) => (mode, term).hash(state),
        }
    }
}
