//! `selkie changes`.

use crate::host::Host;
use crate::service::{binary, clear_settings, kill, shared};
use crate::test_db::TestDb;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::{AbortHandle, JoinSet};

cases! {
    Both: [
        the_command_prints_records_and_changes_until_it_is_interrupted,
        the_command_goes_on_after_a_lost_connection,
        the_command_ends_or_begins_again_where_changes_are_missing,
        the_command_says_why_it_can_not_follow,
    ],
    Origin: [the_command_follows_the_installation_without_a_key],
}

const LINE_MAX: Duration = Duration::from_secs(120);
const THINGS: &str = "CREATE TABLE things (id INT PRIMARY KEY, v INT, note VARCHAR(20))";

struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// How a command ended: its exit code, and its standard error.
type Ended = (Option<i32>, String);

impl Follower {
    fn start(url: &str, arguments: &[&str]) -> Self {
        let mut command = std::process::Command::new(binary().expect("the binary"));
        clear_settings(&mut command);
        command.arg("changes").args(arguments).args(["--url", url]).env("SELKIE_KEY", &shared().full_key);
        Self::spawn(command)
    }

    fn spawn(command: std::process::Command) -> Self {
        let mut command = Command::from(command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    /// Returns the next line; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(LINE_MAX, self.lines.next_line()).await.expect("a line in time");
        line.expect("a line").map(|line| serde_json::from_str(&line).expect("JSON"))
    }

    async fn line(&mut self) -> Value {
        match self.next().await {
            Some(line) => line,
            None => panic!("no line: {:?}", self.ended().await),
        }
    }

    /// Returns the token of the next line, which ends a transaction.
    async fn token(&mut self) -> String {
        let line = self.line().await;
        assert_eq!(line["type"], "transaction", "{line}");
        line["next"].as_str().expect("a token").to_owned()
    }

    /// Returns type and key of the next line.
    async fn change(&mut self) -> (String, Value) {
        let line = self.line().await;
        (line["type"].as_str().expect("a type").to_owned(), line["key"].clone())
    }

    async fn ended(&mut self) -> Ended {
        let mut told = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut told).await.expect("a text");
        let status = tokio::time::timeout(LINE_MAX, self.child.wait()).await.expect("an end in time");
        (status.expect("its end").code(), told)
    }

    async fn interrupt(mut self) -> Ended {
        kill(i32::try_from(self.child.id().expect("an id")).expect("an id"), Signal::INT);
        self.ended().await
    }
}

fn of(kind: &str, key: i32) -> (String, Value) {
    (kind.to_owned(), json!(key))
}

async fn the_command_prints_records_and_changes_until_it_is_interrupted(host: Host) {
    let db = TestDb::new(host, &[THINGS, "INSERT INTO things VALUES (1, 1, 'a'), (2, 9, 'b')"]).await;
    let table = format!("{}.things", db.name);
    let chosen = ["--query", r#"{"v":{"lt":5}}"#, "--select", "id,v"];
    let mut follower = Follower::start(host.url(), &[&[&table, "--snapshot"], &chosen[..]].concat());
    let first = follower.line().await;
    assert_eq!(first, json!({"type": "insert", "snapshot": true, "key": 1, "record": {"id": 1, "v": 1}}));
    follower.token().await;
    db.exec("INSERT INTO things VALUES (3, 3, 'c'), (4, 4, 'd'), (5, 50, 'e')").await;
    assert_eq!([follower.change().await, follower.change().await], [of("insert", 3), of("insert", 4)]);
    let token = follower.token().await;
    let (code, told) = follower.interrupt().await;
    assert_eq!((code, told), (Some(0), format!("selkie: go on by --since {token}\n")));
    db.exec("DELETE FROM things WHERE id = 3").await;
    let mut follower = Follower::start(host.url(), &[&[&table, "--since", &token], &chosen[..]].concat());
    assert_eq!(follower.change().await, of("delete", 3));
}

async fn the_command_goes_on_after_a_lost_connection(host: Host) {
    let db = TestDb::new(host, &[THINGS]).await;
    let mut proxy = Proxy::start(host).await;
    let mut follower = Follower::start(&proxy.url(), &[&format!("{}.things", db.name)]);
    follower.token().await;
    for id in 1..=3 {
        db.exec(&format!("INSERT INTO things (id) VALUES ({id})")).await;
        assert_eq!(follower.change().await, of("insert", id));
        follower.token().await;
        proxy.stop();
        db.exec(&format!("UPDATE things SET v = 1 WHERE id = {id}")).await;
        proxy.go_on().await;
        assert_eq!(follower.change().await, of("update", id));
        follower.token().await;
    }
}

async fn the_command_ends_or_begins_again_where_changes_are_missing(host: Host) {
    let db = TestDb::new(host, &[THINGS]).await;
    let table = format!("{}.things", db.name);
    let mut plain = Follower::start(host.url(), &[&table]);
    let token = plain.token().await;
    let mut again = Follower::start(host.url(), &[&table, "--snapshot"]);
    again.token().await;
    db.exec("TRUNCATE things").await;
    assert_eq!(plain.next().await, None);
    let (code, told) = plain.ended().await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("lacks: truncated") && told.contains("--snapshot"), "{told}");
    db.exec("INSERT INTO things (id) VALUES (1)").await;
    // The same is said at the start.
    let mut late = Follower::start(host.url(), &[&table, "--since", &token]);
    assert_eq!(late.next().await, None);
    let (code, told) = late.ended().await;
    assert!(code == Some(1) && told.contains("lacks: truncated"), "{told}");
    let mut late = Follower::start(host.url(), &[&table, "--since", &token, "--snapshot"]);
    for follower in [&mut again, &mut late] {
        assert_eq!(follower.line().await, json!({"type": "resync", "reason": "truncated"}));
        // The insert is in the snapshot, or comes after it.
        let mut change = follower.line().await;
        if change["type"] == "transaction" {
            change = follower.line().await;
        }
        assert_eq!((&change["type"], &change["key"]), (&json!("insert"), &json!(1)));
    }
}

async fn the_command_says_why_it_can_not_follow(host: Host) {
    let db = TestDb::new(host, &[THINGS]).await;
    let (table, missing) = (format!("{}.things", db.name), format!("{}.nothing", db.name));
    for (arguments, code, part) in [
        (&[&*missing][..], 1, "table_not_found"),
        (&[&table, "--since", "abc"], 1, "no token of this feed"),
        (&[&table, "--select", "nothing"], 1, "unknown_field"),
        (&[&table, "--query", "{"], 2, "it is no JSON"),
        (&["things"], 2, "a database and a table"),
    ] {
        let mut follower = Follower::start(host.url(), arguments);
        assert_eq!(follower.next().await, None);
        let (found, told) = follower.ended().await;
        assert!(found == Some(code) && told.contains(part), "{arguments:?}: {found:?} {told}");
    }
}

async fn the_command_follows_the_installation_without_a_key(host: Host) {
    let db = TestDb::new(host, &[THINGS]).await;
    let table = format!("{}.things", db.name);
    let mut follower = Follower::spawn(shared().cli_command(&["changes", &table]));
    follower.token().await;
    db.exec("INSERT INTO things (id) VALUES (1)").await;
    assert_eq!(follower.change().await, of("insert", 1));
    let token = follower.token().await;
    let (code, told) = follower.interrupt().await;
    assert!(code == Some(0) && told.contains(&token), "{told}");
}

/// A port that forwards to a host.
struct Proxy {
    host: Host,
    port: u16,
    task: AbortHandle,
}

impl Proxy {
    async fn start(host: Host) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        Self { host, port, task: forward(host, listener) }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Closes all connections, and accepts no further ones.
    fn stop(&self) {
        self.task.abort();
    }

    async fn go_on(&mut self) {
        let port = self.port;
        let bound = crate::case::eventually("the port is free", LINE_MAX, || async move {
            TcpListener::bind(("127.0.0.1", port)).await.ok()
        });
        self.task = forward(self.host, bound.await);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn forward(host: Host, listener: TcpListener) -> AbortHandle {
    let far = host.url().strip_prefix("http://").expect("an address");
    let forwarding = tokio::spawn(async move {
        // Dropping the set at the task's end closes the connections.
        let mut open = JoinSet::new();
        while let Ok((mut near, _)) = listener.accept().await {
            open.spawn(async move {
                let mut far = TcpStream::connect(far).await?;
                copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    forwarding.abort_handle()
}
