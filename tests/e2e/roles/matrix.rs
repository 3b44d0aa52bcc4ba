//! The matrix of roles: every operation on records × allowed, denied by action, by table, by field.
//!
//! `requests` matches every `Action`, so an action without a row doesn't compile. `auth_matrix` tests the actions that
//! concern no table.

use super::{Caller, role_of};
use crate::host::{Answer, Call, Host, option};
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use shared::policy::Action;

cases! {
    Both: [
        every_operation_is_answered_as_the_role_says,
        a_denied_table_is_answered_like_a_missing_one,
        a_denied_database_is_answered_like_a_missing_one,
        the_methods_of_a_table_are_those_that_the_role_allows,
        a_role_that_only_reads_changes_nothing_and_one_that_only_writes_reads_nothing,
        the_most_specific_rule_holds_alone,
    ],
}

const TABLES: &[&str] = &[
    "CREATE TABLE open (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), hidden VARCHAR(40))",
    "INSERT INTO open (name, hidden) VALUES ('a', 'x'), ('b', 'y')",
    "CREATE TABLE dropbox LIKE open",
    "CREATE TABLE gallery LIKE open",
    "CREATE TABLE denied LIKE open",
    "CREATE TABLE unnamed LIKE open",
    "INSERT INTO dropbox SELECT * FROM open",
    "INSERT INTO gallery SELECT * FROM open",
    "INSERT INTO denied SELECT * FROM open",
    "INSERT INTO unnamed SELECT * FROM open",
];

fn caller(db: &TestDb) -> Caller<'_> {
    let visible = json!({"fields": {"omit": ["hidden"]}});
    let rules = [
        ("open", json!({"read": visible, "insert": visible, "update": visible, "delete": true})),
        ("dropbox", json!({"insert": true, "update": true, "delete": true})),
        ("gallery", json!({"read": true})),
        ("denied", json!({})),
    ];
    Caller::new(db, rules, json!({}))
}

#[derive(Clone)]
struct Request {
    method: Method,
    path: String,
    body: Value,
    names_field: bool,
}

impl Request {
    fn call(&self, host: Host) -> Call {
        let call = host.call(self.method.clone(), &self.path);
        if self.body.is_null() { call } else { call.json(&self.body) }
    }

    fn operation(&self) -> Value {
        let mut operation = json!({"method": self.method.as_str(), "path": self.path});
        if !self.body.is_null() {
            operation["body"] = self.body.clone();
        }
        operation
    }

    fn in_batch(&self) -> Self {
        let body = json!({"operations": [self.operation()]});
        Self { method: Method::POST, path: "/api/v1/batch".to_owned(), body, names_field: self.names_field }
    }
}

/// What a role may allow for the requests of an action.
enum Row {
    /// The table's rule decides. The table with this name has a rule that denies only this action.
    ByTable(&'static str, Vec<Request>),
    Never(Vec<Request>),
    /// The action concerns no table.
    NoTable,
}

fn requests(action: Action, db: &TestDb, table: &str, field: &str) -> Row {
    let request = |method, rest: &str, body| {
        let path = format!("{}{rest}", db.path(table));
        Request { method, path, body, names_field: true }
    };
    let without_field = |method, rest: &str, body| Request { names_field: false, ..request(method, rest, body) };
    let condition = json!({field: "b"});
    match action {
        Action::Read => Row::ByTable(
            "dropbox",
            vec![
                request(Method::GET, &format!("?{}", option("query", &condition)), Value::Null),
                request(Method::GET, &format!("?selectFields={field}"), Value::Null),
                request(Method::GET, &format!("?order[field]={field}&limit=1"), Value::Null),
                without_field(Method::GET, "", Value::Null),
            ],
        ),
        Action::Query => Row::ByTable(
            "dropbox",
            vec![
                request(Method::POST, "/query", json!({"query": condition})),
                without_field(Method::POST, "/query", json!({})),
            ],
        ),
        Action::ReadOne => Row::ByTable(
            "dropbox",
            vec![
                request(Method::GET, &format!("/1?selectFields={field}"), Value::Null),
                without_field(Method::GET, "/1", Value::Null),
            ],
        ),
        Action::Insert => Row::ByTable(
            "gallery",
            vec![
                request(Method::POST, "", json!({field: "c"})),
                request(Method::POST, "", json!({"batchData": [{field: "c"}, {}]})),
                request(Method::POST, "?onConflict=update", json!({"id": 1, field: "c"})),
                request(Method::POST, "?onConflict=ignore", json!({"id": 1, field: "c"})),
                without_field(Method::POST, "", json!({})),
            ],
        ),
        Action::Update => Row::ByTable(
            "gallery",
            vec![
                request(Method::PUT, "/1", json!({field: "c"})),
                request(Method::PATCH, "/1", json!({field: "c"})),
                request(Method::PUT, "", json!({"updateKeyValues": [{"key": "id", "value": 2}], "data": {field: "c"}})),
                request(
                    Method::PATCH,
                    "",
                    json!({"updateKeyValues": [{"key": field, "value": "nobody"}], "data": {"name": "c"}}),
                ),
                without_field(Method::PUT, "/77", json!({"name": "c"})),
            ],
        ),
        Action::Delete => {
            let nobody = json!([{"key": field, "value": "nobody"}]);
            Row::ByTable(
                "gallery",
                vec![
                    request(Method::DELETE, "", json!({"deleteKeyValues": nobody})),
                    request(Method::DELETE, &format!("?{}", option("deleteKeyValues", &nobody)), Value::Null),
                    without_field(Method::DELETE, "/77", Value::Null),
                ],
            )
        }
        Action::Describe => Row::ByTable(
            "dropbox",
            vec![without_field(Method::GET, "/_schema", Value::Null), without_field(Method::OPTIONS, "", Value::Null)],
        ),
        Action::Follow => {
            let changes = |rest: &str, names_field| {
                let path = format!("{}{rest}", db.path(table).replacen("/crud/", "/changes/", 1));
                Request { method: Method::GET, path, body: Value::Null, names_field }
            };
            Row::ByTable(
                "dropbox",
                vec![
                    changes(&format!("?{}", option("query", &condition)), true),
                    changes(&format!("?selectFields={field}"), true),
                    changes("", false),
                ],
            )
        }
        Action::Explain => Row::Never(vec![
            request(Method::GET, &format!("?explain=true&selectFields={field}"), Value::Null),
            request(Method::GET, &format!("/1?explain=true&selectFields={field}"), Value::Null),
            request(Method::POST, "/query", json!({"explain": true, "query": condition})),
        ]),
        Action::Sql => {
            let query = format!("SELECT `{field}` FROM `{}`.`{table}`", db.name);
            let body = json!({"query": query});
            Row::Never(vec![Request { method: Method::POST, path: "/api/v1/sql".to_owned(), body, names_field: true }])
        }
        Action::Schema => {
            let body = json!({"database": db.name, "table": table, "alter": {"dropColumns": [field]}});
            let change = |query: &str| Request {
                method: Method::POST,
                path: format!("/api/v1/schema{query}"),
                body: body.clone(),
                names_field: true,
            };
            let show = |path| Request { method: Method::GET, path, body: Value::Null, names_field: false };
            let of_database = format!("/api/v1/schema/{}", db.name);
            Row::Never(vec![
                change(""),
                change("?dryRun=true"),
                show(format!("{of_database}/{table}")),
                show(of_database),
            ])
        }
        Action::ListKeys
        | Action::CreateKey
        | Action::RevokeKey
        | Action::ListRoles
        | Action::SetRole
        | Action::RemoveRole
        | Action::ListIssuers
        | Action::ManageIssuer
        | Action::ListWebhooks
        | Action::ManageWebhook
        | Action::Observe => {
            let managed = [
                (Method::GET, "keys"),
                (Method::POST, "keys"),
                (Method::DELETE, "keys/01936f2a-7b3c-7def-8abc-0123456789ab"),
                (Method::GET, "roles"),
                (Method::GET, "roles/author"),
                (Method::PUT, "roles/author"),
                (Method::DELETE, "roles/author"),
                (Method::GET, "issuers"),
                (Method::GET, "issuers/https%3A%2F%2Fid.example"),
                (Method::PUT, "issuers/https%3A%2F%2Fid.example"),
                (Method::DELETE, "issuers/https%3A%2F%2Fid.example"),
                (Method::GET, "webhooks"),
                (Method::POST, "webhooks"),
                (Method::PUT, "webhooks/a"),
                (Method::DELETE, "webhooks/a"),
                (Method::GET, "webhooks/a/deliveries"),
                (Method::POST, "webhooks/a/test"),
                (Method::GET, "status"),
                (Method::GET, "requests"),
            ];
            let request = |(method, path)| Request {
                method,
                path: format!("/api/v1/{path}"),
                body: json!({}),
                names_field: false,
            };
            Row::Never(managed.into_iter().map(request).collect())
        }
        // Each request is also sent in a batch.
        Action::Batch => Row::NoTable,
        // Each API request of a message is authorized separately, which the module `mcp` tests.
        Action::Mcp => Row::NoTable,
        // The module `listing` tests the lists that a role sees.
        Action::ListDatabases
        | Action::ListTables
        | Action::DescribeApi
        | Action::Upload
        | Action::ListMedia
        | Action::DescribeMedia
        | Action::SignMedia
        | Action::DeleteMedia
        | Action::DescribeUploads
        | Action::BeginUpload
        | Action::ResumeUpload => Row::NoTable,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denied {
    Nothing,
    Action,
    Table,
    Field,
}

impl Denied {
    const ALL: [Self; 4] = [Self::Nothing, Self::Action, Self::Table, Self::Field];

    fn code(self) -> &'static str {
        match self {
            Self::Nothing => "ok",
            Self::Action => ErrorCode::RoleForbids.as_str(),
            Self::Table => ErrorCode::TableNotFound.as_str(),
            Self::Field => ErrorCode::UnknownField.as_str(),
        }
    }
}

fn row(action: Action, denied: Denied, db: &TestDb) -> Vec<(Request, &'static str)> {
    let by_table = |table: &str, field: &str| requests(action, db, table, field);
    let denying = match by_table("open", "name") {
        Row::ByTable(denying, _) => denying,
        Row::Never(_) => "gallery",
        Row::NoTable => return Vec::new(),
    };
    let row = match denied {
        Denied::Nothing => by_table("open", "name"),
        Denied::Action => by_table(denying, "name"),
        Denied::Table => by_table("denied", "name"),
        Denied::Field => by_table("open", "hidden"),
    };
    match row {
        Row::ByTable(_, requests) => {
            let fitting = requests.into_iter().filter(|request| request.names_field || denied != Denied::Field);
            fitting.map(|request| (request, denied.code())).collect()
        }
        Row::Never(requests) => {
            requests.into_iter().map(|request| (request, ErrorCode::RoleForbids.as_str())).collect()
        }
        Row::NoTable => Vec::new(),
    }
}

async fn every_operation_is_answered_as_the_role_says(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = caller(&db);
    let untouched = ["gallery", "denied", "unnamed"];
    let state = async || {
        let mut state = vec![db.exec("SELECT hidden FROM open WHERE id <= 2 ORDER BY id").await];
        for table in untouched {
            state.push(db.exec(&format!("SELECT * FROM {table} ORDER BY id")).await);
        }
        state
    };
    let before = state().await;
    let mut wrong = Vec::new();
    for &action in Action::ALL {
        for denied in Denied::ALL {
            for (request, expected) in row(action, denied, &db) {
                let mut forms = vec![request.clone()];
                // Only operations on records go into a batch.
                if matches!(
                    action,
                    Action::Read | Action::Query | Action::ReadOne | Action::Insert | Action::Update | Action::Delete
                ) {
                    forms.push(request.in_batch());
                }
                for form in forms {
                    let answer = form.call(host).key(&caller.key).send().await;
                    let code = answer.code();
                    if code != expected {
                        wrong.push(format!("{action:?}, denied {denied:?}: expected {expected}\n    {answer}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(state().await, before, "what is denied was changed");
}

/// Returns the status and error of an answer, without the request's id, and with the name replaced by `…`.
fn shape(answer: &Answer, name: &str) -> (u16, Value) {
    let text = answer.text().replace(name, "…");
    let mut body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {answer}"));
    body["error"]["requestId"].take();
    (answer.status.as_u16(), body)
}

async fn a_denied_table_is_answered_like_a_missing_one(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = caller(&db);
    for &action in Action::ALL {
        let requests_of = |table| match requests(action, &db, table, "name") {
            Row::ByTable(_, requests) | Row::Never(requests) => requests,
            Row::NoTable => Vec::new(),
        };
        let missing = requests_of("missing");
        for denied in ["denied", "unnamed"] {
            for (one, other) in requests_of(denied).into_iter().zip(&missing) {
                let one = one.call(host).key(&caller.key).send().await;
                let other = other.call(host).key(&caller.key).send().await;
                assert_eq!(shape(&one, denied), shape(&other, "missing"), "{action:?}");
            }
        }
    }
    let joined = |table: &str| {
        let join = json!([{"tableName": table, "joinType": "LEFT JOIN", "match": {"source": "id", "target": "id"}}]);
        caller.call(Method::POST, "open/query").json(&json!({"join": join}))
    };
    let missing = joined("missing").send().await;
    missing.refused(ErrorCode::TableNotFound);
    for denied in ["denied", "unnamed"] {
        assert_eq!(shape(&joined(denied).send().await, denied), shape(&missing, "missing"));
    }
    // No hint names a table that the caller may not see.
    for near in ["unname", "denie", "opem"] {
        let answer = caller.get(near).await;
        let error = answer.refused(ErrorCode::TableNotFound);
        assert_eq!(error.get("hint"), None, "{answer}");
    }
}

async fn a_denied_database_is_answered_like_a_missing_one(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let other = TestDb::new(host, TABLES).await;
    let caller = caller(&db);
    let missing = unique("default_none");
    for rest in ["open", "open/1", "open/_schema", "nothing"] {
        let get = |database: &str| host.get(&format!("/api/v1/crud/{database}/{rest}")).key(&caller.key).send();
        let one = get(&other.name).await;
        one.refused(ErrorCode::DatabaseNotFound);
        assert_eq!(shape(&one, &other.name), shape(&get(&missing).await, &missing), "{rest}");
    }
}

async fn the_methods_of_a_table_are_those_that_the_role_allows(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let visible = json!({"fields": {"omit": ["hidden"]}});
    let reads = ["GET", "HEAD", "OPTIONS"];
    for (rule, more) in [
        (json!({"read": visible}), &[][..]),
        (json!({"read": visible, "insert": true}), &["POST"]),
        (json!({"read": visible, "update": {"fields": ["name"]}}), &["PUT", "PATCH"]),
        (json!({"read": visible, "delete": true, "update": false}), &["DELETE"]),
        (json!({"read": true, "insert": true, "update": true, "delete": true}), &["POST", "PUT", "PATCH", "DELETE"]),
    ] {
        let caller = Caller::new(&db, [("open", rule.clone())], json!({}));
        let described = caller.get("open/_schema").await.payload();
        assert_eq!(described["methods"], json!([&reads[..], more].concat()), "{rule}");
        let fields: Vec<_> = described["schema"].as_array().unwrap().iter().map(|field| &field["name"]).collect();
        let shown = if rule["read"] == true { &["id", "name", "hidden"][..] } else { &["id", "name"] };
        assert_eq!(fields, shown, "{rule}");
        let writable = |name: &str| {
            let fields = described["schema"].as_array().unwrap();
            fields.iter().find(|field| field["name"] == name).unwrap()["writable"] == true
        };
        let given = more.contains(&"POST") || more.contains(&"PUT");
        assert_eq!(writable("name"), given, "{rule}");
        let takes_id = rule["insert"] == true;
        assert_eq!(writable("id"), takes_id, "{rule}");
    }
}

async fn a_role_that_only_reads_changes_nothing_and_one_that_only_writes_reads_nothing(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = caller(&db);
    // Without read access to a table, a caller gets no id of its inserts, and its conditions know no field.
    assert_eq!(caller.post("dropbox", &json!({"name": "c"})).await.payload(), Value::Null);
    assert_eq!(caller.post("dropbox", &json!({"batchData": [{}, {}]})).await.payload(), json!([null, null]));
    assert_eq!(caller.post("dropbox?onConflict=update", &json!({"id": 1, "name": "z"})).await.payload(), Value::Null);
    for field in ["id", "name", "hidden", "nothing"] {
        let keys = json!([{"key": field, "value": "a"}]);
        let update = json!({"updateKeyValues": keys, "data": {"name": "d"}});
        caller.put("dropbox", &update).await.refused(ErrorCode::UnknownField);
        let delete = json!({"deleteKeyValues": keys});
        caller.delete_where("dropbox", &delete).await.refused(ErrorCode::UnknownField);
    }
    let get = json!({"method": "GET", "path": db.path("dropbox")});
    caller.batch(&[get]).await.refused(ErrorCode::RoleForbids);
    let insert = json!({"method": "POST", "path": db.path("dropbox"), "body": {"name": "e"}});
    let refers = json!({"method": "POST", "path": db.path("open"), "body": {"name": {"$ref": 0}}});
    caller.batch(&[insert, refers]).await.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT COUNT(*) FROM dropbox").await, 5, "a refused batch inserts nothing");
    for answer in [
        caller.post("gallery", &json!({"name": "c"})).await,
        caller.put("gallery/1", &json!({"name": "c"})).await,
        caller.delete("gallery/1").await,
    ] {
        answer.refused(ErrorCode::RoleForbids);
    }
    assert_eq!(db.value("SELECT GROUP_CONCAT(name ORDER BY id) FROM gallery").await, "a,b");
    // The caller may read all fields, but give only `name` in an insert and only `hidden` in an update.
    let narrow = json!({"read": true, "insert": {"fields": ["name"]}, "update": {"fields": ["hidden"]}});
    let caller = Caller::new(&db, [("open", narrow)], json!({}));
    for (answer, code) in [
        (caller.post("open", &json!({"name": "n"})).await, "ok"),
        (caller.post("open", &json!({"hidden": "n"})).await, "role_forbids"),
        (caller.post("open", &json!({"batchData": [{"name": "n"}, {"id": 70}]})).await, "role_forbids"),
        (caller.put("open/1", &json!({"hidden": "n"})).await, "ok"),
        (caller.put("open/1", &json!({"name": "n"})).await, "role_forbids"),
        (caller.put("open/1", &json!({"hidden": "n", "id": 71})).await, "role_forbids"),
        (caller.post("open?onConflict=update", &json!({"name": "n"})).await, "role_forbids"),
        (caller.delete("open/1").await, "role_forbids"),
    ] {
        assert_eq!(answer.code(), code, "{answer}");
    }
}

async fn the_most_specific_rule_holds_alone(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let database = &db.name;
    let role = json!({"tables": {
        "*": {"read": true, "insert": true},
        format!("{database}.*"): {"read": {"fields": ["id", "name"]}},
        format!("{database}.gallery"): {"read": {"rows": {"name": "b"}}},
        format!("{database}.denied"): {},
    }});
    let caller = Caller::with_role(&db, &super::create_role(&role), json!({}));
    assert_eq!(caller.get("open/1").await.payload(), json!({"id": 1, "name": "a"}));
    caller.post("open", &json!({})).await.refused(ErrorCode::RoleForbids);
    assert_eq!(caller.get("gallery").await.payload(), json!([{"id": 2, "name": "b", "hidden": "y"}]));
    caller.get("denied").await.refused(ErrorCode::TableNotFound);
    let demo = host.get("/api/v1/crud/demo/posts?limit=1").key(&caller.key).send().await;
    assert_eq!(demo.payload().as_array().unwrap().len(), 1);
    for system in ["mysql/user", "information_schema/TABLES", "selkie/api_key", "performance_schema/threads"] {
        let answer = host.get(&format!("/api/v1/crud/{system}")).key(&caller.key).send().await;
        answer.refused(ErrorCode::DatabaseNotFound);
    }
    let other = role_of(&db, [("open", json!({"read": {"fields": []}}))]);
    let nothing = Caller::with_role(&db, &super::create_role(&other), json!({}));
    nothing.get("open/_schema").await.refused(ErrorCode::DatabaseNotFound);
}
