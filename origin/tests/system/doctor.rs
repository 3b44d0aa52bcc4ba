//! `doctor` finds nothing to fix in a fresh installation, and finds each fault that a test makes.

use origin::doctor::{Finding, Severity, examine};
use origin::system::roles::{Roles, schema};
use shared::ident::{DatabaseName, ProjectName, RoleName};
use shared::key::{Access, Grant, RoleClaims, RoleGrant};
use std::sync::Arc;

use crate::server::{Installation, Server};

/// The server of these tests keeps no binary log.
const NO_LOG: &str = "changes = \"off\"";

fn wrong(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|finding| finding.verdict != Severity::Ok).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_installation_has_nothing_to_mend_and_each_fault_is_found() {
    let server = Server::start(None);
    let installation = Installation::new(NO_LOG);
    let system = installation.system(&server.address());
    let config = &installation.config;
    let before = examine(&system, config).await;
    assert!(wrong(&before).iter().any(|finding| finding.check == "schema"), "{before:#?}");

    system.prepare().await.unwrap();
    let default = ProjectName::parse("default").unwrap();
    let data = DatabaseName::parse("my_data").unwrap();
    system.projects.create_database(&default, &data).await.unwrap();
    let healthy = examine(&system, config).await;
    assert_eq!(wrong(&healthy), Vec::<&Finding>::new());

    server
        .sql(&[
            "CREATE USER ''@'localhost'",
            "CREATE USER 'selkie-old-rw'@'localhost'",
            "GRANT SELECT ON `test\\_%`.* TO ''@'localhost'",
            "GRANT SELECT ON `shared`.* TO PUBLIC",
            "GRANT PROCESS ON *.* TO 'selkie-default-ro'@'localhost'",
            "REVOKE DROP ON `my\\_data`.* FROM 'selkie-default-rw'@'localhost'",
        ])
        .await;
    let sick = examine(&system, config).await;
    let text: Vec<String> = wrong(&sick).iter().map(|finding| finding.message.clone()).collect();
    let text = text.join("\n");
    for sign in [
        "selkie-default-ro: it has PROCESS on the whole server",
        "selkie-default-rw: it lacks DROP on `my\\_data`",
        "the anonymous account ''@'localhost' may shadow",
        "''@'localhost' has rights on `test\\_%`",
        "PUBLIC has rights on `shared`",
        "'selkie-old-rw'@'localhost' belongs to no project",
    ] {
        assert!(text.contains(sign), "{sign} is not in:\n{text}");
    }

    let elsewhere = Installation::new(NO_LOG);
    let mut config = elsewhere.config.clone();
    config.data_dir = "/nonexistent".into();
    let mut address = server.address();
    address.endpoint = origin::address::Endpoint::Socket("/nonexistent/socket".into());
    let lost = examine(&elsewhere.system(&address), &config).await;
    let checks: Vec<&str> = wrong(&lost).iter().map(|finding| finding.check).collect();
    assert_eq!(checks, ["data", "secret", "database"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_without_a_name_that_shadows_others_is_told_first() {
    let server = Server::start(Some(19_013));
    server
        .sql(&[
            "CREATE USER 'boss'@'127.0.0.1' IDENTIFIED BY 'Boss-1-word'",
            "GRANT ALL ON *.* TO 'boss'@'127.0.0.1' WITH GRANT OPTION",
            "CREATE USER 'boss'@'localhost' IDENTIFIED BY 'Boss-1-word'",
            "GRANT ALL ON *.* TO 'boss'@'localhost' WITH GRANT OPTION",
            "CREATE USER ''@'127.0.0.1'",
            "CREATE USER ''@'localhost'",
        ])
        .await;
    let installation = Installation::new(NO_LOG);
    let system = installation.system(&server.tcp_address("boss", "Boss-1-word"));
    system.prepare().await.unwrap();
    let findings = examine(&system, &installation.config).await;
    let grants: Vec<&Finding> = findings.iter().filter(|finding| finding.check == "grants").collect();
    let first = grants.first().unwrap();
    assert_eq!(first.verdict, Severity::Wrong);
    for part in ["shadows", "selkie-default-rw", "selkie-default-ro", "''@'"] {
        assert!(first.message.contains(part), "{first:?}");
    }
    assert!(first.hint.as_ref().unwrap().contains("DROP USER ''@'"), "{first:?}");
    let refusals = grants.iter().filter(|finding| finding.message.contains("Access denied"));
    assert_eq!(refusals.count(), 0, "{grants:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_roles_and_read_keys_show_too_much_of_is_told() {
    let server = Server::start(None);
    let installation = Installation::new(NO_LOG);
    let system = installation.system(&server.address());
    let config = &installation.config;
    system.prepare().await.unwrap();
    let default = ProjectName::parse("default").unwrap();
    system.projects.create_database(&default, &DatabaseName::parse("shop").unwrap()).await.unwrap();
    server
        .sql(&[
            "CREATE TABLE shop.users (id INT PRIMARY KEY, owner INT, password_hash TEXT, api_token TEXT)",
            "CREATE TABLE shop.orders (id INT PRIMARY KEY, owner INT, note TEXT)",
            "CREATE TABLE shop.news (id INT PRIMARY KEY)",
        ])
        .await;
    let roles = Roles::new(system.admin.clone(), system.projects.clone());
    let tables = schema(config, &system, system.projects.unrepaired_accounts());
    let (clerk, gone) = (RoleName::parse("clerk").unwrap(), RoleName::parse("gone").unwrap());
    let file = r#"{"tables": {"shop.users": {"read": {"fields": {"omit": ["password_hash"]}}}, "shop.*": {"read": true},
        "shop.orders": {"read": {"fields": ["id", "note"], "rows": {"owner": {"claim": "sub"}}}}}}"#;
    roles.set(&default, &clerk, file, &tables).await.unwrap();
    roles.set(&default, &gone, "{}", &tables).await.unwrap();
    let grant = Grant::Role(Arc::new(RoleGrant { role: gone.clone(), claims: RoleClaims::new() }));
    let orphan = system.keys.issue(&default, grant, "", None).await.unwrap().id;
    roles.remove(&default, &gone).await.unwrap();
    let read = system.keys.issue(&default, Access::Read, "", None).await.unwrap().id;
    let revoked = system.keys.issue(&default, Access::Read, "", None).await.unwrap().id;
    system.keys.revoke(revoked, None).await.unwrap();
    system.keys.issue(&default, Access::Full, "", None).await.unwrap();
    server.sql(&["ALTER TABLE shop.orders DROP COLUMN note"]).await;

    let findings = examine(&system, config).await;
    let found: Vec<_> = wrong(&findings).iter().map(|finding| (finding.verdict, finding.message.clone())).collect();
    let expected = [
        format!("project default has no role gone, so these keys are refused: {orphan}"),
        "the role clerk of project default is wrong at tables.\"shop.orders\".read.fields: The table \"orders\" has no \
         field \"note\""
            .to_owned(),
        format!("named like secrets in shop.users: password_hash; seen by the read key {read}"),
        format!(
            "named like secrets in shop.users: api_token; seen by the role clerk of project default and the read key {read}"
        ),
        "the role clerk of project default has row rules, but reaches all records of shop.news through a pattern"
            .to_owned(),
    ];
    assert_eq!(found, expected.map(|message| (Severity::Warning, message)));
}
