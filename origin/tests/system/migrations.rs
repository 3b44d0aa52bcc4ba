//! The system schema's versions.

use mysql_async::prelude::Queryable;
use origin::database::admin::{AdminError, SCHEMA_VERSION};
use origin::system::SystemSchemaError;

use crate::server::{Installation, Server};

#[tokio::test(flavor = "multi_thread")]
async fn origins_that_start_at_once_migrate_once_and_a_newer_schema_is_refused() {
    let server = Server::start(None);
    let installation = Installation::new("");
    let starts: Vec<_> = (0..6)
        .map(|_| {
            let system = installation.system(&server.address());
            tokio::spawn(async move { system.prepare().await })
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    let mut root = server.root().await;
    let versions: Vec<u32> = root.query("SELECT version FROM selkie.migrations").await.unwrap();
    assert_eq!(versions, (1..=SCHEMA_VERSION).collect::<Vec<_>>());
    let signing_keys: Option<u64> = root.query_first("SELECT COUNT(*) FROM selkie.signing_keys").await.unwrap();
    assert_eq!(signing_keys, Some(1));

    // The state after a crash between a statement and its record.
    root.query_drop("DELETE FROM selkie.migrations").await.unwrap();
    let system = installation.system(&server.address());
    system.prepare().await.unwrap();
    assert_eq!(system.admin.schema_version().await.unwrap(), Some(SCHEMA_VERSION));

    let newer = format!("INSERT INTO selkie.migrations VALUES ({}, 'from the future', 0)", SCHEMA_VERSION + 1);
    root.query_drop(newer).await.unwrap();
    let refused = system.prepare().await.unwrap_err();
    assert!(matches!(refused, SystemSchemaError::Admin(AdminError::SchemaTooNew { .. })), "{refused}");
    assert!(refused.to_string().contains("newer selkie"), "{refused}");
}

#[tokio::test]
async fn an_unreachable_server_and_a_wrong_password_are_told_apart() {
    let server = Server::shared();
    let installation = Installation::new("");
    let mut address = server.address();
    address.admin_password = secrecy::SecretString::from("hunter2");
    server.sql(&["CREATE USER IF NOT EXISTS 'closed'@'localhost' IDENTIFIED BY 'x'"]).await;
    address.admin_user = "closed".to_owned();
    let refused = installation.system(&address).prepare().await.unwrap_err();
    assert!(matches!(refused, SystemSchemaError::Admin(AdminError::Login { .. })), "{refused}");
    assert!(!refused.to_string().contains("hunter2"));
    address.endpoint = origin::address::Endpoint::Socket("/nonexistent/socket".into());
    let refused = installation.system(&address).prepare().await.unwrap_err();
    assert!(matches!(refused, SystemSchemaError::Admin(AdminError::Unreachable(_))), "{refused}");
}
