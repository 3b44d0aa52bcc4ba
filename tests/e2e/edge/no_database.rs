//! An origin that has lost its database: the edge sends it only health checks, and all requests to other origins.

use super::origins::{POSTS, Pair, call, states};
use crate::case::eventually;
use crate::fake_origin::Manner;
use crate::host::Host;
use crate::second_origin::{SecondOrigin, Through};
use crate::service::shared;
use crate::worker::Worker;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Own: [
        an_origin_that_refuses_to_tell_whether_it_is_ready_is_not,
        a_read_goes_on_where_the_database_is_gone_and_a_write_the_next_time,
        a_caller_who_loses_its_own_connection_is_no_fault_of_the_origin,
        without_any_database_the_caller_is_told_so,
        an_origin_whose_mariadb_stops_is_left_until_it_is_back,
    ],
}

const NO_DATABASE: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nX-Request-Id: REQUEST_ID\r\n\
    X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
    X-Selkie-Unavailable: database\r\nRetry-After: 2\r\nConnection: close\r\n\r\n\
    {\"success\":false,\"payload\":null,\"error\":{\"code\":\"database_unavailable\",\"message\":\"gone\",\"retryable\":true,\"requestId\":\"REQUEST_ID\"}}";

fn lost() -> Manner {
    Manner::Raw(NO_DATABASE).well_asked()
}

/// Returns how many requests each origin got, without health checks.
fn asked(pair: &Pair) -> (usize, usize) {
    [&pair.a, &pair.b]
        .map(|origin| {
            let asked = origin.asked();
            let is_sign = |head: &str| head.starts_with("GET /readyz ");
            asked.iter().filter(|seen| !is_sign(&seen.head)).count()
        })
        .into()
}

async fn a_read_goes_on_where_the_database_is_gone_and_a_write_the_next_time(_: Host) {
    let pair = Pair::start(lost(), Manner::Well).await;
    for _ in 0..20 {
        assert_eq!(pair.read().await.payload(), "b");
    }
    assert_eq!(asked(&pair), (1, 20));
    assert_eq!(states(&pair.worker).await[0]["state"], "no-database");
    let insert = || call(&pair.worker, Method::POST, POSTS).json(&json!({"title": "x"}));
    assert_eq!(insert().send().await.payload(), "b");
    assert_eq!(asked(&pair), (1, 21));
    pair.a.turn(Manner::Well);
    let is_back = || async { (pair.read().await.payload() == "a").then_some(()) };
    eventually("the first origin answers", Duration::from_secs(20), is_back).await;
    assert_eq!(states(&pair.worker).await[0]["state"], "healthy");
    // A write whose origin loses the database may have been done, so it is not sent to another origin.
    pair.a.turn(lost());
    let before = asked(&pair);
    insert().send().await.refused(ErrorCode::DatabaseUnavailable);
    assert_eq!(asked(&pair), (before.0 + 1, before.1));
    assert_eq!(insert().send().await.payload(), "b");
}

async fn an_origin_that_refuses_to_tell_whether_it_is_ready_is_not(_: Host) {
    let pair = Pair::start(Manner::Untrusting(Box::new(lost())), Manner::Well).await;
    for _ in 0..5 {
        assert_eq!(pair.read().await.payload(), "b");
    }
    assert_eq!(asked(&pair), (1, 5));
    assert_eq!(states(&pair.worker).await[0]["state"], "no-database");
}

async fn a_caller_who_loses_its_own_connection_is_no_fault_of_the_origin(_: Host) {
    let pair = Pair::start(lost().ready(), Manner::Well).await;
    for _ in 0..3 {
        assert_eq!(pair.read().await.payload(), "b");
    }
    assert_eq!(asked(&pair), (3, 3));
    assert_eq!(states(&pair.worker).await[0]["failures"], 0);
}

async fn without_any_database_the_caller_is_told_so(_: Host) {
    let pair = Pair::start(lost(), lost()).await;
    for _ in 0..5 {
        let answer = pair.read().await;
        answer.refused(ErrorCode::DatabaseUnavailable);
        let after = answer.header("retry-after").expect("a time");
        assert!((1..=4).contains(&after.parse::<u32>().unwrap()), "{after}");
    }
    pair.b.turn(Manner::Well);
    let is_back = || async { (pair.read().await.code() == "ok").then_some(()) };
    eventually("one is back", Duration::from_secs(20), is_back).await;
}

async fn an_origin_whose_mariadb_stops_is_left_until_it_is_back(_: Host) {
    let mut through = Through::start(shared());
    let url = through.database_url();
    let launch = move || {
        let mut second = SecondOrigin::launch(shared(), &[("SELKIE_DATABASE_URL", &url)])?;
        second.wait_until_ready().map(|()| second)
    };
    let second = tokio::task::spawn_blocking(launch).await.unwrap().unwrap();
    let origins = format!("{},{}", second.origin, shared().origin);
    let worker = tokio::task::spawn_blocking(move || Worker::start(&[("ORIGINS", &origins)]));
    let worker = worker.await.unwrap();
    let read = || call(&worker, Method::GET, &format!("{POSTS}/1")).send();
    assert_eq!(read().await.payload()["id"], 1);
    assert_eq!(states(&worker).await[0]["state"], "healthy");
    through.stop();
    for _ in 0..50 {
        assert_eq!(read().await.payload()["id"], 1);
    }
    let states_now = states(&worker).await;
    assert_eq!(states_now[0]["state"], "no-database", "{states_now:?}");
    assert_eq!(states_now[1]["state"], "healthy", "{states_now:?}");
    through.go_on(shared());
    let is_back = || async {
        assert_eq!(read().await.payload()["id"], 1);
        (states(&worker).await[0]["state"] == "healthy").then_some(())
    };
    eventually("the first origin is asked again", Duration::from_secs(60), is_back).await;
}
