//! Deliveries: what they contain, their order, and what follows a failed one.

use super::receiver::Receiver;
use super::{DELIVERY_MAX, Webhook, of_table, table};
use crate::case::eventually;
use crate::host::Host;
use crate::service::shared;
use crate::test_db::unique;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

cases! {
    Both: [
        a_delivery_has_wanted_changes_and_a_signature,
        changes_of_a_record_come_in_order,
        a_failed_delivery_comes_again_and_delays_no_other_webhook,
        an_endpoint_says_when_to_come_again,
        an_endpoint_that_is_gone_gets_no_more,
        a_redirect_is_not_followed,
        a_secret_is_renewed_with_an_overlap,
        a_changed_definition_goes_on_where_it_was,
        an_answer_without_end_counts_by_its_status,
        a_pause_within_an_attempt_doubles_and_loses_nothing,
        a_table_that_is_gone_is_told,
        a_change_that_is_too_long_is_told,
        a_delivery_whose_body_was_not_kept_loses_nothing,
        a_waiting_delivery_stays_while_its_changes_cant_be_read,
        the_last_wanted_change_of_a_transaction_ends_it,
        a_released_database_is_delivered_no_more,
    ],
}

async fn a_delivery_has_wanted_changes_and_a_signature(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let wanted =
        json!({"query": {"n": {"gt": 5}}, "selectFields": ["id", "n"], "types": ["insert", "delete"], "id": "big"});
    let webhook = Webhook::new(&db, &receiver, wanted).await;
    db.exec("INSERT INTO t (n, s) VALUES (1, 'small'), (7, 'hidden'), (8, 'hidden')").await;
    db.exec("UPDATE t SET n = 9 WHERE n = 8").await;
    db.exec("DELETE FROM t WHERE n = 7").await;
    let changes = receiver.wait_for_changes(3).await;
    let told: Vec<_> = changes.iter().map(|change| json!([change["type"], change["key"], change["record"]])).collect();
    assert_eq!(
        told,
        [
            json!(["insert", 2, {"id": 2, "n": 7}]),
            json!(["insert", 3, {"id": 3, "n": 8}]),
            json!(["delete", 2, changes[2]["record"]]),
        ]
    );
    assert!(changes.iter().all(|change| change["subscription"] == "big"), "{changes:?}");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    for delivery in receiver.received() {
        assert_eq!(delivery.signatures_of(&webhook.secret), 1);
        assert_eq!(delivery.header("content-type"), "application/json");
        let sent: u64 = delivery.header("webhook-timestamp").parse().expect("seconds");
        assert!(now.abs_diff(sent) < 300, "{sent}");
        assert!(delivery.headers.get("authorization").is_none());
        assert!(!delivery.text.contains("hidden"), "{}", delivery.text);
    }
    webhook.delete().await;
}

async fn changes_of_a_record_come_in_order(host: Host) {
    const COUNT: usize = 300;
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    db.exec("INSERT INTO t (id, n) VALUES (1, 0)").await;
    db.behind(&"UPDATE t SET n = n + 1 WHERE id = 1;".repeat(COUNT));
    let changes = receiver.wait_for_changes(COUNT + 1).await;
    let numbers: Vec<_> = changes.iter().map(|change| change["record"]["n"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (0..=COUNT as u64).collect::<Vec<_>>());
    // Changes that queue come together.
    assert!(receiver.received().len() < COUNT, "{}", receiver.received().len());
    webhook.delete().await;
}

async fn a_failed_delivery_comes_again_and_delays_no_other_webhook(host: Host) {
    let db = table(host).await;
    let (failing, sound) = (Receiver::start().await, Receiver::start().await);
    let (first, second) = (Webhook::new(&db, &failing, json!({})).await, Webhook::new(&db, &sound, json!({})).await);
    failing.answer(&[500]);
    db.exec("INSERT INTO t (n) VALUES (1)").await;
    let waiting = first.delivery("a failed attempt", |delivery| delivery["state"] == "waiting").await;
    assert_eq!(
        (&waiting["status"], &waiting["response"], &waiting["attempts"]),
        (&json!(500), &json!("noted"), &json!(1))
    );
    assert!(first.show().await["failingSince"].is_string());
    db.exec("INSERT INTO t (n) VALUES (2)").await;
    assert_eq!(sound.wait_for_changes(2).await.len(), 2);
    assert_eq!(failing.received().len(), 1);
    let changes = failing.wait_for_changes(2).await;
    assert_eq!(changes.iter().map(|change| &change["record"]["n"]).collect::<Vec<_>>(), [1, 2]);
    let received = failing.received();
    assert_eq!((received[0].id(), &received[0].text), (received[1].id(), &received[1].text));
    assert_ne!(received[1].id(), received[2].id());
    let done =
        first.delivery("its success", |delivery| delivery["id"] == waiting["id"] && delivery["state"] == "delivered");
    assert_eq!(done.await["attempts"], 2);
    assert_eq!(first.show().await["failingSince"], Value::Null);
    first.delete().await;
    second.delete().await;
}

async fn an_endpoint_says_when_to_come_again(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    receiver.answer_with(503, "retry-after", "100000".to_owned());
    db.exec("INSERT INTO t (n) VALUES (1)").await;
    let waiting = webhook.delivery("a failed attempt", |delivery| delivery["state"] == "waiting").await;
    let of_day =
        |name: &str| waiting[name].as_str().and_then(|time| time.split_once('T')).expect("a time").1.to_owned();
    assert_eq!(of_day("nextAttemptAt"), of_day("attemptedAt"));
    assert_ne!(waiting["nextAttemptAt"], waiting["attemptedAt"]);
    db.exec("INSERT INTO t (n) VALUES (2)").await;
    // A delivery that waits can be sent at once, and those behind it follow.
    let again = webhook.call(Method::POST, &format!("/deliveries/{}", waiting["id"])).send().await.payload();
    assert_eq!((&again["state"], &again["attempts"]), (&json!("waiting"), &json!(1)));
    let changes = receiver.wait_for_changes(2).await;
    assert_eq!(changes.iter().map(|change| &change["record"]["n"]).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(receiver.received().len(), 3);
    webhook.delete().await;
}

async fn an_endpoint_that_is_gone_gets_no_more(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    receiver.answer(&[410]);
    db.exec("INSERT INTO t (n) VALUES (1)").await;
    eventually("its pause", DELIVERY_MAX, || async {
        Some(webhook.show().await).filter(|shown| shown["paused"] == true)
    })
    .await;
    let reason = webhook.show().await["pauseReason"].clone();
    assert_eq!(reason, "The endpoint has answered 410: it wants no more deliveries.");
    db.exec("INSERT INTO t (n) VALUES (2)").await;
    // Resumed, it gets what it missed.
    let shown = webhook.set(json!({"paused": false})).await;
    assert_eq!((&shown["paused"], shown.get("pauseReason")), (&json!(false), None));
    let changes = receiver.wait_for_changes(2).await;
    assert_eq!(changes.iter().map(|change| &change["record"]["n"]).collect::<Vec<_>>(), [1, 2]);
    webhook.delete().await;
}

async fn a_redirect_is_not_followed(host: Host) {
    let (db, receiver, other) = (table(host).await, Receiver::start().await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    receiver.answer_with(307, "location", other.url.clone());
    db.exec("INSERT INTO t (n) VALUES (1)").await;
    let waiting = webhook.delivery("a failed attempt", |delivery| delivery["state"] == "waiting").await;
    assert_eq!(waiting["status"], 307);
    assert_eq!(other.received().len(), 0);
    webhook.delete().await;
}

async fn a_secret_is_renewed_with_an_overlap(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    let renewed = webhook.call(Method::POST, "/secret").send().await.payload();
    let secret = renewed["secret"].as_str().expect("a secret");
    crate::ledger::keep_secret(secret);
    assert_ne!(secret, webhook.secret);
    let tested = webhook.call(Method::POST, "/test").send().await.payload();
    assert_eq!((&tested["delivered"], &tested["status"]), (&json!(true), &json!(204)));
    let received = receiver.received();
    assert_eq!(received[0].body(), json!({"changes": [], "test": true}));
    assert_eq!([secret, &webhook.secret].map(|secret| received[0].signatures_of(secret)), [1, 1]);
    webhook.delete().await;
}

async fn a_changed_definition_goes_on_where_it_was(host: Host) {
    let (db, receiver, other) = (table(host).await, Receiver::start().await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    webhook.set(json!({"paused": true})).await;
    db.exec("INSERT INTO t (n, s) VALUES (1, 'a')").await;
    let narrow = of_table(&db.name, json!({"selectFields": ["n"]}));
    webhook.set(json!({"url": other.url, "subscriptions": [narrow], "paused": false})).await;
    db.exec("INSERT INTO t (n, s) VALUES (2, 'b')").await;
    let changes = other.wait_for_changes(2).await;
    assert_eq!(
        changes.iter().map(|change| &change["record"]).collect::<Vec<_>>(),
        [&json!({"n": 1}), &json!({"n": 2})]
    );
    assert_eq!(receiver.received().len(), 0);
    webhook.delete().await;
}

async fn an_answer_without_end_counts_by_its_status(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    receiver.answer_without_end();
    db.exec("INSERT INTO t (n) VALUES (1)").await;
    let delivered = webhook.delivery("a delivery", |_| true).await;
    assert_eq!((&delivered["state"], &delivered["response"]), (&json!("delivered"), &json!("noted")));
    webhook.delete().await;
}

async fn a_pause_within_an_attempt_doubles_and_loses_nothing(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    receiver.hold();
    receiver.answer(&[500]);
    db.exec("INSERT INTO t (n) VALUES (1)").await;
    receiver.wait(1).await;
    webhook.set(json!({"paused": true})).await;
    webhook.set(json!({"paused": false})).await;
    receiver.release();
    receiver.wait_for_changes(1).await;
    db.exec("INSERT INTO t (n) VALUES (2)").await;
    receiver.wait_for_changes(2).await;
    webhook.call(Method::POST, "/secret").send().await.payload();
    db.exec("INSERT INTO t (n) VALUES (3)").await;
    let changes = receiver.wait_for_changes(3).await;
    assert_eq!(changes.iter().map(|change| &change["record"]["n"]).collect::<Vec<_>>(), [1, 2, 3]);
    let ids: Vec<_> = receiver.received().iter().map(|delivery| delivery.id().to_owned()).collect();
    assert_eq!((ids.len(), &ids[0]), (4, &ids[1]));
    webhook.delete().await;
}

async fn a_table_that_is_gone_is_told(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    db.exec("DROP TABLE t").await;
    let shown = eventually("a fault", DELIVERY_MAX, || async {
        Some(webhook.show().await).filter(|shown| shown["fault"].is_string())
    })
    .await;
    assert!(shown["fault"].as_str().is_some_and(|fault| fault.contains("has no table \"t\"")), "{shown}");
    assert!(shown["failingSince"].is_string());
    db.exec("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s TEXT)").await;
    let told = receiver.wait(1).await[0].body();
    assert_eq!((&told["changes"], &told["resync"]["reason"]), (&json!([]), &json!("schema_changed")));
    let shown = webhook.show().await;
    assert_eq!((shown.get("fault"), &shown["failingSince"]), (None, &Value::Null));
    webhook.delete().await;
}

async fn a_change_that_is_too_long_is_told(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    db.exec("ALTER TABLE t MODIFY s LONGTEXT").await;
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    db.exec("INSERT INTO t (n, s) VALUES (1, REPEAT('x', 17000000))").await;
    db.exec("INSERT INTO t (n) VALUES (2)").await;
    let changes = receiver.wait_for_changes(1).await;
    assert_eq!(changes[0]["record"]["n"], 2);
    assert_eq!(receiver.received()[0].body()["resync"]["reason"], "too_slow");
    webhook.delete().await;
}

/// The body is too long to be stored, so that the changes are read again, and then there are more of them.
async fn a_delivery_whose_body_was_not_kept_loses_nothing(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    db.exec("ALTER TABLE t MODIFY s LONGTEXT").await;
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    receiver.answer(&[500]);
    db.exec("INSERT INTO t (n, s) VALUES (1, REPEAT('x', 5000000))").await;
    webhook.delivery("a failed attempt", |delivery| delivery["state"] == "waiting").await;
    // Without the long field, the changes after the first one fit into its delivery.
    webhook.set(json!({"subscriptions": [of_table(&db.name, json!({"selectFields": ["n"]}))]})).await;
    db.exec("INSERT INTO t (n) VALUES (2), (3)").await;
    let changes = receiver.wait_for_changes(3).await;
    assert_eq!(changes.iter().map(|change| &change["record"]["n"]).collect::<Vec<_>>(), [1, 2, 3]);
    db.exec("INSERT INTO t (n) VALUES (4)").await;
    let changes = receiver.wait_for_changes(4).await;
    assert_eq!(changes.iter().map(|change| &change["record"]["n"]).collect::<Vec<_>>(), [1, 2, 3, 4]);
    webhook.delete().await;
}

/// The body is too long to be stored, so that the changes must be read again, from a table that is gone.
async fn a_waiting_delivery_stays_while_its_changes_cant_be_read(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    db.exec("ALTER TABLE t MODIFY s LONGTEXT").await;
    let webhook = Webhook::new(&db, &receiver, json!({})).await;
    // The receiver takes no body as long as that.
    db.exec("INSERT INTO t (n, s) VALUES (1, REPEAT('x', 5000000))").await;
    let waiting = webhook.delivery("a failed attempt", |delivery| delivery["state"] == "waiting").await;
    db.exec("DROP TABLE t").await;
    let path = format!("/api/v1/crud/{}/t", db.name);
    eventually("the loss of the table", DELIVERY_MAX, || async {
        (host.get(&path).send().await.code() == "table_not_found").then_some(())
    })
    .await;
    webhook.set(json!({"paused": true})).await;
    let due = format!("UPDATE selkie.webhook_deliveries SET next_attempt_at = 0 WHERE id = {}", waiting["id"]);
    shared().root_sql(&due).expect("root");
    webhook.set(json!({"paused": false})).await;
    eventually("a fault", DELIVERY_MAX, || async { webhook.show().await["fault"].is_string().then_some(()) }).await;
    db.exec("CREATE TABLE t (id INT PRIMARY KEY)").await;
    let received = receiver.wait(1).await;
    assert_eq!(received[0].body()["resync"]["reason"], "schema_changed", "{}", received[0].text);
    let delivered = webhook.delivery("its success", |delivery| delivery["state"] == "delivered").await;
    assert_eq!(delivered["id"], waiting["id"]);
    assert_eq!(webhook.deliveries().await.len(), 1);
    webhook.delete().await;
}

async fn the_last_wanted_change_of_a_transaction_ends_it(host: Host) {
    let (db, receiver) = (table(host).await, Receiver::start().await);
    let webhook = Webhook::new(&db, &receiver, json!({"types": ["insert"]})).await;
    // The updates are more than a delivery takes.
    let updates = "UPDATE t SET n = n + 1;".repeat(200);
    db.behind(&format!("BEGIN; INSERT INTO t (n) VALUES (1), (2); {updates} COMMIT; INSERT INTO t (n) VALUES (3)"));
    let changes = receiver.wait_for_changes(3).await;
    let told: Vec<_> = changes.iter().map(|change| json!([change["key"], change["end"]])).collect();
    assert_eq!(told, [json!([1, null]), json!([2, true]), json!([3, true])]);
    webhook.delete().await;
}

async fn a_released_database_is_delivered_no_more(host: Host) {
    let ([project, other], name) = ([unique("adopter"), unique("adopter")], unique("brought"));
    let root = |statements: &str| shared().root_sql(statements).expect("root");
    root(&format!("CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY)"));
    shared().create_project(&project);
    shared().create_project(&other);
    shared().cli_ok(&["database", "adopt", &name, "--project", &project]);
    let key = shared().create_key(&project, "full", &[]).token;
    let receiver = Receiver::start().await;
    let body = json!({"name": "a", "url": receiver.url, "subscriptions": [of_table(&name, json!({}))]});
    let made = host.post("/api/v1/webhooks", &body).key(&key).send().await.payload();
    crate::ledger::keep_secret(made["secret"].as_str().expect("a secret"));
    root(&format!("INSERT INTO {name}.t VALUES (1)"));
    receiver.wait_for_changes(1).await;
    shared().cli_ok(&["database", "release", &name, "--project", &project]);
    shared().cli_ok(&["database", "adopt", &name, "--project", &other]);
    root(&format!("INSERT INTO {name}.t VALUES (2)"));
    let fault = eventually("a fault", DELIVERY_MAX, || async {
        let shown = host.get("/api/v1/webhooks/a").key(&key).send().await.payload();
        shown["fault"].as_str().map(str::to_owned)
    });
    assert!(fault.await.contains("no database"));
    assert_eq!(receiver.received().len(), 1);
    host.call(Method::DELETE, "/api/v1/webhooks/a").key(&key).send().await.payload();
}
