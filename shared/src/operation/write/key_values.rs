//! The lists of `{key, value, operator?}`, with their joiner, that select the records of a write. Updates and deletes
//! use different names for them.

use crate::error::Problem;
use crate::json::Value;
use crate::operation::filter::{self, Condition, Joiner};

/// The names of a list and its joiner.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) list: &'static str,
    /// The option that is `AND` or `OR`.
    pub(super) joiner: &'static str,
}

pub(super) const FOR_UPDATE: Names = Names { list: "updateKeyValues", joiner: "updateKeyValuesOperator" };

pub(super) const FOR_DELETE: Names = Names { list: "deleteKeyValues", joiner: "deleteKeyValuesOperator" };

/// A list and its joiner, from the body or the URL.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyValues {
    list: Option<Value>,
    joiner: Option<Value>,
}

impl KeyValues {
    /// Takes the list and its joiner from members or options, and refuses any other.
    pub(super) fn collect(
        names: &Names,
        members: impl IntoIterator<Item = (String, Value)>,
        unknown: fn(&str) -> Problem,
    ) -> Result<Self, Problem> {
        let mut collected = Self::default();
        for (name, value) in members {
            if name == names.list {
                collected.list = Some(value);
            } else if name == names.joiner {
                collected.joiner = Some(value);
            } else {
                return Err(unknown(&name));
            }
        }
        Ok(collected)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_none() && self.joiner.is_none()
    }

    /// Parses the conditions; `None` without a list.
    pub(super) fn condition(&self, names: &Names) -> Result<Option<Condition>, Problem> {
        let joiner = match &self.joiner {
            Some(value) => filter::joiner(names.joiner, value)?,
            None => Joiner::And,
        };
        self.list
            .as_ref()
            .map(|list| {
                filter::check_extent(list)?;
                Condition::from_key_values(names.list, list, joiner)
            })
            .transpose()
    }
}
