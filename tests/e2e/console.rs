//! The console: its files, its setting, and what users do with it in Chromium.
//!
//! `console/test/console.mjs` does the tasks and checks them; it gets a database, keys and an address here.

use crate::host::{Call, Host};
use crate::roles::set_role_in;
use crate::second_origin::SecondOrigin;
use crate::service::{clear_settings, shared, workspace};
use crate::test_db::unique;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

cases! {
    Both: [the_console_is_served_without_a_key_and_allows_no_foreign_code, users_do_their_tasks_in_the_console],
    Own: [
        the_console_can_be_switched_off,
        the_command_prints_the_address,
        the_browser_that_the_command_starts_gets_no_secret,
        the_link_is_not_in_the_arguments_of_the_browser,
    ],
}

async fn the_console_is_served_without_a_key_and_allows_no_foreign_code(host: Host) {
    for (path, content_type) in [
        ("/console", "text/html; charset=utf-8"),
        ("/console/", "text/html; charset=utf-8"),
        ("/console/main.js", "text/javascript; charset=utf-8"),
        ("/console/main.css", "text/css; charset=utf-8"),
        ("/console/icon.svg", "image/svg+xml"),
    ] {
        let answer = Call::new(host.url(), Method::GET, path).send().await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, Some(content_type)), "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains(", script-src http://*:*/console/ https://*:*/console/; style-src"), "{policy}");
    }
    Call::new(host.url(), Method::GET, "/console/nothing.js").send().await.refused(ErrorCode::RouteNotFound);
    Call::new(host.url(), Method::POST, "/console").send().await.refused(ErrorCode::MethodNotAllowed);
}

async fn the_console_can_be_switched_off(_: Host) {
    let start = || {
        let mut second = SecondOrigin::launch(shared(), &[("SELKIE_CONSOLE", "off")])?;
        second.wait_until_ready()?;
        Ok::<_, String>(second)
    };
    let origin = tokio::task::spawn_blocking(start).await.expect("a task").expect("a second origin");
    for path in ["/console", "/console/main.js"] {
        Call::new(&origin.origin, Method::GET, path).send().await.refused(ErrorCode::RouteNotFound);
    }
    for path in ["/", "/docs"] {
        let page = Call::new(&origin.origin, Method::GET, path).header("accept", "text/html").send().await;
        let text = page.text();
        assert!(page.status == 200 && text.contains("</html>") && !text.contains("/console"), "{page}");
    }
}

async fn the_command_prints_the_address(_: Host) {
    let own = shared().cli_ok(&["console", "--no-link", "--listen", "0.0.0.0:9100"]);
    assert_eq!(own.trim(), "http://127.0.0.1:9100/console");
    let public = shared().cli_ok(&["console", "--no-link", "--public-url", "https://api.example.com"]);
    assert_eq!(public.trim(), "https://api.example.com/console");
}

async fn the_browser_that_the_command_starts_gets_no_secret(_: Host) {
    let directory = tempfile::tempdir().expect("a directory");
    let (browser, printed) = (directory.path().join("xdg-open"), directory.path().join("environment"));
    std::fs::write(&browser, "#!/bin/sh\nenv > \"$ENVIRONMENT\"\n").expect("a file");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").expect("a PATH"));
    let secrets = [
        ("SELKIE_SECRET", "5ec2e7".repeat(11)),
        ("SELKIE_DATABASE_URL", "mysql://admin:5ec2e7@127.0.0.1:1".to_owned()),
        ("SELKIE_REPLICA_URL", "mysql://admin:5ec2e7@127.0.0.1:2".to_owned()),
        ("SELKIE_OTLP_HEADERS", "authorization=5ec2e7".to_owned()),
        ("SELKIE_MEDIA_S3_ACCESS_KEY", "5ec2e7".to_owned()),
        ("SELKIE_MEDIA_S3_SECRET_KEY", "5ec2e7".to_owned()),
    ];
    let mut command = shared().cli_command(&["console", "--no-link", "--open"]);
    let output = command.envs(secrets).env("PATH", path).env("ENVIRONMENT", &printed).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let environment = std::fs::read_to_string(&printed).expect("the browser was started");
    assert!(environment.contains("ENVIRONMENT=") && !environment.contains("5ec2e7"), "{environment}");
}

async fn the_link_is_not_in_the_arguments_of_the_browser(_: Host) {
    let directory = tempfile::tempdir().expect("a directory");
    let (browser, printed) = (directory.path().join("xdg-open"), directory.path().join("arguments"));
    std::fs::write(&browser, "#!/bin/sh\necho \"$@\" > \"$ARGUMENTS\"\n").expect("a file");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").expect("a PATH"));
    let mut command = shared().cli_command(&["console", "--open"]);
    let output = command.envs([("PATH", path.as_ref()), ("ARGUMENTS", printed.as_os_str())]);
    let output = output.env("TMPDIR", directory.path()).output().expect("it runs");
    let link = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success() && link.contains("#link="), "{}", String::from_utf8_lossy(&output.stderr));
    let opened = std::fs::read_to_string(&printed).expect("the browser was started");
    let page = std::path::Path::new(opened.trim());
    assert_eq!(page.parent(), Some(directory.path()), "{opened}");
    assert_eq!(std::fs::metadata(page).expect("a page").permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(page).expect("a page").contains(&format!("url={link}\"")));
}

async fn exec(host: Host, key: &str, database: &str, query: &str) {
    let body = json!({"query": query, "database": database});
    Call::new(host.url(), Method::POST, "/api/v1/sql").key(key).json(&body).send().await.payload();
}

/// Does the tasks in a project of their own, so that the console shows no other cases' databases.
async fn users_do_their_tasks_in_the_console(host: Host) {
    let project = unique("console");
    shared().create_project(&project);
    let key = |access| shared().create_key(&project, access, &[]).token;
    let (full, read) = (key("full"), key("read"));
    let database = format!("{project}_library");
    let create = json!({"query": format!("CREATE DATABASE {database} CHARACTER SET utf8mb4")});
    Call::new(host.url(), Method::POST, "/api/v1/sql").key(&full).json(&create).send().await.payload();
    for statement in include_str!("../../console/test/schema.sql").split(";\n") {
        exec(host, &full, &database, statement).await;
    }
    let own = json!({"author_id": 1});
    let books =
        json!({"read": {"rows": own, "fields": {"omit": ["big"]}}, "update": {"fields": ["note"], "rows": own}});
    set_role_in(shared(), &project, "author", &json!({"tables": {format!("{database}.books"): books}}));
    let author = shared().create_role_key(&project, "author", &[]).token;
    let visitor =
        json!({"tables": {format!("{database}.later"): {"read": true}}, "media": {"read": true}, "maxRows": 50});
    set_role_in(shared(), &project, "visitor", &visitor);
    let visitor = shared().create_role_key(&project, "visitor", &[]).token;
    let link = crate::management::link(&project).await;
    let mut command = Command::new("node");
    clear_settings(&mut command);
    command.arg(workspace().join("console/test/console.mjs")).envs([
        ("SELKIE_URL", host.url()),
        ("SELKIE_KEY", &full),
        ("SELKIE_READ_KEY", &read),
        ("SELKIE_ROLE_KEY", &author),
        ("SELKIE_VISITOR_KEY", &visitor),
        ("SELKIE_DATABASE", &database),
        ("SELKIE_FOLDER", &project),
        ("SELKIE_LINK", &link),
    ]);
    let work = move || {
        // The receiver of webhooks verifies them with the client.
        crate::typescript::client();
        command.output()
    };
    let output = tokio::task::spawn_blocking(work).await.expect("a task").expect("node");
    let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}{errors}");
}
