//! Keys of clients: how they are sent, their claims, expiry and revocation.

use crate::case::eventually;
use crate::forged::claims;
use crate::host::{Answer, Call, Host};
use crate::service::{Edge, Service, shared};
use crate::test_db::unique;
use serde_json::json;
use shared::error::ErrorCode;
use std::time::{Duration, SystemTime};

/// Maximum time until a revoked key is refused: one second, but more on a loaded machine.
const REVOCATION_MAX: Duration = Duration::from_secs(6);

const POSTS: &str = "/api/v1/crud/demo/posts?limit=1";

cases! {
    Both: [
        a_request_without_a_key_is_refused,
        the_word_bearer_counts_in_any_case,
        a_bare_key_is_taken,
        a_key_in_the_url_is_not_taken,
        two_keys_in_one_request_are_not_mixed,
        the_claims_are_the_documented_ones,
        a_key_ends_with_its_lifetime,
        a_revoked_key_ends,
        a_key_of_another_project_sees_no_database_of_this_one,
        a_foreign_database_is_answered_like_a_missing_one,
    ],
    Origin: [
        the_list_of_keys_shows_ids_and_no_token,
        an_unknown_key_can_not_be_revoked,
        a_key_needs_an_access_and_a_known_project,
        project_names_are_checked,
        the_public_keys_hold_nothing_private,
    ],
    Own: [two_signing_keys_live_while_they_are_rotated],
}

async fn a_request_without_a_key_is_refused(host: Host) {
    for call in [host.get(POSTS), host.sql(&json!({"query": "SELECT 1"})), host.get(POSTS).authorization("")] {
        let answer = call.clone().no_key().send().await;
        answer.refused(ErrorCode::MissingKey);
    }
    let empty = host.get(POSTS).authorization("").send().await;
    empty.refused(ErrorCode::MissingKey);
    let no_key_after_bearer = host.get(POSTS).authorization("Bearer ").send().await;
    no_key_after_bearer.refused(ErrorCode::MissingKey);
}

async fn the_word_bearer_counts_in_any_case(host: Host) {
    for word in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        host.get(POSTS).authorization(&format!("{word} {}", shared().read_key)).send().await.payload();
    }
}

async fn a_bare_key_is_taken(host: Host) {
    host.get(POSTS).authorization(&shared().read_key).send().await.payload();
    host.get(POSTS).authorization(&shared().full_key).send().await.payload();
}

async fn a_key_in_the_url_is_not_taken(host: Host) {
    for name in ["key", "apikey", "api_key", "access_token", "token", "authorization"] {
        let answer = host.get(&format!("{POSTS}&{name}={}", shared().full_key)).no_key().send().await;
        answer.refused(ErrorCode::MissingKey);
    }
}

async fn two_keys_in_one_request_are_not_mixed(host: Host) {
    let call = host.get(POSTS).no_key();
    let call = call.header("authorization", "Bearer a.b.c");
    let answer = call.header("authorization", &format!("Bearer {}", shared().full_key)).send().await;
    answer.refused(ErrorCode::InvalidKey);
}

async fn the_claims_are_the_documented_ones(host: Host) {
    let _ = host;
    for (key, access) in [(&shared().full_key, "full"), (&shared().read_key, "read")] {
        let claims = claims(key);
        assert_eq!(claims["iss"], "selkie");
        assert_eq!(claims["prj"], "default");
        assert_eq!(claims["acc"], access);
        assert!(claims["iat"].is_u64());
        let id = uuid::Uuid::parse_str(claims["sub"].as_str().unwrap()).unwrap();
        assert_eq!(id.get_version_num(), 7);
    }
}

async fn a_key_ends_with_its_lifetime(host: Host) {
    let key = shared().create_key("default", "read", &["--expires", "1s"]);
    let exp = claims(&key.token)["exp"].as_u64().expect("an exp");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!(exp <= now + 2, "expires at {exp}, now {now}");
    let answer = eventually("the key expires", Duration::from_secs(10), || async {
        let answer = host.get(POSTS).key(&key.token).send().await;
        (answer.code() != "ok").then_some(answer)
    });
    answer.await.refused(ErrorCode::ExpiredKey);
}

async fn refusal(host: Host, token: &str) -> Option<Answer> {
    let answer = host.get(POSTS).key(token).send().await;
    (answer.code() != "ok").then_some(answer)
}

async fn a_revoked_key_ends(host: Host) {
    let key = shared().create_key("default", "full", &["--name", "to be revoked"]);
    host.get(POSTS).key(&key.token).send().await.payload();
    // The beginning of an id is enough.
    shared().cli_ok(&["key", "revoke", &key.id[..key.id.len() - 4]]);
    let answer = eventually("the key is revoked", REVOCATION_MAX, || refusal(host, &key.token)).await;
    answer.refused(ErrorCode::RevokedKey);
    let answer = host.sql(&json!({"query": "SELECT 1"})).key(&key.token).send().await;
    answer.refused(ErrorCode::RevokedKey);
}

async fn a_key_of_another_project_sees_no_database_of_this_one(host: Host) {
    let project = unique("other");
    shared().create_project(&project);
    let key = shared().create_key(&project, "full", &[]).token;
    let database = format!("{project}_shop");
    let create = json!({"query": format!("CREATE DATABASE `{database}`")});
    host.sql(&create).key(&key).send().await.payload();
    // The project has only one database, which is the default schema.
    for query in
        ["CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT)", "INSERT INTO items (name) VALUES ('a')"]
    {
        host.sql(&json!({"query": query})).key(&key).send().await.payload();
    }
    let items = format!("/api/v1/crud/{database}/items");
    assert_eq!(host.get(&items).key(&key).send().await.payload(), json!([{"id": 1, "name": "a"}]));
    host.get(&items).send().await.refused(ErrorCode::DatabaseNotFound);
    host.get(POSTS).key(&key).send().await.refused(ErrorCode::DatabaseNotFound);
    let query = json!({"query": "SELECT * FROM posts", "database": "demo"});
    let answer = host.sql(&query).key(&key).send().await;
    answer.refused(ErrorCode::DatabaseNotFound);
    let qualified = json!({"query": "SELECT * FROM demo.posts"});
    let answer = host.sql(&qualified).key(&key).send().await;
    answer.refused(ErrorCode::PermissionDenied);
    let foreign = json!({"query": "CREATE DATABASE default_taken"});
    host.sql(&foreign).key(&key).send().await.refused(ErrorCode::PermissionDenied);
}

async fn a_foreign_database_is_answered_like_a_missing_one(host: Host) {
    let project = unique("owner");
    shared().create_project(&project);
    let key = shared().create_key(&project, "full", &[]).token;
    let foreign = format!("{project}_here");
    host.sql(&json!({"query": format!("CREATE DATABASE `{foreign}`")})).key(&key).send().await.payload();
    let missing = format!("{project}_gone");
    for rest in ["/t", "/t/1", "/t/_schema"] {
        let mut errors = Vec::new();
        for database in [&foreign, &missing] {
            let answer = host.get(&format!("/api/v1/crud/{database}{rest}")).send().await;
            let error = answer.refused(ErrorCode::DatabaseNotFound);
            let shown = |name: &str| error[name].as_str().unwrap_or_default().replace(database.as_str(), "…");
            errors.push((shown("message"), shown("hint")));
        }
        assert_eq!(errors[0], errors[1], "{rest}");
    }
    for database in ["mysql", "information_schema", "performance_schema", "sys", "selkie", "MYSQL", "Selkie"] {
        let answer = host.get(&format!("/api/v1/crud/{database}/user")).send().await;
        answer.refused(ErrorCode::DatabaseNotFound);
    }
}

async fn the_list_of_keys_shows_ids_and_no_token(host: Host) {
    let key = shared().create_key("default", "read", &["--name", "listed"]);
    host.get(POSTS).key(&key.token).send().await.payload();
    for arguments in [vec!["key", "list"], vec!["key", "list", "--json"]] {
        let list = shared().cli_ok(&arguments);
        assert!(list.contains(&key.id), "{list}");
        assert!(list.contains("listed"), "{list}");
        let signature = key.token.rsplit('.').next().unwrap();
        assert!(!list.contains(signature), "the list shows a key");
    }
}

async fn an_unknown_key_can_not_be_revoked(host: Host) {
    let _ = host;
    for (id, reason) in [
        ("0192d3c4-0000-7000-8000-000000000000", "there is no key"),
        ("0192d3c4-0000", "there is no key"),
        ("nonsense", "an id has the digits"),
        ("", "an id has the digits"),
        ("0", "the ids of several keys begin with 0"),
    ] {
        let output = shared().cli(&["key", "revoke", id]);
        assert!(!output.status.success(), "revoking {id} succeeds");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(reason), "{id}: {message}");
    }
}

async fn a_key_needs_an_access_and_a_known_project(host: Host) {
    let _ = host;
    for arguments in [
        vec!["key", "create"],
        vec!["key", "create", "--access", "admin"],
        vec!["key", "create", "--access", "read", "--project", "nobody"],
        vec!["key", "create", "--access", "read", "--expires", "soon"],
    ] {
        let output = shared().cli(&arguments);
        assert!(!output.status.success(), "{arguments:?} succeeds");
    }
}

async fn project_names_are_checked(host: Host) {
    let _ = host;
    let long = "x".repeat(33);
    for name in ["", "Has-Capitals", "under_score", "space d", "ünï", "a.b", long.as_str()] {
        let output = shared().cli(&["project", "create", name]);
        assert!(!output.status.success(), "project {name:?} is made");
    }
    assert!(shared().cli_ok(&["project", "list"]).contains("default"));
}

async fn the_public_keys_hold_nothing_private(_: Host) {
    let set: serde_json::Value = serde_json::from_str(&shared().cli_ok(&["key", "jwks"])).expect("a JWK set");
    let keys = set["keys"].as_array().expect("keys");
    assert!((1..=2).contains(&keys.len()), "{set}");
    for key in keys {
        assert_eq!((&key["kty"], &key["crv"]), (&json!("OKP"), &json!("Ed25519")), "{key}");
        assert!(key["kid"].is_string() && key.get("d").is_none(), "{key}");
    }
}

/// Keys stay valid after one rotation of the signing key, but become invalid by a second rotation.
async fn two_signing_keys_live_while_they_are_rotated(_: Host) {
    let service = tokio::task::spawn_blocking(|| Service::start(Edge::Without, &[])).await.unwrap().expect("a service");
    let read = |token: &str| Call::new(&service.origin, reqwest::Method::GET, POSTS).key(token).send();
    let works = |token: String| async move {
        eventually("a key of the newest signing key works", REVOCATION_MAX, || async {
            (read(&token).await.code() == "ok").then_some(())
        })
        .await;
    };
    let first = service.create_key("default", "read", &[]).token;
    works(first.clone()).await;
    service.cli_ok(&["key", "rotate", "--yes"]);
    let second = service.create_key("default", "read", &[]).token;
    works(second.clone()).await;
    read(&first).await.payload();
    service.cli_ok(&["key", "rotate", "--yes"]);
    let third = service.create_key("default", "read", &[]).token;
    works(third).await;
    read(&second).await.payload();
    let refused = eventually("keys of the signing key before the last end", REVOCATION_MAX, || async {
        let answer = read(&first).await;
        (answer.code() != "ok").then_some(answer)
    });
    refused.await.refused(ErrorCode::InvalidKey);
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap().unwrap();
}
