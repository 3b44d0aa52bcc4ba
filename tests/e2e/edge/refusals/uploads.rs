//! Uploads with an invalid form: the edge refuses JSON by itself, and forwards the origin's answer to forms.

use super::{Refusal, call, refusal};
use crate::host::Call;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode::{self, *};

const MEDIA: &str = "/api/v1/media";
const FORM: &str = "multipart/form-data; boundary=b";

/// Returns the uploads that the edge refuses by itself.
pub(super) fn at_the_edge() -> Vec<Refusal> {
    [first_shape(), second_shape(), cut(), types()].into_iter().flatten().collect()
}

/// Returns the uploads that only the origin can refuse: forms, and more files than its settings allow.
pub(super) fn beyond() -> Vec<Refusal> {
    let file = |at| json!({"name": format!("{at}"), "base64": "data:text/plain;base64,aGk="});
    let many: Vec<Value> = (0..65).map(file).collect();
    [vec![refusal(InvalidBody, json_of(with(json!({"media": many}))))], forms()].into_iter().flatten().collect()
}

fn json_of(body: impl Into<Vec<u8>>) -> Call {
    call(Method::POST, MEDIA).bytes(body).header("content-type", "application/json")
}

fn good() -> Value {
    json!({"media": [{"name": "a.txt", "base64": "data:text/plain;base64,aGk="}], "folder": "f", "type": "file"})
}

/// Returns a valid body in which some keys have other values; null removes a key.
fn with(changes: Value) -> String {
    let mut body = good();
    for (key, value) in changes.as_object().expect("changes") {
        let members = body.as_object_mut().expect("an object");
        if value.is_null() {
            members.remove(key);
        } else {
            members.insert(key.clone(), value.clone());
        }
    }
    body.to_string()
}

fn first_shape() -> Vec<Refusal> {
    let item = |name: Value, base64: &str| json!({"media": [{"name": name, "base64": base64}]});
    let text = "data:text/plain;base64,aGk=";
    let long = "x".repeat(300);
    let table: Vec<(Value, ErrorCode)> = vec![
        (json!({"type": null}), InvalidBody),
        (json!({"type": "picture"}), InvalidBody),
        (json!({"type": 1}), InvalidBody),
        (json!({"media": null}), InvalidBody),
        (json!({"media": []}), InvalidBody),
        (json!({"media": "x"}), InvalidBody),
        (json!({"media": [1]}), InvalidBody),
        (json!({"media": [{"name": "a"}]}), InvalidBody),
        (json!({"media": [{"base64": text}]}), InvalidBody),
        (item(json!(1), text), InvalidBody),
        (item(json!("../a"), text), InvalidBody),
        (item(json!(""), text), InvalidBody),
        (item(json!("a\u{1}b"), text), InvalidBody),
        (item(json!(long), text), InvalidBody),
        (item(json!("a"), "aGk="), InvalidMedia),
        (item(json!("a"), "data:text/plain,hi"), InvalidMedia),
        (item(json!("a"), "data:text/plain;base64,"), InvalidMedia),
        (item(json!("a"), "data:text/plain;base64,a"), InvalidMedia),
        (item(json!("a"), "data:text/plain;base64,a*k="), InvalidMedia),
        (item(json!("a"), "data:text/plain;base64,aGk=aGk="), InvalidMedia),
        (json!({"media": vec![json!({"name": "a", "base64": text}); 2]}), InvalidBody),
        (json!({"folder": 5}), InvalidBody),
        (json!({"folder": "a/../b"}), InvalidBody),
        (json!({"folder": long}), InvalidBody),
        (json!({"foldr": "x"}), InvalidBody),
        (json!({"update": "perhaps"}), InvalidBody),
        (json!({"media": [{"name": "a", "base64": text, "size": 1}]}), InvalidBody),
    ];
    let mut refusals: Vec<Refusal> =
        table.into_iter().map(|(changes, code)| refusal(code, json_of(with(changes)))).collect();
    let twice = with(json!({})).replace("\"type\"", "\"folder\":\"g\",\"type\"");
    refusals.push(refusal(InvalidBody, json_of(twice)));
    refusals
}

fn second_shape() -> Vec<Refusal> {
    let body = |item: Value| json!({"media": item, "folder": "f", "type": "image"}).to_string();
    let mixed = json!([{"imageBase64": "aGk=", "imageName": "a", "imageType": "png"}, {"name": "b", "base64": "x"}]);
    [
        (json!({"imageBase64": "aGk=", "imageName": "a"}), InvalidBody),
        (json!({"imageBase64": "aGk=", "imageType": "png"}), InvalidBody),
        (json!({"imageName": "a", "imageType": "png"}), InvalidBody),
        (json!({"imageBase64": "*", "imageName": "a", "imageType": "png"}), InvalidMedia),
        (json!({"imageBase64": "aGk=", "imageName": "a", "imageType": 5}), InvalidBody),
        (json!({"imageBase64": "aGk=", "imageName": "a", "imageType": "png", "private": "x"}), InvalidBody),
        (json!({"imageBase64": "aGk=", "fileName": "a", "imageType": "png"}), InvalidBody),
        (json!({"fileBase64": "aGk=", "fileName": "", "fileType": "txt"}), InvalidBody),
        (mixed, InvalidBody),
    ]
    .into_iter()
    .map(|(item, code)| refusal(code, json_of(body(item))))
    .collect()
}

/// Returns bodies cut at many positions, and bodies with a fault at the beginning, in the middle and at the end.
fn cut() -> Vec<Refusal> {
    let whole = good().to_string();
    let mut table: Vec<Refusal> =
        (0..whole.len()).step_by(7).map(|end| refusal(InvalidJson, json_of(&whole[..end]))).collect();
    for body in ["nonsense", "{,", "{\"media\": [,", "\u{feff}x"] {
        table.push(refusal(InvalidJson, json_of(body)));
    }
    for behind in ["x", "{}", ",", "nul", "\0"] {
        table.push(refusal(InvalidJson, json_of(format!("{whole}{behind}"))));
    }
    // 48 kB of base64: the fault is in the first piece, wherever it is in the body.
    let file = "QUFB".repeat(12_000);
    let long = with(json!({"media": [{"name": "a", "base64": format!("data:text/plain;base64,{file}")}]}));
    for at in [100, long.len() / 2, 48_000] {
        let mut body = long.clone();
        body.replace_range(at..=at, "*");
        table.push(refusal(InvalidMedia, json_of(body)));
    }
    table.push(refusal(InvalidBody, json_of(long.replace("\"file\"", "\"odd\""))));
    table
}

fn forms() -> Vec<Refusal> {
    let part = |disposition: &str, content: &str| {
        format!("--b\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{content}\r\n")
    };
    let file = part("name=\"f\"; filename=\"a.txt\"", "hi");
    let kind = part("name=\"type\"", "file");
    let items: String = (0..65).map(|at| part(&format!("name=\"f\"; filename=\"{at}\""), "hi")).collect();
    [
        String::new(),
        file.clone(),
        format!("{file}{kind}"),
        format!("{file}--b--\r\n"),
        format!("{kind}--b--\r\n"),
        format!("{file}{}--b--\r\n", part("name=\"type\"", "picture")),
        format!("{file}{kind}{}--b--\r\n", part("name=\"odd\"", "x")),
        format!("{file}{kind}{kind}--b--\r\n"),
        format!("{file}{file}{kind}--b--\r\n"),
        format!("{items}{kind}--b--\r\n"),
        "no boundary".to_owned(),
        "--b\r\nno header at all\r\n\r\n--b--\r\n".to_owned(),
    ]
    .into_iter()
    .map(|body| refusal(InvalidBody, call(Method::POST, MEDIA).bytes(body).header("content-type", FORM)))
    .chain(
        ["multipart/form-data".to_owned(), format!("multipart/form-data; boundary={}", "x".repeat(71))]
            .map(|kind| refusal(InvalidBody, call(Method::POST, MEDIA).bytes("--b--").header("content-type", &kind))),
    )
    .chain([refusal(
        InvalidMedia,
        call(Method::POST, MEDIA)
            .bytes(format!("{}{kind}--b--\r\n", part("name=\"f\"; filename=\"a\"", "")))
            .header("content-type", FORM),
    )])
    .collect()
}

fn types() -> Vec<Refusal> {
    let upload = |kind: &str| call(Method::POST, MEDIA).bytes(good().to_string()).header("content-type", kind);
    vec![refusal(UnsupportedMediaType, upload("image/png")), refusal(UnsupportedMediaType, upload("text/plain"))]
}
