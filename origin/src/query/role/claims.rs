//! The claims of a caller's key or token, and the role's values and conditions with `{"claim": "name"}` in them.

use serde_json::Value as Json;
use shared::json::{self, Value};
use shared::limits::LIST_MAX_VALUES;
use shared::operation::filter::{Condition, Related};
use std::collections::BTreeMap;

/// JSON texts. A claim counts as missing if it is null (which would be compared with IS NULL), an object, a text with a
/// space at its end, or a list with one of these or a list as an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims(BTreeMap<String, String>);

impl Claims {
    pub fn new(claims: &BTreeMap<String, Json>) -> Self {
        let is_scalar = |value: &Json| match value {
            Json::Null | Json::Object(_) | Json::Array(_) => false,
            // MariaDB ignores spaces at the ends of texts under most collations: the claim would match other texts too.
            Json::String(text) => !text.ends_with(' '),
            Json::Bool(_) | Json::Number(_) => true,
        };
        let usable = claims.iter().filter(|(_, value)| match value {
            Json::Array(items) => items.iter().all(is_scalar),
            value => is_scalar(value),
        });
        Self(usable.map(|(name, value)| (name.clone(), value.to_string())).collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        match serde_json::from_str(self.get(name)?).ok()? {
            Json::String(text) if !text.is_empty() => Some(text),
            Json::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Replaces each `{name}` by a claim. `None` if a claim is missing or would change the path's folders: an empty
    /// text, `.`, `..`, or one with a `/`.
    pub fn fill_path(&self, path: &str) -> Option<String> {
        let mut filled = String::with_capacity(path.len());
        let mut rest = path;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}')?;
            let value = self.text(name)?;
            if matches!(&*value, "." | "..") || value.contains('/') {
                return None;
            }
            filled.push_str(before);
            filled.push_str(&value);
            rest = after;
        }
        filled.push_str(rest);
        Some(filled)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    text: Box<str>,
    claims: Vec<String>,
    related: Vec<Related>,
}

impl Template {
    pub fn new(value: &Value) -> Result<Self, String> {
        let mut claims = Vec::new();
        let mut found = |name: &str| {
            claims.push(name.to_owned());
            Some("null".to_owned())
        };
        fill(value, &mut found).map_err(Option::unwrap_or_default)?;
        claims.sort_unstable();
        claims.dedup();
        Ok(Self { text: value.to_json().into(), claims, related: Vec::new() })
    }

    pub(super) fn with_related(self, condition: &Condition) -> Self {
        Self { related: condition.related().into_iter().cloned().collect(), ..self }
    }

    /// The conditions on related records, with other values for the claims.
    pub fn related(&self) -> &[Related] {
        &self.related
    }

    pub fn claims(&self) -> &[String] {
        &self.claims
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn fill(&self, claims: &Claims) -> Option<Value> {
        self.fill_with(|name| claims.get(name).map(str::to_owned))
    }

    pub fn fill_with(&self, mut claim: impl FnMut(&str) -> Option<String>) -> Option<Value> {
        let value = json::value(&self.text).ok()?;
        let text = fill(&value, &mut claim).ok()?;
        json::value(&text).ok()
    }
}

fn fill(value: &Value, claim: &mut dyn FnMut(&str) -> Option<String>) -> Result<String, Option<String>> {
    let unreadable = |error: serde_json::Error| Some(format!("it can't be read: {error}"));
    match value {
        Value::Object(text) => {
            let members = json::members(text).map_err(unreadable)?;
            if let [(key, of)] = members.as_slice()
                && key == "claim"
            {
                return match of {
                    Value::Text(name) if !name.is_empty() => claim(name).ok_or(None),
                    _ => Err(Some("{\"claim\": …} takes the claim's name, a string".to_owned())),
                };
            }
            let mut parts = Vec::with_capacity(members.len());
            for (key, value) in &members {
                parts.push(format!("{}:{}", Json::from(&**key), fill(value, claim)?));
            }
            Ok(format!("{{{}}}", parts.join(",")))
        }
        Value::List(text) => {
            let items = json::items(text, LIST_MAX_VALUES).map_err(unreadable)?;
            if items.len() > LIST_MAX_VALUES {
                return Err(Some(format!("it has a list of more than {LIST_MAX_VALUES} values")));
            }
            let parts = items.iter().map(|item| fill(item, claim)).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("[{}]", parts.join(",")))
        }
        scalar => Ok(scalar.to_json().into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(value: Json) -> Claims {
        Claims::new(&serde_json::from_value(value).unwrap())
    }

    fn filled(template: &str, with: Json) -> Option<String> {
        let template = Template::new(&json::value(template).unwrap()).unwrap();
        Some(template.fill(&claims(with))?.to_json().into_owned())
    }

    #[test]
    fn a_list_is_kept_whole_or_refused() {
        let list = |length: usize| json::value(&format!("[{}]", vec!["1"; length].join(","))).unwrap();
        assert!(Template::new(&list(LIST_MAX_VALUES)).is_ok());
        assert!(Template::new(&list(LIST_MAX_VALUES + 1)).is_err());
    }

    #[test]
    fn a_claim_is_filled_in_as_the_value_that_it_is() {
        let rule = r#"{"owner":{"value":{"claim":"sub"}},"price":{"value":1.10}}"#;
        for (sub, text) in [(json!("a\"}"), r#""a\"}""#), (json!(7), "7"), (json!(["x", 2]), r#"["x",2]"#)] {
            let expected = format!(r#"{{"owner":{{"value":{text}}},"price":{{"value":1.10}}}}"#);
            assert_eq!(filled(rule, json!({"sub": sub})), Some(expected));
        }
    }

    #[test]
    fn a_claim_that_would_be_compared_with_null_is_missing() {
        for sub in [json!(null), json!({}), json!([null]), json!([["a"]])] {
            assert_eq!(filled(r#"{"claim":"sub"}"#, json!({"sub": sub})), None);
        }
        assert_eq!(filled(r#"{"claim":"sub"}"#, json!({})), None);
    }

    #[test]
    fn a_claim_in_a_folder_stays_one_name() {
        for (sub, folder) in [
            (json!("ann"), Some("avatars/ann/x")),
            (json!(7), Some("avatars/7/x")),
            (json!("../bob"), None),
            (json!(".."), None),
            (json!(""), None),
            (json!(["a"]), None),
        ] {
            assert_eq!(claims(json!({"sub": sub})).fill_path("avatars/{sub}/x").as_deref(), folder);
        }
        assert_eq!(claims(json!({})).fill_path("avatars/{sub}"), None);
    }
}
