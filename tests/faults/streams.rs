//! Memory and threads of the service during long answers that clients read slowly or not at all. Each case starts its
//! own service.

use crate::case::eventually;
use crate::faults::{get, sql, start, stop};
use crate::host::{Call, Host};
use crate::raw;
use crate::service::{Edge, Service};
use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

cases! {
    Own: [
        a_million_rows_leave_memory_as_it_was,
        records_with_related_ones_leave_memory_as_it_was,
        a_slow_reader_holds_mariadb_back_without_a_thread,
        a_reader_who_takes_nothing_in_time_is_cut_off,
        a_client_without_a_key_who_reads_nothing_is_disconnected,
        answers_that_nobody_reads_count_for_their_caller,
        long_records_are_encoded_a_few_at_a_time,
    ],
}

const MILLION: usize = 1_000_000;
/// Maximum growth of the service's memory, however long its answers are.
const GROWTH_MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Rows of an answer of 20 MB, longer than all buffers between MariaDB and a client.
const FAT_ROWS: usize = 20_000;
const FAT: &str = "CREATE TABLE fat AS SELECT seq AS id, REPEAT('x', 1000) AS body FROM seq_1_to_20000";
const SETTLED_MAX: Duration = Duration::from_secs(20);
const READ_MAX: Duration = Duration::from_secs(60);

async fn a_million_rows_leave_memory_as_it_was(_: Host) {
    let service = start(Edge::Without, &[]).await;
    let million = "CREATE TABLE million AS SELECT seq AS id, CONCAT('label ', MD5(seq)) AS label FROM seq_1_to_1000000";
    sql(&service, million).send().await.payload();
    let path = "/api/v1/crud/demo/million";
    // The first request allocates memory that later ones use again.
    assert_eq!(rows(&service, &format!("{path}?limit=1000")).await, 1_000);
    let process = Process::of(&service);
    let before = process.resident();
    process.forget_peak();
    assert_eq!(rows(&service, path).await, MILLION);
    let grown = process.peak().saturating_sub(before);
    assert!(grown < GROWTH_MAX_BYTES, "grown by {grown} bytes");
    stop(service).await;
}

async fn records_with_related_ones_leave_memory_as_it_was(_: Host) {
    let service = start(Edge::Without, &[]).await;
    for statement in [
        "CREATE TABLE parents (PRIMARY KEY (id)) AS SELECT seq AS id FROM seq_1_to_100000",
        // Two child records for each parent, 60 MB in all.
        "CREATE TABLE children (id INT PRIMARY KEY, parent_id BIGINT UNSIGNED NOT NULL, body TEXT NOT NULL,
           FOREIGN KEY (parent_id) REFERENCES parents (id))
         AS SELECT seq AS id, seq % 100000 + 1 AS parent_id, REPEAT('x', 300) AS body FROM seq_1_to_200000",
    ] {
        sql(&service, statement).send().await.payload();
    }
    let path = "/api/v1/crud/demo/parents?include=children";
    assert_eq!(rows(&service, &format!("{path}&limit=1000")).await, 3_000);
    let process = Process::of(&service);
    let before = process.resident();
    process.forget_peak();
    assert_eq!(rows(&service, path).await, 300_000);
    let grown = process.peak().saturating_sub(before);
    assert!(grown < GROWTH_MAX_BYTES, "grown by {grown} bytes");
    stop(service).await;
}

async fn long_records_are_encoded_a_few_at_a_time(_: Host) {
    const REQUESTS: usize = 30;
    const RECORD_BYTES: usize = 12_000_000;
    const LONG_GROWTH_MAX_BYTES: u64 = 400 * 1024 * 1024;
    let service = start(Edge::Without, &[]).await;
    let long = format!("CREATE TABLE longs (PRIMARY KEY (id)) AS SELECT 1 AS id, REPEAT('x', {RECORD_BYTES}) AS body");
    sql(&service, &long).send().await.payload();
    let process = Process::of(&service);
    let before = process.resident();
    process.forget_peak();
    let reads = (0..REQUESTS).map(|_| async { get(&service, "/api/v1/crud/demo/longs/1").request().send().await });
    let answers = futures_util::future::join_all(reads).await;
    let grown = process.peak().saturating_sub(before);
    // The others are beyond the share of bytes of long answers.
    let whole = answers.iter().flatten().filter(|answer| answer.status() == StatusCode::OK).count();
    assert!(whole > 1, "{whole} answers");
    assert!(grown < LONG_GROWTH_MAX_BYTES, "grown by {grown} bytes");
    stop(service).await;
}

/// Reads an answer and counts its records, whose values contain no braces.
async fn rows(service: &Service, path: &str) -> usize {
    let response = get(service, path).request().send().await.expect("a head");
    let mut chunks = response.bytes_stream();
    let mut braces = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.expect("no cut");
        braces += chunk.iter().filter(|byte| **byte == b'{').count();
    }
    braces - 1
}

async fn a_slow_reader_holds_mariadb_back_without_a_thread(_: Host) {
    const READERS: usize = 4;
    let service = start(Edge::Without, &[("SELKIE_WRITE_TIMEOUT", "2m")]).await;
    sql(&service, FAT).send().await.payload();
    get(&service, "/api/v1/crud/demo/fat?limit=1").send().await.payload();
    let process = Process::of(&service);
    let (threads, memory) = (process.threads(), process.resident());
    process.forget_peak();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(ask_for_fat(&service).await);
    }
    eventually("MariaDB waits for all of them", SETTLED_MAX, || async { (writing(&service) == READERS).then_some(()) })
        .await;
    get(&service, "/api/v1/crud/demo/posts/1").send().await.payload();
    assert!(process.threads() <= threads, "{} threads", process.threads());
    for reader in &mut readers {
        let answer = read_on(reader).await;
        let answer = raw::parse(&answer).expect("an answer");
        let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("all of it");
        assert_eq!(body["payload"].as_array().map(Vec::len), Some(FAT_ROWS));
    }
    let grown = process.peak().saturating_sub(memory);
    assert!(grown < GROWTH_MAX_BYTES, "grown by {grown} bytes");
    assert_eq!(writing(&service), 0);
    stop(service).await;
}

async fn a_reader_who_takes_nothing_in_time_is_cut_off(_: Host) {
    let service = start(Edge::Without, &[("SELKIE_WRITE_TIMEOUT", "1s")]).await;
    sql(&service, FAT).send().await.payload();
    let mut reader = ask_for_fat(&service).await;
    eventually("the connection is reset", SETTLED_MAX, || async { reader.take_error().expect("its state") }).await;
    eventually("its statement is ended", SETTLED_MAX, || async { (writing(&service) == 0).then_some(()) }).await;
    let answer = read_on(&mut reader).await;
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    assert!(!answer.ends_with(b"0\r\n\r\n"), "it ends as a whole answer does");
    let answer = raw::parse(&answer).expect("a head");
    assert!(serde_json::from_slice::<serde_json::Value>(&answer.body).is_err());
    stop(service).await;
}

/// Nothing but the connection itself limits pages, whose bytes are in memory.
async fn a_client_without_a_key_who_reads_nothing_is_disconnected(_: Host) {
    /// Together far more than the buffers of a connection take.
    const REQUESTS: usize = 16;
    let service = start(Edge::Without, &[("SELKIE_WRITE_TIMEOUT", "1s")]).await;
    let mut stream = TcpStream::connect(service.origin.trim_start_matches("http://")).await.expect("a connection");
    let request = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request.repeat(REQUESTS).as_bytes()).await.expect("requests");
    eventually("the connection is reset", SETTLED_MAX, || async { stream.take_error().expect("its state") }).await;
    stop(service).await;
}

async fn answers_that_nobody_reads_count_for_their_caller(_: Host) {
    const LONG: &str = "/api/v1/crud/demo/long_texts/1";
    /// Twice as many as fill the share of a project, 128 MiB, by answers of 15 MB.
    const READERS_MAX: usize = 18;
    let service = start(Edge::Without, &[("SELKIE_WRITE_TIMEOUT", "5m")]).await;
    for statement in [
        "CREATE TABLE long_texts (id INT PRIMARY KEY, body LONGTEXT)",
        "INSERT INTO long_texts VALUES (1, REPEAT('x', 15000000))",
    ] {
        sql(&service, statement).send().await.payload();
    }
    let batch = |operation: Value| json!({"operations": [operation]});
    let read = batch(json!({"method": "GET", "path": "demo/long_texts/1"})).to_string();
    let insert = |id: usize| {
        let call = Call::new(&service.origin, Method::POST, "/api/v1/batch").key(&service.full_key);
        call.json(&batch(json!({"method": "POST", "path": "demo/long_texts", "body": {"id": id}})))
    };
    let mut readers = Vec::new();
    // The answer of a write can't be refused after its commit, so the write is refused.
    let refused = loop {
        assert!(readers.len() < READERS_MAX, "no share is kept");
        let reader = ask_for(&service, "POST", "/api/v1/batch", read.as_bytes()).await;
        tokio::time::timeout(READ_MAX, reader.peek(&mut [0])).await.expect("an answer").expect("its first byte");
        readers.push(reader);
        let id = 1 + readers.len();
        let answer = insert(id).send().await;
        if answer.status != StatusCode::OK {
            answer.refused(ErrorCode::RateLimited);
            break id;
        }
    };
    get(&service, LONG).send().await.refused(ErrorCode::RateLimited);
    get(&service, "/api/v1/crud/demo/posts/1").send().await.payload();
    drop(readers);
    eventually("the share is given back", SETTLED_MAX, || async {
        (get(&service, LONG).send().await.status == StatusCode::OK).then_some(())
    })
    .await;
    get(&service, &format!("/api/v1/crud/demo/long_texts/{refused}")).send().await.refused(ErrorCode::RecordNotFound);
    stop(service).await;
}

async fn ask_for_fat(service: &Service) -> TcpStream {
    ask_for(service, "GET", "/api/v1/crud/demo/fat", b"").await
}

async fn ask_for(service: &Service, method: &str, path: &str, body: &[u8]) -> TcpStream {
    let address = service.origin.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let headers = format!("Authorization: {}\r\nContent-Type: application/json\r\n", service.full_key);
    let request = raw::request(method, path.as_bytes(), &headers, body);
    stream.write_all(&request).await.expect("a request");
    stream
}

async fn read_on(reader: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let reading = reader.read_to_end(&mut answer);
    // The connection may end by a reset.
    let _ = tokio::time::timeout(READ_MAX, reading).await.expect("an end");
    answer
}

/// Returns the number of statements on `fat` whose rows MariaDB can't send.
fn writing(service: &Service) -> usize {
    let query =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%`fat`%' AND STATE = 'Writing to net'";
    let count = service.root_sql(query).expect("the process list");
    count.trim().parse().expect("a number")
}

pub(crate) struct Process(i32);

impl Process {
    pub(crate) fn of(service: &Service) -> Self {
        let own = |command: &str| {
            let program = command.split(' ').next().unwrap_or_default();
            program.ends_with("selkie")
        };
        let processes = service.processes();
        let found = processes.iter().find(|(_, command)| own(command));
        Self(found.expect("the service's process").0)
    }

    fn number(&self, label: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0));
        status
            .expect("its status")
            .lines()
            .find_map(|line| line.strip_prefix(label))
            .and_then(|rest| rest.trim_end_matches("kB").trim().parse().ok())
            .unwrap_or_else(|| panic!("no {label}"))
    }

    fn threads(&self) -> u64 {
        self.number("Threads:")
    }

    fn resident(&self) -> u64 {
        self.number("VmRSS:") * 1024
    }

    pub(crate) fn peak(&self) -> u64 {
        self.number("VmHWM:") * 1024
    }

    fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.0), "5").expect("a new peak");
    }
}
