//! The definitions of webhooks: what is refused, and what is listed.

use super::receiver::Receiver;
use super::{DELIVERY_MAX, Webhook, of_table, table};
use crate::case::eventually;
use crate::host::Host;
use crate::service::shared;
use crate::test_db::unique;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        wrong_definitions_are_refused,
        a_webhook_is_listed_changed_and_deleted,
        a_replacement_takes_what_was_changed_meanwhile,
        deliveries_are_listed_and_sent_again,
        long_bodies_are_kept_while_they_wait,
    ],
}

async fn wrong_definitions_are_refused(host: Host) {
    let db = table(host).await;
    let of = |subscription: Value| json!([of_table(&db.name, subscription)]);
    let whole = |name: &str, url: &str| json!({"name": name, "url": url, "subscriptions": of(json!({}))});
    let with =
        |subscriptions: Value| json!({"name": "a", "url": "https://example.com/", "subscriptions": subscriptions});
    let nowhere = json!([{"database": db.name, "table": "nowhere"}]);
    let related = of(json!({"query": {"x": {"some": {}}}}));
    for (body, code, message) in [
        (json!({}), ErrorCode::InvalidQueryOption, "The option name is missing."),
        (json!({"name": "a"}), ErrorCode::InvalidQueryOption, "The option url is missing."),
        (json!({"name": " a", "url": "x"}), ErrorCode::InvalidIdentifier, "is no name of a webhook"),
        (whole("a", "x"), ErrorCode::InvalidQueryOption, "is no URL"),
        (whole("a", "ftp://example.com/"), ErrorCode::InvalidQueryOption, "must begin with https://"),
        (whole("a", "https://me@example.com/"), ErrorCode::InvalidQueryOption, "has a user name"),
        (whole("a", "https://10.0.0.1/"), ErrorCode::InvalidQueryOption, "has an address of a network"),
        (whole("a", "https://[::ffff:169.254.169.254]/"), ErrorCode::InvalidQueryOption, "has an address of a network"),
        (whole("a", "http://93.184.216.34/"), ErrorCode::InvalidQueryOption, "has an address of a network"),
        (whole("a", "https://0x0a000001/"), ErrorCode::InvalidQueryOption, "has an address of a network"),
        (with(json!([])), ErrorCode::InvalidQueryOption, "must have 1 to 100 items"),
        (with(nowhere), ErrorCode::TableNotFound, "has no table \"nowhere\""),
        (with(of(json!({"selectFields": ["nope"]}))), ErrorCode::UnknownField, "nope"),
        (with(of(json!({"types": ["upsert"]}))), ErrorCode::InvalidQueryOption, "a list of insert, update and delete"),
        (with(related), ErrorCode::InvalidQueryOption, "no conditions on related records"),
    ] {
        let error = host.post("/api/v1/webhooks", &body).send().await.refused(code);
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{body}: {error}");
    }
    for (method, path) in [
        (Method::GET, "/api/v1/webhooks/none"),
        (Method::DELETE, "/api/v1/webhooks/none"),
        (Method::POST, "/api/v1/webhooks/none/test"),
        (Method::POST, "/api/v1/webhooks/none/secret"),
        (Method::GET, "/api/v1/webhooks/none/deliveries"),
        (Method::POST, "/api/v1/webhooks/none/deliveries/7"),
        (Method::GET, "/api/v1/webhooks/none/deliveries/x"),
    ] {
        host.call(method, path).send().await.refused(ErrorCode::RecordNotFound);
    }
    host.call(Method::PUT, "/api/v1/webhooks/none")
        .json(&with(of(json!({}))))
        .send()
        .await
        .refused(ErrorCode::RecordNotFound);
    host.get("/api/v1/webhooks/none/else").send().await.refused(ErrorCode::RouteNotFound);
}

async fn a_webhook_is_listed_changed_and_deleted(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({"types": ["insert"]})).await;
    let again = json!({"name": webhook.name, "url": receiver.url, "subscriptions": [of_table(&db.name, json!({}))]});
    host.post("/api/v1/webhooks", &again).send().await.refused(ErrorCode::DuplicateKey);
    let shown = webhook.show().await;
    assert_eq!((&shown["name"], &shown["url"]), (&json!(webhook.name), &json!(receiver.url)));
    assert_eq!(shown["subscriptions"], json!([of_table(&db.name, json!({"types": ["insert"]}))]));
    assert_eq!((&shown["paused"], &shown["deliveredAt"], shown.get("secret")), (&json!(false), &Value::Null, None));
    let mut listed = Vec::new();
    let mut after = String::new();
    loop {
        let page = host.get(&format!("/api/v1/webhooks?limit=1{after}")).send().await;
        listed.extend(page.payload().as_array().expect("webhooks").iter().map(|webhook| webhook["name"].clone()));
        match page.json()["next"].as_str() {
            Some(next) => after = format!("&after={}", crate::host::enc(next)),
            None => break,
        }
    }
    assert!(listed.is_sorted_by_key(|name| name.as_str().map(str::to_owned)), "{listed:?}");
    assert_eq!(listed.iter().filter(|name| **name == webhook.name).count(), 1);
    let error = webhook.call(Method::PUT, "").json(&json!({"name": "other"})).send().await;
    error.refused(ErrorCode::InvalidQueryOption);
    let name = webhook.name.clone();
    webhook.delete().await;
    host.get(&format!("/api/v1/webhooks/{}", crate::host::enc(&name))).send().await.refused(ErrorCode::RecordNotFound);
}

/// The endpoint answers 410 while a request pauses the webhook too: the reason of the pause stays.
async fn a_replacement_takes_what_was_changed_meanwhile(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    let body = json!({"url": receiver.url, "subscriptions": [of_table(&db.name, json!({}))], "paused": true});
    let lock = unique("changed");
    let waits = "SELECT 1 FROM information_schema.innodb_trx \
         WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE 'UPDATE selkie.webhooks SET url%'";
    let mut changing = shared().root_session(&format!(
        "delimiter //\nBEGIN NOT ATOMIC START TRANSACTION; \
         UPDATE selkie.webhooks SET paused = TRUE, pause_reason = 'gone', version = version + 1 \
         WHERE project = 'default' AND name = '{}'; \
         DO GET_LOCK('{lock}', 0); WHILE NOT EXISTS ({waits}) DO DO SLEEP(0.1); END WHILE; COMMIT; END//",
        webhook.name
    ));
    let is_changed = format!("SELECT IS_USED_LOCK('{lock}') IS NOT NULL");
    eventually("a change", DELIVERY_MAX, || async {
        (shared().root_sql(&is_changed).expect("an answer").trim() == "1").then_some(())
    })
    .await;
    let shown = webhook.call(Method::PUT, "").json(&body).send().await.payload();
    changing.wait().expect("an end");
    assert_eq!((&shown["paused"], &shown["pauseReason"]), (&json!(true), &json!("gone")));
    assert_eq!(webhook.show().await["pauseReason"], "gone");
    webhook.delete().await;
}

async fn deliveries_are_listed_and_sent_again(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    for n in 1..=3 {
        db.exec(&format!("INSERT INTO t (n) VALUES ({n})")).await;
        receiver.wait_for_changes(n).await;
    }
    webhook.delivery("the last delivery", |delivery| delivery["messageId"] == receiver.received()[2].id()).await;
    let all = webhook.deliveries().await;
    assert_eq!(all.len(), 3);
    let first = webhook.call(Method::GET, "/deliveries?limit=2").send().await;
    let next = first.json()["next"].as_str().expect("a next").to_owned();
    let rest = webhook.call(Method::GET, &format!("/deliveries?limit=2&after={next}")).send().await;
    assert_eq!([first.payload().as_array().unwrap().clone(), rest.payload().as_array().unwrap().clone()].concat(), all);
    let one = webhook.call(Method::GET, &format!("/deliveries/{}", all[2]["id"])).send().await.payload();
    assert_eq!(one["request"], receiver.received()[0].body());
    let again = webhook.call(Method::POST, &format!("/deliveries/{}", all[2]["id"])).send().await.payload();
    assert_eq!((&again["state"], &again["attempts"], &again["status"]), (&json!("delivered"), &json!(2), &json!(204)));
    let received = receiver.received();
    assert_eq!((received[3].id(), &received[3].text), (received[0].id(), &received[0].text));
    let other = Webhook::new(&db, &receiver, json!({})).await;
    other.call(Method::GET, &format!("/deliveries/{}", all[0]["id"])).send().await.refused(ErrorCode::RecordNotFound);
    webhook.delete().await;
    other.delete().await;
}

/// A long body is kept while its delivery waits, and not after it.
async fn long_bodies_are_kept_while_they_wait(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    db.exec("ALTER TABLE t MODIFY s MEDIUMTEXT").await;
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    receiver.answer(&[500]);
    db.exec("INSERT INTO t (s) VALUES (REPEAT('x', 300000)), (REPEAT('y', 300000))").await;
    let waiting = webhook.delivery("a failed attempt", |delivery| delivery["state"] == "waiting").await;
    let path = format!("/deliveries/{}", waiting["id"]);
    let kept = webhook.call(Method::GET, &path).send().await.payload();
    assert_eq!((&kept["request"], &kept["changes"]), (&receiver.received()[0].body(), &json!(1)));
    assert_eq!(receiver.wait_for_changes(2).await.len(), 2);
    webhook
        .delivery("its success", |delivery| delivery["id"] == waiting["id"] && delivery["state"] == "delivered")
        .await;
    let delivered = webhook.call(Method::GET, &path).send().await.payload();
    assert_eq!(delivered.get("request"), None);
    webhook.call(Method::POST, &path).send().await.refused(ErrorCode::PermissionDenied);
    webhook.delete().await;
}
