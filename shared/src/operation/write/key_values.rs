//! Lists of `{key, value, operator?}` that say which records a write means, with the word that joins
//! them. An update and a delete differ only in what theirs are called.

use crate::error::Problem;
use crate::json::Value;
use crate::operation::filter::{self, Condition, Joiner};

/// What a list and its joiner are called.
#[derive(Debug)]
pub(super) struct Names {
    /// The list.
    pub(super) list: &'static str,
    /// `AND` or `OR` between its items.
    pub(super) joiner: &'static str,
}

/// Those of an update.
pub(super) const FOR_UPDATE: Names = Names { list: "updateKeyValues", joiner: "updateKeyValuesOperator" };

/// Those of a delete.
pub(super) const FOR_DELETE: Names = Names { list: "deleteKeyValues", joiner: "deleteKeyValuesOperator" };

/// The list and its joiner, wherever they stood.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyValues {
    list: Option<Value>,
    joiner: Option<Value>,
}

impl KeyValues {
    /// Takes them from members or options of which nothing else may be among them.
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

    /// Whether neither was given.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_none() && self.joiner.is_none()
    }

    /// What they mean; `None` without a list.
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
