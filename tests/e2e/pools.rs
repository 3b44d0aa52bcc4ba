//! Tests that all projects share the few connections to MariaDB: a project without a connection takes the place of
//! another project's idle connection, or waits until one is free.

use crate::case::eventually;
use crate::faults;
use crate::host::{Call, Host};
use crate::service::{Edge, Service};
use crate::test_db::unique;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
const WHO: &str = "SELECT CURRENT_USER() AS who";

cases! {
    Own: [
        more_projects_than_connections_are_all_served,
        who_finds_all_connections_in_use_waits_for_one,
    ],
}

fn projects(service: &Service, count: usize) -> Vec<(String, String)> {
    let make = |_| {
        let name = unique("pooled");
        service.create_project(&name);
        let key = service.create_key(&name, "full", &[]).token;
        (name, key)
    };
    (0..count).map(make).collect()
}

fn ask(service: &Service, query: &str, key: &str) -> Call {
    let call = Call::new(&service.origin, Method::POST, "/api/v1/sql").key(key);
    call.json(&json!({"query": query}))
}

fn connections(service: &Service) -> usize {
    let count = service.root_sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER LIKE 'selkie-%-r_'");
    count.unwrap().trim().parse().unwrap()
}

async fn more_projects_than_connections_are_all_served(_: Host) {
    let service = faults::start(Edge::Without, &[("SELKIE_POOL_TOTAL", "3")]).await;
    let projects = projects(&service, 7);
    for round in 0..3 {
        // The projects send their requests one after the other, then all at once.
        for (name, key) in &projects {
            let answer = ask(&service, WHO, key).send().await;
            assert_eq!(answer.payload(), json!([{"who": format!("selkie-{name}-rw@localhost")}]));
        }
        let all = projects.iter().cycle().take(42);
        let answers = join_all(all.clone().map(|(_, key)| ask(&service, WHO, key).send())).await;
        for ((name, _), answer) in all.zip(answers) {
            let who = format!("selkie-{name}-rw@localhost");
            assert_eq!(answer.payload(), json!([{"who": who}]), "round {round}");
        }
        // Three connections for statements, two for schemas. A closed connection may stay visible for a moment.
        eventually("no more connections than allowed", SOON, || async {
            (connections(&service) <= 3 + 2).then_some(())
        })
        .await;
    }
    faults::stop(service).await;
}

async fn who_finds_all_connections_in_use_waits_for_one(_: Host) {
    let settings = &[("SELKIE_POOL_TOTAL", "1"), ("SELKIE_POOL_WAIT_TIMEOUT", "3s")];
    let service = faults::start(Edge::Without, settings).await;
    let projects = projects(&service, 2);
    let (busy, other) = (&projects[0].1, &projects[1].1);
    for (seconds, waits_long_enough) in [(1, true), (8, false)] {
        let query = format!("SELECT SLEEP({seconds}) AS busy");
        let sleeping = tokio::spawn(ask(&service, &query, busy).attempt());
        eventually("the only connection is in use", SOON, || async {
            let running =
                service.root_sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%) AS busy'");
            (running.unwrap().trim() != "0").then_some(())
        })
        .await;
        let answer = ask(&service, WHO, other).send().await;
        if waits_long_enough {
            answer.payload();
        } else {
            answer.refused(ErrorCode::Overloaded);
        }
        sleeping.await.unwrap().expect("an answer").payload();
    }
    // Requests that timed out must have left nothing in the queue.
    for key in [other, busy, other] {
        ask(&service, WHO, key).send().await.payload();
    }
    faults::stop(service).await;
}
