//! Tests how full keys manage the issuers of their project over HTTP.

use super::{CHANGE_MAX, Project};
use crate::case::eventually;
use crate::host::Host;
use crate::issuer::{Signer, now};
use crate::test_db::unique;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

struct Known {
    project: Project,
    url: String,
    key: Signer,
}

impl Known {
    async fn new(host: Host) -> Self {
        let project = Project::new(host);
        project.call(Method::PUT, "roles/user").json(&json!({"tables": {}})).send().await.payload();
        let url = format!("https://id.example/{}", unique("issuer"));
        Self { project, url, key: Signer::new("EdDSA") }
    }

    fn path(&self) -> String {
        format!("issuers/{}", self.url.replace(':', "%3A").replace('/', "%2F"))
    }

    fn definition(&self) -> Value {
        json!({"audience": "app", "jwks": {"keys": [self.key.jwk("a")]}, "roleClaim": "role", "role": "user",
               "map": {"admin": "read"}, "clientId": "console"})
    }

    fn token(&self) -> String {
        let claims = json!({"iss": self.url, "aud": "app", "sub": "ann", "exp": now() + 600, "role": "admin"});
        self.key.sign(&json!({"alg": "EdDSA", "kid": "a", "typ": "JWT"}), &claims)
    }
}

pub(super) async fn a_full_key_sets_lists_and_removes_issuers(host: Host) {
    let known = Known::new(host).await;
    let (project, path, token) = (&known.project, known.path(), known.token());
    let set = project.call(Method::PUT, &path).json(&known.definition()).send().await;
    assert_eq!(set.payload(), json!({"issuer": known.url}));
    let mut listed = project.get(&path).await;
    assert_eq!(project.get("issuers").await, json!([listed]));
    assert!(listed["createdAt"].take().is_string());
    let mut expected = known.definition();
    for (name, value) in [("issuer", json!(known.url)), ("jwksUrl", Value::Null), ("createdAt", Value::Null)] {
        expected[name] = value;
    }
    assert_eq!(listed, expected);
    let status = async |wanted: u16| (project.status_of(&token).await == wanted).then_some(());
    eventually("its tokens are accepted", CHANGE_MAX, || status(200)).await;

    let shown = json!({"project": project.name, "issuer": known.url, "audience": "app", "clientId": "console"});
    let offered = async |is_there: bool| {
        let text = host.get("/console/issuers.json").send().await.text();
        let list: Vec<Value> = serde_json::from_str(&text).expect("a list");
        (list.contains(&shown) == is_there).then_some(())
    };
    eventually("the console offers it", CHANGE_MAX, || offered(true)).await;
    let page = host.get("/console").send().await;
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.contains("connect-src 'self' ") && policy.contains(" https://id.example"), "{policy}");

    assert_eq!(project.call(Method::DELETE, &path).send().await.payload(), json!({"issuer": known.url}));
    project.call(Method::GET, &path).send().await.refused(ErrorCode::RecordNotFound);
    project.call(Method::DELETE, &path).send().await.refused(ErrorCode::RecordNotFound);
    eventually("its tokens are refused", CHANGE_MAX, || status(401)).await;
    eventually("the console does not offer it", CHANGE_MAX, || offered(false)).await;
}

pub(super) async fn faults_of_an_issuer_are_named(host: Host) {
    let known = Known::new(host).await;
    let path = known.path();
    let with = |change: Value| {
        let mut body = known.definition();
        let members = body.as_object_mut().expect("an object");
        for (name, value) in change.as_object().expect("an object") {
            members.insert(name.clone(), value.clone());
        }
        members.retain(|_, value| !value.is_null());
        body
    };
    for (change, message) in [
        (json!({"audience": null}), "missing field `audience`"),
        (json!({"jwks": null}), "jwksUrl or a jwks"),
        (json!({"jwksUrl": "https://id.example/jwks"}), "jwksUrl or a jwks"),
        (json!({"jwks": null, "jwksUrl": "https://10.0.0.1/jwks"}), "its address is not public"),
        (json!({"jwks": null, "jwksUrl": "http://127.0.0.1/jwks"}), "does not begin with https://"),
        (json!({"role": null, "roleClaim": null}), "No token would have a role"),
        (json!({"role": "nobody"}), "no role nobody"),
        (json!({"roleClaim": "role", "map": {"x".repeat(256): "full"}}), "must have 1 to 255 bytes"),
        (json!({"jwks": {"keys": []}}), "no key"),
        (json!({"secret": "x"}), "unknown field `secret`"),
    ] {
        let answer = known.project.call(Method::PUT, &path).json(&with(change)).send().await;
        let error = answer.refused(ErrorCode::InvalidBody);
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{error}");
    }
    assert_eq!(known.project.get("issuers").await, json!([]));

    let key = known.project.create(&json!({"access": "full", "expires": "1h"})).await.payload();
    let body = with(json!({"map": {"admin": "full"}}));
    let limited = host.call(Method::PUT, &format!("/api/v1/{path}")).key(key["key"].as_str().expect("a key"));
    limited.json(&body).send().await.refused(ErrorCode::PermissionDenied);
    known.project.call(Method::PUT, &path).json(&body).send().await.payload();
    let other = Known::new(host).await;
    let taken = other.project.call(Method::PUT, &path).json(&with(json!({"audience": "other"}))).send().await;
    taken.refused(ErrorCode::PermissionDenied);
}
