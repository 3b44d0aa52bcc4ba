//! The fuzzer's initial inputs. Requests: the requests of the golden file and of `seeds.txt` (a line `METHOD target
//! body` each). Uploads: one of each shape. Roles: each part of a role file at least once.

use std::path::Path;

const GOLDEN: &str = include_str!("../../../origin/src/query/sql/golden.txt");
const SEEDS: &str = include_str!("../seeds.txt");

/// Prefix of the golden file's targets; a target that begins with `@` names its table.
const GOLDEN_DATABASE: &str = "/api/v1/crud/demo/";
const GOLDEN_TABLE: &str = "posts";

#[must_use]
pub fn requests() -> Vec<String> {
    let golden = lines(GOLDEN).filter_map(|line| {
        request(line, |target| match target.strip_prefix('@') {
            Some(named) => format!("{GOLDEN_DATABASE}{named}"),
            None => format!("{GOLDEN_DATABASE}{GOLDEN_TABLE}{target}"),
        })
    });
    let own = lines(SEEDS).filter_map(|line| request(line, str::to_owned));
    golden.chain(own).collect()
}

#[must_use]
pub fn uploads() -> Vec<Vec<u8>> {
    let bodies = UPLOADS.map(|(way, body)| (way, body.replace('\n', "\r\n")));
    let seed = 7_u64.to_le_bytes();
    bodies.iter().map(|(way, body)| [&[*way], &seed[..], body.as_bytes()].concat()).collect()
}

const UPLOADS: [(u8, &str); 7] = [
    (
        0,
        r#"{"media":[{"name":"a.png","base64":"data:image/png;base64,iVBORw0KGgo="}],"folder":"a/b","type":"image","update":true,"private":false}"#,
    ),
    (
        0,
        r#" {"type":"file","media":{"imageName":"My Cat","imageBase64":"iVBORw0\u004bGgo","imageType":"image\/png","private":true,"privateFolder":null}} "#,
    ),
    (
        0,
        r#"{"media":[{"fileBase64":"iVBO\r\nRw0K","fileName":"x","fileType":".txt"},{"imageBase64":"_-8=","imageName":"x","imageType":"jpg"}],"type":"file"}"#,
    ),
    (0, r#"{"type":"video","media":[{"name":"a","base64":"data:a/b;base64,YR=="}]}"#),
    (
        1,
        "--xyz\nContent-Disposition: form-data; name=type\n\nimage\n--xyz\nContent-Disposition: form-data; name=\"f\"; filename=\"a%22.png\"\nContent-Type: image/png\n\n\n--xy\n--xyz--\n",
    ),
    (
        1,
        "preamble\n--xyz \nContent-Disposition: form-data; filename*=UTF-8''%c3%a9\n\nx\n--xyz\nContent-Disposition: form-data; name=folder\n\na/b\n--xyz--",
    ),
    (2, "0123456789 0123456789 0123456789 0123456789 0123456789"),
];

#[must_use]
pub fn roles() -> &'static [&'static str] {
    &ROLES
}

const ROLES: [&str; 6] = [
    r#"{"tables": {
        "demo.users": {"read": {"fields": {"omit": ["note"]}}},
        "demo.posts": {
            "read":   {"rows": {"views": {"value": {"claim": "sub"}}}},
            "insert": {"fields": ["title", "price"], "set": {"views": {"claim": "sub"}}},
            "update": {"fields": ["price"], "rows": {"views": {"value": {"claim": "sub"}}, "title": "open"}},
            "delete": {"rows": {"views": {"value": {"claim": "sub"}}, "title": "open"}}},
        "demo.*": {"read": {}}},
      "media": {"read": true, "upload": {"folder": "avatars/{sub}", "types": ["image/*"], "maxBytes": 5000000}, "delete": "own"},
      "maxRows": 500, "timeout": "5s", "rateLimit": "100/1s"}"#,
    r#"{"tables":{"*":{"read":true,"insert":false},"demo.a`b?":{"read":{"rows":{"?":{"value":[1,{"claim":"c"}]}}}}}}"#,
    r#"{"tables":{"demo.posts":{"read":{"rows":{"g":{"__query":{"title":{"value":{"claim":"t"},"equality":"LIKE"},"at":{"value":["2026-01-01",{"claim":"t"}],"equality":"BETWEEN"}},"operator":"OR","not":true}}}}}}"#,
    r#"{"tables":{"demo.links":{"insert":{"set":{"state":"new","user_id":{"claim":"sub"}},"rows":{"user_id":{"claim":"sub"}}},"update":{"fields":{"omit":["user_id"]},"set":{"state":null}},"delete":true},"demo.log":{}}}"#,
    r#"{"tables":{"*.*":{"read":{"fields":[]}}},"media":{"upload":true,"delete":"all"}}"#,
    r#"{"tables":{"demo.posts":{"read":{"rows":{"x":{"fieldName":"views","tableName":"posts","value":{"claim":"a"},"equality":"NOT IN"},"title":{"equality":"IS NULL"}}}}}}"#,
];

/// Environment variable that names the directory for the seeds.
const FOLDER_VARIABLE: &str = "SELKIE_FUZZ_SEEDS";

/// Writes each seed to a file in the directory of the environment variable; does nothing if it is not set.
///
/// # Panics
/// A file can't be written.
pub fn lay_out_where_asked(seeds: impl IntoIterator<Item = impl AsRef<[u8]>>) {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else {
        return;
    };
    for (at, seed) in seeds.into_iter().enumerate() {
        let file = Path::new(&folder).join(format!("seed-{at:03}"));
        std::fs::write(file, seed).expect("a folder that can be written to");
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
}

fn request(line: &str, place: impl Fn(&str) -> String) -> Option<String> {
    let (method, rest) = line.split_once(' ')?;
    let (target, body) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(format!("{method} {}\n\n{body}", place(target)))
}
