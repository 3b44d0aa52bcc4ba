//! Conditions: the `query` of a read, the `updateKeyValues` and `deleteKeyValues` of writes.
//!
//! Both become one [`Condition`]. Fields are checked names; values are as written, since only the
//! catalogue knows what type they must have. `parse` tells how they are spelled.

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

/// Refuses conditions of too many parts by their text, before any of it is taken apart.
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
    /// A test of one field.
    Test(FieldRef, Test),
    /// All must hold; of none, it holds.
    All(Vec<Condition>),
    /// One must hold; of none, it does not.
    Any(Vec<Condition>),
    /// It must not hold.
    Not(Box<Condition>),
}

/// A test of one field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Compared to one value.
    Compare(Comparison, Value),
    /// One of these.
    In(Vec<Value>),
    /// Between two values, both included.
    Between(Value, Value),
    /// NULL.
    IsNull,
    /// An SQL pattern with `%` and `_`.
    Like(Value),
    /// A regular expression (PCRE).
    Regexp(Value),
    /// Literal text at this place.
    Text(Place, String),
    /// Full-text search in this field alone.
    Match(MatchMode, String),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `<=>`: equal, or both NULL.
    NullSafeEqual,
}

/// Where literal text must stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Anywhere.
    Within,
    /// At the start.
    Start,
    /// At the end.
    End,
}

/// How a full-text term is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchMode {
    /// As natural language.
    Natural,
    /// With the boolean operators `+ - * " "`.
    Boolean,
    /// As natural language, then once more with the words of what was found.
    Expansion,
}

/// How conditions are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Joiner {
    /// All must hold.
    #[default]
    And,
    /// One must hold.
    Or,
}

/// The order of conditions has no meaning.
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

/// The order of the values of a list has no meaning.
impl Hash for Test {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::Compare(comparison, value) => (comparison, value).hash(state),
            Self::In(values) => unordered(values, state),
            Self::Between(low, high) => (low, high).hash(state),
            Self::IsNull => {}
            Self::Like(value) | Self::Regexp(value) => value.hash(state),
            Self::Text(place, text) => (place, text).hash(state),
            Self::Match(mode, term) => (mode, term).hash(state),
        }
    }
}
