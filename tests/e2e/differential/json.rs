//! JSON values in which the order of an object's keys matters, and numbers are equal if their values are.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// A number as text, the same for equal values: see [`Json::double`].
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Creates a number; a whole one is written like an integer.
    pub(super) fn double(number: f64) -> Self {
        Self::Number(format!("{number}"))
    }

    pub(super) fn member(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Object(members) => members.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(","))
            }
            Self::Object(members) => {
                let members: Vec<String> =
                    members.iter().map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
                write!(f, "{{{}}}", members.join(","))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::read(raw.get()).map_err(de::Error::custom)
    }
}

impl Json {
    /// Parses a JSON value. Parses numbers from their digits, since serde_json's parser may be wrong in the last one.
    fn read(text: &str) -> serde_json::Result<Self> {
        Ok(match text.as_bytes().first() {
            Some(b'{') => Self::Object(serde_json::from_str::<Members>(text)?.0),
            Some(b'[') => Self::List(serde_json::from_str(text)?),
            Some(b'"') => Self::Text(serde_json::from_str(text)?),
            Some(b't' | b'f') => Self::Bool(serde_json::from_str(text)?),
            Some(b'n') => Self::Null,
            _ => match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(number), _) => Self::Number(number.to_string()),
                (_, Ok(number)) => Self::double(number),
                _ => return Err(de::Error::custom("no number")),
            },
        })
    }
}

struct Members(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}
