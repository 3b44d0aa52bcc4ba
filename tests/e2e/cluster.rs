//! Tests several database hosts: the nodes of a Galera cluster, and a primary with replicas.
//! Servers are killed, halted and made to fall behind. No acknowledged write may be lost, and
//! callers may get only errors that they can retry.

use crate::case::eventually;
use crate::host::Host;
use crate::service::{binary, clear_settings, free_port, workspace};
use futures_util::future::join;
use machines::galera::Galera;
use machines::process::Started;
use machines::replicas::Replicated;
use machines::server::{ACCOUNT, Server};
use mysql_async::prelude::Queryable as _;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

cases! {
    Own: [
        origins_on_a_fresh_cluster_agree,
        reads_use_replicas_and_never_fail_for_them,
        a_read_that_waits_for_a_write_holds_no_connection,
        a_commit_is_answered_although_its_position_is_not,
        connections_outlast_a_refused_one,
        a_primary_that_is_read_only_is_left_for_the_one_that_is_promoted,
        what_a_cluster_acknowledges_survives_its_faults,
    ],
}

/// A secret of test installations: 32 bytes as hex.
const SECRET: &str = "5e1c1e5e1c1e5e1c1e5e1c1e5e1c1e5e1c1e5e1c1e5e1c1e5e1c1e5e1c1e5e1c";
const WAIT_MAX: Duration = Duration::from_secs(180);
/// Maximum time until another host takes over. It usually takes two seconds, but on a busy machine
/// the nodes may lose contact with each other and must form the cluster again.
const TAKEOVER_MAX: Duration = Duration::from_secs(180);

struct Origin {
    _process: Started,
    directory: TempDir,
    url: String,
    settings: Vec<(&'static str, String)>,
}

struct Answer {
    status: u16,
    position: Option<String>,
    json: Value,
}

impl Answer {
    #[track_caller]
    fn payload(&self) -> &Value {
        assert_eq!(self.status, 200, "{}", self.json);
        &self.json["payload"]
    }
}

fn hosts<'a>(servers: impl IntoIterator<Item = &'a Server>) -> String {
    let addresses: Vec<String> = servers.into_iter().map(Server::address).collect();
    format!("mysql://{ACCOUNT}:{ACCOUNT}@{}/", addresses.join(","))
}

impl Origin {
    /// Starts an origin without waiting until it answers.
    fn launch(settings: &[(&'static str, String)]) -> Self {
        let directory = tempfile::Builder::new().prefix("selkie-cluster-").tempdir().expect("a directory");
        let address = format!("127.0.0.1:{}", free_port());
        let settings = settings.to_vec();
        let process = Started::new(&binary().expect("the binary"), |command| {
            clear_settings(command.as_std_mut());
            command
                .arg("serve")
                .args(["--listen", &address, "--data-dir"])
                .arg(directory.path())
                .env("SELKIE_SECRET", SECRET)
                .envs(settings.iter().map(|(name, value)| (*name, value)))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
        });
        let process = process.expect("it starts");
        Self { _process: process, directory, url: format!("http://{address}"), settings }
    }

    async fn wait_until_ready(&self) {
        let is_ready = || async {
            let answer = Client::new().get(format!("{}/readyz", self.url)).send().await.ok()?;
            answer.status().is_success().then_some(())
        };
        eventually("the origin is ready", WAIT_MAX, is_ready).await;
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary().expect("the binary"));
        clear_settings(&mut command);
        let settings = self.settings.iter().map(|(name, value)| (*name, value));
        command.args(arguments).arg("--data-dir").arg(self.directory.path());
        command.env("SELKIE_SECRET", SECRET).envs(settings).output().expect("it runs")
    }

    /// Runs a `selkie` command that must succeed; returns its trimmed standard output.
    fn cli(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Waits until `selkie doctor` finds this of the database hosts: a verdict and the beginning of a message for each.
    /// On a busy machine a host may be too slow for one report.
    async fn wait_until_doctor_finds(&self, expected: &[(&str, String)]) {
        let matches = || async {
            let found = self.checked("hosts");
            let is_same = found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(found, (verdict, message))| found.0 == *verdict && found.1.starts_with(message));
            is_same.then_some(())
        };
        eventually(&format!("the doctor finds {expected:?}"), WAIT_MAX, matches).await;
    }

    /// Returns what a check of `selkie doctor` finds: verdicts and messages.
    fn checked(&self, check: &str) -> Vec<(String, String)> {
        let report: Value = serde_json::from_slice(&self.run(&["doctor", "--json"]).stdout).expect("JSON");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let findings = report["findings"].as_array().expect("findings").iter();
        let found = findings.filter(|finding| finding["check"] == check);
        found.map(|finding| (text(&finding["verdict"]), text(&finding["message"]))).collect()
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let mut request = Client::new().request(method, format!("{}/api/v1{path}", self.url)).bearer_auth(key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("an answer");
        let position = answer.headers().get("x-selkie-position").map(|value| value.to_str().unwrap().to_owned());
        Answer { status: answer.status().as_u16(), position, json: answer.json().await.expect("JSON") }
    }

    async fn sql(&self, key: &str, query: &str) -> Answer {
        self.send(Method::POST, "/sql", key, &[], Some(json!({"query": query}))).await
    }

    /// Inserts a record with an `Idempotency-Key`, and repeats the request while the error is
    /// retryable. Panics after [`TAKEOVER_MAX`].
    async fn insert(&self, key: &str, name: &str) -> Answer {
        let started = Instant::now();
        loop {
            let once = [("idempotency-key", name)];
            let body = Some(json!({"name": name}));
            let answer = self.send(Method::POST, "/crud/default_app/notes", key, &once, body).await;
            if answer.status == 200 {
                return answer;
            }
            assert_eq!(answer.json["error"]["retryable"], true, "{}", answer.json);
            assert!(started.elapsed() < TAKEOVER_MAX, "{}", answer.json);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

const NOTES: &str = "CREATE TABLE default_app.notes (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) UNIQUE)";

async fn origins_on_a_fresh_cluster_agree(_: Host) {
    let cluster = Galera::start(3).await.expect("a cluster");
    let nodes = cluster.nodes();
    let urls = [[0, 1, 2], [1, 2, 0], [2, 0, 1]].map(|order| hosts(order.map(|at| &nodes[at])));
    let origins = urls.map(|url| Origin::launch(&[("SELKIE_DATABASE_URL", url)]));
    for origin in &origins {
        origin.wait_until_ready().await;
    }
    let [first, second, third] = &origins;
    let well = |node: &Server| ("ok", format!("the host {} of database_url is well", node.address()));
    first.wait_until_doctor_finds(&nodes.iter().map(well).collect::<Vec<_>>()).await;
    nodes[0].execute("SET GLOBAL wsrep_gtid_mode = OFF").await.expect("a setting");
    let lack = "MariaDB's binary log can't serve changes without wsrep_gtid_mode=ON";
    assert_eq!(first.checked("changes"), [("warning".to_owned(), lack.to_owned())]);
    nodes[0].execute("SET GLOBAL wsrep_gtid_mode = ON").await.expect("a setting");
    let key = first.cli(&["key", "create", "--access", "full"]);
    second.cli(&["database", "create", "default_app"]);
    let is_known = || async { (third.sql(&key, "SELECT 1").await.status == 200).then_some(()) };
    eventually("the key is known", WAIT_MAX, is_known).await;
    first.sql(&key, NOTES).await.payload();

    // On a cluster, generated ids are not consecutive: the answer must have the rows' real ids.
    let body = json!({"batchData": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
    let many = second.send(Method::POST, "/crud/default_app/notes", &key, &[], Some(body)).await;
    for (id, name) in many.payload().as_array().expect("ids").iter().zip(["a", "b", "c"]) {
        let path = format!("/crud/default_app/notes/{id}");
        let after = [("x-selkie-after", many.position.as_deref().expect("a position"))];
        assert_eq!(third.send(Method::GET, &path, &key, &after, None).await.payload()["name"], name);
    }

    // A read after a position sees the write on every node.
    for round in 0..30 {
        let written = origins[round % 3].insert(&key, &format!("round-{round}")).await;
        let path = format!("/crud/default_app/notes/{}", written.payload());
        let after = [("x-selkie-after", written.position.as_deref().expect("a position"))];
        let read = origins[(round + 1) % 3].send(Method::GET, &path, &key, &after, None).await;
        assert_eq!(read.payload()["name"], format!("round-{round}"));
        let listed = origins[(round + 2) % 3].send(Method::GET, "/crud/default_app", &key, &after, None).await;
        assert!(listed.payload().to_string().contains("\"notes\""), "{}", listed.json);
    }

    // A node that is behind catches up with a token of another node.
    let feed = "/changes/default_app/notes";
    let mut lock = nodes[1].connect().await.expect("a connection");
    lock.query_drop("FLUSH TABLES default_app.notes WITH READ LOCK").await.expect("a lock");
    first.insert(&key, "late").await.payload();
    let token = first.send(Method::GET, feed, &key, &[], None).await.json["next"].clone();
    let path = format!("{feed}?since={}", token.as_str().expect("a token"));
    let unlock = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        lock.query_drop("UNLOCK TABLES").await.expect("an unlock");
    };
    let (page, ()) = join(second.send(Method::GET, &path, &key, &[], None), unlock).await;
    assert_eq!(page.payload(), &json!([]));

    let future = [("x-selkie-after", "galera:1000000000")];
    let never = first.send(Method::GET, "/crud/default_app/notes/1", &key, &future, None).await;
    assert_eq!((never.status, &never.json["error"]["code"]), (400, &json!("invalid_query_option")));
    for path in ["/crud/default_app/notes/1", "/crud/default_app", "/crud"] {
        for wrong in ["here", "gtid:0-1-1"] {
            let refused = first.send(Method::GET, path, &key, &[("x-selkie-after", wrong)], None).await;
            let found = (refused.status, &refused.json["error"]["code"]);
            assert_eq!(found, (400, &json!("invalid_query_option")), "{path} {wrong}");
        }
    }
}

async fn reads_use_replicas_and_never_fail_for_them(_: Host) {
    let mut all = Replicated::start(1).await.expect("servers");
    let settings =
        [("SELKIE_DATABASE_URL", hosts([&all.servers()[0]])), ("SELKIE_REPLICA_URL", hosts([&all.servers()[1]]))];
    let origin = Origin::launch(&settings);
    origin.wait_until_ready().await;
    let (key, reader) =
        (origin.cli(&["key", "create", "--access", "full"]), origin.cli(&["key", "create", "--access", "read"]));
    origin.cli(&["database", "create", "default_app"]);
    let is_known = || async { (origin.sql(&key, NOTES).await.status == 200).then_some(()) };
    eventually("the table is there", WAIT_MAX, is_known).await;
    let written = origin.insert(&key, "one").await;
    let position = written.position.clone().expect("a position");
    let path = format!("/crud/default_app/notes/{}", written.payload());
    let after = [("x-selkie-after", position.as_str())];

    let replica = format!("the host {} of replica_url", all.servers()[1].address());
    origin.wait_until_doctor_finds(&[("ok", format!("{replica} is well"))]).await;

    // The read is answered by the replica, which has a row that the primary lacks.
    let only_here = "SET sql_log_bin = 0; INSERT INTO default_app.notes VALUES (1000, 'replica')";
    let has_it = || async {
        let _ = all.servers()[1].execute(only_here).await;
        let read = origin.send(Method::GET, "/crud/default_app/notes/1000", &reader, &[], None).await;
        (read.status == 200).then_some(())
    };
    eventually("the replica answers", WAIT_MAX, has_it).await;
    assert_eq!(origin.send(Method::GET, &path, &reader, &after, None).await.payload()["name"], "one");
    for (list, name) in [("/crud", "default_app"), ("/crud/default_app", "notes")] {
        let listed = origin.send(Method::GET, list, &reader, &after, None).await;
        assert!(listed.payload().to_string().contains(&format!("\"{name}\"")), "{list}: {}", listed.json);
    }

    // An insert with an idempotency key, too, reads the position that it names.
    let wrong = [("idempotency-key", "wrong"), ("x-selkie-after", "galera:1")];
    let body = Some(json!({"name": "wrong"}));
    let refused = origin.send(Method::POST, "/crud/default_app/notes", &key, &wrong, body).await;
    assert_eq!((refused.status, &refused.json["error"]["code"]), (400, &json!("invalid_query_option")));

    // The replica first applies nothing, then is killed: every read is answered and sees the write.
    all.fall_behind(1).await.expect("a lag");
    let behind = origin.insert(&key, "two").await;
    let position = behind.position.clone().expect("a position");
    let path = format!("/crud/default_app/notes/{}", behind.payload());
    let after = [("x-selkie-after", position.as_str())];
    for _ in 0..5 {
        assert_eq!(origin.send(Method::GET, &path, &reader, &after, None).await.payload()["name"], "two");
    }
    origin.wait_until_doctor_finds(&[("warning", format!("{replica} is not replicating"))]).await;
    all.catch_up(1).await.expect("no lag");
    all.server(1).kill();
    origin.wait_until_doctor_finds(&[("wrong", format!("{replica} does not answer: "))]).await;
    for _ in 0..5 {
        assert_eq!(origin.send(Method::GET, &path, &reader, &after, None).await.payload()["name"], "two");
        assert_eq!(
            origin.send(Method::GET, "/crud/default_app/notes", &reader, &[], None).await.payload()[1]["name"],
            "two"
        );
    }
}

async fn a_read_that_waits_for_a_write_holds_no_connection(_: Host) {
    let all = Replicated::start(1).await.expect("servers");
    let [primary, replica] = all.servers() else { panic!("there are two servers") };
    let settings = [
        ("SELKIE_DATABASE_URL", hosts([primary])),
        ("SELKIE_REPLICA_URL", hosts([replica])),
        ("SELKIE_POOL_SIZE", "1".to_owned()),
        ("SELKIE_POOL_WAIT_TIMEOUT", "1s".to_owned()),
    ];
    let origin = Origin::launch(&settings);
    origin.wait_until_ready().await;
    let key = origin.cli(&["key", "create", "--access", "full"]);
    origin.cli(&["database", "create", "default_app"]);
    let is_known = || async { (origin.sql(&key, NOTES).await.status == 200).then_some(()) };
    eventually("the table is there", WAIT_MAX, is_known).await;
    let position = origin.insert(&key, "one").await.position.expect("a position");
    let (place, number) = position.rsplit_once('-').expect("a GTID");
    let ahead = format!("{place}-{}", number.parse::<u64>().expect("a number") + 1_000);
    let after = [("x-selkie-after", ahead.as_str())];
    let waiting = origin.send(Method::GET, "/crud/default_app/notes/1", &key, &after, None);
    let reads = async {
        loop {
            origin.send(Method::GET, "/crud/default_app/notes/1", &key, &[], None).await.payload();
        }
    };
    let waited = tokio::select! {
        waited = waiting => waited,
        () = reads => unreachable!("the reads never end"),
    };
    let error = &waited.json["error"];
    assert!(waited.status == 503 && error["message"].to_string().contains("within 5 s"), "{error}");
}

/// Forwards connections to a server, except queries for the position of a write, which get no answer. Returns the
/// proxy's address.
async fn silent_about_positions(server: &Server) -> String {
    const QUERY: &[u8] = b"SELECT @@GLOBAL.gtid_binlog_pos";
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (address, server) = (listener.local_addr().expect("an address").to_string(), server.address());
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(&server).await.expect("the server");
            let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
                (near.into_split(), far.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
            tokio::spawn(async move {
                let mut bytes = vec![0; 64 * 1024];
                while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
                    let sent = &bytes[..count];
                    if sent.windows(QUERY.len()).any(|part| part == QUERY) {
                        continue;
                    }
                    to_server.write_all(sent).await?;
                }
                to_server.shutdown().await
            });
        }
    });
    address
}

async fn a_commit_is_answered_although_its_position_is_not(_: Host) {
    let all = Replicated::start(1).await.expect("servers");
    let [primary, replica] = all.servers() else { panic!("there are two servers") };
    let proxy = silent_about_positions(primary).await;
    let url = format!("mysql://{ACCOUNT}:{ACCOUNT}@{proxy}/");
    let origin = Origin::launch(&[("SELKIE_DATABASE_URL", url), ("SELKIE_REPLICA_URL", hosts([replica]))]);
    origin.wait_until_ready().await;
    let key = origin.cli(&["key", "create", "--access", "full"]);
    origin.cli(&["database", "create", "default_app"]);
    let is_known = || async { (origin.sql(&key, NOTES).await.status == 200).then_some(()) };
    eventually("the table is there", WAIT_MAX, is_known).await;
    let body = json!({"name": "one"});
    let written = origin.send(Method::POST, "/crud/default_app/notes", &key, &[], Some(body)).await;
    assert_eq!((written.payload(), written.position.as_deref()), (&json!(1), None));
    assert_eq!(primary.ask("SELECT name FROM default_app.notes").await.unwrap(), "one");
}

#[expect(clippy::disallowed_methods, reason = "the id of a connection is a number")]
async fn connections_outlast_a_refused_one(_: Host) {
    let all = Replicated::start(0).await.expect("a server");
    let server = &all.servers()[0];
    let origin = Origin::launch(&[("SELKIE_DATABASE_URL", hosts([server]))]);
    origin.wait_until_ready().await;
    let key = origin.cli(&["key", "create", "--access", "full"]);
    let is_known = || async { (origin.sql(&key, "SELECT 1").await.status == 200).then_some(()) };
    eventually("the key is known", WAIT_MAX, is_known).await;
    let connection = || origin.sql(&key, "SELECT CONNECTION_ID() AS id");
    let before = connection().await;
    let id = &before.payload()[0]["id"];
    // MariaDB accepts no further connection, and the account's only one is in use.
    let root = Mutex::new(server.connect().await.expect("a connection"));
    root.lock().await.query_drop("SET GLOBAL max_connections = 10").await.expect("a setting");
    let mut others = Vec::new();
    while let Ok(other) = server.connect().await {
        others.push(other);
    }
    let refusal = async {
        let sleeping = format!("SELECT id FROM information_schema.processlist WHERE id = {id} AND info LIKE '%SLEEP%'");
        let is_used = || async { root.lock().await.query::<u64, _>(&sleeping).await.expect("ids").pop() };
        eventually("the connection is in use", WAIT_MAX, is_used).await;
        origin.sql(&key, "SELECT 1").await
    };
    let (used, refused) = join(origin.sql(&key, "SELECT SLEEP(5)"), refusal).await;
    used.payload();
    assert_eq!((refused.status, &refused.json["error"]["code"]), (503, &json!("overloaded")));
    assert_eq!(&connection().await.payload()[0]["id"], id);
}

async fn a_primary_that_is_read_only_is_left_for_the_one_that_is_promoted(_: Host) {
    let mut all = Replicated::start(1).await.expect("servers");
    let origin = Origin::launch(&[("SELKIE_DATABASE_URL", hosts(all.servers()))]);
    origin.wait_until_ready().await;
    let key = origin.cli(&["key", "create", "--access", "full"]);
    origin.cli(&["database", "create", "default_app"]);
    let is_known = || async { (origin.sql(&key, NOTES).await.status == 200).then_some(()) };
    eventually("the table is there", WAIT_MAX, is_known).await;
    let before = origin.insert(&key, "before").await;
    all.server(0).execute("SET GLOBAL read_only = ON").await.expect("a setting");
    let last = all.servers()[0].ask("SELECT @@GLOBAL.gtid_binlog_pos").await.expect("a position");
    all.server(1).execute(&format!("DO MASTER_GTID_WAIT('{last}', 30)")).await.expect("a wait");
    all.promote(1).await.expect("a promotion");
    let after = origin.insert(&key, "after").await;
    assert_eq!(all.servers()[1].ask("SELECT COUNT(*) FROM default_app.notes").await.unwrap(), "2");
    assert_ne!(before.payload(), after.payload());
}

/// Runs a short form of `make cluster`: three Galera nodes, three origins, two edges and an S3
/// service under load while they are killed, halted and cut off from each other. It checks that no
/// acknowledged write is lost or done twice, but no durations.
async fn what_a_cluster_acknowledges_survives_its_faults(_: Host) {
    let run = || {
        Command::new(env!("CARGO_BIN_EXE_endurance"))
            .args(["cluster", "--briefly", "--seconds", "20", "--callers", "12", "--selkie"])
            .arg(binary().expect("the binary"))
            .current_dir(workspace())
            .output()
            .expect("the program runs")
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "make cluster ARGS=\"--seconds 20\" fails:\n{told}{errors}");
}
