//! Tests that databases and views which an operator created before are left unharmed: adopted databases, and views of
//! deleted users. Also tests that a removed project leaves nothing behind.

use crate::case::eventually;
use crate::host::{Host, enc};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

/// Maximum time until a change by the CLI takes effect: usually some seconds, but more on a loaded machine.
const CHANGE_MAX: Duration = Duration::from_secs(20);

cases! {
    Both: [
        no_key_drops_an_adopted_database,
        a_missing_definer_is_told_as_such,
    ],
    Origin: [
        an_adopted_database_is_released_by_the_cli_and_not_dropped,
        a_project_is_removed_with_all_that_it_owns,
    ],
}

struct Adopted {
    project: String,
    name: String,
    key: String,
}

impl Adopted {
    fn new() -> Self {
        let (project, name) = (unique("adopter"), unique("brought"));
        shared()
            .root_sql(&format!(
                "CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY); INSERT INTO {name}.t VALUES (1)"
            ))
            .expect("a database");
        shared().create_project(&project);
        shared().cli_ok(&["database", "adopt", &name, "--project", &project]);
        let key = shared().create_key(&project, "full", &[]).token;
        Self { project, name, key }
    }

    fn exists(&self) -> bool {
        let seen = shared().root_sql(&format!("SHOW DATABASES LIKE '{}'", self.name));
        seen.expect("an answer").trim() == self.name
    }

    /// Runs `selkie` with these arguments and the database's project; returns its exit code and standard error.
    fn cli(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = shared().cli(&[words, &["--project", &self.project]].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), told)
    }
}

async fn no_key_drops_an_adopted_database(host: Host) {
    let adopted = Adopted::new();
    let name = &adopted.name;
    let run = |body: Value| host.sql(&body).key(&adopted.key).send();
    let statements = [
        format!("DROP DATABASE {name}"),
        format!("drop /* x */ schema if exists `{name}`"),
        format!("/*!50000 DROP DATABASE {name} */"),
        format!("CREATE OR REPLACE DATABASE {name}"),
        format!("EXECUTE IMMEDIATE 'DROP DATABASE {name}'"),
        format!("BEGIN NOT ATOMIC PREPARE s FROM 'DROP DATABASE {name}'; EXECUTE s; END"),
        format!("BEGIN NOT ATOMIC DROP DATABASE {name}; END"),
        format!("EXECUTE IMMEDIATE +REVERSE('{}')", format!("DROP DATABASE {name}").chars().rev().collect::<String>()),
        format!("CREATE PROCEDURE {name}.p() DROP DATABASE {name}"),
    ];
    for query in statements {
        let answer = run(json!({"query": query})).await;
        let error = answer.refused(ErrorCode::PermissionDenied);
        assert!(error["message"].as_str().unwrap().contains(name), "{answer}");
        assert!(adopted.exists(), "{query}");
    }
    let by_parameter = json!({"query": "EXECUTE IMMEDIATE ?", "params": [format!("DROP DATABASE {name}")]});
    run(by_parameter).await.refused(ErrorCode::PermissionDenied);
    // Other statements work in the same way as in a database that Selkie created.
    for query in [
        format!("CREATE TABLE {name}.u (id INT)"),
        format!("EXECUTE IMMEDIATE 'INSERT INTO {name}.u VALUES (1)'"),
        format!("INSERT INTO {name}.u SELECT 1 WHERE 'DROP DATABASE {name}' > ''"),
        format!("DROP TABLE {name}.u"),
        format!("CREATE DATABASE {}_own", adopted.project),
        format!("DROP DATABASE {}_own", adopted.project),
    ] {
        run(json!({"query": query})).await.payload();
    }
    adopted.cli(&["database", "adopt", name, "--allow-drop", "database"]);
    run(json!({"query": format!("DROP DATABASE {name}")})).await.payload();
    assert!(!adopted.exists());
}

async fn a_missing_definer_is_told_as_such(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    db.behind(
        "CREATE DEFINER = 'nobody-any-more'@'%' VIEW v AS SELECT id FROM t; \
         CREATE DEFINER = 'nobody-any-more'@'%' FUNCTION f() RETURNS INT RETURN 1",
    );
    let answers = [
        db.get("v").await,
        db.sql("SELECT * FROM v").send().await,
        db.sql("INSERT INTO t SELECT id FROM v").send().await,
        db.sql("SELECT f()").send().await,
    ];
    for answer in answers {
        let error = answer.refused(ErrorCode::SqlError);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("definer"), "{answer}");
        assert!(!message.contains("password") && !message.contains("nobody-any-more"), "{answer}");
        assert!(error["hint"].as_str().unwrap().contains("INVOKER"), "{answer}");
    }
}

async fn an_adopted_database_is_released_by_the_cli_and_not_dropped(host: Host) {
    let adopted = Adopted::new();
    let name = &adopted.name;
    let path = format!("/api/v1/crud/{}/t", enc(name));
    let read = || host.get(&path).key(&adopted.key).send();
    assert_eq!(read().await.payload(), json!([{"id": 1}]));
    let (code, told) = adopted.cli(&["database", "drop", name, "--yes"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("can be released, not dropped") && told.contains("database release"), "{told}");
    assert!(adopted.exists());
    let (code, told) = adopted.cli(&["database", "release", name]);
    assert_eq!(code, Some(0), "{told}");
    assert!(adopted.exists(), "a release drops nothing");
    eventually("the released database is out of reach", CHANGE_MAX, || async {
        (read().await.code() == "database_not_found").then_some(())
    })
    .await;
    // A database that Selkie created can be dropped, but only with confirmation.
    let made = unique("made");
    assert_eq!(adopted.cli(&["database", "create", &made]).0, Some(0));
    let (code, told) = adopted.cli(&["database", "drop", &made]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("--yes"), "{told}");
    assert_eq!(adopted.cli(&["database", "drop", &made, "--yes"]).0, Some(0));
}

async fn a_project_is_removed_with_all_that_it_owns(host: Host) {
    let adopted = Adopted::new();
    let project = &adopted.project;
    let upload = json!({"type": "file", "media": [{"name": "a.txt", "base64": "data:text/plain;base64,YQ=="}]});
    let call = host.call(reqwest::Method::POST, "/api/v1/media").key(&adopted.key);
    let uploaded = call.json(&upload).send().await.payload();
    let url = uploaded[0]["url"].as_str().expect("a URL");
    let path = url.find("/media/").map(|at| url[at..].to_owned()).expect("a path");
    let remove = |more: &[&str]| {
        let output = shared().cli(&[&["project", "remove", project], more].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), told)
    };
    for (more, code, part) in [
        (vec!["--yes"], 1, adopted.name.as_str()),
        (vec!["--yes", "--databases", "drop"], 1, "--delete-media"),
        (vec!["--databases", "drop", "--delete-media"], 2, "--yes"),
    ] {
        let (found, told) = remove(&more);
        assert_eq!(found, Some(code), "{more:?}: {told}");
        assert!(told.contains(part), "{more:?}: {told}");
    }
    let (code, told) = remove(&["--databases", "drop", "--delete-media", "--yes"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(adopted.exists(), "an adopted database was dropped");
    let refused = eventually("the project's key ends", CHANGE_MAX, || async {
        let answer = host.get("/api/v1/crud/demo/posts/1").key(&adopted.key).send().await;
        (answer.code() == "invalid_key").then_some(answer)
    });
    refused.await.refused(ErrorCode::InvalidKey);
    eventually("the project's file ends", CHANGE_MAX, || async {
        let answer = host.get(&path).no_key().send().await;
        (answer.status == 404).then_some(())
    })
    .await;
    let (code, told) = remove(&["--yes"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("there is no project"), "{told}");
    let users = shared().root_sql(&format!("SELECT User FROM mysql.user WHERE User LIKE 'selkie-{project}-%'"));
    assert_eq!(users.expect("an answer"), "");
    // A new project can have the same name.
    shared().create_project(project);
}
