//! Tests how full keys manage their project over HTTP: keys, roles, figures and last requests. Also
//! tests the links that sign in to the console.

mod issuers;
mod limits;

use crate::case::eventually;
use crate::host::{Answer, Call, Host};
use crate::second_origin::SecondOrigin;
use crate::service::{IssuedKey, shared};
use crate::test_db::unique;
use issuers::{a_full_key_sets_lists_and_removes_issuers, faults_of_an_issuer_are_named};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Both: [
        a_full_key_creates_lists_and_revokes_keys,
        a_key_creates_nothing_above_itself_and_ends_only_if_asked,
        faults_of_a_key_to_create_are_named,
        a_role_is_set_used_and_removed,
        lists_of_keys_and_roles_are_read_by_pages,
        keys_that_a_key_created_are_listed_and_revoked_with_it,
        a_key_without_the_claims_that_its_role_compares_is_warned_of,
        a_role_that_compares_claims_without_case_is_warned_of,
        faults_of_a_role_are_named_with_their_place,
        a_full_key_sets_lists_and_removes_issuers,
        faults_of_an_issuer_are_named,
        a_link_to_the_console_gives_one_key,
        figures_and_last_requests_are_of_the_own_project,
    ],
    Own: [a_link_is_used_once_on_all_origins, changes_of_one_project_leave_the_cached_keys_of_others],
}

/// Maximum time until a revocation or a changed role takes effect. Long enough for a loaded
/// machine.
const CHANGE_MAX: Duration = Duration::from_secs(20);

struct Project {
    host: Host,
    name: String,
    full: IssuedKey,
}

impl Project {
    fn new(host: Host) -> Self {
        let name = unique("managed");
        shared().create_project(&name);
        let full = shared().create_key(&name, "full", &[]);
        Self { host, name, full }
    }

    fn call(&self, method: Method, path: &str) -> Call {
        self.host.call(method, &format!("/api/v1/{path}")).key(&self.full.token)
    }

    async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path).send().await.payload()
    }

    async fn create(&self, body: &Value) -> Answer {
        self.call(Method::POST, "keys").json(body).send().await
    }

    async fn status_of(&self, key: &str) -> u16 {
        self.host.get("/api/v1/crud").key(key).send().await.status.as_u16()
    }
}

async fn a_full_key_creates_lists_and_revokes_keys(host: Host) {
    let project = Project::new(host);
    let answer = project.create(&json!({"access": "read", "name": "reports", "expires": "90d"})).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"), "a key is not cached");
    let created = answer.payload();
    let (id, key) = (created["id"].as_str().unwrap(), created["key"].as_str().unwrap());
    assert_eq!(created["access"], "read");
    assert_eq!(project.status_of(key).await, 200);
    host.get("/api/v1/keys").key(key).send().await.refused(ErrorCode::FullAccessRequired);
    let list = project.get("keys").await;
    let entry = |id: &str| list.as_array().unwrap().iter().find(|entry| entry["id"] == id).cloned().unwrap();
    let listed = entry(id);
    assert_eq!(
        (&listed["name"], &listed["access"], &listed["role"], &listed["state"], &listed["own"]),
        (&json!("reports"), &json!("read"), &Value::Null, &json!("live"), &json!(false))
    );
    assert_eq!(listed["expiresAt"], created["expiresAt"]);
    assert_eq!(entry(&project.full.id)["own"], true);
    assert!(!list.to_string().contains(key.rsplit('.').next().unwrap()), "no key is listed");
    let path = format!("keys/{id}");
    assert_eq!(project.call(Method::DELETE, &path).send().await.payload(), json!({"id": id}));
    eventually("the key ends", CHANGE_MAX, || async { (project.status_of(key).await == 401).then_some(()) }).await;
    project.call(Method::DELETE, &path).send().await.payload();
    let list = project.get("keys").await;
    assert!(list.as_array().unwrap().iter().any(|entry| entry["id"] == id && entry["state"] == "revoked"), "{list}");
    // The log is written by a thread of its own.
    eventually("the changes are logged", CHANGE_MAX, || async {
        let log = shared().log();
        let is_logged = |what: &str| {
            log.lines().any(|line| line.contains(what) && line.contains(id) && line.contains(&project.full.id))
        };
        (is_logged("a key was created") && is_logged("a key was revoked")).then_some(())
    })
    .await;
    assert!(!shared().log().contains(key), "no key is logged");
}

async fn a_key_creates_nothing_above_itself_and_ends_only_if_asked(host: Host) {
    let project = Project::new(host);
    let brief = project.create(&json!({"access": "full", "expires": "1h"})).await.payload();
    let (id, key) = (brief["id"].as_str().unwrap(), brief["key"].as_str().unwrap());
    let create = async |body: Value| host.post("/api/v1/keys", &body).key(key).send().await;
    create(json!({"access": "read"})).await.refused(ErrorCode::PermissionDenied);
    create(json!({"access": "full", "expires": "2h"})).await.refused(ErrorCode::PermissionDenied);
    create(json!({"access": "full", "expires": "5m"})).await.payload();
    // The answer for another project's key is the same as for a key that does not exist.
    let foreign = format!("keys/{}", shared().create_key("default", "read", &[]).id);
    project.call(Method::DELETE, &foreign).send().await.refused(ErrorCode::RecordNotFound);
    let nobody = "keys/01936f2a-7b3c-7def-8abc-0123456789ab";
    project.call(Method::DELETE, nobody).send().await.refused(ErrorCode::RecordNotFound);
    let own = |rest: &str| host.call(Method::DELETE, &format!("/api/v1/keys/{id}{rest}")).key(key).send();
    own("").await.refused(ErrorCode::PermissionDenied);
    own("?own=false").await.refused(ErrorCode::PermissionDenied);
    own("?force=true").await.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(project.status_of(key).await, 200);
    own("?own=true").await.payload();
    eventually("the key ends", CHANGE_MAX, || async { (project.status_of(key).await == 401).then_some(()) }).await;
}

async fn faults_of_a_key_to_create_are_named(host: Host) {
    let project = Project::new(host);
    for (body, named) in [
        (json!({}), "an access or a role"),
        (json!({"access": "read", "role": "author"}), "an access or a role"),
        (json!({"access": "admin"}), "admin"),
        (json!({"access": "read", "claims": {"sub": 7}}), "claims"),
        (json!({"access": "read", "project": "default"}), "project"),
        (json!({"access": "read", "expires": "soon"}), "expires"),
        (json!({"access": "read", "expires": "0s"}), "a second"),
        (json!({"access": "read", "expires": "200y"}), "100 years"),
        (json!({"access": "read", "name": "x".repeat(101)}), "100 characters"),
        (json!({"role": "nobody"}), "nobody"),
        (json!([]), "no key"),
    ] {
        let answer = project.create(&body).await;
        let error = answer.refused(ErrorCode::InvalidBody);
        assert!(error["message"].as_str().unwrap().contains(named), "{body}: {answer}");
    }
    project.create(&json!({"role": "No Name"})).await.refused(ErrorCode::InvalidIdentifier);
    let broken = project.call(Method::POST, "keys").bytes("{\"access\"").header("content-type", "application/json");
    broken.send().await.refused(ErrorCode::InvalidJson);
    assert_eq!(project.get("keys").await.as_array().unwrap().len(), 1);
}

async fn a_role_is_set_used_and_removed(host: Host) {
    let project = Project::new(host);
    let database = format!("{}_shop", project.name);
    for query in [
        format!("CREATE DATABASE {database}"),
        format!("CREATE TABLE {database}.orders (id INT PRIMARY KEY, note TEXT)"),
    ] {
        host.sql(&json!({"query": query})).key(&project.full.token).send().await.payload();
    }
    let table = format!("{database}.orders");
    // The role is stored as the text that was sent, so that no number loses digits.
    let file = format!("{{\n \"tables\": {{{table:?}: {{\"read\": {{\"rows\": {{\"id\": 9007199254740993}}}}}}}}\n}}");
    let set = |file: &str| project.call(Method::PUT, "roles/author").bytes(file.to_owned());
    let set = |file: &str| set(file).header("content-type", "application/json").send();
    assert_eq!(set(&file).await.payload(), json!({"name": "author"}));
    let shown = project.call(Method::GET, "roles/author").send().await;
    assert!(shown.text().contains(&file), "{shown}");
    assert_eq!(project.get("roles").await[0]["name"], "author");
    let body = json!({"role": "author", "claims": {"sub": 7}, "expires": "15m"});
    let created = project.create(&body).await.payload();
    assert_eq!((&created["access"], &created["role"]), (&Value::Null, &json!("author")));
    assert_eq!(created["warnings"], Value::Null);
    let key = created["key"].as_str().unwrap();
    let path = format!("/api/v1/crud/{database}/orders");
    let status = async || host.get(&path).key(key).send().await.status.as_u16();
    assert_eq!(status().await, 200);
    set("{\"tables\": {}}").await.payload();
    eventually("the role changes", CHANGE_MAX, || async { (status().await == 404).then_some(()) }).await;
    project.call(Method::DELETE, "roles/author").send().await.payload();
    eventually("the role ends", CHANGE_MAX, || async { (status().await == 403).then_some(()) }).await;
    for method in [Method::GET, Method::DELETE] {
        project.call(method, "roles/author").send().await.refused(ErrorCode::RecordNotFound);
    }
}

async fn lists_of_keys_and_roles_are_read_by_pages(host: Host) {
    let project = Project::new(host);
    for n in 0..4 {
        project.create(&json!({"access": "read", "name": format!("key {n}")})).await.payload();
        let role = project.call(Method::PUT, &format!("roles/role-{n}")).json(&json!({"tables": {}}));
        role.send().await.payload();
    }
    for (list, cursor) in [("keys", "id"), ("roles", "name")] {
        let whole = project.get(list).await;
        let (mut gathered, mut after) = (Vec::new(), String::new());
        loop {
            let answer = project.call(Method::GET, &format!("{list}?limit=2{after}")).send().await;
            gathered.extend(answer.payload().as_array().unwrap().clone());
            let next = answer.json()["next"].clone();
            let Some(next) = next.as_str() else { break };
            assert_eq!(next, gathered.last().unwrap()[cursor]);
            after = format!("&after={next}");
        }
        assert_eq!(Value::Array(gathered), whole, "{list}");
        for wrong in ["limit=0", "limit=1001", "limit=x", "after=%20", "page=2"] {
            let answer = project.call(Method::GET, &format!("{list}?{wrong}")).send().await;
            answer.refused(ErrorCode::InvalidQueryOption);
        }
    }
    assert!(!project.get("roles").await.to_string().contains("tables"), "a list has no definitions");
}

async fn keys_that_a_key_created_are_listed_and_revoked_with_it(host: Host) {
    let project = Project::new(host);
    let create = async |key: &str, access: &str| {
        let body = json!({"access": access, "name": access});
        let key = host.post("/api/v1/keys", &body).key(key).send().await.payload();
        (key["id"].as_str().unwrap().to_owned(), key["key"].as_str().unwrap().to_owned())
    };
    let (first, first_key) = create(&project.full.token, "full").await;
    let (second, second_key) = create(&first_key, "full").await;
    let (third, third_key) = create(&second_key, "read").await;
    let (other, _) = create(&project.full.token, "read").await;
    let ids = |payload: &Value, state: &str| -> Vec<String> {
        let created = payload["created"].as_array().cloned().unwrap_or_default();
        assert!(created.iter().all(|key| key["state"] == state), "{payload}");
        created.iter().map(|key| key["id"].as_str().unwrap().to_owned()).collect()
    };
    let revoke = async |id: &str, options: &str| {
        project.call(Method::DELETE, &format!("keys/{id}{options}")).send().await.payload()
    };
    assert_eq!(revoke(&other, "").await, json!({"id": other}));
    // The key of a request is not revoked by mistake, as a key that the named key has created.
    let own = host.call(Method::DELETE, &format!("/api/v1/keys/{first}?withCreated=true")).key(&second_key);
    own.send().await.refused(ErrorCode::PermissionDenied);
    assert_eq!(ids(&revoke(&first, "").await, "live"), [second.clone(), third.clone()]);
    assert_eq!(project.status_of(&third_key).await, 200);
    let listed = project.get("keys").await;
    let creator =
        |id: &str| listed.as_array().unwrap().iter().find(|key| key["id"] == id).unwrap()["createdBy"].clone();
    assert_eq!([creator(&project.full.id), creator(&second)], [Value::Null, json!(first)]);
    assert_eq!(ids(&revoke(&first, "?withCreated=true").await, "revoked"), [second, third]);
    for key in [&second_key, &third_key] {
        eventually("the key ends", CHANGE_MAX, || async { (project.status_of(key).await == 401).then_some(()) }).await;
    }
    assert_eq!(revoke(&first, "?withCreated=true").await, json!({"id": first}));
    assert_eq!(project.status_of(&project.full.token).await, 200);
}

async fn changes_of_one_project_leave_the_cached_keys_of_others(_: Host) {
    let service = crate::faults::start(crate::service::Edge::Without, &[]).await;
    let keys = ["one", "other"].map(|name| {
        service.create_project(name);
        service.create_key(name, "full", &[]).token
    });
    let get = async |key: &str, path: &str| Call::new(&service.origin, Method::GET, path).key(key).send().await;
    let looked_up = async || {
        let metrics = Call::new(&service.origin, Method::GET, "/metrics").send().await;
        let text = metrics.text();
        let line = text.lines().find(|line| line.starts_with("selkie_key_lookups_total")).expect("a counter");
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    for key in &keys {
        get(key, "/api/v1/status").await.payload();
    }
    let before = looked_up().await;
    for n in 0..10 {
        let path = format!("/api/v1/roles/role-{n}");
        let set = Call::new(&service.origin, Method::PUT, &path).key(&keys[0]).json(&json!({"tables": {}}));
        set.send().await.payload();
        get(&keys[1], "/api/v1/status").await.payload();
    }
    // Of the other project, none. The changes' own key is looked up again after each.
    assert!(looked_up().await - before <= 10);
    crate::faults::stop(service).await;
}

async fn a_key_without_the_claims_that_its_role_compares_is_warned_of(host: Host) {
    let project = Project::new(host);
    let rows = json!({"owner": {"claim": "sub"}, "team": {"in": {"claim": "teams"}}});
    let media = json!({"upload": {"folder": "a/{sub}/{place}"}, "read": {"folder": "b/{town}"}});
    let role = json!({"tables": {"*": {"read": {"rows": rows}}}, "media": media});
    project.call(Method::PUT, "roles/member").json(&role).send().await.payload();
    for (claims, missing) in [
        (json!({}), Some("place, sub, teams, town")),
        (json!({"sub": 7, "place": "x", "teams": null, "town": "y"}), Some("teams")),
        (json!({"sub": 7, "place": "x", "teams": [1], "town": "y"}), None),
    ] {
        let created = project.create(&json!({"role": "member", "claims": claims})).await.payload();
        let warning = created["warnings"][0].as_str();
        assert_eq!(warning.is_some(), missing.is_some(), "{created}");
        assert!(
            warning.zip(missing).is_none_or(|(warning, names)| warning.contains(&format!("claims {names},"))),
            "{created}"
        );
    }
    let output = shared().cli(&["key", "create", "--role", "member", "--project", &project.name]);
    assert!(output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("warning: The role's rules use the claims place, sub, teams, town")
    );
}

async fn a_role_that_compares_claims_without_case_is_warned_of(host: Host) {
    let project = Project::new(host);
    let database = format!("{}_d", project.name);
    let sql =
        async |query: &str| project.call(Method::POST, "sql").json(&json!({"query": query})).send().await.payload();
    sql(&format!("CREATE DATABASE {database}")).await;
    sql(&format!(
        "CREATE TABLE {database}.t (id INT PRIMARY KEY, folded VARCHAR(9) COLLATE utf8mb4_general_ci,
         exact VARCHAR(9) COLLATE utf8mb4_bin, day DATE)"
    ))
    .await;
    for (rows, is_warned) in [
        (json!({"folded": {"claim": "sub"}}), true),
        (json!({"id": 1, "__query": {"__query": {"folded": {"in": {"claim": "subs"}}}}}), true),
        (json!({"exact": {"claim": "sub"}, "id": {"claim": "n"}, "day": {"claim": "day"}, "folded": "x"}), false),
    ] {
        let role = json!({"tables": {format!("{database}.t"): {"read": {"rows": rows}}}});
        let set = project.call(Method::PUT, "roles/member").json(&role).send().await.payload();
        let warning = set["warnings"][0].as_str().unwrap_or_default();
        assert_eq!(warning.contains("claims to folded, whose collation ignores case"), is_warned, "{role}: {set}");
        assert_eq!(set.get("warnings").is_some(), is_warned, "{set}");
    }
}

async fn faults_of_a_role_are_named_with_their_place(host: Host) {
    let project = Project::new(host);
    let set = async |body: Value| project.call(Method::PUT, "roles/author").json(&body).send().await;
    for (body, named) in [
        (json!({"table": {}}), "tables"),
        (json!({"tables": {"orders": {}}}), "tables.\"orders\""),
        (json!({"tables": {"none.orders": {"read": {}}}}), "tables.\"none.orders\""),
        (json!({"tables": {"a.*": {"drop": true}}}), "drop"),
        (json!({"maxRows": "many"}), "maxRows"),
        (json!([]), "the role"),
    ] {
        let answer = set(body).await;
        let error = answer.refused(ErrorCode::InvalidBody);
        assert!(error["message"].as_str().unwrap().contains(named), "{named}: {answer}");
    }
    for name in ["full", "read", "A%20b"] {
        let call = project.call(Method::PUT, &format!("roles/{name}")).json(&json!({"tables": {}}));
        call.send().await.refused(ErrorCode::InvalidIdentifier);
    }
    assert_eq!(project.get("roles").await, json!([]));
}

pub(crate) async fn link(project: &str) -> String {
    let project = project.to_owned();
    let print = move || shared().cli_ok(&["console", "--project", &project]);
    let url = tokio::task::spawn_blocking(print).await.expect("a task");
    url.trim().split_once("/console#link=").expect("a link").1.to_owned()
}

async fn a_link_to_the_console_gives_one_key(host: Host) {
    let project = Project::new(host);
    let link = link(&project.name).await;
    let exchange = async |link: &str| host.post("/api/v1/keys", &json!({})).key(link).send().await;
    // The link's token is not an API key.
    for call in [host.get("/api/v1/crud"), host.get("/api/v1/keys"), host.sql(&json!({"query": "SELECT 1"}))] {
        call.key(&link).send().await.refused(ErrorCode::InvalidKey);
    }
    let (signed, _) = link.rsplit_once('.').unwrap();
    exchange(&format!("{signed}.AAAA")).await.refused(ErrorCode::InvalidKey);
    let created = exchange(&link).await.payload();
    let key = created["key"].as_str().unwrap();
    assert_eq!((&created["access"], &created["name"]), (&json!("full"), &json!("console")));
    assert!(created["expiresAt"].is_string());
    assert_eq!(project.status_of(key).await, 200);
    exchange(&link).await.refused(ErrorCode::RevokedKey);
    let listed = host.get("/api/v1/keys").key(key).send().await.payload();
    let own: Vec<_> = listed.as_array().unwrap().iter().filter(|entry| entry["own"] == true).collect();
    assert_eq!((own.len(), &own[0]["id"]), (1, &created["id"]));
}

async fn a_link_is_used_once_on_all_origins(host: Host) {
    let _ = host;
    let start = || {
        let mut second = SecondOrigin::launch(shared(), &[])?;
        second.wait_until_ready()?;
        Ok::<_, String>(second)
    };
    let second = tokio::task::spawn_blocking(start).await.expect("a task").expect("a second origin");
    let link = link("default").await;
    let exchange = |url: &str| Call::new(url, Method::POST, "/api/v1/keys").key(&link).json(&json!({})).send();
    let (one, other) = tokio::join!(exchange(&second.origin), exchange(Host::Origin.url()));
    let codes = [one.code(), other.code()];
    assert!(codes.contains(&"ok".to_owned()) && codes.contains(&"revoked_key".to_owned()), "{one}\n{other}");
}

async fn figures_and_last_requests_are_of_the_own_project(host: Host) {
    let (project, other) = (Project::new(host), Project::new(host));
    let id = unique("request");
    project.call(Method::GET, "crud").header("x-request-id", &id).send().await.payload();
    let refused = project.call(Method::GET, "crud/none/none?limit=7").header("x-request-id", &format!("{id}-b"));
    refused.send().await.refused(ErrorCode::DatabaseNotFound);
    let find = async |list: Value, id: &str| list.as_array().unwrap().iter().find(|entry| entry["id"] == id).cloned();
    // The entry may be written after the answer is sent.
    let last = format!("{id}-b");
    let refused =
        eventually("the request is listed", CHANGE_MAX, || async { find(project.get("requests").await, &last).await })
            .await;
    assert_eq!(
        (&refused["method"], &refused["route"], &refused["status"], &refused["code"], &refused["key"]),
        (
            &json!("GET"),
            &json!("/api/v1/crud/{db}/{table}"),
            &json!(404),
            &json!("database_not_found"),
            &json!(project.full.id)
        )
    );
    let list = project.get("requests").await;
    let text = list.to_string();
    assert!(!text.contains("none") && !text.contains("limit"), "no name that the caller chose: {text}");
    assert!(find(list, &id).await.is_some_and(|entry| entry["code"].is_null()));
    assert!(find(other.get("requests").await, &id).await.is_none());
    let status = project.get("status").await;
    let sum = |name: &str| -> u64 {
        status["figures"].as_array().unwrap().iter().map(|figure| figure[name].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("requests"), sum("refused"), sum("failed")), (2, 1, 0), "polls do not count: {status}");
    assert!(status["connections"]["open"].is_u64() && status["periodSeconds"] == 5, "{status}");
}
