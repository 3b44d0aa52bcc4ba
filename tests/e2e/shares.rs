//! Tests resources that all projects share: each project has a limited share, so that the rest is left to others.

use crate::case::eventually;
use crate::faults;
use crate::host::{Call, Host};
use crate::raw::{self, Wire};
use crate::service::{Edge, Service, shared};
use crate::streaming::thread_of;
use crate::test_db::{TestDb, unique};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

/// Maximum concurrent streams of a project: half of the connections of one account.
const STREAMS_OF_A_PROJECT: usize = 4;

/// A view with so many rows that they fill every buffer, and that the read doesn't end within the test.
const ENDLESS: &str = "CREATE VIEW endless AS SELECT a.seq AS id, REPEAT('y', 500) AS y \
     FROM seq_1_to_1000000 a JOIN seq_1_to_1000000 b";

cases! {
    Both: [
        only_tables_and_views_are_tables,
        streams_leave_half_of_the_connections_to_other_reads,
        a_description_that_is_too_large_is_refused_by_name,
        a_stream_ends_when_its_key_is_revoked,
    ],
    Own: [
        a_stream_ends_when_its_time_is_over,
        reads_by_read_keys_do_not_wait_for_statements_of_full_keys,
        one_caller_leaves_connections_and_streams_to_others,
        a_description_stays_in_use_while_it_can_not_be_read_again,
        a_project_has_half_of_the_upload_slots_with_all_its_keys,
        a_json_body_may_take_long_but_neither_pause_nor_drip,
        roles_that_are_checked_slowly_leave_the_management_of_keys_to_others,
    ],
}

struct Tenant {
    host: String,
    db: String,
    full: String,
    read: String,
    read_id: String,
}

impl Tenant {
    async fn new(service: &Service, host: &str, statements: &[&str]) -> Self {
        let project = unique("tenant");
        service.create_project(&project);
        let read = service.create_key(&project, "read", &[]);
        let tenant = Self {
            host: host.to_owned(),
            db: format!("{project}_d"),
            full: service.create_key(&project, "full", &[]).token,
            read: read.token,
            read_id: read.id,
        };
        let create = json!({"query": format!("CREATE DATABASE {}", tenant.db)});
        tenant.post("/api/v1/sql", &create).send().await.payload();
        for statement in statements {
            tenant.sql(statement).send().await.payload();
        }
        tenant
    }

    fn post(&self, path: &str, body: &Value) -> Call {
        Call::new(&self.host, Method::POST, path).key(&self.full).json(body)
    }

    fn sql(&self, query: &str) -> Call {
        self.post("/api/v1/sql", &json!({"query": query, "database": self.db}))
    }

    fn get(&self, rest: &str) -> Call {
        let path = format!("/api/v1/crud/{}/{rest}", self.db);
        Call::new(&self.host, Method::GET, &path).key(&self.read)
    }

    /// Starts a streamed read, without reading its body.
    async fn stream(&self, rest: &str) -> Response {
        let response = self.get(rest).request().send().await.expect("a head");
        assert_eq!(response.status(), StatusCode::OK);
        response
    }
}

async fn only_tables_and_views_are_tables(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "CREATE TABLE versioned (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
            "CREATE TABLE parted (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
            "CREATE VIEW v AS SELECT seq AS id FROM seq_1_to_3",
            "CREATE SEQUENCE counted",
        ],
    )
    .await;
    for table in ["t", "versioned", "parted", "v"] {
        db.get(table).await.payload();
    }
    let others = [
        "seq_1_to_5",
        "seq_1_to_18446744073709551614",
        "seq_1_to_100_step_3",
        "counted",
        "parted%23P%23p0",
        "%23mysql50%23t",
        "%23mysql50%23parted%23P%23p0",
        "%23mysql50%23..%2Fmysql%2Fuser",
        "information_schema.TABLES",
    ];
    for name in others {
        for rest in [name, &format!("{name}/1"), &format!("{name}/_schema")] {
            db.get(rest).await.refused(ErrorCode::TableNotFound);
        }
        db.post(name, &json!({})).await.refused(ErrorCode::TableNotFound);
        db.delete(&format!("{name}/1")).await.refused(ErrorCode::TableNotFound);
    }
    let join = json!([{"tableName": "seq_1_to_9", "joinType": "JOIN", "match": {"source": "id", "target": "seq"}}]);
    db.get(&format!("t?{}", crate::host::option("join", &join))).await.refused(ErrorCode::TableNotFound);
}

async fn a_description_that_is_too_large_is_refused_by_name(host: Host) {
    // MariaDB takes at most 64 KiB of members.
    let letter = |n: u32| char::from_digit(n % 36, 36).unwrap();
    let members: Vec<String> =
        (0..12_000).map(|n| format!("'{}{}{}'", letter(n / 1_296), letter(n / 36), letter(n))).collect();
    let table = format!("CREATE TABLE t (id INT PRIMARY KEY, state ENUM ({}))", members.join(","));
    let columns: Vec<String> = (0..1_000).map(|n| format!("state AS c{n}")).collect();
    let view = format!("CREATE VIEW wide AS SELECT {} FROM t", columns.join(","));
    let tenant = Tenant::new(shared(), host.url(), &[&table, &view]).await;
    for rest in ["wide?limit=1", "wide/_schema"] {
        let answer = tenant.get(rest).send().await;
        let error = answer.refused(ErrorCode::SqlError);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("\"wide\"") && message.contains("4 MiB"), "{message}");
    }
    assert_eq!(tenant.get("t").send().await.payload(), json!([]));
}

async fn streams_leave_half_of_the_connections_to_other_reads(host: Host) {
    let statements = [ENDLESS, "CREATE TABLE t (id INT PRIMARY KEY)"];
    let greedy = Tenant::new(shared(), host.url(), &statements).await;
    let other = Tenant::new(shared(), host.url(), &statements).await;
    let streams: Vec<_> = join_all((0..STREAMS_OF_A_PROJECT).map(|_| greedy.stream("endless"))).await;
    for beyond in ["endless", "endless?limit=1000000"] {
        let answer = greedy.get(beyond).send().await;
        let error = answer.refused(ErrorCode::RateLimited);
        assert!(error["message"].as_str().unwrap().contains("streamed"));
    }
    // Reads that are not streamed, the accounts of other keys, and other projects still get connections.
    for answer in join_all((0..30).map(|_| greedy.get("t").send())).await {
        answer.payload();
    }
    let full = greedy.get("endless").key(&greedy.full).request();
    assert_eq!(full.send().await.unwrap().status(), StatusCode::OK);
    drop(other.stream("endless").await);
    drop(streams);
    eventually("the share is given back", SOON, || async {
        let response = greedy.get("endless").request().send().await.unwrap();
        (response.status() == StatusCode::OK).then_some(())
    })
    .await;
}

async fn a_stream_ends_when_its_key_is_revoked(host: Host) {
    let tenant = Tenant::new(shared(), host.url(), &[ENDLESS]).await;
    // The first stream is never read, the second one all the time.
    let unread = tenant.stream("endless").await;
    let read = tenant.stream("endless").await;
    let reading = tokio::spawn(read.bytes_stream().for_each(|_| async {}));
    assert!(thread_of(&tenant.db).is_some());
    shared().cli_ok(&["key", "revoke", &tenant.read_id]);
    eventually("both statements end", SOON, || async { thread_of(&tenant.db).is_none().then_some(()) }).await;
    reading.await.unwrap();
    drop(unread);
}

async fn a_stream_ends_when_its_time_is_over(_: Host) {
    let service = faults::start(Edge::Without, &[("SELKIE_STREAM_TIMEOUT", "1s")]).await;
    let tenant = Tenant::new(&service, &service.origin, &[ENDLESS]).await;
    for format in ["application/json", "text/csv", "application/x-ndjson"] {
        let call = tenant.get("endless").header("accept", format);
        let mut chunks = call.request().send().await.unwrap().bytes_stream();
        let mut is_cut = false;
        while let Some(chunk) = chunks.next().await {
            is_cut = chunk.is_err();
        }
        assert!(is_cut, "{format} came to a proper end");
    }
    faults::stop(service).await;
}

async fn reads_by_read_keys_do_not_wait_for_statements_of_full_keys(_: Host) {
    let settings = &[("SELKIE_POOL_SIZE", "2"), ("SELKIE_POOL_WAIT_TIMEOUT", "1s")];
    let service = faults::start(Edge::Without, settings).await;
    let tables = ["CREATE TABLE t (id INT PRIMARY KEY)"; 1];
    let tenant = Tenant::new(&service, &service.origin, &tables).await;
    let busy: Vec<_> = (0..2).map(|_| tokio::spawn(tenant.sql("SELECT SLEEP(29) AS busy").attempt())).collect();
    eventually("all connections of the account are in use", SOON, || async {
        let running = service
            .root_sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(29) AS busy'");
        (running.unwrap().trim() == "2").then_some(())
    })
    .await;
    tenant.sql("SELECT 1 AS v").send().await.refused(ErrorCode::Overloaded);
    assert_eq!(tenant.get("t").send().await.payload(), json!([]));
    tenant.get("t/_schema").send().await.payload();
    tenant.get("u").send().await.refused(ErrorCode::TableNotFound);
    for statement in busy {
        statement.abort();
    }
    faults::stop(service).await;
}

async fn one_caller_leaves_connections_and_streams_to_others(_: Host) {
    let settings = &[("SELKIE_POOL_SIZE", "2"), ("SELKIE_POOL_WAIT_TIMEOUT", "1s")];
    let service = faults::start(Edge::Without, settings).await;
    let statements =
        [ENDLESS, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE VIEW slow AS SELECT SLEEP(28) AS seconds"];
    let tenant = Tenant::new(&service, &service.origin, &statements).await;
    let other = service.create_key(tenant.db.trim_end_matches("_d"), "read", &[]).token;
    let stream = tenant.stream("endless").await;
    tenant.get("endless").send().await.refused(ErrorCode::RateLimited);
    let beside = tenant.get("endless").key(&other).request().send().await.unwrap();
    assert_eq!(beside.status(), StatusCode::OK);
    drop((stream, beside));
    let busy: Vec<_> = (0..6).map(|_| tokio::spawn(tenant.get("slow").attempt())).collect();
    eventually("the caller has all connections of its share", SOON, || async {
        let running = service.root_sql(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER LIKE 'selkie-%' AND INFO LIKE '%`slow`%'",
        );
        (running.unwrap().trim() == "2").then_some(())
    })
    .await;
    tenant.get("t").send().await.refused(ErrorCode::Overloaded);
    assert_eq!(tenant.get("t").key(&other).send().await.payload(), json!([]));
    for read in busy {
        read.abort();
    }
    faults::stop(service).await;
}

async fn a_description_stays_in_use_while_it_can_not_be_read_again(_: Host) {
    /// Longer than the time for which a cached schema is used without asking MariaDB.
    const LONG_ENOUGH: Duration = Duration::from_secs(6);
    let service = faults::start(Edge::Without, &[]).await;
    let tables = ["CREATE TABLE t (id INT PRIMARY KEY)"];
    let tenant = Tenant::new(&service, &service.origin, &tables).await;
    tenant.get("t").send().await.payload();
    let user = format!("'selkie-{}-rw'@'localhost'", tenant.db.trim_end_matches("_d"));
    let root = |statements: String| service.root_sql(&statements).unwrap();
    root(format!("ALTER USER {user} ACCOUNT LOCK; KILL USER {user};"));
    let began = Instant::now();
    while began.elapsed() < LONG_ENOUGH {
        assert_eq!(tenant.get("t").send().await.payload(), json!([]));
    }
    root(format!("ALTER USER {user} ACCOUNT UNLOCK; ALTER TABLE {}.t ADD COLUMN late INT;", tenant.db));
    eventually("the description is read again", SOON, || async {
        let schema = tenant.get("t/_schema").send().await.payload();
        (schema["schema"].as_array().map(Vec::len) == Some(2)).then_some(())
    })
    .await;
    faults::stop(service).await;
}

async fn a_project_has_half_of_the_upload_slots_with_all_its_keys(_: Host) {
    /// Must equal `UPLOADS_PER_PROJECT_MAX_COUNT`.
    const UPLOADS_OF_A_PROJECT: usize = 128;
    let service = faults::start(Edge::Without, &[]).await;
    let greedy = Tenant::new(&service, &service.origin, &[]).await;
    let other = Tenant::new(&service, &service.origin, &[]).await;
    let project = greedy.db.trim_end_matches("_d");
    let second_key = service.create_key(project, "full", &[]).token;
    let file = json!({"type": "file", "update": true,
        "media": [{"name": "a.txt", "base64": "data:text/plain;base64,aGk="}]});
    let begin = async |key: &str| {
        let headers = format!("authorization: {key}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n");
        let mut wire = Wire::open(&service.origin).await;
        wire.send(&raw::request("POST", b"/api/v1/media", &headers, b"")).await;
        wire
    };
    let mut wires = Vec::new();
    for n in 0..UPLOADS_OF_A_PROJECT {
        wires.push(begin([&greedy.full, &second_key][n % 2]).await);
    }
    let upload = |tenant: &Tenant| tenant.post("/api/v1/media", &file).send();
    // An upload of this loop may take the slot of an upload that has not begun yet. Then another pending upload is
    // started.
    while upload(&greedy).await.code() != "rate_limited" {
        wires.push(begin(&greedy.full).await);
        assert!(wires.len() < 2 * UPLOADS_OF_A_PROJECT, "no share is kept");
    }
    upload(&other).await.payload();
    drop(wires);
    eventually("the share is given back", SOON, || async { (upload(&greedy).await.code() == "ok").then_some(()) })
        .await;
    faults::stop(service).await;
}

async fn a_json_body_may_take_long_but_neither_pause_nor_drip(_: Host) {
    /// The pause between two pieces of a body. Far shorter than the allowed pause.
    const PAUSE: Duration = Duration::from_millis(250);
    /// The number of pieces. Together they take longer than the allowed pause.
    const PIECES: usize = 16;
    let service = faults::start(Edge::Without, &[("SELKIE_BODY_READ_TIMEOUT", "3s")]).await;
    let query = json!({"query": "SELECT 1 AS v"}).to_string();
    for (piece_bytes, status, message) in [(2048, 200, ""), (1, 400, "1024 bytes a second")] {
        let length = PIECES * piece_bytes + query.len();
        let headers = format!(
            "authorization: {}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n",
            service.full_key
        );
        let mut wire = Wire::open(&service.origin).await;
        wire.send(&raw::request("POST", b"/api/v1/sql", &headers, b"")).await;
        for _ in 0..PIECES {
            tokio::time::sleep(PAUSE).await;
            wire.send(&vec![b' '; piece_bytes]).await;
        }
        wire.send(query.as_bytes()).await;
        let answer = wire.answer().await.expect("an answer");
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, status, "{body}");
        assert!(body.contains(message), "{body}");
    }
    faults::stop(service).await;
}

async fn roles_that_are_checked_slowly_leave_the_management_of_keys_to_others(_: Host) {
    let service = faults::start(Edge::Without, &[("SELKIE_POOL_WAIT_TIMEOUT", "1s")]).await;
    let tables = ["CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY)"];
    let mut tenants = Vec::new();
    for _ in 0..3 {
        tenants.push(Tenant::new(&service, &service.origin, &tables).await);
    }
    let (other, busy) = tenants.split_last().expect("tenants");
    // Each RENAME holds an exclusive lock of `a` while it waits for `b`, so that MariaDB can't describe `a`.
    let read: String = busy.iter().map(|tenant| format!("SELECT * FROM {}.b; ", tenant.db)).collect();
    let renames = busy.iter().map(|Tenant { db, .. }| format!("RENAME TABLE {db}.a TO {db}.a2, {db}.b TO {db}.b2"));
    let are = |state: &'static str, user: &'static str, count: usize| {
        let waiting = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = '{state}' AND USER LIKE '{user}'"
        );
        let service = &service;
        eventually("statements wait", SOON, move || {
            let found = service.root_sql(&waiting).unwrap().trim() == count.to_string();
            async move { found.then_some(()) }
        })
    };
    let mut sessions = vec![service.root_session(&format!("BEGIN; {read}DO SLEEP(600)"))];
    are("User sleep", "root", 1).await;
    sessions.extend(renames.map(|rename| service.root_session(&rename)));
    are("Waiting for table metadata lock", "root", busy.len()).await;
    let set = |tenant: &Tenant| {
        let role = json!({"tables": {format!("{}.a", tenant.db): {"read": true}}});
        tokio::spawn(
            Call::new(&tenant.host, Method::PUT, "/api/v1/roles/member").key(&tenant.full).json(&role).attempt(),
        )
    };
    let checks: Vec<_> = busy.iter().map(set).collect();
    are("Waiting for table metadata lock", "selkie-%", busy.len()).await;
    other.post("/api/v1/keys", &json!({"access": "read"})).send().await.payload();
    assert!(checks.iter().all(|check| !check.is_finished()));
    for check in checks {
        check.abort();
    }
    for mut session in sessions {
        let _ = (session.kill(), session.wait());
    }
    faults::stop(service).await;
}
