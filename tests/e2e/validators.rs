//! `ETag` of single records, conditional requests, and answers without a body.

use crate::host::{Answer, Call, Host};
use crate::second_origin::SecondOrigin;
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_record_has_a_tag_that_changes_with_it,
        what_the_caller_has_is_not_sent_again,
        a_tag_belongs_to_one_form_and_selection,
        lists_have_no_tag_and_are_not_kept,
        a_record_that_is_gone_is_not_found_whatever_the_caller_has,
        a_condition_that_a_write_can_not_keep_is_refused,
        a_write_is_done_only_while_the_record_has_the_tag,
        an_operation_of_a_batch_may_name_a_tag,
        one_of_many_writers_with_one_tag_wins,
        pages_may_read_tags,
        the_head_of_a_record_is_that_of_its_answer,
        the_head_of_a_list_is_that_of_its_answer,
        the_head_of_a_refusal_has_its_status,
    ],
    Origin: [the_head_of_a_long_list_reads_no_more_than_a_row],
    Edge: [both_hosts_give_the_same_tag],
}

async fn db(host: Host) -> TestDb {
    TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), views INT)",
            "INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20)",
        ],
    )
    .await
}

#[track_caller]
fn tag(answer: &Answer) -> String {
    let tag = answer.header("etag").unwrap_or_else(|| panic!("no tag: {answer}"));
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 16, "no strong tag: {tag}");
    tag.to_owned()
}

async fn a_record_has_a_tag_that_changes_with_it(host: Host) {
    let db = db(host).await;
    let first = db.get("t/1").await;
    first.payload();
    assert_eq!(first.header("cache-control"), Some("private, no-cache"));
    assert_eq!(tag(&db.get("t/1").await), tag(&first));
    assert_ne!(tag(&db.get("t/2").await), tag(&first));
    db.put("t/1", &json!({"views": 11})).await.payload();
    let changed = tag(&db.get("t/1").await);
    assert_ne!(changed, tag(&first));
    db.put("t/1", &json!({"views": 10})).await.payload();
    assert_eq!(tag(&db.get("t/1").await), tag(&first), "the same record again");
}

async fn what_the_caller_has_is_not_sent_again(host: Host) {
    let db = db(host).await;
    let tag = tag(&db.get("t/1").await);
    let ask = |known: String| db.call(Method::GET, "t/1").header("if-none-match", &known).send();
    for known in [
        tag.clone(),
        format!("W/{tag}"),
        format!("\"other\", {tag}"),
        format!("\"a,b\", W/\"c\", {tag}, \"d\""),
        "*".to_owned(),
    ] {
        let answer = ask(known.clone()).await;
        assert_eq!(answer.status, 304, "{known}: {answer}");
        assert!(answer.body.is_empty());
        assert_eq!(answer.header("etag"), Some(tag.as_str()));
        assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
        assert_eq!(answer.header("vary"), Some("Accept, Accept-Encoding"));
    }
    for known in ["\"other\"", "W/\"other\"", "nonsense", "", tag.trim_matches('"')] {
        ask(known.to_owned()).await.payload();
    }
    db.put("t/1", &json!({"name": "uno"})).await.payload();
    assert_eq!(ask(tag).await.payload()["name"], "uno");
}

async fn a_tag_belongs_to_one_form_and_selection(host: Host) {
    let db = db(host).await;
    let mut tags = std::collections::HashSet::new();
    for (rest, accept) in [
        ("t/1", "application/json"),
        ("t/1", "text/csv"),
        ("t/1", "application/x-ndjson"),
        ("t/1?selectFields=id,name", "application/json"),
        ("t/1?selectFields=name,id", "application/json"),
    ] {
        let answer = db.call(Method::GET, rest).header("accept", accept).send().await;
        assert!(tags.insert(tag(&answer)), "{answer}");
        let again =
            db.call(Method::GET, rest).header("accept", accept).header("if-none-match", &tag(&answer)).send().await;
        assert_eq!(again.status, 304, "{again}");
    }
}

async fn lists_have_no_tag_and_are_not_kept(host: Host) {
    let db = db(host).await;
    for call in [
        db.call(Method::GET, "t"),
        db.call(Method::GET, "t?limit=1"),
        db.call(Method::POST, "t/query").json(&json!({})),
    ] {
        let answer = call.header("if-none-match", "*").send().await;
        answer.payload();
        assert_eq!(answer.header("etag"), None);
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{answer}");
    }
}

async fn a_record_that_is_gone_is_not_found_whatever_the_caller_has(host: Host) {
    let db = db(host).await;
    let tag = tag(&db.get("t/1").await);
    db.delete("t/1").await.payload();
    for known in [tag.as_str(), "*"] {
        let answer = db.call(Method::GET, "t/1").header("if-none-match", known).send().await;
        answer.refused(ErrorCode::RecordNotFound);
    }
}

async fn a_condition_that_a_write_can_not_keep_is_refused(host: Host) {
    let db = db(host).await;
    let many = json!({"query": {"id": 1}, "data": {"views": 99}});
    for (name, call) in [
        ("if-match", db.call(Method::POST, "t").json(&json!({"id": 3}))),
        ("if-match", db.call(Method::PUT, "t").json(&many)),
        ("if-match", db.call(Method::DELETE, "t?query[id]=1")),
        ("if-match", db.sql("DELETE FROM t")),
        ("if-none-match", db.call(Method::PUT, "t/1").json(&json!({"views": 99}))),
        ("if-none-match", db.call(Method::PATCH, "t/1").json(&json!({"views": 99}))),
        ("if-none-match", db.call(Method::DELETE, "t/1")),
        ("if-none-match", db.call(Method::POST, "t").json(&json!({"id": 3}))),
    ] {
        let error = call.header(name, "*").send().await.refused(ErrorCode::InvalidQueryOption);
        let message = error["message"].as_str().unwrap_or_default().to_lowercase();
        assert!(message.contains(name), "{message}");
    }
    assert_eq!(db.value("SELECT SUM(views) FROM t").await, "30");
    db.call(Method::GET, "t/1").header("if-match", "\"x\"").send().await.payload();
}

async fn a_write_is_done_only_while_the_record_has_the_tag(host: Host) {
    let db = db(host).await;
    let put = |tag: &str, views: u32| {
        db.call(Method::PUT, "t/1").json(&json!({"views": views})).header("if-match", tag).send()
    };
    let first = tag(&db.get("t/1").await);
    // The runtime of the local edge drops an empty header.
    if host == Host::Origin {
        put("", 99).await.refused(ErrorCode::InvalidQueryOption);
    }
    for wrong in ["\"x\"", "x", first.trim_matches('"'), "\"x\", W/\"y\""] {
        put(wrong, 99).await.refused(ErrorCode::PreconditionFailed);
        let delete = db.call(Method::DELETE, "t/1").header("if-match", wrong).send().await;
        delete.refused(ErrorCode::PreconditionFailed);
    }
    // The tag of a part of the record is refused with the way to the right tag.
    let error = put(&tag(&db.get("t/1?selectFields=id").await), 99).await.refused(ErrorCode::PreconditionFailed);
    assert!(error["message"].to_string().contains("not that of the whole record"), "{error}");
    assert!(error["hint"].to_string().contains("without options"), "{error}");
    assert_eq!(put(&first, 11).await.payload(), 1);
    put(&first, 99).await.refused(ErrorCode::PreconditionFailed);
    let mut current = tag(&db.get("t/1").await);
    // A compressed answer has a weak tag, and a client may send the tags of several versions.
    for (spelled, views) in [(format!("W/{current}"), 12), (String::new(), 13), ("*".to_owned(), 14)] {
        let spelled = if spelled.is_empty() { format!("{first}, {current}") } else { spelled };
        assert_eq!(put(&spelled, views).await.payload(), 1, "{spelled}");
        current = tag(&db.get("t/1").await);
    }
    let answer = db.call(Method::PATCH, "t/1?returning=*").json(&json!({"views": 15})).header("if-match", &current);
    let answer = answer.send().await;
    assert_eq!(tag(&answer), tag(&db.get("t/1").await));
    let dry = db.call(Method::DELETE, "t/1?dryRun=true").header("if-match", &tag(&answer)).send().await;
    assert_eq!(dry.payload(), 1);
    let delete = db.call(Method::DELETE, "t/1?returning=views").header("if-match", &tag(&answer)).send().await;
    assert_eq!(delete.payload(), json!({"views": 15}));
    for (gone, rest) in [("*", "t/1"), (&*current, "t/1"), ("*", "t/x")] {
        let call = db.call(Method::PUT, rest).json(&json!({"views": 99})).header("if-match", gone);
        call.send().await.refused(ErrorCode::PreconditionFailed);
    }
}

async fn an_operation_of_a_batch_may_name_a_tag(host: Host) {
    let db = db(host).await;
    let current = tag(&db.get("t/1").await);
    let path = format!("{}/1", db.path("t"));
    let batch = async |tag: Value| {
        let change = json!({"method": "PUT", "path": path, "body": {"views": {"$add": 1}}, "ifMatch": tag});
        let insert = json!({"method": "POST", "path": db.path("t"), "body": {"id": 50}});
        host.post("/api/v1/batch", &json!({"operations": [insert, change]})).send().await
    };
    assert_eq!(batch(json!("\"x\"")).await.refused(ErrorCode::PreconditionFailed)["details"]["operation"], 1);
    batch(json!(5)).await.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE id = 50").await, 0);
    assert_eq!(batch(json!(current)).await.payload()[1], 1);
    let idle = json!({"method": "GET", "path": path, "ifMatch": "*"});
    let idle = host.post("/api/v1/batch", &json!({"operations": [idle]})).send().await;
    idle.refused(ErrorCode::InvalidBody);
}

/// Number of clients that write at the same time with the same tag.
const WRITERS: usize = 24;

async fn one_of_many_writers_with_one_tag_wins(host: Host) {
    let db = db(host).await;
    let service = shared();
    let second = tokio::task::block_in_place(|| SecondOrigin::start(service)).expect("a second origin");
    for round in 0..5 {
        let current = tag(&db.get("t/1").await);
        let writers = (0..WRITERS).map(|writer| {
            let views = json!({"views": 1_000 * (round + 1) + writer});
            let call = db.call(Method::PUT, "t/1").json(&views).header("if-match", &current);
            match writer % 2 {
                0 => call.send(),
                _ => call.at(&second.origin).send(),
            }
        });
        let answers = futures_util::future::join_all(writers).await;
        let won: Vec<_> = answers.iter().enumerate().filter(|(_, answer)| answer.status == 200).collect();
        assert_eq!(won.len(), 1, "round {round}");
        let lost = answers.iter().filter(|answer| answer.code() == ErrorCode::PreconditionFailed.as_str());
        assert_eq!(lost.count(), WRITERS - 1, "round {round}");
        assert_eq!(db.value("SELECT views FROM t WHERE id = 1").await, 1_000 * (round + 1) + won[0].0);
    }
}

async fn pages_may_read_tags(host: Host) {
    let answer = host
        .get("/api/v1/crud/demo/posts/1")
        .key(&shared().read_key)
        .header("origin", "https://shop.example")
        .send()
        .await;
    let exposed = answer.header("access-control-expose-headers").unwrap_or_default().to_lowercase();
    assert!(exposed.contains("etag"), "{exposed}");
}

fn of_the_body(answer: &Answer) -> Vec<Option<String>> {
    ["content-type", "etag", "cache-control", "vary"]
        .iter()
        .map(|name| answer.header(name).map(str::to_owned))
        .collect()
}

async fn the_head_of_a_record_is_that_of_its_answer(host: Host) {
    let db = db(host).await;
    for (rest, accept) in [("t/1", "*/*"), ("t/1?selectFields=id", "*/*"), ("t/1", "text/csv")] {
        let call = |method| db.call(method, rest).header("accept", accept);
        let (whole, head) = (call(Method::GET).send().await, call(Method::HEAD).send().await);
        assert_eq!(head.status, 200, "{head}");
        assert!(head.body.is_empty());
        assert_eq!(of_the_body(&head), of_the_body(&whole));
        if host == Host::Origin {
            assert_eq!(head.header("content-length"), Some(whole.body.len().to_string().as_str()));
        }
        let known = call(Method::HEAD).header("if-none-match", &tag(&whole)).send().await;
        assert_eq!(known.status, 304, "{known}");
    }
}

async fn the_head_of_a_list_is_that_of_its_answer(host: Host) {
    let db = db(host).await;
    for rest in ["t", "t?limit=0", "t?limit=1&order[field]=views", "t?limit=2&page=9", "t/_schema"] {
        for accept in ["*/*", "application/x-ndjson"] {
            let call = |method| db.call(method, rest).header("accept", accept);
            let (whole, head) = (call(Method::GET).send().await, call(Method::HEAD).send().await);
            assert_eq!((head.status, whole.status.as_u16()), (reqwest::StatusCode::OK, 200), "{rest}");
            assert_eq!(of_the_body(&head), of_the_body(&whole), "{rest}");
            let length = head.header("content-length").filter(|_| host == Host::Origin);
            let length = length.map(|text| text.parse::<usize>().expect("a length"));
            assert!(length.is_none_or(|length| length == whole.body.len()), "{rest}: {length:?}");
        }
    }
}

async fn the_head_of_a_refusal_has_its_status(host: Host) {
    let db = db(host).await;
    db.exec("CREATE VIEW broken AS SELECT (SELECT 1 UNION SELECT 2) AS id").await;
    for (rest, status) in
        [("t/9", 404), ("nope", 404), ("t?selectFields=nope", 400), ("t?limit=x", 400), ("t?query[nope]=1", 400)]
    {
        for method in [Method::GET, Method::HEAD] {
            let answer = db.call(method, rest).send().await;
            assert_eq!(answer.status, status, "{answer}");
        }
    }
    let whole = db.get("broken").await;
    let head = db.call(Method::HEAD, "broken").send().await;
    assert_eq!(head.status, whole.status, "an error of MariaDB's own");
    assert!(head.status.is_client_error(), "{head}");
}

async fn the_head_of_a_long_list_reads_no_more_than_a_row(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE big (id INT PRIMARY KEY, name VARCHAR(100))"]).await;
    db.exec("INSERT INTO big SELECT seq, REPEAT('x', 80) FROM seq_1_to_50000").await;
    let read = || {
        let rows = db.behind(
            "SET GLOBAL userstat = 1; SELECT IFNULL(SUM(ROWS_READ), 0) FROM information_schema.TABLE_STATISTICS \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'big'",
        );
        rows.trim().parse::<u64>().unwrap_or_else(|_| panic!("no number: {rows:?}"))
    };
    let before = read();
    let head = db.call(Method::HEAD, "big").send().await;
    assert_eq!(head.status, 200);
    let for_the_head = read() - before;
    assert_eq!(db.get("big").await.payload().as_array().map(Vec::len), Some(50_000));
    let for_all = read() - before - for_the_head;
    assert!(for_all >= 50_000, "the server counts rows: {for_all}");
    assert!(for_the_head <= 2, "{for_the_head} rows were read for a head");
}

async fn both_hosts_give_the_same_tag(_: Host) {
    let path = "/api/v1/crud/demo/posts/7";
    let mut tags = std::collections::HashSet::new();
    for host in [Host::Origin, Host::Edge] {
        let answer = Call::new(host.url(), Method::GET, path).key(&shared().read_key).send().await;
        tags.insert(tag(&answer));
    }
    assert_eq!(tags.len(), 1, "{tags:?}");
}
