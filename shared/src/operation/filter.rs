//! Conditions: the `query` of a read, and the `updateKeyValues` and `deleteKeyValues` of writes.
//! Fields are checked names; values are as written, since only the catalogue knows their types. `parse` knows the
//! syntax.

mod operator;
mod parse;

use super::field::FieldRef;
use crate::error::{ErrorCode, Problem};
use crate::fingerprint::unordered;
use crate::json::{self, Value};
use crate::limits::CONDITION_COMMAS_MAX_COUNT;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;

pub(in crate::operation) use parse::joiner;

/// Refuses conditions with too many values, before they are parsed.
pub(in crate::operation) fn check_extent(conditions: &Value) -> Result<(), Problem> {
    match conditions {
        Value::Object(text) | Value::List(text) if json::commas(text) > CONDITION_COMMAS_MAX_COUNT => {
            Err(Problem::new(ErrorCode::InvalidFilter, "The conditions hold too many values together.")
                .with_hint("Spread them over several requests."))
        }
        _ => Ok(()),
    }
}

/// A condition on a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    Test(FieldRef, Test),
    /// All must hold; true if empty.
    All(Vec<Condition>),
    /// At least one must hold; false if empty.
    Any(Vec<Condition>),
    Not(Box<Condition>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    Compare(Comparison, Value),
    /// Equal to one of the values.
    In(Vec<Value>),
    /// Between two values, inclusive.
    Between(Value, Value),
    IsNull,
    /// SQL's LIKE, with `%` and `_`.
    Like(Value),
    Regexp(Value),
    /// Contains literal text at this position.
    Text(TextPosition, String),
    /// Full-text search in this field alone.
    Match(MatchMode, String),
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

/// Where literal text must occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextPosition {
    Within,
    Start,
    End,
}

/// How a full-text search term is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchMode {
    /// Natural language.
    Natural,
    /// With the boolean operators `+ - * " "`.
    Boolean,
    /// Natural language with query expansion: searches again with words of the best matches.
    Expansion,
}

/// How conditions are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Joiner {
    #[default]
    And,
    Or,
}

/// Ignores the order of conditions.
impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::Test(field, test) => (field, test).hash(state),
            Self::All(conditions) | Self::Any(conditions) => unordered(conditions, state),
            Self::Not(condition) => condition.hash(state),
        }
    }
}

/// Ignores the order of a list's values.
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
