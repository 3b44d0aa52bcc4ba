//! Tokens of a project's own users: an issuer signs them, and a role says what a user may do.

use super::{create_role, role_of};
use crate::case::eventually;
use crate::host::{Answer, Host};
use crate::issuer::{Issuer, Signer, now};
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Both: [
        a_user_sees_and_changes_what_the_role_allows,
        a_claim_names_the_role_by_the_map_or_by_itself,
        a_token_that_is_wrong_in_one_part_is_refused,
        the_tokens_of_a_removed_issuer_are_refused,
        a_token_whose_issuer_is_down_may_be_sent_again,
    ],
}

/// Maximum time until a change takes effect: 5 s, and more on a loaded machine.
const CHANGE_MAX: Duration = Duration::from_secs(9);

const T: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, owner VARCHAR(20), name VARCHAR(20))",
    "INSERT INTO t (owner, name) VALUES ('ann', 'a'), ('bob', 'b')",
];

fn add_issuer(arguments: &[&str]) -> Issuer {
    let issuer = Issuer::new("default", "EdDSA");
    issuer.publish(&[issuer.key.jwk("a")], arguments);
    issuer
}

/// Waits until the hosts know the issuer, so that they no longer answer its token with 401.
async fn known(db: &TestDb, token: &str) {
    eventually("the issuer is known", CHANGE_MAX, || async { (get(db, "t", token).await.status != 401).then_some(()) })
        .await;
}

async fn get(db: &TestDb, path: &str, token: &str) -> Answer {
    db.call(Method::GET, path).key(token).send().await
}

fn own_rows(db: &TestDb) -> Value {
    let own = json!({"owner": {"claim": "sub"}});
    let insert = json!({"fields": ["name"], "set": own});
    role_of(db, [("t", json!({"read": {"rows": own}, "insert": insert, "delete": {"rows": own}}))])
}

async fn a_user_sees_and_changes_what_the_role_allows(host: Host) {
    let db = TestDb::new(host, T).await;
    let role = create_role(&own_rows(&db));
    let issuer = add_issuer(&["--role", &role]);
    let [ann, bob] = ["ann", "bob"].map(|sub| issuer.token(&issuer.claims(sub)));
    known(&db, &ann).await;
    for (token, id, other, name) in [(&ann, 1, 2, "a"), (&bob, 2, 1, "b")] {
        assert_eq!(get(&db, "t?selectFields=name", token).await.payload(), json!([{"name": name}]));
        assert_eq!(get(&db, &format!("t/{id}?selectFields=name"), token).await.payload(), json!({"name": name}));
        get(&db, &format!("t/{other}"), token).await.refused(ErrorCode::RecordNotFound);
    }
    let insert = db.call(Method::POST, "t").key(&ann).json(&json!({"name": "c"}));
    let id = insert.send().await.payload();
    assert_eq!(get(&db, &format!("t/{id}"), &ann).await.payload(), json!({"id": id, "owner": "ann", "name": "c"}));
    let delete = |token: &str| db.call(Method::DELETE, &format!("t/{id}")).key(token);
    assert_eq!(delete(&bob).send().await.payload(), json!(0));
    assert_eq!(delete(&ann).send().await.payload(), json!(1));
    host.sql(&json!({"query": "SELECT 1"})).key(&ann).send().await.refused(ErrorCode::RoleForbids);
}

async fn a_claim_names_the_role_by_the_map_or_by_itself(host: Host) {
    let db = TestDb::new(host, T).await;
    let (own, all) = (create_role(&own_rows(&db)), create_role(&role_of(&db, [("t", json!({"read": true}))])));
    let issuer = add_issuer(&["--map", &format!("admin={all}"), "--map", "root=full"]);
    known(&db, &issuer.token(&issuer.claims("ann"))).await;
    for (claim, records) in [
        (json!("admin"), Ok(2)),
        (json!(own), Ok(1)),
        (json!(["x", "admin"]), Ok(2)),
        (json!("root"), Ok(2)),
        (json!("full"), Err(ErrorCode::RoleForbids)),
        (json!("read"), Err(ErrorCode::RoleForbids)),
        (json!("nobody"), Err(ErrorCode::RoleForbids)),
        (json!(["x"]), Err(ErrorCode::RoleForbids)),
        (json!(7), Err(ErrorCode::RoleForbids)),
        (json!(null), Err(ErrorCode::RoleForbids)),
    ] {
        let mut claims = issuer.claims("ann");
        claims["role"] = claim.clone();
        let answer = get(&db, "t", &issuer.token(&claims)).await;
        match records {
            Ok(count) => assert_eq!(answer.payload().as_array().map(Vec::len), Some(count), "{claim}: {answer}"),
            Err(code) => drop(answer.refused(code)),
        }
    }
}

async fn a_token_that_is_wrong_in_one_part_is_refused(host: Host) {
    let db = TestDb::new(host, T).await;
    let issuer = add_issuer(&["--role", &create_role(&own_rows(&db))]);
    let good = issuer.claims("ann");
    known(&db, &issuer.token(&good)).await;
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    for (claims, code) in [
        (with("iss", json!(format!("{}x", issuer.url))), ErrorCode::InvalidKey),
        (with("aud", json!("other")), ErrorCode::InvalidKey),
        (with("aud", json!([])), ErrorCode::InvalidKey),
        (with("exp", json!(now() - 120)), ErrorCode::ExpiredKey),
        (with("exp", json!(null)), ErrorCode::InvalidKey),
        (with("nbf", json!(now() + 120)), ErrorCode::InvalidKey),
        (with("sub", json!(null)), ErrorCode::InvalidKey),
    ] {
        get(&db, "t", &issuer.token(&claims)).await.refused(code);
    }
    for header in [
        json!({"alg": "none"}),
        json!({"alg": "HS256", "kid": "a"}),
        json!({"alg": "RS256", "kid": "a"}),
        json!({"alg": "EdDSA", "kid": "b"}),
        json!({"alg": "EdDSA", "kid": "a", "crit": ["x"]}),
    ] {
        get(&db, "t", &issuer.key.sign(&header, &good)).await.refused(ErrorCode::InvalidKey);
    }
    let forged = Signer::new("EdDSA").sign(&issuer.header(), &good);
    get(&db, "t", &forged).await.refused(ErrorCode::InvalidKey);
    for leeway in [with("exp", json!(now() - 20)), with("nbf", json!(now() + 20)), with("aud", json!(["x", "app"]))] {
        assert_eq!(get(&db, "t", &issuer.token(&leeway)).await.status, 200, "{leeway}");
    }
}

async fn the_tokens_of_a_removed_issuer_are_refused(host: Host) {
    let db = TestDb::new(host, T).await;
    let issuer = add_issuer(&["--role", &create_role(&own_rows(&db))]);
    let token = issuer.token(&issuer.claims("ann"));
    known(&db, &token).await;
    assert_eq!(get(&db, "t", &token).await.status, 200);
    shared().cli_ok(&["issuer", "remove", &issuer.url]);
    let refused = || async { (get(&db, "t", &token).await.status == 401).then_some(()) };
    eventually("the issuer is gone", CHANGE_MAX, refused).await;
    get(&db, "t", &token).await.refused(ErrorCode::InvalidKey);
}

async fn a_token_whose_issuer_is_down_may_be_sent_again(host: Host) {
    let db = TestDb::new(host, T).await;
    let issuer = Issuer::new("default", "EdDSA");
    // Nothing listens on port 1.
    issuer.register(&["--jwks-url", "https://127.0.0.1:1/jwks.json", "--role", &create_role(&own_rows(&db))]);
    let token = issuer.token(&issuer.claims("ann"));
    known(&db, &token).await;
    get(&db, "t", &token).await.refused(ErrorCode::IssuerUnavailable);
}
