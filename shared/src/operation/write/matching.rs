//! The conditions that select the records of a write: `query` with `searchOperator` as in reads, or a list of `{key,
//! value?, operator?}` with a joining operator, whose names differ in updates and deletes.

use super::body;
use crate::error::{ErrorCode, Problem};
use crate::json::Value;
use crate::operation::filter::{self, Condition, Joiner, Test};
use crate::operation::options;

#[derive(Debug)]
pub(super) struct Names {
    pub(super) list: &'static str,
    pub(super) joiner: &'static str,
}

pub(super) const FOR_UPDATE: Names = Names { list: "updateKeyValues", joiner: "updateKeyValuesOperator" };

pub(super) const FOR_DELETE: Names = Names { list: "deleteKeyValues", joiner: "deleteKeyValuesOperator" };

pub(super) const QUERY: &str = "query";
pub(super) const SEARCH_OPERATOR: &str = "searchOperator";

#[derive(Clone, Debug, Default)]
pub(super) struct Matching {
    list: Option<Value>,
    joiner: Option<Value>,
    query: Option<Value>,
    search_operator: Option<Value>,
}

impl Matching {
    /// Takes an option. Returns `value` if the option does not belong to the conditions.
    pub(super) fn take(&mut self, names: &Names, name: &str, value: Value) -> Result<Option<Value>, Problem> {
        let part = match options::full_name(name) {
            QUERY => &mut self.query,
            SEARCH_OPERATOR => &mut self.search_operator,
            _ if name == names.list => &mut self.list,
            _ if name == names.joiner => &mut self.joiner,
            _ => return Ok(Some(value)),
        };
        options::put(part, "", name, value).map(|()| None)
    }

    pub(super) fn is_empty(&self) -> bool {
        [&self.list, &self.joiner, &self.query, &self.search_operator].into_iter().all(Option::is_none)
    }

    /// Returns the condition; `None` if neither `query` nor the list is given. Refuses empty conditions, which select
    /// all.
    pub(super) fn condition(&self, names: &Names) -> Result<Option<Condition>, Problem> {
        let joiner = |name, value: &Option<Value>, of, conditions: &Option<Value>| match (value, conditions) {
            (None, _) => Ok(Joiner::And),
            (Some(value), Some(_)) => filter::joiner(name, value),
            (Some(_), None) => Err(body(format!("{name} joins the conditions of {of}, which is missing."))),
        };
        let of_query = joiner(SEARCH_OPERATOR, &self.search_operator, QUERY, &self.query)?;
        let of_list = joiner(names.joiner, &self.joiner, names.list, &self.list)?;
        let Names { list: name, .. } = names;
        match (&self.query, &self.list) {
            (Some(_), Some(_)) => {
                Err(body(format!("{QUERY} and {name} exclude each other.")).with_hint("Put all conditions into query."))
            }
            (Some(query), None) => {
                filter::check_extent(query)?;
                let condition = Condition::from_query(query, of_query)?;
                let condition = condition.ok_or_else(|| {
                    invalid(format!("{QUERY} is empty: it must say which records are meant.")).with_hint(
                        "Give at least one condition; no request changes or deletes a whole table by omission.",
                    )
                })?;
                match has_empty_list(&condition) {
                    true => Err(invalid(format!("A list of values in {QUERY} is empty."))
                        .with_hint("Give it at least one value: an empty list could stand for all records.")),
                    false => Ok(Some(condition)),
                }
            }
            (None, Some(list)) => {
                filter::check_extent(list)?;
                Condition::from_key_values(name, list, of_list).map(Some)
            }
            (None, None) => Ok(None),
        }
    }
}

fn has_empty_list(condition: &Condition) -> bool {
    match condition {
        Condition::Test(_, Test::In(values)) => values.is_empty(),
        Condition::Test(..) => false,
        Condition::All(parts) | Condition::Any(parts) => parts.iter().any(has_empty_list),
        Condition::Not(part) => has_empty_list(part),
        Condition::Related(related) => related.condition.as_deref().is_some_and(has_empty_list),
    }
}

fn invalid(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidFilter, message)
}
