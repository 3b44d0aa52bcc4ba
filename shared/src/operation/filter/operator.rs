//! The operators of conditions and their names.

use super::parse::invalid;
use super::{Comparison, MatchMode, TextPosition};
use crate::error::{Problem, nearest};
use crate::ident::shown;

#[derive(Clone, Copy, PartialEq)]
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

/// The operators by name; the boolean tells whether the name negates. Upper-case names are values of `equality`; others
/// are keys such as in `{"gt": 5}`.
const OPERATORS: &[(&str, Operator, bool)] = {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, NullSafeEqual};
    use Operator::{Between, Compare, In, IsNull, Like, Match, Regexp, Text};
    &[
        ("eq", Compare(Equal), false),
        ("=", Compare(Equal), false),
        ("==", Compare(Equal), false),
        ("EQUAL", Compare(Equal), false),
        ("ne", Compare(NotEqual), false),
        ("!=", Compare(NotEqual), false),
        ("<>", Compare(NotEqual), false),
        ("NOT EQUAL", Compare(NotEqual), false),
        ("gt", Compare(Greater), false),
        (">", Compare(Greater), false),
        ("GREATER THAN", Compare(Greater), false),
        ("gte", Compare(GreaterOrEqual), false),
        (">=", Compare(GreaterOrEqual), false),
        ("GREATER THAN OR EQUAL", Compare(GreaterOrEqual), false),
        ("lt", Compare(Less), false),
        ("<", Compare(Less), false),
        ("LESS THAN", Compare(Less), false),
        ("lte", Compare(LessOrEqual), false),
        ("<=", Compare(LessOrEqual), false),
        ("LESS THAN OR EQUAL", Compare(LessOrEqual), false),
        ("<=>", Compare(NullSafeEqual), false),
        ("in", In, false),
        ("IN", In, false),
        ("notIn", In, true),
        ("NOT IN", In, true),
        ("between", Between, false),
        ("BETWEEN", Between, false),
        ("notBetween", Between, true),
        ("NOT BETWEEN", Between, true),
        ("isNull", IsNull, false),
        ("IS NULL", IsNull, false),
        ("IS NOT NULL", IsNull, true),
        ("like", Like, false),
        ("LIKE", Like, false),
        ("notLike", Like, true),
        ("NOT LIKE", Like, true),
        ("LIKE_RAW", Like, false),
        ("NOT LIKE_RAW", Like, true),
        ("regexp", Regexp, false),
        ("REGEXP", Regexp, false),
        ("notRegexp", Regexp, true),
        ("NOT REGEXP", Regexp, true),
        ("contains", Text(TextPosition::Within), false),
        ("CONTAINS", Text(TextPosition::Within), false),
        ("startsWith", Text(TextPosition::Start), false),
        ("STARTS WITH", Text(TextPosition::Start), false),
        ("endsWith", Text(TextPosition::End), false),
        ("ENDS WITH", Text(TextPosition::End), false),
        ("match", Match(MatchMode::Natural), false),
        ("MATCH", Match(MatchMode::Natural), false),
        ("FULLTEXT", Match(MatchMode::Natural), false),
        ("matchBoolean", Match(MatchMode::Boolean), false),
        ("MATCH_BOOLEAN", Match(MatchMode::Boolean), false),
    ]
};

fn is_short(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
}

fn find(name: &str) -> Option<(Operator, bool)> {
    OPERATORS.iter().find(|(known, ..)| *known == name).map(|(_, operator, negated)| (*operator, *negated))
}

pub(super) fn operator(word: &str) -> Result<(Operator, bool), Problem> {
    let folded = word.split_ascii_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase();
    find(&folded).ok_or_else(|| {
        let names = || OPERATORS.iter().map(|(name, ..)| *name);
        let near = match folded.as_str() {
            // By similarity, the hint would name other operators, such as `<=>`.
            "=>" => Some(">="),
            "=<" => Some("<="),
            _ => {
                let meant = short_name_of(word).and_then(find);
                let long = |name: &&str| meant.is_some() && !is_short(name) && find(name) == meant;
                names().find(long).or_else(|| nearest(&folded, equalities()))
            }
        };
        invalid(format!("There is no operator {}.", shown(word)))
            .with_hint_if(near.map(|near| format!("Did you mean {}?", shown(near))))
    })
}

pub(super) fn short_operator(key: &str) -> Option<(Operator, bool)> {
    is_short(key).then(|| find(key)).flatten()
}

/// Finds names of operators as other programs write them, such as `$gt`, `_gte`, `not_in` or `>`.
pub(super) fn short_name_of(name: &str) -> Option<&'static str> {
    if let Some(meant) = find(&name.to_ascii_uppercase()) {
        return short_names().find(|short| find(short) == Some(meant));
    }
    let letters = name.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
    let letters = match &*letters {
        "neq" => "ne",
        "ge" => "gte",
        "le" => "lte",
        "nin" => "notin",
        "ilike" => "like",
        "regex" => "regexp",
        "null" => "isnull",
        other => other,
    };
    short_names().find(|short| short.eq_ignore_ascii_case(letters))
}

pub fn short_names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, ..)| *name).filter(|name| is_short(name))
}

/// Returns the keys of short conditions with the kind of their operands: `value`, `any` (a value, null or a list), `list`,
/// `pair`, `flag`, `text`, or `texts` (a text or a list).
pub fn short_operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    OPERATORS.iter().filter(|(name, ..)| is_short(name)).map(|(name, operator, _)| {
        let operand = match operator {
            Operator::Compare(Comparison::Equal | Comparison::NotEqual) => "any",
            Operator::Compare(_) => "value",
            Operator::In => "list",
            Operator::Between => "pair",
            Operator::IsNull => "flag",
            Operator::Like | Operator::Text(_) => "texts",
            Operator::Regexp | Operator::Match(_) => "text",
        };
        (*name, operand)
    })
}

/// Returns the values of `equality`.
pub fn equalities() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, ..)| *name).filter(|name| !is_short(name))
}
