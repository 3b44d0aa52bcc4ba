//! Converts the output of `EXPLAIN FORMAT=JSON` to valid JSON.
//!
//! MariaDB writes names, and before MDEV-16462 values too, unescaped into the output's strings: a quote, a tab or `\'`
//! makes the JSON invalid. But it writes one member per line, so the line shows where a string ends.

use serde_json::value::RawValue;
use std::borrow::Cow;

/// Returns the plan as JSON, or, if it can't be made valid JSON, the unchanged output as one JSON string.
pub fn plan(text: &str) -> serde_json::Result<Box<RawValue>> {
    RawValue::from_string(escaped(text)).or_else(|_| serde_json::value::to_raw_value(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let mut line = Cow::Borrowed(line);
        // A name may hold line breaks, so that its string continues in the next line.
        while let Some(next) = lines.next_if(|next| goes_on(&line, next)) {
            let line = line.to_mut();
            line.push('\n');
            line.push_str(next);
        }
        push_line(&mut out, &line);
        out.push('\n');
    }
    out
}

fn goes_on(line: &str, next: &str) -> bool {
    let Some((_, value)) = split(line) else {
        return false;
    };
    let value = value.strip_suffix(',').unwrap_or(value);
    let is_whole = match value.as_bytes() {
        [b'"', .., b'"'] | [b'[', .., b']'] | [b'['] => true,
        [b'"' | b'[', ..] => false,
        _ => return false,
    };
    !is_whole || !next.trim_start().starts_with(['"', '{', '}', '[', ']'])
}

fn split(line: &str) -> Option<(&str, &str)> {
    let body = line.trim_start();
    let key = body
        .strip_prefix('"')
        .and_then(|rest| rest.split_once("\": "))
        // Keys are MariaDB's own words, so a text with quotes is no key.
        .filter(|(key, _)| !key.contains(['"', '`', '\'']));
    let value = key.map_or(body, |(_, value)| value);
    (!value.is_empty()).then(|| (&line[..line.len() - value.len()], value))
}

fn push_line(out: &mut String, line: &str) {
    let Some((key, value)) = split(line) else {
        return out.push_str(line);
    };
    out.push_str(key);
    let (value, comma) = match value.strip_suffix(',') {
        Some(value) => (value, ","),
        None => (value, ""),
    };
    let inside = |open, close| value.strip_prefix(open)?.strip_suffix(close);
    if let Some(content) = inside("[\"", "\"]") {
        out.push('[');
        for (at, item) in content.split("\", \"").enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            push_string(out, item);
        }
        out.push(']');
    } else if let Some(content) = inside("\"", "\"") {
        push_string(out, content);
    } else {
        out.push_str(value);
    }
    out.push_str(comma);
}

fn push_string(out: &mut String, content: &str) {
    let quoted = format!("\"{content}\"");
    match serde_json::from_str::<String>(&quoted) {
        Ok(_) => out.push_str(&quoted),
        Err(_) => out.push_str(&serde_json::Value::from(content).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(text: &str) -> Value {
        serde_json::from_str(plan(text).unwrap().get()).unwrap()
    }

    #[test]
    fn a_plan_that_is_json_stays_as_it_is() {
        let text = r#"{
  "query_block": {
    "cost": 0.0125,
    "nested_loop": [
      {
        "table": {
          "table_name": "p",
          "possible_keys": ["PRIMARY", "a"],
          "used_key_parts": [
            "one",
            "two"
          ],
          "using_index": true,
          "attached_condition": "p.t = 'a\nb'"
        }
      }
    ]
  }
}"#;
        assert_eq!(read(text), serde_json::from_str::<Value>(text).unwrap());
    }

    /// The text is as MariaDB 10.11 writes it.
    #[test]
    fn names_and_values_are_escaped() {
        let text = "{
  \"query_block\": {
    \"nested_loop\": [
      {
        \"table\": {
          \"table_name\": \"we\"ird `t\",
          \"possible_keys\": [\"k\"x, \"\", \"new
line\"],
          \"key\": \"k\"x, \"\",
          \"used_key_parts\": [\"na\"me\"],
          \"ref\": [\"const\"],
          \"rows\": 1,
          \"index_condition\": \"`we\"ird ``t`.`na\"me` = 'O\\'Brien'\",
          \"attached_condition\": \"`we\"ird ``t`.`new
line` = 'tab\there \\0 \\Z x\",\\n \"rows\": 5, \\\"'\"
        }
      }
    ]
  }
}";
        let table = json!({
            "table_name": "we\"ird `t",
            "possible_keys": ["k\"x, \"", "new\nline"],
            "key": "k\"x, \"",
            "used_key_parts": ["na\"me"],
            "ref": ["const"],
            "rows": 1,
            "index_condition": "`we\"ird ``t`.`na\"me` = 'O\\'Brien'",
            "attached_condition": "`we\"ird ``t`.`new\nline` = 'tab\there \\0 \\Z x\",\\n \"rows\": 5, \\\"'",
        });
        let plan = json!({"query_block": {"nested_loop": [{"table": table}]}});
        assert_eq!(read(text), plan);
    }

    #[test]
    fn what_can_not_be_told_apart_is_a_string() {
        for text in ["", "{", "no plan", "{\n  \"a\": \"b\"\n}\n}\"\n}"] {
            assert_eq!(read(text), Value::from(text));
        }
    }
}
