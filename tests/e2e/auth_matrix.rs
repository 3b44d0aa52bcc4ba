//! The authorisation matrix: every action of the API with every kind of key, through both hosts.
//!
//! `row` matches on every `Action`, so a new action without a row doesn't compile. Each request must parse as its
//! action.

use crate::case::eventually;
use crate::host::{Answer, Call, Host, option};
use crate::media::test_folder::{MEDIA, TestFolder};
use crate::roles::set_role_in;
use crate::service::{IssuedKey, shared};
use crate::test_db::{TestDb, unique};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use shared::key::Access;
use shared::operation::tus::PATH as TUS;
use shared::operation::{Operation, parse_head};
use shared::policy::Action;
use shared::request::RequestHead;
use std::time::Duration;

cases! {
    Both: [
        every_action_answers_every_kind_of_key_as_the_matrix_says,
        what_needs_no_key_answers_every_kind_of_key_alike,
    ],
}

/// Maximum time until an expired or revoked key is refused, on a loaded machine.
const KEY_END_MAX: Duration = Duration::from_secs(20);

/// The expected answer to a request: a success with this status, or a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done(u16),
    Refused(ErrorCode),
}

use Outcome::{Done, Refused};

impl Outcome {
    /// Returns whether the answer is the expected one. Answers to HEAD have no body, so only their status is compared.
    fn is(self, answer: &Answer) -> bool {
        let status = answer.status.as_u16();
        match self {
            Done(expected) => status == expected,
            Refused(code) if answer.method == Method::HEAD => status == code.status(),
            Refused(code) => status == code.status() && answer.code() == code.as_str(),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    /// No project's key: every action is refused with this code.
    Nobody(ErrorCode),
    Own(Access),
    Foreign(Access),
}

struct Key {
    name: &'static str,
    kind: Kind,
    token: Option<String>,
}

impl Key {
    /// Returns one key of each kind. Keys that may change nothing are first.
    async fn all(host: Host) -> Vec<Self> {
        let project = unique("stranger");
        shared().create_project(&project);
        let key = |name, kind, token: &str| Self { name, kind, token: Some(token.to_owned()) };
        let full = &shared().full_key;
        let (signed, _) = full.rsplit_once('.').expect("a token");
        let expired = shared().create_key("default", "full", &["--expires", "1s"]);
        let revoked = shared().create_key("default", "full", &[]);
        shared().cli_ok(&["key", "revoke", &revoked.id]);
        for token in [&expired.token, &revoked.token] {
            eventually("the key ends", KEY_END_MAX, || async {
                let answer = host.get("/api/v1/crud/demo/posts/1").key(token);
                (answer.send().await.status == 401).then_some(())
            })
            .await;
        }
        let foreign = |access| shared().create_key(&project, access, &[]).token;
        vec![
            Self { name: "no key", kind: Kind::Nobody(ErrorCode::MissingKey), token: None },
            key("a malformed key", Kind::Nobody(ErrorCode::InvalidKey), "a.b.c"),
            key("a forged key", Kind::Nobody(ErrorCode::InvalidKey), &format!("{signed}.A")),
            key("an expired key", Kind::Nobody(ErrorCode::ExpiredKey), &expired.token),
            key("a revoked key", Kind::Nobody(ErrorCode::RevokedKey), &revoked.token),
            key("another project's read key", Kind::Foreign(Access::Read), &foreign("read")),
            key("another project's full key", Kind::Foreign(Access::Full), &foreign("full")),
            key("a read key", Kind::Own(Access::Read), &shared().read_key),
            key("a full key", Kind::Own(Access::Full), full),
        ]
    }
}

struct Request {
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
    own: Outcome,
    foreign: Outcome,
}

impl Request {
    fn new(method: Method, path: impl Into<String>, own: u16, foreign: Outcome) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: None, own: Done(own), foreign }
    }

    fn json(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string().into_bytes());
        self.header("content-type", "application/json")
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn call(&self, host: Host, token: Option<&str>) -> Call {
        let mut call = Call::new(host.url(), self.method.clone(), &self.path);
        for (name, value) in &self.headers {
            call = call.header(name, value);
        }
        if let Some(body) = &self.body {
            call = call.bytes(body.clone());
        }
        match token {
            Some(token) => call.key(token),
            None => call,
        }
    }

    fn action(&self) -> Action {
        let (path, query) = match self.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.path.as_str(), None),
        };
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (*name, value.as_bytes()));
        let head = RequestHead::read(self.method.as_str(), path, query, headers);
        let pending = parse_head(&head).unwrap_or_else(|problem| panic!("{head:?}: {problem}"));
        let action = pending.action();
        match pending.finish(self.body.as_deref().unwrap_or_default()) {
            Ok(Operation::Records(operation)) => operation.further_action().unwrap_or(action),
            Ok(_) => action,
            Err(problem) => panic!("{head:?}: {problem}"),
        }
    }
}

struct World {
    db: TestDb,
    shelf: TestFolder,
    files: [String; 2],
    upload: String,
    key: IssuedKey,
    roles: [String; 3],
    webhook: String,
    /// The URL of an issuer.
    issuer: String,
}

impl World {
    async fn new(host: Host) -> Self {
        let db = TestDb::new(
            host,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT)",
                "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
            ],
        )
        .await;
        let shelf = TestFolder::new(host);
        let mut files = [const { String::new() }; 2];
        for (name, path) in ["kept.txt", "deleted.txt"].into_iter().zip(&mut files) {
            let file = shelf.put(name, "file", "text/plain", b"x").await;
            *path = format!("{MEDIA}/{}", file["id"]);
        }
        let begun = creation(&shelf, "begun.txt").call(host, Some(&shared().full_key)).send().await;
        let upload = begun.header("location").expect("a location").to_owned();
        let roles = ["kept", "set", "removed"].map(unique);
        for name in [&roles[0], &roles[2]] {
            set_role_in(shared(), "default", name, &json!({"tables": {}}));
        }
        let key = shared().create_key("default", "read", &[]);
        let issuer = format!("https://id.example/{}", unique("issuer"));
        let world = Self { db, shelf, files, upload, key, roles, webhook: unique("hook"), issuer };
        host.call(Method::PUT, &world.issuer_path()).json(&world.issuer_definition()).send().await.payload();
        host.call(Method::POST, "/api/v1/webhooks").json(&world.webhook_definition()).send().await.payload();
        world
    }

    fn issuer_path(&self) -> String {
        format!("/api/v1/issuers/{}", self.issuer.replace(':', "%3A").replace('/', "%2F"))
    }

    fn issuer_definition(&self) -> Value {
        json!({"audience": "app", "jwksUrl": "https://id.example/jwks", "role": self.roles[0]})
    }

    fn webhook_definition(&self) -> Value {
        let subscription = json!({"database": self.db.name, "table": "t"});
        json!({"name": self.webhook, "url": "https://example.com/", "subscriptions": [subscription], "paused": true})
    }

    async fn state(&self) -> (Value, Vec<String>, Option<String>, Vec<u16>) {
        let head = Call::new(self.db.host.url(), Method::HEAD, &self.upload)
            .key(&shared().full_key)
            .header("tus-resumable", "1.0.0");
        (
            self.db.exec("SELECT id, name FROM t ORDER BY id").await,
            self.shelf.names().await,
            head.send().await.header("upload-offset").map(str::to_owned),
            self.managed().await,
        )
    }

    async fn managed(&self) -> Vec<u16> {
        let host = self.db.host;
        let mut statuses = vec![host.get("/api/v1/crud").key(&self.key.token).send().await.status.as_u16()];
        for name in &self.roles {
            statuses.push(host.get(&format!("/api/v1/roles/{name}")).send().await.status.as_u16());
        }
        statuses
    }
}

/// Returns the request that creates an upload of three bytes.
fn creation(shelf: &TestFolder, name: &str) -> Request {
    let metadata =
        [("filename", name), ("folder", &shelf.folder)].map(|(key, value)| format!("{key} {}", STANDARD.encode(value)));
    Request::new(Method::POST, TUS, 201, Done(201))
        .header("tus-resumable", "1.0.0")
        .header("upload-length", "3")
        .header("upload-metadata", metadata.join(","))
}

fn row(action: Action, world: &World) -> (Access, Vec<Request>) {
    const NO_DATABASE: Outcome = Refused(ErrorCode::DatabaseNotFound);
    const NO_FILE: Outcome = Refused(ErrorCode::MediaNotFound);
    let table = |method: Method, rest: &str| {
        let path = format!("{}{rest}", world.db.path("t"));
        Request::new(method, path, 200, NO_DATABASE)
    };
    let library = |method: Method, path: &str, foreign| Request::new(method, path, 200, foreign);
    let sql = |query: &str| {
        let body = json!({"query": query, "database": world.db.name});
        Request::new(Method::POST, "/api/v1/sql", 200, NO_DATABASE).json(&body)
    };
    let batch = |method: &str, body: Value| {
        let path = world.db.path("t");
        let operation = match body {
            Value::Null => json!({"method": method, "path": path}),
            body => json!({"method": method, "path": path, "body": body}),
        };
        Request::new(Method::POST, "/api/v1/batch", 200, NO_DATABASE).json(&json!({"operations": [operation]}))
    };
    let resumed =
        |method: Method, done| Request::new(method, &world.upload, done, NO_FILE).header("tus-resumable", "1.0.0");
    let own = |method: Method, path: &str| Request::new(method, path, 200, Done(200));
    let role =
        |method: Method, name: &str, foreign| Request::new(method, format!("/api/v1/roles/{name}"), 200, foreign);
    let no_record = Refused(ErrorCode::RecordNotFound);
    let by_id = |id: u32| json!([{"key": "id", "value": id}]);
    let many = json!({"updateKeyValues": by_id(1), "data": {"name": "z"}});
    let name = json!({"name": "z"});
    match action {
        Action::Read => (
            Access::Read,
            vec![table(Method::GET, ""), table(Method::HEAD, ""), table(Method::GET, "?limit=1&order[field]=id")],
        ),
        Action::Query => (Access::Read, vec![table(Method::POST, "/query").json(&json!({"limit": 1}))]),
        Action::ReadOne => (Access::Read, vec![table(Method::GET, "/1"), table(Method::HEAD, "/1")]),
        Action::Explain => (
            Access::Full,
            vec![
                table(Method::GET, "?explain=true"),
                table(Method::GET, "/1?explain=true"),
                table(Method::POST, "/query").json(&json!({"explain": true})),
            ],
        ),
        Action::Insert => (
            Access::Full,
            vec![
                table(Method::POST, "").json(&name),
                table(Method::POST, "").json(&json!({})),
                table(Method::POST, "").json(&json!({"batchData": [name]})),
            ],
        ),
        Action::Update => (
            Access::Full,
            vec![
                table(Method::PUT, "/1").json(&name),
                table(Method::PATCH, "/1").json(&name),
                table(Method::PUT, "").json(&many),
                table(Method::PATCH, "").json(&many),
            ],
        ),
        Action::Delete => (
            Access::Full,
            vec![
                table(Method::DELETE, "/2"),
                table(Method::DELETE, "").json(&json!({"deleteKeyValues": by_id(3)})),
                table(Method::DELETE, &format!("?{}", option("deleteKeyValues", &by_id(4)))),
            ],
        ),
        Action::Describe => (Access::Read, vec![table(Method::GET, "/_schema"), table(Method::OPTIONS, "")]),
        // A key of another project lists that project's databases.
        Action::ListDatabases => {
            let list = |method| Request::new(method, "/api/v1/crud", 200, Done(200));
            (Access::Read, vec![list(Method::GET), list(Method::HEAD)])
        }
        Action::ListTables => {
            let path = format!("/api/v1/crud/{}", world.db.name);
            let list = |method| Request::new(method, &path, 200, NO_DATABASE);
            (Access::Read, vec![list(Method::GET), list(Method::HEAD)])
        }
        Action::DescribeApi => {
            let get = |form: &str| {
                Request::new(Method::GET, format!("/api/v1/{form}?database={}", world.db.name), 200, NO_DATABASE)
            };
            (Access::Read, vec![get("openapi.json"), get("types.ts")])
        }
        Action::Follow => {
            let path = world.db.path("t").replacen("/crud/", "/changes/", 1);
            let subscription = json!({"database": world.db.name, "table": "t"});
            let several = Request::new(Method::POST, "/api/v1/changes", 200, NO_DATABASE);
            (
                Access::Read,
                vec![
                    Request::new(Method::GET, path, 200, NO_DATABASE),
                    several.json(&json!({"subscriptions": [subscription]})),
                ],
            )
        }
        Action::Sql => (
            Access::Full,
            vec![
                sql("SELECT 1"),
                sql("CREATE TABLE IF NOT EXISTS u (id INT)"),
                // The call names no database, and the other project has none.
                Request::new(Method::POST, "/api/v1/sql", 200, Done(200)).json(&json!({"query": "SELECT 1"})),
            ],
        ),
        Action::Schema => {
            let change = |query: &str| {
                let body = json!({"database": world.db.name, "table": "t", "alter": {"comment": "x"}});
                Request::new(Method::POST, format!("/api/v1/schema{query}"), 200, NO_DATABASE).json(&body)
            };
            let show = |rest: &str| {
                Request::new(Method::GET, format!("/api/v1/schema/{}{rest}", world.db.name), 200, NO_DATABASE)
            };
            (Access::Full, vec![change(""), change("?dryRun=true"), show(""), show("/t")])
        }
        Action::Batch => (Access::Full, vec![batch("POST", name), batch("GET", Value::Null)]),
        Action::Mcp => {
            let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
            let accept = "application/json, text/event-stream";
            let request = Request::new(Method::POST, "/mcp", 200, Done(200));
            (Access::Read, vec![request.header("accept", accept).json(&ping)])
        }
        Action::Upload => (
            Access::Full,
            vec![library(Method::POST, MEDIA, Done(200)).json(&world.shelf.body(
                "new.txt",
                "file",
                "text/plain",
                b"x",
            ))],
        ),
        // A key of another project lists that project's files.
        Action::ListMedia => (Access::Read, vec![library(Method::GET, MEDIA, Done(200))]),
        Action::DescribeMedia => (Access::Read, vec![library(Method::GET, &world.files[0], NO_FILE)]),
        Action::SignMedia => (
            Access::Full,
            vec![library(Method::POST, &format!("{}/sign", world.files[0]), NO_FILE).json(&json!({"expiresIn": 60}))],
        ),
        Action::DeleteMedia => (Access::Full, vec![library(Method::DELETE, &world.files[1], NO_FILE)]),
        Action::DescribeUploads => (Access::Read, vec![Request::new(Method::OPTIONS, TUS, 204, Done(204))]),
        Action::BeginUpload => (Access::Full, vec![creation(&world.shelf, "other.txt")]),
        Action::ResumeUpload => {
            let mut part = resumed(Method::PATCH, 204)
                .header("upload-offset", "0")
                .header("content-type", "application/offset+octet-stream");
            part.body = Some(b"x".to_vec());
            (Access::Full, vec![resumed(Method::HEAD, 200), part, resumed(Method::DELETE, 204)])
        }
        // A key of another project succeeds too, since it manages its own project.
        Action::ListKeys => (Access::Full, vec![own(Method::GET, "/api/v1/keys"), own(Method::HEAD, "/api/v1/keys")]),
        Action::CreateKey => {
            let key = json!({"access": "read", "expires": "1h"});
            (Access::Full, vec![own(Method::POST, "/api/v1/keys").json(&key)])
        }
        Action::RevokeKey => {
            let path = format!("/api/v1/keys/{}", world.key.id);
            (Access::Full, vec![Request::new(Method::DELETE, path, 200, no_record)])
        }
        Action::ListRoles => {
            let [kept, ..] = &world.roles;
            (Access::Full, vec![own(Method::GET, "/api/v1/roles"), role(Method::GET, kept, no_record)])
        }
        Action::SetRole => {
            (Access::Full, vec![role(Method::PUT, &world.roles[1], Done(200)).json(&json!({"tables": {}}))])
        }
        Action::RemoveRole => (Access::Full, vec![role(Method::DELETE, &world.roles[2], no_record)]),
        Action::ListIssuers => {
            let one = Request::new(Method::GET, world.issuer_path(), 200, no_record);
            (Access::Full, vec![own(Method::GET, "/api/v1/issuers"), one])
        }
        // The other project's issuer is refused.
        Action::ManageIssuer => {
            let path = world.issuer_path();
            let set = Request::new(Method::PUT, path, 200, Refused(ErrorCode::PermissionDenied));
            (Access::Full, vec![set.json(&world.issuer_definition())])
        }
        Action::ListWebhooks => {
            let path = format!("/api/v1/webhooks/{}", world.webhook);
            let deliveries = format!("{path}/deliveries");
            (
                Access::Full,
                vec![
                    own(Method::GET, "/api/v1/webhooks"),
                    Request::new(Method::GET, path, 200, no_record),
                    Request::new(Method::GET, deliveries, 200, no_record),
                ],
            )
        }
        Action::ManageWebhook => {
            let path = format!("/api/v1/webhooks/{}", world.webhook);
            let secret = format!("{path}/secret");
            let set = Request::new(Method::PUT, path, 200, no_record).json(&world.webhook_definition());
            (Access::Full, vec![set, Request::new(Method::POST, secret, 200, no_record)])
        }
        Action::Observe => {
            (Access::Full, vec![own(Method::GET, "/api/v1/status"), own(Method::GET, "/api/v1/requests")])
        }
    }
}

async fn every_action_answers_every_kind_of_key_as_the_matrix_says(host: Host) {
    let world = World::new(host).await;
    let before = world.state().await;
    let mut wrong = Vec::new();
    for key in Key::all(host).await {
        if matches!(key.kind, Kind::Own(_)) {
            assert_eq!(world.state().await, before, "before {} comes", key.name);
        }
        for &action in Action::ALL {
            let (needs, requests) = row(action, &world);
            for request in requests {
                assert_eq!(request.action(), action, "{}", request.path);
                let expected = match key.kind {
                    Kind::Nobody(code) => Refused(code),
                    Kind::Own(Access::Read) | Kind::Foreign(Access::Read) if needs == Access::Full => {
                        Refused(ErrorCode::FullAccessRequired)
                    }
                    Kind::Own(_) => request.own,
                    Kind::Foreign(_) => request.foreign,
                };
                let answer = request.call(host, key.token.as_deref()).send().await;
                if !expected.is(&answer) {
                    let name = key.name;
                    wrong.push(format!("{action:?} with {name}: expected {expected:?}\n    {answer}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn what_needs_no_key_answers_every_kind_of_key_alike(host: Host) {
    let preflight = Request::new(Method::OPTIONS, "/api/v1/crud/demo/posts", 204, Done(204))
        .header("origin", "https://example.com")
        .header("access-control-request-method", "GET");
    let get = |path: &str, outcome| Request { own: outcome, ..Request::new(Method::GET, path, 200, outcome) };
    let requests = [
        preflight,
        get("/healthz", Done(200)),
        get("/readyz", Done(200)),
        get("/api/v1/nothing", Refused(ErrorCode::RouteNotFound)),
        get("/api/v2/crud/a/b", Refused(ErrorCode::RouteNotFound)),
    ];
    for key in Key::all(host).await {
        for request in &requests {
            let answer = request.call(host, key.token.as_deref()).send().await;
            assert!(request.own.is(&answer), "{}: {answer}", key.name);
        }
    }
}
