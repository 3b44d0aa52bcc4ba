//! An answer as a page writes it, and whether the actual answer fits. `…` matches anything:
//!
//! - within a text or a line: any characters;
//! - as a JSON value: any value; among the items of a list: any number of items; among the members of an object: any
//!   other members;
//! - as a line by itself: any number of lines.
//!
//! JSON is compared as JSON, so a page may break lines anywhere. An answer that begins with an HTTP status line is a
//! head and a body. The actual head must have this status and the headers that the page shows, in any order; then the
//! body must fit.

use serde_json::Value;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Compares one or several JSON values.
    Json,
    /// Compares lines of text, perhaps after an HTTP head.
    Text,
}

/// Replaces a bare `…` when the page's text is made valid JSON. No page contains this character.
const OPEN: &str = "\u{E000}";

impl Kind {
    pub(super) fn of(language: &str) -> Self {
        if language == "json" { Self::Json } else { Self::Text }
    }
}

/// Returns the differences, one line each; empty if the answer fits.
pub(super) fn differences(kind: Kind, page: &str, answer: &str) -> Vec<String> {
    let answer = answer.replace("\r\n", "\n");
    match kind {
        Kind::Json => json_differences(page, &answer),
        Kind::Text if page.starts_with("HTTP/") => head_differences(page, &answer),
        Kind::Text => text_differences(page, &answer),
    }
}

/// Returns the head, if the answer has one, and the body.
pub(super) fn split_head(text: &str) -> (Option<&str>, &str) {
    if !text.starts_with("HTTP/") {
        return (None, text);
    }
    match text.split_once("\n\n") {
        Some((head, body)) => (Some(head), body),
        None => (Some(text.trim_end()), ""),
    }
}

fn head_differences(page: &str, answer: &str) -> Vec<String> {
    let ((wanted, page_body), (got, body)) = (split_head(page), split_head(answer));
    let Some(got) = got else {
        return vec!["the page shows headers, the answer has none: use curl -i".to_owned()];
    };
    let mut lines = got.lines();
    let status = lines.next().unwrap_or_default();
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let mut found = Vec::new();
    for (at, line) in wanted.unwrap_or_default().lines().enumerate() {
        match line.split_once(':') {
            _ if at == 0 && fits(line, status.trim_end()) => {}
            _ if at == 0 => found.push(format!("page: {line}\n  came: {status}")),
            None if line == "…" => {}
            None => found.push(format!("no header: {line}")),
            Some((name, value)) => {
                let same = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                match same {
                    Some((_, came)) if fits(value.trim(), came.trim()) => {}
                    Some((_, came)) => found.push(format!("page: {line}\n  came: {name}:{came}")),
                    None => found.push(format!("page: {line}\n  came: no such header")),
                }
            }
        }
    }
    let is_json = page_body.trim_start().starts_with(['{', '[']);
    found.extend(if is_json { json_differences(page_body, body) } else { text_differences(page_body, body) });
    found
}

fn text_differences(page: &str, answer: &str) -> Vec<String> {
    let wanted: Vec<&str> = page.trim_end().lines().collect();
    let came: Vec<&str> = answer.trim_end().lines().collect();
    let (before, after) = match wanted.iter().position(|line| line.trim() == "…") {
        Some(at) => (&wanted[..at], &wanted[at + 1..]),
        None if wanted.len() == came.len() => (&wanted[..], &[][..]),
        None => {
            return vec![format!("the page has {} lines, the answer {}", wanted.len(), came.len())];
        }
    };
    if came.len() < before.len() + after.len() {
        return vec!["the answer has fewer lines than the page".to_owned()];
    }
    let first = before.iter().zip(&came);
    let last = after.iter().zip(&came[came.len() - after.len()..]);
    first
        .chain(last)
        .filter(|(wanted, came)| !fits(wanted, came))
        .map(|(wanted, came)| format!("page: {wanted}\n  came: {came}"))
        .collect()
}

/// Returns whether `text` matches `pattern`, in which `…` matches any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn json_differences(page: &str, answer: &str) -> Vec<String> {
    let (wanted, came) = match (values(&closed(page)), values(answer)) {
        (Ok(wanted), Ok(came)) => (wanted, came),
        (Err(error), _) => return vec![format!("the page's answer is no JSON: {error}")],
        (_, Err(error)) => return vec![format!("what came is no JSON: {error}")],
    };
    let mut found = Vec::new();
    if wanted.len() != came.len() {
        found.push(format!("the page has {} JSON values, the answer {}", wanted.len(), came.len()));
    }
    for (wanted, came) in wanted.iter().zip(&came) {
        compare("", wanted, came, &mut found);
    }
    found
}

pub(super) fn values(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    serde_json::Deserializer::from_str(text).into_iter().collect()
}

/// Returns the page's text with each bare `…` replaced by a JSON value or member.
fn closed(page: &str) -> String {
    let mut closed = String::with_capacity(page.len());
    let (mut open, mut last) = (Vec::new(), ' ');
    let (mut inside, mut escaped) = (false, false);
    for c in page.chars() {
        if inside {
            closed.push(c);
            inside = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            last = '"';
            continue;
        }
        match c {
            '"' => inside = true,
            '[' | '{' => open.push(c),
            ']' | '}' => drop(open.pop()),
            '…' if open.last() == Some(&'{') && last != ':' => {
                closed.push_str(&format!("\"{OPEN}\":\"{OPEN}\""));
                continue;
            }
            '…' => {
                closed.push_str(&format!("\"{OPEN}\""));
                continue;
            }
            _ => {}
        }
        closed.push(c);
        if !c.is_whitespace() {
            last = c;
        }
    }
    closed
}

fn compare(path: &str, wanted: &Value, came: &Value, found: &mut Vec<String>) {
    match (wanted, came) {
        (Value::String(open), _) if open == OPEN => {}
        (Value::String(wanted), Value::String(came)) if fits(wanted, came) => {}
        (Value::Object(wanted), Value::Object(came)) => {
            let others = wanted.contains_key(OPEN);
            for (name, value) in wanted.iter().filter(|(name, _)| *name != OPEN) {
                match came.get(name) {
                    Some(other) => compare(&format!("{path}.{name}"), value, other, found),
                    None => found.push(format!("{path}.{name}: on the page only")),
                }
            }
            for (name, value) in came {
                if !others && !wanted.contains_key(name) {
                    found.push(format!("{path}.{name}: not on the page: {value}"));
                }
            }
        }
        (Value::Array(wanted), Value::Array(came)) => lists(path, wanted, came, found),
        _ if wanted == came => {}
        _ => found.push(format!("{path}: page {wanted}, came {came}")),
    }
}

fn lists(path: &str, wanted: &[Value], came: &[Value], found: &mut Vec<String>) {
    let gap = wanted.iter().position(|item| item == OPEN);
    let (before, after) = gap.map_or((wanted, &[][..]), |at| (&wanted[..at], &wanted[at + 1..]));
    let least = before.len() + after.len();
    if came.len() < least || (gap.is_none() && came.len() > least) {
        found.push(format!("{path}: page {least} items, came {}", came.len()));
        return;
    }
    for (at, (wanted, came)) in before.iter().zip(came).enumerate() {
        compare(&format!("{path}[{at}]"), wanted, came, found);
    }
    let from = came.len() - after.len();
    for (at, (wanted, came)) in after.iter().zip(&came[from..]).enumerate() {
        compare(&format!("{path}[{}]", from + at), wanted, came, found);
    }
}

/// Tests this file; called by the case `an_answer_fits_where_only_what_is_left_open_differs`.
pub(super) fn tests() {
    let head = "HTTP/1.1 200 OK\r\nETag: \"a1\"\r\nDate: now\r\n\r\n{\"a\":1}";
    for (kind, page, answer, as_it_should) in [
        (Kind::Json, r#"{"a": 1, "b": [1, 2]}"#, r#"{"b":[1,2],"a":1}"#, true),
        (Kind::Json, r#"{"a": 1}"#, r#"{"a":1,"b":2}"#, false),
        (Kind::Json, r#"{"a": 1, "b": 2}"#, r#"{"a":1}"#, false),
        (Kind::Json, r#"{"a": 1, …}"#, r#"{"a":1,"b":2}"#, true),
        (Kind::Json, r#"{"a": …, "b": 2}"#, r#"{"a":[{}],"b":2}"#, true),
        (Kind::Json, r#"{"a": "x…z"}"#, r#"{"a":"xyz"}"#, true),
        (Kind::Json, r#"{"a": "x…z"}"#, r#"{"a":"xy"}"#, false),
        (Kind::Json, r#"{"a": "…"}"#, r#"{"a":1}"#, false),
        (Kind::Json, "[1, …, 9]", "[1,2,3,9]", true),
        (Kind::Json, "[1, …, 9]", "[1,9]", true),
        (Kind::Json, "[1, …, 9]", "[1]", false),
        (Kind::Json, "[1, 2]", "[1,2,3]", false),
        (Kind::Json, r#"["a\"…", {"b": …}]"#, r#"["a\"c",{"b":null}]"#, true),
        (Kind::Json, "{\"a\":1}\n{\"a\":2}", "{\"a\":1}{\"a\":2}", true),
        (Kind::Json, "{\"a\":1}", "{\"a\":1}{\"a\":2}", false),
        (Kind::Json, "1", "\"1\"", false),
        (Kind::Json, "", "1", false),
        (Kind::Text, "a\nb…d", "a\r\nbcd\r\n", true),
        (Kind::Text, "a\nb", "a", false),
        (Kind::Text, "a\n…\nz", "a\nb\nc\nz", true),
        (Kind::Text, "a\n…\nz", "a", false),
        (Kind::Text, "HTTP/1.1 200 OK\netag: \"a1\"\n\n{\"a\": 1}", head, true),
        (Kind::Text, "HTTP/1.1 200 OK\netag: \"…\"\n\n{\"a\": …}", head, true),
        (Kind::Text, "HTTP/1.1 304 Not Modified\n\n{\"a\": 1}", head, false),
        (Kind::Text, "HTTP/1.1 200 OK\netag: \"b\"\n\n{\"a\": 1}", head, false),
        (Kind::Text, "HTTP/1.1 200 OK\nallow: GET\n\n{\"a\": 1}", head, false),
        (Kind::Text, "HTTP/1.1 200 OK\n\n{\"a\": 2}", head, false),
        (Kind::Text, "HTTP/1.1 200 OK\n\n{\"a\": 2}", "{\"a\": 2}", false),
    ] {
        let found = differences(kind, page, answer);
        assert_eq!(found.is_empty(), as_it_should, "{page}\n{answer}\n{found:?}");
    }
}
