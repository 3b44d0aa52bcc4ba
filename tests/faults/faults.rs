//! Kills, stops or blocks parts of a service, and checks what is true afterwards. Each case starts its own service.

use crate::case::{edge_is_open, eventually};
use crate::host::{Call, Host};
use crate::service::{self, Edge, Service, free_port, kill};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use shared::error::ErrorCode;
use std::process::{Output, Stdio};
use std::time::Duration;

/// Maximum time of MariaDB's restart with crash recovery, on a loaded machine.
const RECOVERY_MAX: Duration = Duration::from_secs(60);
const GONE_MAX: Duration = Duration::from_secs(20);

cases! {
    Own: [
        a_killed_database_is_restarted,
        sigterm_lets_running_requests_end,
        control_c_ends_it_too,
        a_killed_service_leaves_no_process,
        a_killed_parent_leaves_no_process,
        data_and_keys_survive_a_restart,
        what_was_answered_survives_a_kill,
        a_port_in_use_is_one_clear_line,
        a_wrong_setting_is_named,
        the_configuration_is_shown_without_secrets,
        too_many_waiting_requests_are_told_to_come_back,
        callers_who_stall_are_let_go,
    ],
}

pub(crate) async fn start(edge: Edge, settings: &'static [(&str, &str)]) -> Service {
    let started = tokio::task::spawn_blocking(move || Service::start(edge, settings)).await.unwrap();
    started.unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) async fn stop(service: Service) {
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap().unwrap_or_else(|error| panic!("{error}"));
}

pub(crate) fn get(service: &Service, path: &str) -> Call {
    Call::new(&service.origin, Method::GET, path).key(&service.full_key)
}

pub(crate) fn sql(service: &Service, query: &str) -> Call {
    let call = Call::new(&service.origin, Method::POST, "/api/v1/sql").key(&service.full_key);
    call.json(&json!({"query": query, "database": "demo"}))
}

pub(crate) fn database_process(service: &Service) -> Option<i32> {
    let server = |command: &str| {
        command.split(' ').next().is_some_and(|program| program.contains("mariadbd") || program.contains("mysqld"))
    };
    service.processes().into_iter().find(|(_, command)| server(command)).map(|(id, _)| id)
}

async fn a_killed_database_is_restarted(_: Host) {
    let service = start(Edge::Without, &[]).await;
    for _ in 0..2 {
        let before = database_process(&service).expect("a database");
        kill(before, Signal::KILL);
        let mut unavailable = 0;
        let deadline = tokio::time::Instant::now() + RECOVERY_MAX;
        loop {
            let read = get(&service, "/api/v1/crud/demo/posts/1").send().await;
            let ready = Call::new(&service.origin, Method::GET, "/readyz").send().await;
            Call::new(&service.origin, Method::GET, "/healthz").send().await.payload();
            if read.code() == "ok" && ready.code() == "ok" && database_process(&service).is_some_and(|id| id != before)
            {
                break;
            }
            for answer in [read, ready] {
                if answer.code() != "ok" {
                    answer.refused(ErrorCode::DatabaseUnavailable);
                    unavailable += 1;
                }
            }
            assert!(tokio::time::Instant::now() < deadline, "not back:\n{}", service.log_tail());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(unavailable > 0, "the kill was not noticed");
    }
    sql(&service, "SELECT 1").send().await.payload();
    stop(service).await;
}

async fn sigterm_lets_running_requests_end(_: Host) {
    let service = start(Edge::Without, &[]).await;
    let call = tokio::spawn(sql(&service, "SELECT SLEEP(3) AS slept /* draining */").attempt());
    eventually("the statement runs", Duration::from_secs(10), || async {
        let query = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%draining%' AND INFO NOT LIKE '%PROCESSLIST%'";
        (service.root_sql(query).unwrap().trim() != "0").then_some(())
    })
    .await;
    service.signal(Signal::TERM);
    let answer = call.await.unwrap().expect("the running request is answered");
    assert_eq!(answer.payload(), json!([{"slept": 0}]));
    let ended = tokio::task::spawn_blocking(move || (service.wait(), service.wait_until_gone(GONE_MAX))).await.unwrap();
    assert!(ended.0.unwrap().success());
    ended.1.unwrap();
}

fn edge() -> Edge {
    if edge_is_open() { Edge::With } else { Edge::Without }
}

async fn control_c_ends_it_too(_: Host) {
    let service = start(edge(), &[]).await;
    // Acts like a terminal, which sends SIGINT to every process of the group.
    for (id, _) in service.processes() {
        kill(id, Signal::INT);
    }
    let ended = tokio::task::spawn_blocking(move || (service.wait(), service.wait_until_gone(GONE_MAX))).await.unwrap();
    ended.0.unwrap();
    ended.1.unwrap();
}

async fn a_killed_service_leaves_no_process(_: Host) {
    let service = start(edge(), &[]).await;
    service.signal(Signal::KILL);
    let gone = tokio::task::spawn_blocking(move || service.wait_until_gone(GONE_MAX)).await.unwrap();
    gone.unwrap();
}

async fn a_killed_parent_leaves_no_process(_: Host) {
    let dir = tempfile::tempdir().unwrap();
    let mut inner = Service::command(dir.path(), free_port(), Edge::Without, free_port()).unwrap();
    let words: Vec<String> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let mark = format!("parent-{}", std::process::id());
    let mut shell = std::process::Command::new("sh");
    // The command `true` at the end keeps the shell from replacing itself by the service.
    shell
        .args(["-c", &format!("{}; true", words.join(" "))])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null());
    service::clear_settings(&mut shell);
    service::mark(&mut shell, &mark);
    let mut shell = shell.spawn().unwrap();
    inner.stdin(Stdio::null());
    eventually("it is up", Duration::from_secs(120), || async {
        dir.path().join("data/dev.env").exists().then_some(())
    })
    .await;
    kill(i32::try_from(shell.id()).unwrap(), Signal::KILL);
    let _ = shell.wait();
    let left = || service::processes_marked(&mark);
    let deadline = tokio::time::Instant::now() + GONE_MAX;
    while !left().is_empty() && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let remaining = left();
    remaining.iter().for_each(|(id, _)| kill(*id, Signal::KILL));
    assert!(remaining.is_empty(), "left behind by a killed parent: {remaining:?}");
}

async fn data_and_keys_survive_a_restart(_: Host) {
    let service = start(Edge::Without, &[]).await;
    let (full, read) = (service.full_key.clone(), service.read_key.clone());
    sql(&service, "CREATE TABLE kept (id INT PRIMARY KEY)").send().await.payload();
    sql(&service, "INSERT INTO kept VALUES (42)").send().await.payload();
    let posts = sql(&service, "SELECT COUNT(*) AS n FROM posts").send().await.payload();
    let again = tokio::task::spawn_blocking(move || {
        let dir = service.stop_and_keep()?;
        Service::start_in(dir, Edge::Without, &[])
    });
    let service = again.await.unwrap().unwrap_or_else(|error| panic!("{error}"));
    for key in [&full, &read] {
        get(&service, "/api/v1/crud/demo/posts/1").key(key).send().await.payload();
    }
    assert_eq!(get(&service, "/api/v1/crud/demo/kept").key(&read).send().await.payload(), json!([{"id": 42}]));
    assert_eq!(
        sql(&service, "SELECT COUNT(*) AS n FROM posts").send().await.payload(),
        posts,
        "the demo data is not made twice"
    );
    stop(service).await;
}

async fn what_was_answered_survives_a_kill(_: Host) {
    let service = start(Edge::Without, &[]).await;
    sql(&service, "CREATE TABLE kept (id INT PRIMARY KEY AUTO_INCREMENT, n INT)").send().await.payload();
    let insert = Call::new(&service.origin, Method::POST, "/api/v1/crud/demo/kept").key(&service.full_key);
    for n in 0..50 {
        insert.clone().json(&json!({"n": n})).send().await.payload();
    }
    for (id, _) in service.processes() {
        kill(id, Signal::KILL);
    }
    let again = tokio::task::spawn_blocking(move || {
        service.wait_until_gone(GONE_MAX)?;
        let dir = service.leave();
        Service::start_in(dir, Edge::Without, &[])
    });
    let service = again.await.unwrap().unwrap_or_else(|error| panic!("{error}"));
    let count = sql(&service, "SELECT COUNT(*) AS n FROM kept").send().await.payload();
    assert_eq!(count, json!([{"n": 50}]));
    stop(service).await;
}

/// Runs the command to its end; kills it at a timeout.
async fn run_to_end(mut command: std::process::Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    let output = command.kill_on_drop(true).output();
    tokio::time::timeout(Duration::from_secs(60), output).await.expect("it ends by itself").expect("it runs")
}

async fn a_port_in_use_is_one_clear_line(_: Host) {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let mut command = Service::command(dir.path(), port, Edge::Without, 0).unwrap();
    let mark = format!("port-{port}");
    service::mark(&mut command, &mark);
    let output = run_to_end(command).await;
    assert!(!output.status.success());
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(&port.to_string())).collect();
    assert_eq!(lines.len(), 1, "one line names the port:\n{text}");
    assert!(!text.contains("panicked") && !text.contains("os error") || lines[0].contains("in use"), "{text}");
    eventually("no process is left", GONE_MAX, || async { service::processes_marked(&mark).is_empty().then_some(()) })
        .await;
}

async fn a_wrong_setting_is_named(_: Host) {
    for (name, value) in
        [("SELKIE_QUERY_TIMEOUT", "soon"), ("SELKIE_LISTEN", "nowhere"), ("SELKIE_DATABASE_URL", "http://x")]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new(service::binary().unwrap());
        service::clear_settings(&mut command);
        command.arg("--data-dir").arg(dir.path().join("data")).arg("serve").env(name, value).current_dir(dir.path());
        let output = run_to_end(command).await;
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success(), "{name}={value} is taken");
        assert!(text.contains(name), "{name}={value}: the setting is not named:\n{text}");
    }
}

async fn the_configuration_is_shown_without_secrets(_: Host) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(service::binary().unwrap());
    service::clear_settings(&mut command);
    command.arg("--data-dir").arg(dir.path()).arg("config").current_dir(dir.path());
    command.env("SELKIE_DATABASE_URL", "mysql://admin:hush-hush-7@127.0.0.1:3306").env("SELKIE_QUERY_TIMEOUT", "7s");
    let output = run_to_end(command).await;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("hush-hush-7"), "{text}");
    assert!(text.contains('7'), "{text}");
}

async fn too_many_waiting_requests_are_told_to_come_back(_: Host) {
    let service = start(Edge::Without, &[]).await;
    let calls: Vec<_> = (0..1_500).map(|_| tokio::spawn(sql(&service, "SELECT SLEEP(20)").attempt())).collect();
    let calls: futures_util::stream::FuturesUnordered<_> = calls.into_iter().collect();
    let mut calls = Box::pin(calls);
    let refused = async {
        while let Some(answer) = futures_util::StreamExt::next(&mut calls).await {
            let answer = answer.unwrap().expect("an answer, not a broken connection");
            if answer.code() != "ok" {
                answer.refused(ErrorCode::Overloaded);
                return true;
            }
        }
        false
    };
    let refused = tokio::time::timeout(Duration::from_secs(60), refused).await;
    assert!(refused.expect("an answer"), "nothing was refused");
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    drop(calls);
    eventually("it works again", Duration::from_secs(20), || async {
        (get(&service, "/api/v1/crud/demo/posts/1").send().await.code() == "ok").then_some(())
    })
    .await;
    stop(service).await;
}

/// A client that sends or reads nothing must not hold a connection or a slot of the pool forever.
async fn callers_who_stall_are_let_go(_: Host) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let service = start(
        Edge::Without,
        &[("SELKIE_KEEP_ALIVE_TIMEOUT", "2s"), ("SELKIE_WRITE_TIMEOUT", "1s"), ("SELKIE_POOL_SIZE", "2")],
    )
    .await;
    let address = service.origin.trim_start_matches("http://").to_owned();
    let idle = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    for said in ["", "PRI * HTTP/2.0\r\n", "GET /healthz HTTP/1.1\r\nHo", idle] {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let ended = tokio::time::timeout(GONE_MAX, stream.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "after {said:?} the connection stays open");
    }
    let fat = "CREATE TABLE fat AS SELECT seq AS id, REPEAT('x', 1000) AS body FROM seq_1_to_50000";
    sql(&service, fat).send().await.payload();
    let mut takers = Vec::new();
    for _ in 0..4 {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let request =
            format!("GET /api/v1/crud/demo/fat HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n\r\n", service.full_key);
        stream.write_all(request.as_bytes()).await.unwrap();
        takers.push(stream);
    }
    eventually("the pool is free", GONE_MAX, || async {
        let read = get(&service, "/api/v1/crud/demo/posts/1").send().await;
        (read.code() == "ok").then_some(())
    })
    .await;
    drop(takers);
    stop(service).await;
}
