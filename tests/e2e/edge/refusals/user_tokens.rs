//! Tokens of the issuers in the worker's `ISSUERS`, which the edge verifies.

use super::{Bench, call, fault, refusal};
use crate::case::eventually;
use crate::host::{Call, Host};
use crate::issuer::{ALGORITHMS, Issuer, Signer, now};
use crate::raw::{self, Wire};
use crate::service::shared;
use crate::test_db::unique;
use crate::worker::Worker;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode::{self, *};
use std::time::Duration;

cases! {
    Own: [
        a_token_of_each_algorithm_is_verified_at_the_edge,
        a_token_that_the_edge_can_not_verify_is_forwarded,
        the_tokens_of_a_user_have_one_limit_at_the_edge,
        issuers_are_printed_with_public_keys_only,
    ],
}

/// Maximum time until an origin knows an issuer: 5 s, and more on a loaded machine.
const CHANGE_MAX: Duration = Duration::from_secs(9);

const MEDIA: &str = "/api/v1/media";
const ROLES: &[&str] = &["--map", "reader=read"];

/// Issuers of a new project, whose tokens may read.
struct Users {
    project: String,
    issuers: Vec<Issuer>,
}

impl Users {
    /// Creates an issuer for each algorithm, and waits until the origin knows them.
    async fn new(algorithms: &[&str]) -> Self {
        let project = unique("users");
        shared().create_project(&project);
        let issuers: Vec<_> = algorithms.iter().map(|alg| Issuer::new(&project, alg)).collect();
        for issuer in &issuers {
            issuer.publish(&[issuer.key.jwk("a")], ROLES);
        }
        for issuer in &issuers {
            accepted(&issuer.token(&claims(issuer))).await;
        }
        Self { project, issuers }
    }

    /// Returns the value of the worker's variable `ISSUERS`.
    fn keys(&self) -> String {
        shared().cli_ok(&["issuer", "keys", "--project", &self.project]).trim().to_owned()
    }
}

fn claims(issuer: &Issuer) -> Value {
    let mut claims = issuer.claims("ann");
    claims["role"] = "reader".into();
    claims
}

fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}

fn read(token: &str) -> Call {
    call(Method::GET, MEDIA).key(token)
}

async fn accepted(token: &str) {
    let accepted = || async { (read(token).at(&shared().origin).send().await.status == 200).then_some(()) };
    eventually("the origin knows the issuer's key", CHANGE_MAX, accepted).await;
}

async fn a_token_of_each_algorithm_is_verified_at_the_edge(_: Host) {
    let users = Users::new(&ALGORITHMS).await;
    let bench = Bench::with(&[("ISSUERS", &users.keys())]).await;
    let mut refusals = Vec::new();
    for issuer in &users.issuers {
        let (header, good) = (issuer.header(), claims(issuer));
        for leeway in [good.clone(), with(&good, "exp", json!(now() - 20)), with(&good, "aud", json!(["x", "app"]))] {
            // The second request finds the token in the cache.
            for _ in 0..2 {
                read(&issuer.token(&leeway)).at(&bench.worker.url).send().await.payload();
            }
        }
        let token = issuer.token(&good);
        let (message, signature) = token.rsplit_once('.').expect("a signature");
        let admin = issuer.token(&with(&good, "role", json!("admin")));
        let (admin, _) = admin.rsplit_once('.').expect("a signature");
        let mut other = header.clone();
        other["alg"] = if issuer.key.alg() == "EdDSA" { "ES256" } else { "EdDSA" }.into();
        let stranger = if issuer.key.alg() == "EdDSA" { Signer::new("EdDSA") } else { Signer::new("ES256") };
        let wrong: Vec<(String, ErrorCode)> = vec![
            (format!("{admin}.{signature}"), InvalidKey),
            (format!("{message}.AAAA"), InvalidKey),
            (stranger.sign(&header, &good), InvalidKey),
            (issuer.key.sign(&other, &good), InvalidKey),
            (issuer.key.sign(&with(&header, "alg", json!("HS256")), &good), InvalidKey),
            (issuer.key.sign(&with(&header, "alg", json!("none")), &good), InvalidKey),
            (issuer.key.sign(&with(&header, "crit", json!(["exp"])), &good), InvalidKey),
            (issuer.key.sign(&with(&header, "typ", json!("logout+jwt")), &good), InvalidKey),
            (issuer.token(&with(&good, "aud", json!("other"))), InvalidKey),
            (issuer.token(&with(&good, "exp", json!(now() - 120))), ExpiredKey),
            (issuer.token(&with(&good, "exp", json!(null))), InvalidKey),
            (issuer.token(&with(&good, "nbf", json!(now() + 120))), InvalidKey),
            (issuer.token(&with(&good, "sub", json!(""))), InvalidKey),
        ];
        refusals.extend(wrong.into_iter().map(|(token, code)| refusal(code, read(&token))));
        refusals.push(refusal(RouteNotFound, call(Method::GET, "/nowhere").key(&format!("{admin}.{signature}"))));
    }
    assert_eq!(bench.tap.requests().len(), 6 * ALGORITHMS.len(), "the origin verifies every token again");
    bench.tap.forget();
    let mut faults = Vec::new();
    for (number, refusal) in refusals.into_iter().enumerate() {
        faults.extend(fault(&bench, number, refusal).await);
    }
    assert!(faults.is_empty(), "{} differ:\n{}", faults.len(), faults.join("\n"));
    bench.nothing_was_asked().await;
}

async fn a_token_that_the_edge_can_not_verify_is_forwarded(_: Host) {
    let users = Users::new(&["EdDSA"]).await;
    let issuer = &users.issuers[0];
    let bench = Bench::with(&[("ISSUERS", &users.keys())]).await;
    let good = claims(issuer);
    // The issuer has a new key, which the worker's variable does not list.
    let new = Signer::new("ES256");
    issuer.publish(&[issuer.key.jwk("a"), new.jwk("b")], ROLES);
    let named = |kid: &str| new.sign(&json!({"alg": "ES256", "kid": kid}), &good);
    accepted(&named("b")).await;
    for (token, code) in [
        (named("b"), None),
        (named("c"), Some(InvalidKey)),
        // A token that doesn't name its key may have been signed by any key of its algorithm.
        (new.sign(&json!({"alg": "ES256"}), &good), None),
        (issuer.key.sign(&json!({"alg": "EdDSA"}), &good), None),
        (Signer::new("EdDSA").sign(&json!({"alg": "EdDSA"}), &good), Some(InvalidKey)),
    ] {
        bench.tap.forget();
        let answer = read(&token).at(&bench.worker.url).send().await;
        match code {
            None => drop(answer.payload()),
            Some(code) => drop(answer.refused(code)),
        }
        assert_eq!(bench.tap.requests().len(), 1, "{token}");
    }
    // A body that doesn't belong there is dropped.
    let read_with_body = read(&named("b")).at(&bench.worker.url).json(&json!({}));
    read_with_body.send().await.payload();
    // A token of an issuer that is not listed is refused before its body has come.
    bench.tap.forget();
    let stranger = Issuer::new(&users.project, "EdDSA");
    let token = stranger.token(&claims(&stranger));
    let mut wire = Wire::open(&bench.worker.url).await;
    let headers = format!("Authorization: Bearer {token}\r\nContent-Length: 9\r\n");
    wire.send(&raw::request("POST", b"/api/v1/crud/demo/posts", &headers, b"")).await;
    assert_eq!(wire.answer().await.expect("an answer").code(), InvalidKey.as_str());
    assert_eq!(bench.tap.requests().len(), 0);
    // The origin alone knows that an issuer was removed.
    shared().cli_ok(&["issuer", "remove", "--project", &users.project, &issuer.url]);
    let token = issuer.token(&good);
    let refused = || async {
        let answer = read(&token).at(&bench.worker.url).send().await;
        (answer.code() == InvalidKey.as_str()).then_some(())
    };
    eventually("the issuer is gone", CHANGE_MAX, refused).await;
}

async fn the_tokens_of_a_user_have_one_limit_at_the_edge(_: Host) {
    let users = Users::new(&["ES256"]).await;
    let issuer = &users.issuers[0];
    let variables = [("ORIGINS", shared().origin.as_str()), ("ISSUERS", &users.keys())];
    let worker = Worker::serve("tests/e2e/edge/limited.capnp", &variables);
    let good = claims(issuer);
    // The rate limiter starts anew with each minute of the clock: a round in which a minute ended says nothing.
    let mut round = 0;
    let passed = loop {
        round += 1;
        let user = with(&good, "sub", json!(format!("user {round}")));
        let minute = now() / 60;
        let mut passed = 0;
        for number in 0..12 {
            let token = issuer.token(&with(&user, "exp", json!(now() + 600 + number)));
            let answer = read(&token).at(&worker.url).send().await;
            match answer.status.as_u16() {
                200 => passed += 1,
                _ => drop(answer.refused(RateLimited)),
            }
        }
        if now() / 60 == minute {
            break passed;
        }
    };
    assert_eq!(passed, 5);
    let other = issuer.token(&with(&good, "sub", json!("bob")));
    read(&other).at(&worker.url).send().await.payload();
}

async fn issuers_are_printed_with_public_keys_only(_: Host) {
    let users = Users::new(&ALGORITHMS).await;
    // Nothing listens on port 1.
    let silent = Issuer::new(&users.project, "EdDSA");
    silent.register(&["--jwks-url", "https://127.0.0.1:1/jwks.json", "--role-claim", "role"]);
    let output = shared().cli(&["issuer", "keys", "--project", &users.project]);
    let warning = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && warning.contains(&silent.url), "{warning}");
    let mut printed: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a JSON list");
    let entry =
        |issuer: &Issuer| json!({"issuer": issuer.url, "audience": "app", "jwks": {"keys": [issuer.key.jwk("a")]}});
    let mut expected: Vec<Value> = users.issuers.iter().map(entry).collect();
    for list in [&mut printed, &mut expected] {
        list.sort_by_key(Value::to_string);
    }
    assert_eq!(printed, expected);
}
