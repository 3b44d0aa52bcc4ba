//! Checks every answer of the run against the promises of the API that hold for *every* response, and records each
//! error code.
//!
//! A rule that is broken many times is reported once, with an example, after the last case.

use crate::case::edge_is_open;
use crate::host::{Answer, Host, is_json};
use reqwest::Method;
use serde_json::Value;
use shared::error::ErrorCode;
use shared::operation::ApiForm;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

static BROKEN: Mutex<BTreeMap<String, (usize, String)>> = Mutex::new(BTreeMap::new());
static SEEN: Mutex<BTreeSet<(Host, &str)>> = Mutex::new(BTreeSet::new());
static KEYS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A value that cases write into tables. No log line and no error may contain it.
pub(crate) const NEVER_LOGGED: &str = "tell-nobody-5e1c";

/// Texts that no error message may contain: paths, Selkie's SQL, connection strings, passwords, names from its code.
const LEAKS: &[&str] = &[
    "/tmp/",
    "/dev/shm/",
    "/usr/",
    "/var/",
    "/root/",
    "/home/",
    ".sock",
    ".rs:",
    "mysql://",
    "mysql_async",
    "IDENTIFIED",
    "panicked",
    "backtrace",
    "[object Object]",
    "    at ",
    NEVER_LOGGED,
];

/// Parts of Selkie's SQL that no error of a records request may contain.
const OUR_SQL: &[&str] = &["SELECT `", "INSERT INTO", "DELETE FROM", "UPDATE `", " WHERE `", "' at line "];

/// Returns the reason why no case makes this host return this code; `None` if a case does.
fn excuse(host: Host, code: ErrorCode) -> Option<&'static str> {
    match (host, code) {
        (
            Host::Origin,
            ErrorCode::BadOriginAnswer
            | ErrorCode::OriginUnreachable
            | ErrorCode::OriginUnavailable
            | ErrorCode::OriginTimeout,
        ) => Some("only the edge asks an origin"),
        _ => None,
    }
}

/// Adds a key that must not appear in a log or an answer.
pub(crate) fn keep_secret(key: &str) {
    KEYS.lock().unwrap().push(key.to_owned());
}

pub(crate) fn note(host: Host, code: ErrorCode) {
    SEEN.lock().unwrap().insert((host, code.as_str()));
}

/// Returns whether a `Server-Timing` header contains the time that the edge adds.
pub(crate) fn is_edges(timing: &str) -> bool {
    timing.contains("edge;dur=")
}

pub(crate) fn enter(answer: &Answer) {
    for fault in faults(answer) {
        breach(&fault, &answer.to_string());
    }
}

/// Records that an answer broke a rule that holds for every response.
pub(crate) fn breach(rule: &str, example: &str) {
    let mut broken = BROKEN.lock().unwrap();
    let entry = broken.entry(rule.to_owned()).or_insert_with(|| (0, example.to_owned()));
    entry.0 += 1;
}

fn faults(answer: &Answer) -> Vec<String> {
    let mut faults = Vec::new();
    let mut hold = |holds: bool, rule: &str| {
        if !holds {
            faults.push(rule.to_owned());
        }
    };
    hold(answer.header("x-request-id").is_some_and(|id| !id.is_empty()), "every response carries X-Request-Id");
    hold(answer.header("server-timing").is_some(), "every response carries Server-Timing");
    hold(
        // A client replaces its stored headers by the headers of a 304, so a 304 may omit this header.
        answer.status == 304 || answer.header("x-content-type-options") == Some("nosniff"),
        "every response forbids to guess what it is",
    );
    hold(
        ((answer.is_file() || answer.is_page()) && answer.status.as_u16() < 400)
            || answer.header("content-security-policy") == Some("default-src 'none'; frame-ancestors 'none'"),
        "every response but a file is no page",
    );
    let bodiless = answer.method == Method::HEAD || matches!(answer.status.as_u16(), 201 | 204 | 304);
    if answer.is_mcp() && answer.status == 202 {
        hold(answer.body.is_empty(), "the answer to a notification has no body");
        return faults;
    }
    if bodiless {
        hold(answer.body.is_empty(), "201, 204, 304 and answers to HEAD have no body");
        return faults;
    }
    if answer.what.contains("/metrics") && answer.status.is_success() {
        return faults;
    }
    // The bytes of a file are a client's and may contain anything.
    if (answer.is_file() || answer.is_page()) && answer.status.is_success() {
        return faults;
    }
    // `openapi.rs` checks descriptions, which have no envelope.
    let is_description = ApiForm::ALL.iter().any(|form| answer.what.contains(&format!("/{}", form.file_name())));
    if answer.status == 200 && is_description {
        return faults;
    }
    // `formats.rs` checks bodies of these types.
    let bare = ["text/csv", "application/x-ndjson"];
    let content_type = answer.header("content-type").unwrap_or_default();
    if answer.status == 200 && bare.iter().any(|form| content_type.starts_with(form)) {
        return faults;
    }
    hold(is_json(&answer.headers), "every body is application/json");
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
        hold(false, "every body is JSON");
        return faults;
    };
    // MCP answers have the form of JSON-RPC, except refusals before the message is read.
    if answer.is_mcp() && (body.is_array() || body.get("jsonrpc").is_some()) {
        return faults;
    }
    if answer.status.is_success() {
        hold(body["success"] == true && body.get("payload").is_some(), "a success has success and payload");
        hold(body.get("error").is_none(), "a success has no error");
        return faults;
    }
    faults.extend(error_faults(answer, &body));
    faults
}

fn error_faults(answer: &Answer, body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut hold = |holds: bool, rule: &str| {
        if !holds {
            faults.push(rule.to_owned());
        }
    };
    let error = &body["error"];
    let keys = |value: &Value| value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    hold(body["success"] == false && body.get("payload") == Some(&Value::Null), "a refusal has success and payload");
    let several = body.get("errors").map(|errors| errors.as_array().map_or(0, Vec::len));
    hold(
        keys(body).len() == 3 + usize::from(several.is_some()),
        "a refusal has success, payload, error and errors only",
    );
    hold(several.is_none_or(|count| (2..=20).contains(&count)), "errors lists 2 to 20 faults");
    if several.is_some() {
        let first = &body["errors"][0];
        let same = ["code", "message", "details"].iter().all(|part| first.get(part) == error.get(part));
        hold(same, "the first of errors is error");
    }
    let known = ["code", "details", "hint", "message", "requestId", "retryable"];
    hold(keys(error).iter().all(|key| known.contains(&key.as_str())), "an error has the documented fields only");
    hold(error["message"].as_str().is_some_and(|text| !text.is_empty()), "an error has a message");
    hold(error.get("hint").is_none_or(Value::is_string), "a hint is text");
    hold(error["requestId"].as_str() == answer.header("x-request-id"), "an error names its request id");
    let code = error["code"].as_str().unwrap_or_default();
    let Some(code) = ErrorCode::ALL.iter().find(|known| known.as_str() == code) else {
        hold(false, "an error has a code of the table");
        return faults;
    };
    let mut timings = answer.headers.get_all("server-timing").iter();
    let is_edge = timings.any(|timing| timing.to_str().is_ok_and(is_edges));
    note(if is_edge { Host::Edge } else { Host::Origin }, *code);
    hold(answer.status.as_u16() == code.status(), "an error has its code's status");
    hold(error["retryable"] == code.retryable(), "an error is retryable as its code is");
    let retry = answer.header("retry-after").map(|seconds| seconds.parse::<u32>().is_ok());
    hold(retry == code.retryable().then_some(true), "Retry-After goes with what is retryable, in seconds");
    let challenge = answer.header("www-authenticate");
    hold(challenge == (code.status() == 401).then_some("Bearer"), "WWW-Authenticate: Bearer goes with 401");
    hold(answer.header("allow").is_some() == (code.status() == 405), "Allow goes with 405");
    if let Some(details) = error.get("details") {
        let refusal = details["errno"].is_u64() && details["sqlState"].as_str().is_some_and(|state| state.len() == 5);
        let operation = details["operation"].is_u64() && answer.what.contains("/api/v1/batch");
        let name = |key: &str| details[key].as_str().is_some_and(|name| !name.is_empty());
        let reason = name("reason") && *code == ErrorCode::ResyncRequired;
        let others = [name("field"), name("constraint"), reason, details["row"].is_u64(), operation];
        let count = 2 * usize::from(refusal) + others.iter().filter(|holds| **holds).count();
        hold(
            count > 0 && keys(details).len() == count,
            "details carry errno and sqlState, field, constraint, reason and row, and the operation of a batch",
        );
    }
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    for leak in LEAKS.iter().filter(|leak| text.contains(**leak)) {
        hold(false, &format!("no error holds {leak:?}"));
    }
    for leak in OUR_SQL.iter().filter(|leak| {
        let of_records = answer.what.contains("/crud/") || answer.what.contains("/api/v1/batch");
        of_records && text.contains(**leak)
    }) {
        hold(false, &format!("no error of a records request holds {leak:?}"));
    }
    hold(!KEYS.lock().unwrap().iter().any(|key| text.contains(key.as_str())), "no error holds a key");
    faults
}

/// Checks that the service's log contains no key and no test value.
pub(crate) fn read_log(log: &str) {
    // `selkie dev` prints its two keys to the terminal. They are not in `KEYS`.
    if let Some(key) = KEYS.lock().unwrap().iter().find(|key| log.contains(key.as_str())) {
        let line = log.lines().find(|line| line.contains(key.as_str())).unwrap_or_default();
        breach("no key is logged", line);
    }
    if let Some(line) = log.lines().find(|line| line.contains(NEVER_LOGGED)) {
        breach("no value is logged", line);
    }
    let lacks_code = |line: &&str| {
        let Some(line) = line.find('{').and_then(|at| serde_json::from_str::<Value>(&line[at..]).ok()) else {
            return false;
        };
        line["message"] == "request" && line["status"].as_u64() >= Some(400) && !line["code"].is_string()
    };
    if let Some(line) = log.lines().find(lacks_code) {
        breach("the log line of an error has its code", line);
    }
    if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
        breach("nothing panics", line);
    }
}

/// Returns the broken rules and, if the run was complete (`whole`), the codes that contradict [`excuse`].
pub(crate) fn verdict(whole: bool) -> Vec<String> {
    let broken = BROKEN.lock().unwrap();
    let mut verdict: Vec<String> = broken
        .iter()
        .map(|(rule, (times, example))| format!("rule broken {times} times: {rule}\n    first by {example}"))
        .collect();
    let hosts = [Host::Origin, Host::Edge].into_iter();
    for host in hosts.filter(|host| whole && (*host == Host::Origin || edge_is_open())) {
        let seen = SEEN.lock().unwrap();
        for code in ErrorCode::ALL {
            let name = code.as_str();
            match (excuse(host, *code), seen.contains(&(host, name))) {
                (None, false) => verdict.push(format!("no case has {host:?} give {name}")),
                (Some(reason), true) => {
                    verdict.push(format!("{host:?} gives {name}, excused as: {reason}"));
                }
                (None, true) | (Some(_), false) => {}
            }
        }
    }
    verdict
}
