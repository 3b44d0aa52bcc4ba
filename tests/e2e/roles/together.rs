//! Many callers at once on one table: reads by id and inserts of single records may share statements, and each caller
//! gets exactly what its own role and claims allow.

use super::{Caller, create_role, is_claim, role_of};
use crate::host::{Answer, Host};
use crate::test_db::TestDb;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

cases! {
    Both: [
        reads_at_once_give_each_caller_its_own,
        inserts_at_once_are_each_judged_by_their_own_rule,
    ],
}

const OWNERS: i64 = 6;
const IDS: i64 = 24;

fn owner(id: i64) -> i64 {
    id % OWNERS
}

async fn table(host: Host) -> TestDb {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, owner INT, name VARCHAR(20), secret VARCHAR(20))"],
    )
    .await;
    let rows = (1..=IDS).map(|id| format!("({id}, {}, 'n{id}', 's{id}')", owner(id)));
    db.exec(&format!("INSERT INTO t VALUES {}", rows.collect::<Vec<_>>().join(", "))).await;
    db
}

/// Returns what a caller sees of a record; `None` if it sees nothing.
type Sees = fn(id: i64, sub: i64) -> Option<Value>;

async fn reads_at_once_give_each_caller_its_own(host: Host) {
    let db = table(host).await;
    let own = is_claim("owner", "sub");
    let rules: [(Value, Sees); 4] = [
        (json!({"rows": own}), |id, sub| {
            (owner(id) == sub)
                .then(|| json!({"id": id, "owner": sub, "name": format!("n{id}"), "secret": format!("s{id}")}))
        }),
        (json!({"fields": ["id", "name"], "rows": own}), |id, sub| {
            (owner(id) == sub).then(|| json!({"id": id, "name": format!("n{id}")}))
        }),
        (json!({"fields": {"omit": ["secret"]}}), |id, _| {
            Some(json!({"id": id, "owner": owner(id), "name": format!("n{id}")}))
        }),
        (json!({"fields": ["id"], "rows": {"owner": {"value": {"claim": "sub"}, "equality": "!="}}}), |id, sub| {
            (owner(id) != sub).then(|| json!({"id": id}))
        }),
    ];
    let mut callers = Vec::new();
    for (read, sees) in rules {
        let role = create_role(&role_of(&db, [("t", json!({"read": read}))]));
        for sub in 0..3 {
            callers.push((Caller::with_role(&db, &role, json!({"sub": sub})), sub, sees));
        }
    }
    let full = |id: i64| json!({"id": id, "owner": owner(id), "name": format!("n{id}"), "secret": format!("s{id}")});
    for round in 0..2 {
        let asked = (1..=IDS).flat_map(|id| callers.iter().map(move |(caller, sub, sees)| (id, caller, *sub, sees)));
        let by_role = asked.map(async |(id, caller, sub, sees)| {
            let answer = caller.get(&format!("t/{id}")).await;
            match sees(id, sub) {
                Some(record) => assert_eq!(answer.payload(), record, "{round}"),
                None => assert_eq!(answer.status, 404, "{answer}"),
            }
        });
        let by_full = (1..=IDS).map(async |id| assert_eq!(db.get(&format!("t/{id}")).await.payload(), full(id)));
        futures_util::future::join(join_all(by_role), join_all(by_full)).await;
    }
}

async fn inserts_at_once_are_each_judged_by_their_own_rule(host: Host) {
    let db = table(host).await;
    let sets = json!({"insert": {"fields": ["name"], "set": {"owner": {"claim": "sub"}}}, "read": true});
    let checks = json!({"insert": {"rows": is_claim("owner", "sub")}, "read": true});
    let [sets, checks] = [sets, checks].map(|rule| create_role(&role_of(&db, [("t", rule)])));
    let mut callers = Vec::new();
    for sub in 100..104 {
        callers.push((Caller::with_role(&db, &sets, json!({"sub": sub})), sub, true));
        callers.push((Caller::with_role(&db, &checks, json!({"sub": sub})), sub, false));
    }
    /// An insert, the owner of its record, and whether the caller's role allows the insert.
    struct Tried {
        answer: Answer,
        owner: i64,
        allowed: bool,
    }
    let tries =
        (0..20).flat_map(|round| callers.iter().map(move |(caller, sub, is_set)| (round, caller, *sub, *is_set)));
    let tried = join_all(tries.map(async |(round, caller, sub, is_set)| {
        let allowed = is_set || round % 3 > 0;
        let owner = if allowed { sub } else { sub + 1 };
        let body = if is_set { json!({"name": "new"}) } else { json!({"name": "new", "owner": owner}) };
        let answer = caller.call(Method::POST, "t").json(&body).send().await;
        Tried { answer, owner, allowed }
    }))
    .await;
    let mut ids = Vec::new();
    for tried in &tried {
        if tried.allowed {
            let id = tried.answer.payload().as_i64().expect("an id");
            ids.push(id);
            assert_eq!(
                db.value(&format!("SELECT owner FROM t WHERE id = {id}")).await,
                tried.owner,
                "{}",
                tried.answer
            );
        } else {
            assert_eq!(tried.answer.code(), "role_forbids", "{}", tried.answer);
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "each insert has its own id");
    assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE name = 'new'").await, count);
}
