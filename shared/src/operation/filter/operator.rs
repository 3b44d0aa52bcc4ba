//! The operators of conditions and their names.

use super::parse::invalid;
use super::{Comparison, MatchMode, TextPosition};
use crate::error::{Problem, nearest};
use crate::ident::shown;

/// An operator of a condition, without its negation.
#[derive(Clone, Copy)]
pub(super) enum Operator {
    Compare(Comparison),
    In,
    Between,
    IsNull,
    Like,
    Regexp,
    Text(TextPosition),
    Match(MatchMode),
}

/// All operator names in upper case, with their operators, and whether the name negates the operator.
const OPERATORS: &[(&str, Operator, bool)] = {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, NullSafeEqual};
    use Operator::{Between, Compare, In, IsNull, Like, Match, Regexp, Text};
    &[
        ("=", Compare(Equal), false),
        ("==", Compare(Equal), false),
        ("EQUAL", Compare(Equal), false),
        ("!=", Compare(NotEqual), false),
        ("<>", Compare(NotEqual), false),
        ("NOT EQUAL", Compare(NotEqual), false),
        (">", Compare(Greater), false),
        ("GREATER THAN", Compare(Greater), false),
        (">=", Compare(GreaterOrEqual), false),
        ("GREATER THAN OR EQUAL", Compare(GreaterOrEqual), false),
        ("<", Compare(Less), false),
        ("LESS THAN", Compare(Less), false),
        ("<=", Compare(LessOrEqual), false),
        ("LESS THAN OR EQUAL", Compare(LessOrEqual), false),
        ("<=>", Compare(NullSafeEqual), false),
        ("IN", In, false),
        ("NOT IN", In, true),
        ("BETWEEN", Between, false),
        ("NOT BETWEEN", Between, true),
        ("IS NULL", IsNull, false),
        ("IS NOT NULL", IsNull, true),
        ("LIKE", Like, false),
        ("NOT LIKE", Like, true),
        ("LIKE_RAW", Like, false),
        ("NOT LIKE_RAW", Like, true),
        ("REGEXP", Regexp, false),
        ("NOT REGEXP", Regexp, true),
        ("CONTAINS", Text(TextPosition::Within), false),
        ("STARTS WITH", Text(TextPosition::Start), false),
        ("ENDS WITH", Text(TextPosition::End), false),
        ("MATCH", Match(MatchMode::Natural), false),
        ("FULLTEXT", Match(MatchMode::Natural), false),
        ("MATCH_BOOLEAN", Match(MatchMode::Boolean), false),
    ]
};

pub(super) fn operator(word: &str) -> Result<(Operator, bool), Problem> {
    let folded = word.split_ascii_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase();
    OPERATORS.iter().find(|(name, ..)| *name == folded).map(|(_, operator, negated)| (*operator, *negated)).ok_or_else(
        || {
            let near = match folded.as_str() {
                // By similarity, the hint would name other operators, such as `<=>`.
                "=>" => Some(">="),
                "=<" => Some("<="),
                _ => nearest(&folded, OPERATORS.iter().map(|(name, ..)| *name)),
            };
            invalid(format!("There is no operator {}.", shown(word)))
                .with_hint_if(near.map(|near| format!("Did you mean {}?", shown(near))))
        },
    )
}
