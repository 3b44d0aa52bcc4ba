//! Limits of the keys and roles of one project.

use super::Project;
use crate::case::eventually;
use crate::host::Host;
use crate::service::shared;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use shared::limits::{
    DEAD_KEYS_PER_PROJECT_MAX_COUNT, KEYS_PER_PROJECT_MAX_COUNT, ROLE_MAX_BYTES, ROLES_PER_PROJECT_MAX_BYTES,
    ROLES_PER_PROJECT_MAX_COUNT,
};
use std::time::Duration;

cases! {
    Both: [
        keys_of_a_project_are_limited,
        keys_that_ended_long_ago_are_forgotten,
        roles_of_a_project_are_limited,
        definitions_of_roles_are_limited_together,
    ],
}

fn root(statement: &str) -> String {
    shared().root_sql(statement).unwrap().trim().to_owned()
}

/// Records keys that the project's full key has created. `revoked_at` may contain `seq`, the number of the key.
fn add_keys(project: &Project, revoked_at: &str, count: usize) {
    let (name, full) = (&project.name, &project.full.id);
    root(&format!(
        "INSERT INTO selkie.`keys` (id, project, name, access, kid, created_at, revoked_at, created_by)
         SELECT UUID(), '{name}', '', 'read', kid, 0, {revoked_at}, '{full}'
         FROM selkie.seq_1_to_{count}, (SELECT MAX(kid) AS kid FROM selkie.signing_keys) AS signing"
    ));
}

/// Tries again after a deadlock with the keys of other cases.
fn remove_keys(project: &Project) {
    const DEADLOCK: &str = "ERROR 1213";
    let delete = format!("DELETE FROM selkie.`keys` WHERE project = '{}'", project.name);
    while let Err(error) = shared().root_sql(&delete) {
        assert!(error.contains(DEADLOCK), "{error}");
    }
}

/// Creates a key; tries again after a deadlock with the keys of other cases.
async fn create_key(project: &Project) -> Value {
    eventually("no deadlock", Duration::from_secs(30), async || {
        let answer = project.create(&json!({"access": "read"})).await;
        (answer.code() != ErrorCode::DatabaseUnavailable.as_str()).then(|| answer.payload())
    })
    .await
}

async fn keys_of_a_project_are_limited(host: Host) {
    let project = Project::new(host);
    add_keys(&project, "NULL", KEYS_PER_PROJECT_MAX_COUNT - 2);
    let wanted = json!({"access": "read"});
    let last = create_key(&project).await;
    let refused = project.create(&wanted).await;
    let error = refused.refused(ErrorCode::PermissionDenied);
    assert!(error["message"].as_str().unwrap().contains("10000 keys"), "{refused}");
    let last = format!("keys/{}", last["id"].as_str().unwrap());
    project.call(Method::DELETE, &last).send().await.payload();
    create_key(&project).await;
    remove_keys(&project);
}

async fn keys_that_ended_long_ago_are_forgotten(host: Host) {
    let project = Project::new(host);
    let (of, full) = (format!("FROM selkie.`keys` WHERE project = '{}'", project.name), &project.full.id);
    add_keys(&project, "seq", DEAD_KEYS_PER_PROJECT_MAX_COUNT);
    let dead = || root(&format!("SELECT COUNT(*) {of} AND revoked_at IS NOT NULL")).parse::<usize>().unwrap();
    let made = create_key(&project).await;
    assert_eq!(dead(), DEAD_KEYS_PER_PROJECT_MAX_COUNT);

    // The first key has created the second one, and that one a key that is in use.
    let old = |revoked_at: usize| root(&format!("SELECT id {of} AND revoked_at = {revoked_at}"));
    let (first, second, made) = (old(1), old(2), made["id"].as_str().unwrap());
    root(&format!("UPDATE selkie.`keys` SET created_by = '{first}' WHERE id = '{second}'"));
    root(&format!("UPDATE selkie.`keys` SET created_by = '{second}' WHERE id = '{made}'"));
    // A key that was revoked just before is kept, although it is one too many.
    add_keys(&project, "UNIX_TIMESTAMP()", 1);
    create_key(&project).await;
    assert_eq!(dead(), DEAD_KEYS_PER_PROJECT_MAX_COUNT + 1 - 100);
    assert_eq!(root(&format!("SELECT MIN(revoked_at), MAX(revoked_at) > 1e9 {of}")), "101\t1");
    assert_eq!(root(&format!("SELECT created_by {of} AND id = '{made}'")), *full);
    remove_keys(&project);
}

async fn roles_of_a_project_are_limited(host: Host) {
    let project = Project::new(host);
    root(&format!(
        "INSERT INTO selkie.roles SELECT '{}', CONCAT('role-', seq), '{{\"tables\": {{}}}}', 0, 0
         FROM selkie.seq_1_to_{ROLES_PER_PROJECT_MAX_COUNT}",
        project.name
    ));
    let set = |name: &str| project.call(Method::PUT, &format!("roles/{name}")).json(&json!({"tables": {}})).send();
    let refused = set("other").await;
    let error = refused.refused(ErrorCode::PermissionDenied);
    assert!(error["message"].as_str().unwrap().contains("1000 roles"), "{refused}");
    set("role-7").await.payload();
    project.call(Method::DELETE, "roles/role-7").send().await.payload();
    set("other").await.payload();
}

async fn definitions_of_roles_are_limited_together(host: Host) {
    let project = Project::new(host);
    let blanks = " ".repeat(ROLE_MAX_BYTES - 20);
    let set = async |name: usize| {
        let call =
            project.call(Method::PUT, &format!("roles/role-{name}")).bytes(format!("{{\"tables\": {{}}}}{blanks}"));
        call.header("content-type", "application/json").send().await
    };
    let most = ROLES_PER_PROJECT_MAX_BYTES / ROLE_MAX_BYTES;
    for name in 0..most {
        set(name).await.payload();
    }
    let refused = set(most).await;
    let error = refused.refused(ErrorCode::PermissionDenied);
    assert!(error["message"].as_str().unwrap().contains("16777216 bytes"), "{refused}");
    set(0).await.payload();
    // The list has none of the definitions.
    assert!(project.get("roles").await.to_string().len() < 100 * (most + 1));
}
