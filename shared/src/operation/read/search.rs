//! Parses the option `fullTextSearch`. The best matches come first, unless the read is ordered, grouped or distinct.

use crate::error::Problem;
use crate::fingerprint::unordered;
use crate::ident::FieldName;
use crate::json::Value;
use crate::operation::field::FieldRef;
use crate::operation::filter::MatchMode;
use crate::operation::options;
use std::hash::{Hash, Hasher};

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FullTextSearch {
    pub fields: Vec<FieldRef>,
    pub term: String,
    pub mode: MatchMode,
    pub score_alias: Option<FieldName>,
}

/// The order of the fields makes no difference.
impl Hash for FullTextSearch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { fields, term, mode, score_alias } = self;
        unordered(fields, state);
        (term, mode, score_alias).hash(state);
    }
}

const PARTS: [&str; 4] = ["fields", "searchTerm", "mode", "scoreAlias"];

pub(super) fn search(value: &Value) -> Result<FullTextSearch, Problem> {
    let Value::Object(text) = value else {
        return Err(options::wrong("fullTextSearch", "an object {fields, searchTerm, mode?, scoreAlias?}", value));
    };
    let (mut fields, mut term, mut score_alias) = (None, None, None);
    let mut mode = MatchMode::Natural;
    for (name, value) in options::object("fullTextSearch", text)? {
        match (&*name, &value) {
            ("fields", _) => fields = Some(options::fields("fullTextSearch.fields", &value)?),
            ("searchTerm", Value::Text(text) | Value::Number(text)) => {
                term = Some(text.to_string());
            }
            ("mode", Value::Text(word)) => mode = named_mode(word, &value)?,
            ("scoreAlias", Value::Text(name)) => score_alias = Some(FieldName::parse(name)?),
            ("scoreAlias" | "mode", Value::Null) => {}
            (known, other) if PARTS.contains(&known) => {
                return Err(options::wrong(&format!("fullTextSearch.{known}"), "a string", other));
            }
            (other, _) => return Err(options::unknown_part("fullTextSearch", other, &PARTS)),
        }
    }
    Ok(FullTextSearch {
        fields: fields.ok_or_else(|| options::missing_part("fullTextSearch", "fields"))?,
        term: term
            .filter(|term| !term.trim().is_empty())
            .ok_or_else(|| options::missing_part("fullTextSearch", "a searchTerm"))?,
        mode,
        score_alias,
    })
}

fn named_mode(word: &str, value: &Value) -> Result<MatchMode, Problem> {
    match word.to_ascii_lowercase().as_str() {
        "natural" => Ok(MatchMode::Natural),
        "boolean" => Ok(MatchMode::Boolean),
        "expansion" => Ok(MatchMode::Expansion),
        _ => Err(options::wrong("fullTextSearch.mode", "natural, boolean or expansion", value)),
    }
}
