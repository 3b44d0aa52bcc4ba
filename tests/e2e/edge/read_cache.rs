//! Reads that the edge caches for clients that allow it: which requests reach the origin, and what clients get.
//!
//! A recording proxy in front of the origin counts requests. The cache is Miniflare's, which takes some seconds to
//! start, so cases are few.

use super::recording_proxy::RecordingProxy;
use crate::case::eventually;
use crate::host::{Answer, Call, Host};
use crate::roles::{Caller, create_role, role_of};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use crate::worker::Worker;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Own: [
        a_read_that_may_be_old_is_asked_of_the_origin_once,
        what_is_kept_is_for_those_who_may_read_it,
        only_whole_and_short_successes_are_kept,
        of_many_callers_at_once_one_asks_the_origin,
        a_stale_answer_is_given_while_another_one_is_fetched,
        a_revoked_key_gets_no_kept_answers_for_long,
    ],
}

/// An edge that caches reads, the recording proxy between it and its origin, and a table for the case.
struct Kept {
    worker: Worker,
    tap: RecordingProxy,
    db: TestDb,
}

impl Kept {
    async fn start(statements: &[&str]) -> Self {
        let db = TestDb::new(Host::Origin, statements).await;
        let tap = RecordingProxy::before(&shared().origin).await;
        let url = tap.url.clone();
        let start = move || Worker::in_miniflare(&[("ORIGINS", &url), ("READ_CACHE_MAX_SECONDS", "300")]);
        let worker = tokio::task::spawn_blocking(start).await.expect("a worker");
        Self { worker, tap, db }
    }

    async fn of_rows() -> Self {
        Self::start(&[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT, s MEDIUMTEXT)",
            "INSERT INTO t VALUES (1, 10, ''), (2, 20, '')",
        ])
        .await
    }

    /// Builds a read with the shared read key.
    fn get(&self, rest: &str) -> Call {
        let (table, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let path = format!("{}{rest}", self.db.path(table));
        Call::new(&self.worker.url, Method::GET, &path).key(&shared().read_key)
    }

    /// Builds a read that accepts an answer five minutes old.
    fn old(&self, rest: &str) -> Call {
        self.get(rest).header("cache-control", "max-age=300")
    }

    /// Returns how often the origin was asked since the last call.
    fn asked(&self) -> usize {
        let requests = self.tap.requests();
        self.tap.forget();
        let path = self.db.path("");
        requests.iter().filter(|seen| seen.target.starts_with(&path)).count()
    }

    fn set(&self, value: i32) {
        self.db.behind(&format!("UPDATE t SET v = {value} WHERE id = 1"));
    }
}

fn first(answer: &Answer) -> Value {
    answer.payload()[0]["v"].clone()
}

fn age(answer: &Answer) -> Option<u64> {
    answer.header("age").map(|age| age.parse().expect("seconds"))
}

async fn a_read_that_may_be_old_is_asked_of_the_origin_once(_: Host) {
    let kept = Kept::of_rows().await;
    let first_answer = kept.old("t?selectFields=v&limit=1&order={\"field\":\"id\"}").send().await;
    assert_eq!((first(&first_answer), age(&first_answer)), (json!(10), Some(0)));
    assert_eq!(first_answer.header("cache-control"), Some("private, max-age=300"));
    kept.set(11);
    let query = |body: Value| {
        Call::new(&kept.worker.url, Method::POST, &format!("{}/query", kept.db.path("t")))
            .key(&shared().read_key)
            .header("cache-control", "max-age=300")
            .json(&body)
    };
    let mut ids = vec![first_answer.header("x-request-id").unwrap().to_owned()];
    for call in [
        kept.old("t?selectFields=v&limit=1&order={\"field\":\"id\"}"),
        kept.old("t?order[field]=id&limit=1&selectFields[]=v&distinct=false"),
        kept.old("t?limit=1&page=1&order=[{%22strategy%22:%22asc%22,%22field%22:%22id%22}]&selectFields=[%22v%22]"),
        query(json!({"limit": 1, "selectFields": ["v"], "order": {"field": "id"}})),
        kept.old("t/?order=id&limit=1&selectFields=v&distinct=False&query=[]"),
    ] {
        let answer = call.send().await;
        assert_eq!(first(&answer), json!(10), "{answer}");
        assert!(age(&answer).is_some(), "{answer}");
        let vary = answer.header("vary").expect("it varies");
        for name in ["Accept", "Authorization", "Cache-Control", "X-Selkie-After"] {
            assert!(vary.contains(name), "{vary}");
        }
        assert!(answer.header("selkie-asked-at").is_none(), "{answer}");
        ids.push(answer.header("x-request-id").unwrap().to_owned());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6, "every answer has its own id");
    assert_eq!(kept.asked(), 1);

    // A client that doesn't allow cached answers, asks for a position, or has a full key, gets the current answer.
    let same = "t?selectFields=v&limit=1&order={\"field\":\"id\"}";
    for call in [
        kept.get(same),
        kept.get(same).header("cache-control", "no-cache"),
        kept.get(same).header("cache-control", "max-age=0"),
        kept.old(same).header("x-selkie-after", "gtid:0-1-1"),
        kept.old(same).key(&shared().full_key),
    ] {
        let answer = call.send().await;
        assert_eq!((first(&answer), age(&answer)), (json!(11), None), "{answer}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    assert_eq!(kept.asked(), 5);

    // Another format or other options are another cache entry.
    let csv = kept.old(same).header("accept", "text/csv").send().await;
    assert_eq!(csv.text(), "v\r\n11\r\n");
    assert_eq!(first(&kept.old("t?selectFields=v&order={\"field\":\"id\"}").send().await), json!(11));
    assert_eq!(kept.asked(), 2);

    // A client that asks for a younger answer makes the edge refresh its entry for all clients.
    let younger = || kept.get(same).header("cache-control", "max-age=1").send();
    let answer = eventually("a younger answer", Duration::from_secs(20), || async {
        let answer = younger().await;
        (first(&answer) == json!(11)).then_some(answer)
    })
    .await;
    assert_eq!(answer.header("cache-control"), Some("private, max-age=1"));
    // The entry is stored after the answer was sent.
    eventually("the younger one for others", Duration::from_secs(20), || async {
        let answer = kept.old(same).send().await;
        (first(&answer) == json!(11)).then_some(())
    })
    .await;
    assert_eq!(kept.asked(), 1);
}

async fn what_is_kept_is_for_those_who_may_read_it(_: Host) {
    let kept = Kept::of_rows().await;
    let project = unique("reader");
    let name = project.clone();
    let theirs = tokio::task::spawn_blocking(move || {
        shared().create_project(&name);
        shared().create_key(&name, "read", &[])
    })
    .await
    .unwrap();
    assert_eq!(kept.old("t").send().await.payload().as_array().unwrap().len(), 2);
    let refused = kept.old("t").key(&theirs.token).send().await;
    refused.refused(ErrorCode::DatabaseNotFound);
    kept.old("t").no_key().send().await.refused(ErrorCode::MissingKey);
    assert_eq!(kept.asked(), 2);

    // A full key's read is not cached for read keys.
    let full = kept.old("t?limit=2").key(&shared().full_key).send().await;
    assert_eq!(age(&full), None);
    let read = kept.old("t?limit=2").send().await;
    assert_eq!(age(&read), Some(0));
    assert_eq!(kept.asked(), 2);
    let again = kept.old("t?limit=2").send().await;
    assert!(age(&again).is_some());
    assert_eq!(kept.asked(), 0);

    // A caller with a role gets neither the cached answer of a read key nor the cached answer of another caller.
    let rule = json!({"read": {"fields": ["id"], "rows": {"id": {"value": {"claim": "sub"}}}}});
    let role = create_role(&role_of(&kept.db, [("t", rule)]));
    for _ in 0..2 {
        for sub in [1, 2] {
            let caller = Caller::with_role(&kept.db, &role, json!({"sub": sub}));
            let own = kept.old("t?limit=2").key(&caller.key).send().await;
            assert_eq!((own.payload(), age(&own)), (json!([{"id": sub}]), None));
        }
    }
    assert_eq!(kept.asked(), 4);
}

async fn only_whole_and_short_successes_are_kept(_: Host) {
    let kept = Kept::of_rows().await;
    kept.db.behind("UPDATE t SET s = REPEAT('x', 1100000) WHERE id = 2");
    for (rest, is_kept) in [
        ("t/1?selectFields=v", true),
        ("t?limit=0", true),
        (r#"t?query={"id":7}"#, true),
        ("t/7", false),
        ("t/2", false),
        ("t?selectFields=nope", false),
    ] {
        let direct = kept.get(rest).send().await;
        let (one, two) = (kept.old(rest).send().await, kept.old(rest).send().await);
        assert_eq!(age(&two).is_some(), is_kept, "{rest}");
        for answer in [one, two] {
            assert_eq!(answer.status, direct.status, "{rest}");
            if direct.status.is_success() {
                assert_eq!(answer.body, direct.body, "{rest}");
                assert_eq!(answer.header("content-type"), direct.header("content-type"));
                assert_eq!(answer.header("etag"), direct.header("etag"), "{rest}");
            }
        }
        assert_eq!(kept.asked(), if is_kept { 2 } else { 3 }, "{rest}");
    }
    // A cached answer is stored uncompressed, even if the client accepts compression.
    kept.db.behind("UPDATE t SET s = REPEAT('x', 5000) WHERE id = 2");
    for is_kept in [false, true] {
        let answer = kept.old("t/2?selectFields=s").header("accept-encoding", "zstd").send().await;
        assert_eq!(answer.payload()["s"], "x".repeat(5_000));
        assert_eq!(age(&answer).is_some_and(|_| kept.asked() == 0), is_kept, "{answer}");
    }
    // A request with the current `ETag` is answered with 304, by the cache and by the origin.
    let record = kept.old("t/1?selectFields=v").send().await;
    let tag = record.header("etag").expect("a tag").to_owned();
    for rest in ["t/1?selectFields=v", "t/1?selectFields=id,v"] {
        let held = kept.old(rest).send().await.header("etag").map(str::to_owned);
        let answer = kept.old(rest).header("if-none-match", &held.unwrap()).send().await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (304, 0), "{answer}");
        assert!(age(&answer).is_some(), "{answer}");
    }
    let other = kept.old("t/2?selectFields=v").header("if-none-match", &tag).send().await;
    assert_eq!((other.status.as_u16(), other.payload()), (200, json!({"v": 20})));
}

async fn of_many_callers_at_once_one_asks_the_origin(_: Host) {
    let kept = Kept::start(&[
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 10)",
        "CREATE VIEW slow AS SELECT v, SLEEP(0.5) AS slept FROM t",
    ])
    .await;
    let answers = join_all((0..100).map(|_| kept.old("slow").send())).await;
    for answer in &answers {
        assert_eq!(first(answer), json!(10), "{answer}");
    }
    assert_eq!(kept.asked(), 1);

    // If an answer can't be cached, every client asks the origin, and none waits for another.
    let answers = join_all((0..20).map(|_| kept.old("nothing").send())).await;
    for answer in &answers {
        answer.refused(ErrorCode::TableNotFound);
    }
    assert_eq!(kept.asked(), 20);
}

async fn a_stale_answer_is_given_while_another_one_is_fetched(_: Host) {
    let kept = Kept::of_rows().await;
    let read = || {
        let wish = "max-age=1, stale-while-revalidate=200";
        kept.get("t").header("cache-control", wish).send()
    };
    assert_eq!(first(&read().await), json!(10));
    kept.set(11);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let stale = read().await;
    assert_eq!(first(&stale), json!(10));
    assert!(age(&stale) >= Some(1), "{stale}");
    assert_eq!(stale.header("cache-control"), Some("private, max-age=1, stale-while-revalidate=200"));
    eventually("the new answer", Duration::from_secs(20), || async {
        (first(&read().await) == json!(11)).then_some(())
    })
    .await;
    // One request at first, one in the background; more requests only if the reads took longer than a second.
    assert!(kept.asked() >= 2);
}

async fn a_revoked_key_gets_no_kept_answers_for_long(_: Host) {
    let kept = Kept::of_rows().await;
    let key = tokio::task::spawn_blocking(|| shared().create_key("default", "read", &[])).await.unwrap();
    let read = || kept.old("t").key(&key.token).send();
    assert_eq!(age(&read().await), Some(0));
    let id = key.id.clone();
    tokio::task::spawn_blocking(move || shared().cli_ok(&["key", "revoke", &id])).await.unwrap();
    // The edge remembers for a minute that the origin accepted the key.
    eventually("a refusal", Duration::from_secs(90), || async {
        let answer = read().await;
        match answer.status.as_u16() {
            200 => None,
            _ => Some(answer.refused(ErrorCode::RevokedKey)),
        }
    })
    .await;
    // Other keys still get the cached answer.
    kept.asked();
    kept.old("t").send().await;
    assert!(age(&kept.old("t").send().await).is_some());
    assert!(kept.asked() <= 1);
}
