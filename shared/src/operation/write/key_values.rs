//! The lists of `{key, value, operator?}`, and the operator that joins them, that select the records of a write.
//! Updates and deletes use different names for both.

use crate::error::Problem;
use crate::json::Value;
use crate::operation::filter::{self, Condition, Joiner};

/// The names of the list of conditions and of its joining operator.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) list: &'static str,
    /// The name of the option whose value is `AND` or `OR`.
    pub(super) joiner: &'static str,
}

pub(super) const FOR_UPDATE: Names = Names { list: "updateKeyValues", joiner: "updateKeyValuesOperator" };

pub(super) const FOR_DELETE: Names = Names { list: "deleteKeyValues", joiner: "deleteKeyValuesOperator" };

/// The unparsed list of conditions and its joining operator, from the body or the URL.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyValues {
    list: Option<Value>,
    joiner: Option<Value>,
}

impl KeyValues {
    /// Takes the list and its joining operator from `members`; `unknown` returns the problem of any other name.
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

    /// Parses the list of conditions; `None` without a list.
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
