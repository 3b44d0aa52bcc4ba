//! Requests that the edge refuses by itself: the origin isn't asked, and the answer is the same as the origin's. Most are
//! rows of `tests/refusals/table.txt`.

mod heads;
mod passing;
#[path = "../../refusals/table.rs"]
mod table;
mod uploads;
mod user_tokens;

use super::recording_proxy::RecordingProxy;
use crate::case::eventually;
use crate::host::{Answer, Call, Host};
use crate::raw::{RawAnswer, Wire};
use crate::service::shared;
use crate::test_db::TestDb;
use crate::worker::Worker;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

cases! {
    Own: [
        what_needs_no_database_is_refused_without_the_origin_and_in_its_words,
        what_needs_the_schema_is_refused_in_the_origins_words,
        a_bad_upload_is_refused_in_the_origins_words,
        what_is_announced_too_large_is_refused_before_it_is_sent,
        what_needs_no_refusal_is_answered_without_the_origin_too,
    ],
}

/// Headers that differ between the hosts.
const DIFFERENT: &[(&str, &str)] = &[
    ("server-timing", "tells the time that each took"),
    ("date", "the runtime of a worker sends none"),
    ("connection", "is between a caller and its next server"),
];

/// Which host can return a code.
enum Source {
    /// The edge returns the code by itself; one of the tables of refusals has a request that gets it.
    Edge,
    /// The edge can't return the code by itself, for this reason.
    Beyond(&'static str),
}

use Source::{Beyond, Edge};

/// Returns where a code comes from. The match makes a new code a compile error.
fn source(code: ErrorCode) -> Source {
    match code {
        ErrorCode::InvalidRequest
        | ErrorCode::HeadersTooLarge
        | ErrorCode::InvalidJson
        | ErrorCode::InvalidQueryOption
        | ErrorCode::InvalidFilter
        | ErrorCode::InvalidBody
        // For a name that no column can have.
        | ErrorCode::UnknownField
        | ErrorCode::InvalidIdentifier
        | ErrorCode::InvalidMedia
        | ErrorCode::MissingKey
        | ErrorCode::InvalidKey
        | ErrorCode::ExpiredKey
        | ErrorCode::FullAccessRequired
        | ErrorCode::RouteNotFound
        // For an id or a path that no file can have.
        | ErrorCode::MediaNotFound
        | ErrorCode::MethodNotAllowed
        | ErrorCode::PreconditionFailed
        | ErrorCode::BodyTooLarge
        | ErrorCode::UriTooLong
        | ErrorCode::UnsupportedMediaType => Edge,
        ErrorCode::RevokedKey => Beyond("the origin keeps the list"),
        ErrorCode::RoleForbids => Beyond("the origin keeps the roles"),
        ErrorCode::AmbiguousRelation => Beyond("the origin knows the foreign keys"),
        ErrorCode::IssuerUnavailable => Beyond("the origin keeps the issuers"),
        ErrorCode::SqlError
        | ErrorCode::FulltextIndexMissing
        | ErrorCode::PermissionDenied
        | ErrorCode::DuplicateKey
        | ErrorCode::ForeignKeyViolation
        | ErrorCode::RejectedByDatabase
        | ErrorCode::Deadlock
        | ErrorCode::DatabaseUnavailable
        | ErrorCode::LockTimeout
        | ErrorCode::QueryTimeout => Beyond("MariaDB says so"),
        ErrorCode::DatabaseNotFound
        | ErrorCode::TableNotFound
        | ErrorCode::RecordNotFound
        | ErrorCode::InvalidValue => Beyond("the schema and the records decide"),
        ErrorCode::IdempotencyInProgress | ErrorCode::IdempotencyMismatch => {
            Beyond("the database holds the receipts")
        }
        ErrorCode::TooManyAffected => Beyond("the database counts the records"),
        ErrorCode::ResyncRequired | ErrorCode::ChangesUnavailable => Beyond("MariaDB's binary log decides"),
        ErrorCode::MediaExists
        | ErrorCode::UploadOffsetMismatch
        | ErrorCode::UploadLocked
        | ErrorCode::RangeNotSatisfiable
        | ErrorCode::StorageUnavailable
        | ErrorCode::StorageFull => Beyond("the library and its store decide"),
        ErrorCode::RateLimited => Beyond("the requests that wait, or the platform's counter, decide"),
        ErrorCode::Internal | ErrorCode::Overloaded => Beyond("no request's fault"),
        ErrorCode::BadOriginAnswer
        | ErrorCode::OriginUnreachable
        | ErrorCode::OriginUnavailable
        | ErrorCode::OriginTimeout => Beyond("the origin is at fault"),
    }
}

/// A request that is refused, its code, and, if it is of the table, its row.
struct Refusal {
    code: ErrorCode,
    call: Call,
    row: Option<table::Refusal>,
}

impl Refusal {
    /// `db` stands for the table's database.
    fn of(row: table::Refusal, db: &TestDb) -> Self {
        let place = |text: &str| text.replace("demo/", &format!("{}/", db.name));
        let method = Method::from_bytes(row.method.as_bytes()).expect("a method");
        let mut call = call(method, &place(&row.target));
        for (name, value) in &row.headers {
            call = call.header(name, value);
        }
        if !row.body.is_empty() {
            call = call.bytes(str::from_utf8(&row.body).map_or(row.body.clone(), |body| place(body).into_bytes()));
            if !row.headers.iter().any(|(name, _)| *name == "content-type") {
                call = call.header("content-type", "application/json");
            }
        }
        let code = ErrorCode::ALL.iter().find(|code| code.as_str() == row.code);
        Self { code: *code.expect("a code"), call, row: Some(row) }
    }
}

/// Builds a call with the full key; the host is chosen later.
fn call(method: Method, path: &str) -> Call {
    Call::new("", method, path).key(&shared().full_key)
}

fn refusal(code: ErrorCode, call: Call) -> Refusal {
    Refusal { code, call, row: None }
}

/// A worker, and the recording proxy between it and the shared service's origin.
struct Bench {
    worker: Worker,
    tap: RecordingProxy,
}

impl Bench {
    async fn start() -> Self {
        Self::with(&[]).await
    }

    async fn with(variables: &[(&str, &str)]) -> Self {
        let tap = RecordingProxy::before(&shared().origin).await;
        let worker = Worker::start(&[&[("ORIGINS", &*tap.url)], variables].concat());
        Self { worker, tap }
    }

    /// Checks that the origin got no request. Sends a last request itself: a request that the worker sent after its
    /// answer would be recorded before it.
    async fn nothing_was_asked(&self) {
        let sentinel = Call::new(&self.worker.url, Method::GET, "/readyz").send();
        assert_eq!(sentinel.await.status, 200);
        let asked: Vec<String> =
            self.tap.requests().iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect();
        assert_eq!(asked, ["GET /readyz"]);
    }
}

/// The parts of an answer that are compared.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    status: u16,
    headers: BTreeSet<(String, String)>,
    body: String,
}

impl Told {
    fn by(answer: &Answer) -> Self {
        let headers =
            answer.headers.iter().map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())));
        Self {
            status: answer.status.as_u16(),
            headers: compared(headers.map(|(name, value)| (name, value.into_owned()))),
            body: String::from_utf8_lossy(&answer.body).into_owned(),
        }
    }

    fn by_raw(answer: &RawAnswer) -> Self {
        let lines = answer.head.lines().skip(1);
        let headers = lines.filter_map(|line| line.split_once(':'));
        Self {
            status: answer.status,
            headers: compared(headers.map(|(name, value)| (name, value.trim().to_owned()))),
            body: String::from_utf8_lossy(&answer.body).into_owned(),
        }
    }
}

fn compared<'a>(headers: impl Iterator<Item = (&'a str, String)>) -> BTreeSet<(String, String)> {
    headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, _)| DIFFERENT.iter().all(|(different, _)| different != name))
        .collect()
}

/// Sends a request through both hosts with the same request id. Returns how the answers differ from the expected
/// answers; `None` if they don't.
async fn fault(bench: &Bench, number: usize, refusal: Refusal) -> Option<String> {
    let Refusal { code, call, row } = refusal;
    let call = call.header("x-request-id", &format!("refusal-{number}"));
    let direct = call.clone().at(&shared().origin).send().await;
    let through = call.at(&bench.worker.url).send().await;
    let is_refused =
        through.status.as_u16() == code.status() && (through.method == Method::HEAD || through.code() == code.as_str());
    let (told, expected) = (Told::by(&through), Told::by(&direct));
    if told != expected {
        return Some(format!("the edge says\n{told:?}\nand the origin\n{expected:?}\nto {through}\n"));
    }
    if let Some(row) = row {
        let error = through.json()["error"].take();
        let text = |part: &str| error[part].as_str().unwrap_or_default().to_owned();
        let told = format!("{} {}", text("message"), text("hint"));
        return row.fault(&text("code"), &told, error["details"]["operation"].as_u64());
    }
    (!is_refused).then(|| format!("expected {}: {through}\n", code.as_str()))
}

async fn what_needs_no_database_is_refused_without_the_origin_and_in_its_words(_: Host) {
    let bench = Bench::start().await;
    let expired = expired_key().await;
    let db = TestDb::new(Host::Origin, TABLES).await;
    let of_table = table::all().into_iter().filter(|row| !row.needs_schema).map(|row| Refusal::of(row, &db));
    let refusals: Vec<Refusal> = heads::table(&expired).into_iter().chain(of_table).collect();
    let mut seen: BTreeSet<&str> = refusals.iter().map(|one| one.code.as_str()).collect();
    // Another case tests this code, with bodies that are not sent completely.
    seen.insert(ErrorCode::BodyTooLarge.as_str());
    let expected: BTreeSet<&str> = ErrorCode::ALL
        .iter()
        .filter(|code| match source(**code) {
            Edge => true,
            Beyond(reason) => {
                assert!(!reason.is_empty());
                false
            }
        })
        .map(|code| code.as_str())
        .collect();
    let mut faults = Vec::new();
    let mut asked = BTreeMap::new();
    for (number, refusal) in refusals.into_iter().enumerate() {
        let what = refusal.call.to_string();
        faults.extend(fault(&bench, number, refusal).await);
        let requests = bench.tap.requests().len();
        if requests > 0 {
            asked.insert(what, requests);
            bench.tap.forget();
        }
    }
    assert!(faults.is_empty(), "{} differ:\n{}", faults.len(), faults.join("\n"));
    assert_eq!(asked, BTreeMap::new(), "were asked of the origin");
    bench.nothing_was_asked().await;
    assert_eq!(seen, expected);
    nothing_was_written(&db).await;
}

async fn what_needs_the_schema_is_refused_in_the_origins_words(_: Host) {
    let bench = Bench::start().await;
    let db = TestDb::new(Host::Origin, TABLES).await;
    let mut faults = Vec::new();
    for (number, row) in table::all().into_iter().filter(|row| row.needs_schema).enumerate() {
        faults.extend(fault(&bench, number, Refusal::of(row, &db)).await);
    }
    assert!(faults.is_empty(), "{} differ:\n{}", faults.len(), faults.join("\n"));
    nothing_was_written(&db).await;
}

/// What `table.txt` needs, and a record that no refused request may change.
const TABLES: &[&str] = &[
    "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(40))",
    "CREATE TABLE posts (id INT PRIMARY KEY AUTO_INCREMENT, title VARCHAR(40), body TEXT, views INT, day DATE, user_id INT, \
     FOREIGN KEY (user_id) REFERENCES users (id))",
    "INSERT INTO posts (id, title) VALUES (1, 'a')",
];

async fn nothing_was_written(db: &TestDb) {
    let record = json!({"id": 1, "title": "a", "body": null, "views": null, "day": null, "user_id": null});
    assert_eq!(db.exec("SELECT * FROM posts").await, json!([record]));
}

async fn a_bad_upload_is_refused_in_the_origins_words(_: Host) {
    let bench = Bench::start().await;
    let mut faults = Vec::new();
    for (number, refusal) in uploads::at_the_edge().into_iter().enumerate() {
        faults.extend(fault(&bench, number, refusal).await);
    }
    bench.nothing_was_asked().await;
    for (number, refusal) in uploads::beyond().into_iter().enumerate() {
        faults.extend(fault(&bench, number, refusal).await);
    }
    assert!(faults.is_empty(), "{} differ:\n{}", faults.len(), faults.join("\n"));
}

async fn expired_key() -> String {
    let key = shared().create_key("default", "full", &["--expires", "1s"]).token;
    let is_over = || async {
        let answer = Host::Origin.get("/api/v1/crud/demo/posts/1").key(&key).send();
        (answer.await.code() == "expired_key").then_some(())
    };
    eventually("the key expires", Duration::from_secs(10), is_over).await;
    key
}

/// The requests announce bodies by their `Content-Length`, but don't send them.
async fn what_is_announced_too_large_is_refused_before_it_is_sent(_: Host) {
    let bench = Bench::start().await;
    let types = "Content-Type: application/json\r\n";
    for (path, length) in [
        ("/api/v1/crud/demo/posts", 16 * 1024 * 1024 + 1_u64),
        ("/api/v1/crud/demo/posts/query", u64::MAX / 2),
        ("/api/v1/sql", 1 << 40),
        ("/api/v1/batch", 1 << 30),
        ("/api/v1/media", 256 * 1024 * 1024 + 1),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n{types}\
             X-Request-Id: large\r\nContent-Length: {length}\r\n\r\n",
            shared().full_key
        );
        let mut told = Vec::new();
        for url in [&shared().origin, &bench.worker.url] {
            let mut wire = Wire::open(url).await;
            wire.send(head.as_bytes()).await;
            let answer = wire.answer().await.expect("an answer");
            assert_eq!(answer.code(), "body_too_large", "{path}");
            told.push(Told::by_raw(&answer));
        }
        assert_eq!(told[0], told[1], "{path}");
    }
    bench.nothing_was_asked().await;
}

async fn what_needs_no_refusal_is_answered_without_the_origin_too(_: Host) {
    let bench = Bench::start().await;
    let at_edge = |method, path| Call::new(&bench.worker.url, method, path);
    assert_eq!(at_edge(Method::GET, "/healthz").send().await.status, 200);
    assert_eq!(at_edge(Method::HEAD, "/healthz").send().await.status, 200);
    for path in ["/api/v1/crud/demo/posts", "/api/v1/media", "/nowhere"] {
        let call = Call::new("", Method::OPTIONS, path)
            .header("origin", "https://app.example")
            .header("access-control-request-method", "DELETE")
            .header("x-request-id", "preflight");
        let direct = call.clone().at(&shared().origin).send().await;
        let through = call.at(&bench.worker.url).send().await;
        assert_eq!(through.status, 204);
        assert_eq!(Told::by(&direct), Told::by(&through), "{path}");
    }
    bench.nothing_was_asked().await;
}
