//! Parses the options `limit`, `page` and `offset`: the page of a list.

use super::options;
use crate::error::Problem;
use crate::json::Value;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    pub limit: Option<u64>,
    pub offset: u64,
}

impl Span {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_out_of_range_names_its_range() {
        let most = Value::Number("9223372036854775807".into());
        assert_eq!(Span::parse(None, None, Some(&most)).unwrap().offset, i64::MAX.unsigned_abs());
        for (text, range) in [("9223372036854775808", "0 to 9223372036854775807"), ("-1", "0 to 9223372036854775807")] {
            let value = Value::Number(text.into());
            for problem in [Span::parse(Some(&value), None, None), Span::parse(None, None, Some(&value))] {
                assert!(problem.unwrap_err().message().contains(range), "{text}");
            }
            let problem = Span::parse(None, Some(&value), None).unwrap_err();
            assert!(
                problem.message().contains("page must be a whole number from 1 to 9223372036854775807"),
                "{problem}"
            );
        }
    }
}
