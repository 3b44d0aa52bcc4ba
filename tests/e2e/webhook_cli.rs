//! What an operator of webhooks has: `selkie webhook`, `selkie doctor`, metrics.

use crate::case::eventually;
use crate::fake_origin::{FakeOrigin, Manner};
use crate::host::{Call, Host};
use crate::service::{Edge, Service, binary, clear_settings};
use reqwest::Method;
use serde_json::{Value, json};
use std::process::{Command, Output};
use std::time::Duration;

cases! {
    Own: [
        the_command_manages_webhooks_of_the_installation_and_by_a_url,
        the_doctor_and_metrics_name_webhooks_that_fail,
    ],
}

const WAIT_MAX: Duration = Duration::from_secs(60);
const GONE: Manner =
    Manner::Raw("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone");

fn start(edge: Edge) -> Service {
    Service::start(edge, &[ALLOWED]).expect("a service")
}

const ALLOWED: (&str, &str) = ("SELKIE_WEBHOOK_ALLOW", "127.0.0.1/32");

/// Runs `selkie webhook` on the installation, or by the URL of a host.
fn run(service: &Service, url: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = match url {
        Some(url) => {
            let mut command = Command::new(binary().expect("the binary"));
            clear_settings(&mut command);
            command.arg("webhook").args(arguments).args(["--url", url]).env("SELKIE_KEY", &service.full_key);
            command
        }
        None => {
            let mut command = service.cli_command(&[&["webhook"], arguments].concat());
            command.envs([ALLOWED]);
            command
        }
    };
    command.output().expect("it runs")
}

#[track_caller]
fn ok(service: &Service, url: Option<&str>, arguments: &[&str]) -> String {
    let output = run(service, url, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {told}");
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

#[track_caller]
fn fails(service: &Service, url: Option<&str>, arguments: &[&str], code: i32, part: &str) {
    let output = run(service, url, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(code) && told.contains(part), "{arguments:?}: {told}");
}

#[track_caller]
fn json_of(service: &Service, url: Option<&str>, arguments: &[&str]) -> Value {
    serde_json::from_str(&ok(service, url, &[arguments, &["--json"]].concat())).expect("JSON")
}

async fn the_command_manages_webhooks_of_the_installation_and_by_a_url(_: Host) {
    let service = start(Edge::With);
    let hosts = [None, Some(service.origin.clone()), service.edge.clone()];
    for host in &hosts {
        let endpoint = FakeOrigin::start("endpoint", Manner::Well).await;
        manage(&service, host.as_deref(), &endpoint).await;
    }
    service.stop().expect("its end");
}

fn set<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["set", "a b"], more].concat()
}

async fn manage(service: &Service, url: Option<&str>, endpoint: &FakeOrigin) {
    let table = format!("{}.tags", service.database);
    let to = format!("{}/hook", endpoint.url);
    let of_flags = ["--table", &table, "--types", "insert,delete", "--query", r#"{"name":"kelp"}"#, "--select", "name"];
    fails(service, url, &set(&["--endpoint", &to]), 2, "has no webhook \"a b\" yet");
    fails(service, url, &set(&[]), 2, "nothing is to be set");
    fails(service, url, &set(&["--table", &table, "--types", "x"]), 2, "insert, update, delete");
    fails(service, url, &set(&["--endpoint", "ftp://x", "--table", &table]), 1, "must begin with https://");
    let secret = ok(service, url, &[&set(&["--endpoint", &to])[..], &of_flags].concat());
    assert!(secret.starts_with("whsec_") && !secret.contains(char::is_whitespace), "{secret}");

    let wanted = json!({"name": "a b", "url": to, "paused": false, "subscriptions": [
        {"database": service.database, "table": "tags", "query": {"name": "kelp"}, "selectFields": ["name"], "types": ["insert", "delete"]}]});
    let shown: Value = serde_json::from_str(&ok(service, url, &["show", "a b"])).expect("JSON");
    assert_eq!(shown, wanted);
    let listed = json_of(service, url, &["list"]);
    assert_eq!((&listed[0]["name"], &listed[0]["secret"], &listed[1]), (&json!("a b"), &Value::Null, &Value::Null));
    assert!(ok(service, url, &["list"]).contains(" delivers "), "{listed}");

    service.root_sql(&format!("INSERT INTO {table} (name) VALUES ('other'), ('kelp')")).expect("rows");
    let delivered = eventually("a delivery", WAIT_MAX, async || endpoint.asked().pop()).await;
    let body: Value = serde_json::from_slice(&delivered.body).expect("JSON");
    assert_eq!((&body["changes"][0]["record"], &body["changes"][1]), (&json!({"name": "kelp"}), &Value::Null));
    let deliveries = eventually("the delivery is listed", WAIT_MAX, async || {
        let listed = json_of(service, url, &["deliveries", "a b"]);
        Some(listed).filter(|listed| listed[0]["state"] == "delivered")
    });
    let deliveries = deliveries.await;
    assert_eq!((&deliveries[0]["changes"], &deliveries[0]["status"]), (&json!(1), &json!(200)), "{deliveries}");
    let id = deliveries[0]["id"].to_string();
    assert!(ok(service, url, &["deliveries", "a b"]).contains(" delivered "), "{deliveries}");
    endpoint.forget();
    ok(service, url, &["send-again", "a b", &id]);
    assert_eq!(endpoint.asked()[0].header("webhook-id"), deliveries[0]["messageId"].as_str());
    endpoint.turn(GONE);
    fails(service, url, &["send-again", "a b", &id], 1, "has not taken the delivery");
    fails(service, url, &["test", "a b"], 1, "has not taken the delivery");
    endpoint.turn(Manner::Well);
    assert!(ok(service, url, &["test", "a b"]).starts_with("200 in "));
    fails(service, url, &["send-again", "a b", "0"], 1, "no delivery");

    ok(service, url, &["pause", "a b"]);
    assert!(ok(service, url, &["list"]).contains(" paused "));
    // A changed URL leaves the rest as it is.
    let elsewhere = format!("{}/elsewhere", endpoint.url);
    ok(service, url, &set(&["--endpoint", &elsewhere]));
    let shown = json_of(service, url, &["show", "a b"]);
    assert_eq!((&shown["paused"], &shown["subscriptions"]), (&json!(true), &wanted["subscriptions"]), "{shown}");
    assert_eq!(shown["url"], elsewhere);
    ok(service, url, &["resume", "a b"]);
    let renewed = ok(service, url, &["renew-secret", "a b"]);
    assert!(renewed.starts_with("whsec_") && renewed != secret, "{renewed}");

    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("hook.json");
    let path = file.to_str().expect("a path");
    std::fs::write(&file, wanted.to_string()).expect("a file");
    ok(service, url, &set(&["--file", path]));
    assert_eq!(json_of(service, url, &["show", "a b"])["url"], to);
    fails(service, url, &["set", "other", "--file", path], 2, "has the name \"a b\"");
    ok(service, url, &["remove", "a b"]);
    for arguments in [&["show", "a b"][..], &["pause", "a b"], &["remove", "a b"], &["test", "a b"]] {
        fails(service, url, arguments, 1, "has no webhook \"a b\"");
    }
    let made = json_of(service, url, &set(&["--file", path]));
    assert!(made["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{made}");
    // It can be paused though its table is gone.
    ok(service, url, &["remove", "a b"]);
    let gone = format!("{}.gone", service.database);
    service.root_sql(&format!("CREATE TABLE {gone} (id INT PRIMARY KEY)")).expect("a table");
    ok(service, url, &set(&["--endpoint", &to, "--table", &gone]));
    service.root_sql(&format!("DROP TABLE {gone}")).expect("no table");
    ok(service, url, &["pause", "a b"]);
    ok(service, url, &["remove", "a b"]);
    service.root_sql(&format!("DELETE FROM {table} WHERE name IN ('other', 'kelp')")).expect("no rows");
}

async fn the_doctor_and_metrics_name_webhooks_that_fail(_: Host) {
    let service = start(Edge::Without);
    let endpoint = FakeOrigin::start("endpoint", GONE).await;
    let table = format!("{}.tags", service.database);
    let metric = async |name: &str| {
        let text = Call::new(&service.origin, Method::GET, "/metrics").send().await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        line.map(|value| value.parse::<f64>().expect("a number"))
    };
    let becomes = async |name: &str, value: f64| {
        eventually(name, WAIT_MAX, async || (metric(name).await == Some(value)).then_some(())).await;
    };
    for name in ["selkie_webhooks_failing", "selkie_webhook_deliveries_running"] {
        assert_eq!(metric(name).await, Some(0.0), "{name}");
    }
    ok(&service, None, &["set", "kelp", "--endpoint", &endpoint.url, "--table", &table]);
    service.root_sql(&format!("INSERT INTO {table} (name) VALUES ('kelp')")).expect("a row");
    eventually("an attempt", WAIT_MAX, async || {
        (metric("selkie_webhook_deliveries_total{outcome=\"retried\"}").await > Some(0.0)).then_some(())
    })
    .await;
    assert!(ok(&service, None, &["list"]).contains("failing since"));
    let findings = || -> Vec<(String, String)> {
        let report: Value = serde_json::from_slice(&service.cli(&["doctor", "--json"]).stdout).expect("a report");
        let findings = report["findings"].as_array().expect("findings").iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of_webhooks = findings.filter(|finding| finding["check"] == "webhooks");
        of_webhooks.map(|finding| (text(&finding["verdict"]), text(&finding["message"]))).collect()
    };
    let well = ("ok".to_owned(), "no webhook's endpoint has failed for more than a day".to_owned());
    assert_eq!(findings(), [well]);
    service.root_sql("UPDATE selkie.webhook_positions SET failing_since = failing_since - 86400").expect("a day");
    becomes("selkie_webhooks_failing", 1.0).await;
    let message = "the endpoint of webhook \"kelp\" of project default has failed for more than a day";
    assert_eq!(findings(), [("warning".to_owned(), message.to_owned())]);
    endpoint.turn(Manner::Well);
    becomes("selkie_webhook_deliveries_total{outcome=\"delivered\"}", 1.0).await;
    becomes("selkie_webhooks_failing", 0.0).await;
    assert_eq!(metric("selkie_webhook_deliveries_total{outcome=\"failed\"}").await, Some(0.0));
    let url = Some(&*service.origin);
    ok(&service, url, &["test", "kelp"]);
    let id = json_of(&service, url, &["deliveries", "kelp"])[0]["id"].to_string();
    ok(&service, url, &["send-again", "kelp", &id]);
    assert_eq!(metric("selkie_webhook_deliveries_total{outcome=\"delivered\"}").await, Some(3.0));
    service.stop().expect("its end");
}
