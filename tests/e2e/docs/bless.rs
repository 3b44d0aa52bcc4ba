//! Writes actual answers into a page. A person must write answers that contain `…`, and errors.

use super::checkout::Ran;
use super::page::{Answer, Example, Page};
use super::pattern::{self, Kind};
use crate::service::workspace;
use std::fs;

/// Column after which a line of JSON is broken.
const WIDTH: usize = 118;

/// How a page writes the cursor after a list of records, which differs in each installation.
const NEXT: &str = r#""next":"…""#;

/// Returns whether `SELKIE_BLESS` asks for answers to be written into the pages.
pub(super) fn wanted() -> bool {
    std::env::var("SELKIE_BLESS").is_ok_and(|value| value == "1")
}

/// Returns whether a call's answer may be written into the page: its text on the page contains no `…` except a
/// cursor's, and the call did not fail. A person writes errors, since a page shows them on purpose.
pub(super) fn may_mend(example: &Example, ran: &Ran) -> bool {
    let closed = |answer: &Answer| !answer.text.replace(NEXT, "").contains('…');
    let refused = ran.output.contains(r#""success":false"#);
    ran.ended_well && !ran.output.is_empty() && !refused && example.answer.as_ref().is_some_and(closed)
}

/// Writes the actual answer under each call whose answer differs from the page.
pub(super) fn mend(page: &Page, ran: &[Ran]) {
    let mut lines = page.lines.clone();
    // Edits the page from the last call to the first, so that line numbers of earlier calls stay valid.
    for (example, ran) in page.examples.iter().zip(ran).rev() {
        let Some(answer) = &example.answer else {
            continue;
        };
        if !may_mend(example, ran) || pattern::differences(answer.kind, &answer.text, &ran.output).is_empty() {
            continue;
        }
        let indent = &lines[answer.first - 1];
        let indent = indent[..indent.len() - indent.trim_start().len()].to_owned();
        let text = rewritten(answer, &ran.output.replace("\r\n", "\n"));
        let text = text.trim_end().lines().map(|line| format!("{indent}{line}"));
        lines.splice(answer.first..answer.end, text);
    }
    if lines != page.lines {
        let path = workspace().join(&page.path);
        fs::write(path, lines.join("\n") + "\n").expect("a page that can be written");
    }
}

/// Returns the actual answer in the form of a page. Its head has only the headers that the page showed before.
fn rewritten(answer: &Answer, came: &str) -> String {
    if answer.kind == Kind::Json {
        return laid_out(&opened(came));
    }
    let (Some(shown), (Some(head), body)) = (pattern::split_head(&answer.text).0, pattern::split_head(came)) else {
        return came.to_owned();
    };
    let wanted: Vec<String> = shown.lines().skip(1).map(name).collect();
    let kept =
        head.lines().enumerate().filter(|(at, line)| *at == 0 || wanted.contains(&name(line))).map(|(_, line)| line);
    let head: Vec<&str> = kept.collect();
    let body = if body.starts_with('{') { laid_out(body) } else { body.to_owned() };
    format!("{}\n\n{body}", head.join("\n"))
}

fn name(line: &str) -> String {
    line.split(':').next().unwrap_or_default().to_lowercase()
}

fn opened(json: &str) -> String {
    let mut opened = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, token)) = rest.split_once(r#"],"next":""#) {
        let after = token.split_once('"').map_or("", |(_, after)| after);
        opened = opened + before + "]," + NEXT;
        rest = after;
    }
    opened + rest
}

/// Breaks JSON into lines: between the records of a list, and where a line would be too long.
fn laid_out(json: &str) -> String {
    let long = json.lines().any(|line| line.chars().count() > WIDTH);
    if !long && !json.contains("}{") {
        return json.to_owned();
    }
    let mut text = String::with_capacity(json.len() + 100);
    // For each open bracket, whether its items are on lines of their own.
    let mut open: Vec<bool> = Vec::new();
    let (mut inside, mut escaped, mut column) = (false, false, 0);
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        text.push(c);
        column = if c == '\n' { 0 } else { column + 1 };
        if inside {
            inside = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            continue;
        }
        let depth = open.iter().filter(|broken| **broken).count();
        let indent = match c {
            '"' => {
                inside = true;
                None
            }
            '{' => {
                open.push(false);
                None
            }
            '[' => {
                let records = rest.peek() == Some(&'{');
                open.push(records);
                records.then_some(2 * depth + 2)
            }
            ']' | '}' => {
                open.pop();
                // Another JSON value follows: the answer of a second call.
                let another = rest.peek().is_some_and(|next| *next != '\n');
                (open.is_empty() && another).then_some(0)
            }
            ',' if open.last() == Some(&true) => Some(2 * depth),
            ',' if column > WIDTH - 30 => Some(2 * depth + 1),
            _ => None,
        };
        if let Some(indent) = indent {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
        }
    }
    text
}

/// Tests this file; called by the case `an_answer_that_is_written_reads_as_the_same`.
pub(super) fn tests() {
    let record = r#"{"title":"a, [b] {\"c\"}","list":[1,2],"price":"9.57","meta":{"x":[{"y":1},{"y":2}]}}"#;
    let long = format!(r#"{{"success":true,"payload":[{record},{record},{record}]}}"#);
    let laid = laid_out(&long);
    assert!(laid.lines().count() > 3, "{laid}");
    assert_eq!(pattern::values(&laid).unwrap(), pattern::values(&long).unwrap());
    assert_eq!(laid_out(record), record);
    assert_eq!(laid_out("{\"a\":1}{\"b\":[2]}"), "{\"a\":1}\n{\"b\":[2]}");
    assert_eq!(
        opened(r#"{"payload":[{"next":"kept"}],"count":3}{"payload":[],"next":"x.y"}"#),
        r#"{"payload":[{"next":"kept"}],"count":3}{"payload":[],"next":"…"}"#
    );
    let shown = Answer { kind: Kind::Text, text: "HTTP/1.1 200 OK\netag: x\n\n{}".to_owned(), first: 0, end: 0 };
    let came = "HTTP/1.1 304 Not Modified\nDate: now\nETag: \"a\"\n\n{\"a\":1}";
    assert_eq!(rewritten(&shown, came), "HTTP/1.1 304 Not Modified\nETag: \"a\"\n\n{\"a\":1}");
}
