//! Checks that the pages are complete: each option that a hint of the service names occurs in a call on a page, and
//! each operator on a page exists.

use super::page;
use crate::host::{Host, enc, option};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;

/// A word that is not an option, part or operator, and is similar to none.
const UNKNOWN: &str = "qqqqqqqqqqqq";

/// Sends an unknown name wherever the service has options. Checks that each name in the hints of
/// the refusals occurs in a call on a page.
pub(super) async fn every_option_stands_in_a_call(host: Host) {
    let posts = "/api/v1/crud/demo/posts";
    let part = json!({UNKNOWN: 1});
    let mut asked = Vec::new();
    for path in [
        format!("{posts}?{UNKNOWN}=1"),
        format!("{posts}/1?{UNKNOWN}=1"),
        format!("{posts}?{}", option("query", &json!({"id": part}))),
        format!("{posts}?{}", option("order", &part)),
        format!("{posts}?{}", option("selectFields", &json!([part]))),
        format!("{posts}?{}", option("fullTextSearch", &part)),
        format!("{posts}?{}", option("join", &json!([part]))),
        format!("{posts}?{}", option("join", &json!([{"match": part}]))),
    ] {
        asked.push((path.clone(), host.get(&path).send().await));
    }
    let path = format!("/api/v1/crud/demo/tags?{UNKNOWN}=1");
    asked.push((path.clone(), host.post(&path, &json!({})).send().await));
    asked.push((path.clone(), host.call(Method::DELETE, &path).send().await));
    let scripts = scripts();
    let mut missing = Vec::new();
    for (path, answer) in asked {
        let error = answer.json()["error"].take();
        let names = names(error["hint"].as_str().unwrap_or_default());
        assert!(!names[0].is_empty(), "{path} names nothing: {error}");
        missing.extend(names.into_iter().filter(|name| !scripts.iter().any(|script| script.contains(name))));
    }
    assert!(missing.is_empty(), "no call on the pages has {missing:?}");
}

/// Returns the names in the first sentence of a hint, such as `Options: a, b.` or `Its parts are a, b.`.
fn names(hint: &str) -> Vec<String> {
    let hint = hint.split_once(". ").map_or(hint, |(first, _)| first);
    let list = hint.split_once(": ").or_else(|| hint.split_once("are "));
    let list = list.map_or("", |(_, list)| list.trim_end_matches('.'));
    list.split(", ").map(str::to_owned).collect()
}

fn scripts() -> Vec<String> {
    let pages = page::all();
    let examples = pages.into_iter().flat_map(|page| page.examples);
    examples.map(|example| example.script).collect()
}

/// Checks that the service knows each operator in the table of `conditions.md`: the short names in the first column,
/// and the names in the second and the last.
pub(super) async fn every_operator_on_the_page_is_known(host: Host) {
    let page = crate::service::workspace().join("docs/api/conditions.md");
    let text = fs::read_to_string(page).expect("a readable page");
    let table =
        text.lines().skip_while(|line| !line.starts_with("| short |")).skip(2).take_while(|line| line.starts_with('|'));
    // The value has the wrong type for most operators. An error may be about the value, but not about the operator.
    let mut conditions = Vec::new();
    for row in table {
        let columns: Vec<&str> = row.split('|').collect();
        let words = |column: &str| column.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let short = words(columns[1].split('(').next().unwrap());
        conditions.extend(short.into_iter().map(|name| json!({name: 1})));
        let names = [columns[2], columns[columns.len() - 2]].into_iter().flat_map(words);
        conditions.extend(names.map(|name| json!({"equality": name, "value": 1})));
    }
    assert!(conditions.len() > 50, "{conditions:?}");
    for condition in conditions {
        let query = json!({"id": condition});
        let path = format!("/api/v1/crud/demo/posts?limit=1&query={}", enc(&query.to_string()));
        let answer = host.get(&path).send().await;
        let message = answer.json()["error"]["message"].take();
        let unknown =
            matches!(&message, Value::String(text) if text.contains("no operator") || text.contains("no part"));
        assert!(!unknown, "{query}: {answer}");
    }
}
