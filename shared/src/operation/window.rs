//! Parses the options `limit`, `page` and `offset`: the page of a list.

use super::options;
use crate::error::Problem;
use crate::json::Value;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// Maximum number of entries to return; `None` if the caller sets none.
    pub limit: Option<u64>,
    /// Number of entries to skip.
    pub offset: u64,
}

impl Span {
    /// Parses the options `limit`, `page` and `offset`; converts `page` to an offset.
    pub(super) fn parse(limit: Option<&Value>, page: Option<&Value>, offset: Option<&Value>) -> Result<Self, Problem> {
        let number =
            |name: &str, value: Option<&Value>| value.map(|value| options::whole_number(name, value)).transpose();
        let (limit, page, offset) = (number("limit", limit)?, number("page", page)?, number("offset", offset)?);
        let invalid = |message: &'static str| Err(options::invalid(message));
        let offset = match (limit, page, offset) {
            (_, Some(_), Some(_)) => {
                return invalid("The options page and offset exclude each other.");
            }
            (None, Some(_), None) => return invalid("The option page needs limit."),
            (_, Some(0), None) => return invalid("The option page counts from 1."),
            (Some(limit), Some(page), None) => limit
                .checked_mul(page - 1)
                .filter(|offset| i64::try_from(*offset).is_ok())
                .ok_or_else(|| options::invalid("The option page lies beyond any table."))?,
            (_, None, offset) => offset.unwrap_or(0),
        };
        Ok(Self { limit, offset })
    }
}
