//! Fills a role's condition with claims so that a claim is always text to find, never a pattern: `%` as a claim would
//! match every record.

use crate::query::role::{Claims, Template};
use shared::json::{self, Value};
use shared::operation::filter::{Condition, Joiner, MatchMode, Related, Test};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Value,
    Like,
    Regexp,
    Text,
    BooleanSearch,
}

/// Fills in the claims. `None` if one is missing, or if a pattern or search gets an empty claim or a search operator.
pub(super) fn fill(rows: &Template, claims: &Claims) -> Option<Value> {
    let mut uses = uses(rows)?.into_iter();
    rows.fill_with(|name| {
        let value = json::value(claims.get(name)?).ok()?;
        Some(literal(value, uses.next()?)?.to_json().into_owned())
    })
}

fn uses(rows: &Template) -> Option<Vec<Use>> {
    let mark = |at: usize| format!("\u{E000}claim {at}");
    let mut count = 0;
    let marked = rows.fill_with(|_| {
        count += 1;
        Some(Value::Text(mark(count - 1).into()).to_json().into_owned())
    })?;
    let condition = Condition::from_query(&marked, Joiner::And).ok()??;
    Some((0..count).map(|at| use_of(&condition, &mark(at))).collect())
}

fn use_of(condition: &Condition, mark: &str) -> Use {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            let uses = parts.iter().map(|part| use_of(part, mark));
            uses.into_iter().find(|found| *found != Use::Value).unwrap_or(Use::Value)
        }
        Condition::Not(part) => use_of(part, mark),
        Condition::Test(_, test) if test.has_value(mark) => match test {
            Test::Like(_) => Use::Like,
            Test::Regexp(_) => Use::Regexp,
            Test::Match(MatchMode::Boolean, _) => Use::BooleanSearch,
            Test::Text(..) | Test::Match(..) => Use::Text,
            Test::Compare(..) | Test::In(_) | Test::Between(..) | Test::IsNull => Use::Value,
        },
        Condition::Related(Related { condition: Some(condition), .. }) => use_of(condition, mark),
        Condition::Test(..) | Condition::Related(_) => Use::Value,
    }
}

fn literal(value: Value, used: Use) -> Option<Value> {
    let text = match (used, &value) {
        (Use::Value, _) => return Some(value),
        (_, Value::List(list)) => {
            let items = json::items(list, usize::MAX).ok()?;
            let items: Option<Vec<_>> = items.into_iter().map(|item| literal(item, used)).collect();
            let items: Vec<_> = items?.iter().map(|item| item.to_json().into_owned()).collect();
            return Some(Value::List(format!("[{}]", items.join(",")).into()));
        }
        (_, Value::Text(text) | Value::Number(text)) if !text.is_empty() => text,
        _ => return None,
    };
    let escaped = |is_special: fn(char) -> bool| {
        text.chars().flat_map(|c| is_special(c).then_some('\\').into_iter().chain([c])).collect::<String>()
    };
    let text = match used {
        Use::Like => escaped(|c| matches!(c, '%' | '_' | '\\')),
        Use::Regexp => escaped(|c| c.is_ascii_punctuation() || c.is_ascii_whitespace()),
        Use::BooleanSearch if text.contains(['+', '-', '<', '>', '(', ')', '~', '*', '"', '@']) => return None,
        Use::Value | Use::Text | Use::BooleanSearch => text.to_string(),
    };
    Some(Value::Text(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_in_a_pattern_is_taken_literally_and_an_empty_one_denies() {
        for (equality, sub, expected) in [
            ("=", json!("a%"), Some(json!("a%"))),
            ("=", json!(""), Some(json!(""))),
            ("IN", json!(["%", 7]), Some(json!(["%", 7]))),
            ("LIKE", json!("50%_\\"), Some(json!("50\\%\\_\\\\"))),
            ("LIKE", json!(["a", "%"]), Some(json!(["a", "\\%"]))),
            ("LIKE", json!(7), Some(json!("7"))),
            ("REGEXP", json!("a.*|b 7é"), Some(json!("a\\.\\*\\|b\\ 7é"))),
            ("CONTAINS", json!("50%"), Some(json!("50%"))),
            ("MATCH_BOOLEAN", json!("sea"), Some(json!("sea"))),
            ("MATCH_BOOLEAN", json!("s*"), None),
            ("LIKE", json!(""), None),
            ("NOT LIKE", json!(""), None),
            ("LIKE", json!(["a", ""]), None),
            ("REGEXP", json!(""), None),
            ("CONTAINS", json!(""), None),
            ("STARTS WITH", json!(""), None),
            ("MATCH", json!(""), None),
        ] {
            let rule = json!({
                "tenant": {"claim": "org"},
                "team": {"none": {"name": {"value": {"claim": "org"}, "equality": "CONTAINS"}}},
                "either": {"operator": "OR", "__query": {"x": {"value": {"claim": "sub"}, "equality": equality}, "y": {"ne": {"claim": "org"}}}},
            });
            let template = Template::new(&json::value(&rule.to_string()).unwrap()).unwrap();
            let claims = Claims::new(&serde_json::from_value(json!({"sub": sub, "org": "o_%"})).unwrap());
            let filled = fill(&template, &claims).map(|filled| serde_json::from_str(&filled.to_json()).unwrap());
            let expected = expected.map(|value| {
                json!({
                    "tenant": "o_%",
                    "team": {"none": {"name": {"value": "o_%", "equality": "CONTAINS"}}},
                    "either": {"operator": "OR", "__query": {"x": {"value": value, "equality": equality}, "y": {"ne": "o_%"}}},
                })
            });
            assert_eq!(filled, expected, "{equality} {sub}");
        }
    }
}
