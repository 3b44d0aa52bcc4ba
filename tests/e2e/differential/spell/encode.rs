//! Encodes options for a request: as JSON in parameters, in brackets, as comma lists, or as the body of `POST …/query`.

use super::Options;
use crate::differential::dice::Dice;
use crate::differential::world::Table;
use crate::host::{Call, enc};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::differential) enum Style {
    /// Encodes each option as a JSON value.
    Json,
    /// Encodes options in brackets, such as `order[field]=id`, where these can express the option.
    Brackets,
    /// Chooses a random other encoding for each option.
    Mixed,
    /// Encodes all options in the body of `POST …/query`, which does the same as the GET.
    Twin,
}

pub(in crate::differential) const STYLES: [Style; 4] = [Style::Json, Style::Brackets, Style::Mixed, Style::Twin];

pub(in crate::differential) fn request(
    db: &TestDb,
    table: &Table,
    options: &Options,
    style: Style,
    dice: &mut Dice,
) -> Call {
    if style == Style::Twin {
        let body: Map<String, Value> =
            options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let path = format!("{}/query", table.name);
        return db.call(Method::POST, &path).json(&Value::Object(body));
    }
    let mut parts: Vec<String> = Vec::new();
    for (name, value) in options {
        parts.extend(encoded(name, value, style, dice));
    }
    let path = if parts.is_empty() { table.name.to_owned() } else { format!("{}?{}", table.name, parts.join("&")) };
    db.call(Method::GET, &path)
}

fn encoded(name: &str, value: &Value, style: Style, dice: &mut Dice) -> Vec<String> {
    let brackets = style == Style::Brackets || (style == Style::Mixed && dice.chance(50));
    match value {
        Value::String(text) => vec![format!("{name}={}", enc(text))],
        Value::Number(number) => vec![format!("{name}={number}")],
        Value::Bool(value) => vec![format!("{name}={}", flag(*value, dice))],
        Value::Array(items)
            if style == Style::Mixed
                && ["selectFields", "omitFields", "group"].contains(&name)
                && items.iter().all(Value::is_string)
                && dice.chance(60) =>
        {
            let names: Vec<String> = items.iter().map(|item| enc(item.as_str().unwrap_or_default())).collect();
            vec![format!("{name}={}", names.join(dice.pick::<&str>(&[",", "%2C"])))]
        }
        value if brackets && is_sayable(value) => {
            let mut parts = Vec::new();
            let spelling = Spelling {
                open: dice.pick::<&str>(&["[", "%5B"]),
                close: dice.pick::<&str>(&["]", "%5D"]),
                indexed: dice.chance(50),
            };
            spelling.flatten(name.to_owned(), value, dice, &mut parts);
            parts
        }
        value => {
            let text = enc(&value.to_string());
            let text = if dice.chance(50) { text.replace("%20", "+") } else { text };
            vec![format!("{name}={text}")]
        }
    }
}

fn flag(value: bool, dice: &mut Dice) -> &'static str {
    match (value, dice.chance(50)) {
        (true, true) => "true",
        (true, false) => "1",
        (false, true) => "false",
        (false, false) => "0",
    }
}

/// Returns whether brackets can express a value: they have no null, and no empty list or object.
fn is_sayable(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty() && items.iter().all(is_sayable),
        Value::Object(members) => !members.is_empty() && members.values().all(is_sayable),
        _ => true,
    }
}

struct Spelling {
    open: &'static str,
    close: &'static str,
    /// Whether lists of scalars have indices, as PHP writes them, or empty brackets, as axios does.
    indexed: bool,
}

impl Spelling {
    fn flatten(&self, path: String, value: &Value, dice: &mut Dice, parts: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let path = format!("{path}{}{}{}", self.open, enc(name), self.close);
                    self.flatten(path, member, dice, parts);
                }
            }
            Value::Array(items) => {
                let flat = items.iter().all(|item| !item.is_array() && !item.is_object());
                for (index, item) in items.iter().enumerate() {
                    let path = if flat && !self.indexed {
                        format!("{path}{}{}", self.open, self.close)
                    } else {
                        format!("{path}{}{index}{}", self.open, self.close)
                    };
                    self.flatten(path, item, dice, parts);
                }
            }
            Value::String(text) => parts.push(format!("{path}={}", enc(text))),
            // In brackets a boolean is 1 or 0; only `not…` and `nest` also accept a word.
            Value::Bool(value) => {
                let last = path.rsplit(self.open).next().unwrap_or_default();
                let word = last.starts_with("not") || last.starts_with("nest");
                let text = if word { flag(*value, dice) } else { ["0", "1"][usize::from(*value)] };
                parts.push(format!("{path}={text}"));
            }
            other => parts.push(format!("{path}={other}")),
        }
    }
}
