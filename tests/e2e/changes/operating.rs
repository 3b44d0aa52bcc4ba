//! What an operator meets: the setting `changes`, `selkie doctor`, metrics.

use crate::host::{Call, Host};
use crate::service::{Edge, Service, find_socket};
use reqwest::Method;
use serde_json::Value;
use shared::error::ErrorCode;

cases! {
    Own: [
        the_feed_can_be_switched_off,
        the_doctor_names_what_the_log_lacks,
        metrics_tell_what_the_feed_does,
    ],
}

fn changes(service: &Service, options: &str) -> Call {
    let path = format!("/api/v1/changes/{}/posts?{options}", service.database);
    Call::new(&service.origin, Method::GET, &path).key(&service.full_key)
}

/// Returns what `selkie doctor` says of the feed: verdict, message and hint of each finding.
fn findings(service: &Service, variables: &[(&str, &str)]) -> Vec<[String; 3]> {
    let mut command = service.cli_command(&["doctor", "--json"]);
    let output = command.envs(variables.iter().copied()).output().expect("it runs");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", String::from_utf8_lossy(&output.stderr)));
    let findings = report["findings"].as_array().expect("findings").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_changes = findings.filter(|finding| finding["check"] == "changes");
    of_changes.map(|finding| ["verdict", "message", "hint"].map(|part| text(&finding[part]))).collect()
}

async fn the_feed_can_be_switched_off(_: Host) {
    // Its data directory had a log before.
    let off = ("SELKIE_CHANGES", "off");
    let service = Service::start(Edge::With, &[off]).expect("a service");
    for host in [&service.origin, service.edge.as_ref().expect("an edge")] {
        let error = changes(&service, "").at(host).send().await.refused(ErrorCode::ChangesUnavailable);
        assert_eq!(error["hint"], "Set changes = \"on\", or SELKIE_CHANGES=on, at the origin.");
    }
    assert_eq!(service.root_sql("SELECT @@log_bin").expect("an answer"), "0\n");
    let found = findings(&service, &[off]);
    assert_eq!(found, [["ok", "the feed of changes is switched off", ""]]);
    let found = findings(&service, &[]);
    let [[verdict, message, hint], ..] = &found[..] else { panic!("no finding") };
    assert_eq!(
        (verdict.as_str(), message.as_str()),
        ("warning", "MariaDB's binary log can't serve changes without log_bin")
    );
    assert!(hint.ends_with("or set changes = \"off\""), "{hint}");
    service.stop().expect("its end");
}

async fn the_doctor_names_what_the_log_lacks(_: Host) {
    let service = Service::start(Edge::Without, &[]).expect("a service");
    let readable = ["ok", "MariaDB's binary log can be read", ""];
    assert_eq!(findings(&service, &[]), [readable]);
    let set = |statements: &str| service.root_sql(statements).expect("it is set");
    set("SET GLOBAL sync_binlog = 0; SET GLOBAL binlog_expire_logs_seconds = 0");
    let cautions: Vec<String> = findings(&service, &[]).into_iter().skip(1).map(|[.., hint]| hint).collect();
    assert_eq!(cautions, ["set sync_binlog=1", "set binlog_expire_logs_seconds, such as 259200 for three days"]);
    set("SET GLOBAL sync_binlog = 1; SET GLOBAL binlog_expire_logs_seconds = 86400");
    set("CREATE USER poor@localhost IDENTIFIED BY 'poor'; GRANT ALL PRIVILEGES ON *.* TO poor@localhost; \
         REVOKE REPLICATION SLAVE ON *.* FROM poor@localhost");
    let socket = find_socket(&service.data_dir()).expect("a socket");
    let url = format!("mysql://poor:poor@localhost?socket={}", socket.display());
    let found = findings(&service, &[("SELKIE_DATABASE_URL", &url)]);
    let hint = "Grant REPLICATION SLAVE to the admin account in MariaDB, or set changes = \"off\"";
    assert_eq!(found, [["warning", "MariaDB's binary log can't be read", hint]]);
    set("SET GLOBAL binlog_format = MIXED; SET GLOBAL binlog_row_image = MINIMAL; \
         SET GLOBAL binlog_row_metadata = MINIMAL");
    let lacks: Vec<String> = findings(&service, &[]).into_iter().map(|[_, message, _]| message).collect();
    let expected = ["binlog_format=ROW", "binlog_row_image=FULL", "binlog_row_metadata=FULL"];
    assert_eq!(lacks, expected.map(|setting| format!("MariaDB's binary log can't serve changes without {setting}")));
    let error = changes(&service, "").send().await.refused(ErrorCode::ChangesUnavailable);
    assert_eq!(error["hint"], "Set binlog_format=ROW in MariaDB.");
    service.stop().expect("its end");
}

async fn metrics_tell_what_the_feed_does(_: Host) {
    let service = Service::start(Edge::Without, &[]).expect("a service");
    let metric = async |name: &str| {
        let text = Call::new(&service.origin, Method::GET, "/metrics").send().await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        line.map(|value| value.parse::<f64>().expect("a number"))
    };
    assert_eq!(metric("selkie_changes_reader_running").await, Some(0.0));
    assert_eq!(metric("selkie_changes_last_commit_age_seconds").await, None);
    let token = |answer: &Value| answer["next"].as_str().expect("a token").to_owned();
    let begin = token(&changes(&service, "").send().await.json());
    let write = |statement: &str| service.root_sql(&format!("USE {}; {statement}", service.database)).expect("a write");
    write("UPDATE posts SET title = 'a' ORDER BY id LIMIT 2");
    let page = changes(&service, &format!("since={begin}")).send().await.json();
    assert_eq!(page["payload"].as_array().expect("changes").len(), 2);
    for (name, value) in [
        ("selkie_changes_reader_running", 1.0),
        ("selkie_changes_tables", 1.0),
        ("selkie_changes_waiting", 0.0),
        ("selkie_changes_transactions_total", 1.0),
        ("selkie_changes_pages_total", 2.0),
        ("selkie_changes_sent_total", 2.0),
        ("selkie_changes_resyncs_total{reason=\"truncated\"}", 0.0),
    ] {
        assert_eq!(metric(name).await, Some(value), "{name}");
    }
    assert!(metric("selkie_changes_recent_bytes").await.is_some_and(|bytes| bytes > 0.0));
    assert!(metric("selkie_changes_last_commit_age_seconds").await.is_some());
    write("SET foreign_key_checks = 0; TRUNCATE TABLE posts");
    changes(&service, &format!("since={}", token(&page))).send().await.refused(ErrorCode::ResyncRequired);
    assert_eq!(metric("selkie_changes_resyncs_total{reason=\"truncated\"}").await, Some(1.0));
    service.stop().expect("its end");
}
