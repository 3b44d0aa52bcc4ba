//! Tokens over crashes, restarts and changes of the log itself.

use super::Page;
use crate::case::eventually;
use crate::host::{Answer, Call, Host};
use crate::service::{Edge, Service, kill};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Own: [
        a_token_outlives_crashes_and_restarts_and_tells_what_the_log_lost,
        a_token_within_a_transaction_outlives_a_restart_whatever_came_before,
        a_commit_of_another_database_breaks_nothing,
        a_prepared_transaction_outlives_the_connection_that_read_it,
        a_long_row_breaks_only_the_tables_of_its_transaction,
    ],
}

struct World {
    service: Service,
}

impl World {
    fn call(&self, method: Method, path: &str) -> Call {
        Call::new(&self.service.origin, method, path).key(&self.service.full_key)
    }

    async fn sql(&self, query: &str) -> Answer {
        let body = json!({"query": query, "database": self.service.database});
        self.call(Method::POST, "/api/v1/sql").json(&body).send().await
    }

    async fn insert(&self, id: u32) {
        eventually("a write", Duration::from_secs(60), || async {
            let answer = self.sql(&format!("INSERT IGNORE INTO lives VALUES ({id})")).await;
            (answer.status == 200).then_some(())
        })
        .await;
    }

    async fn start() -> Self {
        let service = tokio::task::spawn_blocking(|| Service::start(Edge::Without, &[])).await;
        let world = Self { service: service.expect("a task").expect("a service") };
        world.sql("CREATE TABLE lives (id INT PRIMARY KEY)").await.payload();
        world
    }

    async fn restart(self) -> Self {
        let restarted = tokio::task::spawn_blocking(|| {
            let directory = self.service.stop_and_keep().expect("a stop");
            Service::start_in(directory, Edge::Without, &[])
        });
        Self { service: restarted.await.expect("a task").expect("a service") }
    }

    async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.service.stop());
        stopped.await.expect("a task").expect("a stop");
    }

    fn root(&self, statement: &str) -> String {
        self.service.root_sql(statement).expect("root")
    }

    async fn changes(&self, options: &str) -> Answer {
        self.changes_of(&self.service.database, options).await
    }

    async fn changes_of(&self, database: &str, options: &str) -> Answer {
        self.call(Method::GET, &format!("/api/v1/changes/{database}/lives?{options}")).send().await
    }

    /// Reads by pages of one change, all of which a reader of the log may have read with the first.
    async fn keys_since(&self, token: &str) -> Vec<Value> {
        let (mut keys, mut token) = (Vec::new(), token.to_owned());
        loop {
            let page = Page::of(&self.changes(&format!("since={token}&limit=1")).await);
            keys.extend(page.changes.iter().map(|change| change["key"].clone()));
            if page.is_up_to_date {
                return keys;
            }
            token = page.next;
        }
    }

    /// Returns the keys up to a break, and its reason.
    async fn keys_until_break(&self, database: &str, token: &str) -> (Vec<Value>, Value) {
        let (mut keys, mut token) = (Vec::new(), token.to_owned());
        loop {
            let answer = self.changes_of(database, &format!("since={token}")).await;
            if answer.status != 200 {
                return (keys, answer.refused(ErrorCode::ResyncRequired)["details"]["reason"].clone());
            }
            let page = Page::of(&answer);
            keys.extend(page.changes.iter().map(|change| change["key"].clone()));
            token = page.next;
        }
    }

    async fn reason(&self, token: &str) -> Value {
        self.changes(&format!("since={token}")).await.refused(ErrorCode::ResyncRequired)["details"]["reason"].clone()
    }

    async fn now(&self) -> String {
        Page::of(&self.changes("").await).next
    }
}

async fn a_token_outlives_crashes_and_restarts_and_tells_what_the_log_lost(_: Host) {
    let mut world = World::start().await;
    let begin = world.now().await;
    world.insert(1).await;
    let (mariadb, _) =
        world.service.processes().into_iter().find(|(_, name)| name.contains("mariadbd")).expect("MariaDB");
    kill(mariadb, Signal::KILL);
    world.insert(2).await;
    assert_eq!(world.keys_since(&begin).await, [1, 2]);

    world = world.restart().await;
    assert_eq!(world.keys_since(&begin).await, [1, 2]);

    let root = |statement: &str| world.root(statement);
    root("FLUSH BINARY LOGS");
    world.insert(3).await;
    let file =
        root("SHOW MASTER STATUS").split_whitespace().find(|word| word.starts_with("binlog.")).map(str::to_owned);
    root(&format!("PURGE BINARY LOGS TO '{}'", file.expect("a file")));
    assert_eq!(world.reason(&begin).await, "log_purged");
    let later = world.now().await;
    world.insert(4).await;
    assert_eq!(world.keys_since(&later).await, [4]);

    root("RESET MASTER");
    assert_eq!(world.reason(&later).await, "unknown_position");
    let again = world.now().await;
    world.insert(5).await;
    assert_eq!(world.keys_since(&again).await, [5]);
    world.stop().await;
}

/// The log has a transaction of a table that nobody follows, which the feed's memory passes over.
async fn a_token_within_a_transaction_outlives_a_restart_whatever_came_before(_: Host) {
    let mut world = World::start().await;
    world.sql("CREATE TABLE others (id INT PRIMARY KEY)").await.payload();
    let begin = world.now().await;
    world.sql("INSERT INTO others VALUES (1)").await.payload();
    world.sql("INSERT INTO lives VALUES (1), (2), (3)").await.payload();
    let page = Page::of(&world.changes(&format!("since={begin}&limit=1")).await);
    assert_eq!(page.changes[0]["key"], 1);
    world = world.restart().await;
    assert_eq!(world.keys_since(&page.next).await, [2, 3]);
    world.stop().await;
}

/// A reader that begins after a transaction was prepared can't know the tables of its commit.
async fn a_commit_of_another_database_breaks_nothing(_: Host) {
    const OTHER: &str = "default_other";
    let mut world = World::start().await;
    world.root(&format!("CREATE DATABASE {OTHER}; CREATE TABLE {OTHER}.lives (id INT PRIMARY KEY)"));
    for (at, id) in [(0, 1), (1, 4)] {
        world.root(&format!(
            "XA START '{id}'; INSERT INTO {OTHER}.lives VALUES ({id}); XA END '{id}'; XA PREPARE '{id}'"
        ));
        let token = world.now().await;
        let of_other = Page::of(&world.changes_of(OTHER, "").await).next;
        world.insert(id).await;
        world.root(&format!("XA COMMIT '{id}'"));
        world.insert(id + 1).await;
        if at == 1 {
            // Now a reader of the log begins at the tokens.
            world = world.restart().await;
        }
        assert_eq!(world.keys_since(&token).await, [id, id + 1]);
        let refused = world.changes_of(OTHER, &format!("since={of_other}")).await;
        assert_eq!(refused.refused(ErrorCode::ResyncRequired)["details"]["reason"], "unknown_position");
    }
    world.stop().await;
}

async fn a_prepared_transaction_outlives_the_connection_that_read_it(_: Host) {
    let world = World::start().await;
    let token = world.now().await;
    world.root(&format!(
        "XA START 'a'; INSERT INTO {}.lives VALUES (1); XA END 'a'; XA PREPARE 'a'",
        world.service.database
    ));
    let keys = async |count: usize| {
        eventually("changes", Duration::from_secs(60), || async {
            let keys = world.keys_since(&token).await;
            (keys.len() == count).then_some(keys)
        })
        .await
    };
    world.insert(2).await;
    assert_eq!(keys(1).await, [2]);
    let readers = world.root("SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'");
    assert_eq!(readers.lines().count(), 1);
    world.root(&format!("KILL {readers}"));
    world.root("XA COMMIT 'a'");
    assert_eq!(keys(2).await, [2, 1]);
    world.stop().await;
}

/// An event above 64 MiB ends a reader's connection.
async fn a_long_row_breaks_only_the_tables_of_its_transaction(_: Host) {
    const OTHER: &str = "default_other";
    let mut world = World::start().await;
    world.root(&format!(
        "CREATE DATABASE {OTHER}; CREATE TABLE {OTHER}.lives (id INT PRIMARY KEY, value LONGBLOB); \
         INSERT INTO {OTHER}.lives VALUES (1, REPEAT('x', 40000000))"
    ));
    let long = |letter: char, more: &str| {
        let update = format!("UPDATE {OTHER}.lives SET value = REPEAT('{letter}', 40000000)");
        world.root(&format!("START TRANSACTION; {update}; {more} COMMIT"))
    };
    let token = world.now().await;
    let of_other = Page::of(&world.changes_of(OTHER, "").await).next;
    world.insert(1).await;
    long('y', "");
    world.insert(2).await;
    assert_eq!(world.keys_since(&token).await, [1, 2]);
    let later = world.now().await;
    long('z', &format!("INSERT INTO {}.lives VALUES (3);", world.service.database));
    world.insert(4).await;
    for is_again in [false, true] {
        if is_again {
            // Now a reader of the log begins at the tokens.
            world = world.restart().await;
        }
        let database = &world.service.database;
        assert_eq!(world.keys_until_break(OTHER, &of_other).await, (vec![], json!("too_slow")));
        assert_eq!(world.keys_until_break(database, &token).await, (vec![json!(1), json!(2)], json!("too_slow")));
        assert_eq!(world.keys_until_break(database, &later).await, (vec![], json!("too_slow")));
    }
    world.stop().await;
}
