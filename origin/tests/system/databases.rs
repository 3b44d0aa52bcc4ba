//! Creating, adopting, dropping and refusing projects' databases.

use mysql_async::prelude::Queryable;
use origin::database::admin::{Drops, Inserted};
use origin::system::projects::{NameClaim, Presence, ProjectError, Removal};
use shared::ident::{DatabaseName, ProjectName, folded};
use shared::key::Access;

use crate::server::{errno, shared};

fn project(name: &str) -> ProjectName {
    ProjectName::parse(name).unwrap()
}

fn database(name: &str) -> DatabaseName {
    DatabaseName::parse(name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_project_is_always_there_and_making_one_twice_is_no_fault() {
    let (_, _, system) = shared().await;
    let list = system.projects.list().await.unwrap();
    assert!(list.iter().any(|row| row.name.as_str() == "default"));
    let twice = project("twice");
    assert_eq!(system.projects.create(&twice, NameClaim::Refuse).await.unwrap(), Inserted::New);
    assert_eq!(system.projects.create(&twice, NameClaim::Refuse).await.unwrap(), Inserted::Existing);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_never_comes_into_databases_that_are_there_by_its_name() {
    let (server, _, system) = shared().await;
    server.sql(&["CREATE DATABASE squat_prod"]).await;
    let squat = project("squat");
    let refused = system.projects.create(&squat, NameClaim::Refuse).await.unwrap_err();
    assert!(matches!(refused, ProjectError::Covers { .. }), "{refused}");
    assert_eq!(system.projects.create(&squat, NameClaim::Take).await.unwrap(), Inserted::New);
    for name in ["information", "performance", "mysql", "sys", "selkie"] {
        let refused = system.projects.create(&project(name), NameClaim::Take).await.unwrap_err();
        assert!(matches!(refused, ProjectError::Reserved(_)), "{refused}");
    }
    // Another project's recorded database can't be claimed.
    let holder = project("holder");
    system.projects.create(&holder, NameClaim::Refuse).await.unwrap();
    system.projects.create_database(&holder, &database("late_data")).await.unwrap();
    let refused = system.projects.create(&project("late"), NameClaim::Take).await.unwrap_err();
    assert!(matches!(refused, ProjectError::Owned { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn adopting_refuses_what_is_not_to_be_had() {
    let (server, _, system) = shared().await;
    let (one, two) = (project("one"), project("two"));
    for name in [&one, &two] {
        system.projects.create(name, NameClaim::Refuse).await.unwrap();
    }
    server.sql(&["CREATE DATABASE stray", "CREATE DATABASE two_own"]).await;
    for name in ["mysql", "MySQL", "selkie", "information_schema", "performance_schema", "sys"] {
        let refused = system.projects.adopt_database(&one, &database(name), Drops::Tables).await.unwrap_err();
        assert!(matches!(refused, ProjectError::System(_)), "{refused}");
    }
    let refused = system.projects.adopt_database(&one, &database("nowhere"), Drops::Tables).await.unwrap_err();
    assert!(matches!(refused, ProjectError::NotThere(_)), "{refused}");
    let refused = system.projects.adopt_database(&one, &database("two_own"), Drops::Tables).await.unwrap_err();
    assert!(matches!(refused, ProjectError::Owned { .. }), "{refused}");
    system.projects.adopt_database(&one, &database("stray"), Drops::Tables).await.unwrap();
    let refused = system.projects.adopt_database(&two, &database("stray"), Drops::Tables).await.unwrap_err();
    assert!(matches!(refused, ProjectError::Owned { .. }), "{refused}");
    let refused = system.projects.create_database(&one, &database("stray")).await.unwrap_err();
    assert!(matches!(refused, ProjectError::Exists(_)), "{refused}");
    let long = database(&"_".repeat(40));
    let refused = system.projects.create_database(&one, &long).await.unwrap_err();
    assert!(matches!(refused, ProjectError::NameTooLong(_)), "{refused}");
    let refused = system.projects.adopt_database(&project("tow"), &database("stray"), Drops::Tables).await.unwrap_err();
    assert_eq!(refused.hint().unwrap(), "did you mean two?");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_database_is_gone_with_its_rights() {
    let (server, _, system) = shared().await;
    let gone = project("gone");
    system.projects.create(&gone, NameClaim::Refuse).await.unwrap();
    let name = database("gone-data");
    system.projects.create_database(&gone, &name).await.unwrap();
    let refused = system.projects.drop_database(&project("default"), &name).await.unwrap_err();
    assert!(matches!(refused, ProjectError::Owned { .. }), "{refused}");
    // A database that a full key has dropped is still the project's, and listed as missing.
    let mut conn = server.login(&system.projects.account(&gone, Access::Full)).await.unwrap();
    conn.query_drop("DROP DATABASE `gone-data`").await.unwrap();
    let listed = system.projects.databases(Some(&gone)).await.unwrap();
    assert_eq!(listed[0].presence, Presence::Missing);
    system.projects.drop_database(&gone, &name).await.unwrap();
    assert!(system.projects.databases(Some(&gone)).await.unwrap().is_empty());
    let mut conn = server.login(&system.projects.account(&gone, Access::Full)).await.unwrap();
    let grants: Vec<String> = conn.query("SHOW GRANTS").await.unwrap();
    assert!(!grants.concat().contains("gone-data"), "{grants:?}");
    let refused = system.projects.drop_database(&gone, &database("mysql")).await.unwrap_err();
    assert!(matches!(refused, ProjectError::System(_)), "{refused}");
    let refused = system.projects.drop_database(&gone, &database("nobodys")).await.unwrap_err();
    assert!(matches!(refused, ProjectError::NotOwned { .. }), "{refused}");
}

async fn adopted(project: &ProjectName, name: &DatabaseName, drops: Drops) {
    let (server, _, system) = shared().await;
    system.projects.create(project, NameClaim::Refuse).await.unwrap();
    server.sql(&[&format!("CREATE DATABASE `{name}`"), &format!("CREATE TABLE `{name}`.t (id INT)")]).await;
    system.projects.adopt_database(project, name, drops).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_may_be_dropped_mariadb_refuses_it() {
    let (server, _, system) = shared().await;
    let (keeper, name) = (project("holdfast"), database("held_data"));
    adopted(&keeper, &name, Drops::Nothing).await;
    let full = system.projects.account(&keeper, Access::Full);
    let mut conn = server.login(&full).await.unwrap();
    for (statement, expected) in [
        ("DROP TABLE held_data.t", 1142),
        ("TRUNCATE held_data.t", 1142),
        ("DROP DATABASE held_data", 1044),
        ("CREATE OR REPLACE DATABASE held_data", 1044),
        ("EXECUTE IMMEDIATE CONCAT('DROP DATA', 'BASE held_data')", 1044),
    ] {
        let refused = errno(conn.query_drop(statement).await);
        assert_eq!(refused, expected, "{statement}");
    }
    // Adopted again, with other drop rights.
    system.projects.adopt_database(&keeper, &name, Drops::Database).await.unwrap();
    assert_eq!(system.projects.undroppable(&keeper).await.unwrap(), []);
    let mut conn = server.login(&full).await.unwrap();
    conn.query_drop("DROP DATABASE held_data").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_database_is_released_and_not_dropped() {
    let (server, _, system) = shared().await;
    let (keeper, name) = (project("keeper"), database("kept data"));
    adopted(&keeper, &name, Drops::Tables).await;
    let undroppable = system.projects.undroppable(&keeper).await.unwrap();
    assert_eq!(undroppable, std::slice::from_ref(&name));
    let refused = system.projects.drop_database(&keeper, &name).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, ProjectError::Adopted { .. }), "{refused}");
    let hint = refused.hint().unwrap();
    assert!(hint.contains("database release"), "{hint}");
    // A connection that has the database selected would keep its rights there.
    let full = system.projects.account(&keeper, Access::Full);
    let mut inside = server.login(&full).await.unwrap();
    inside.query_drop("USE `kept data`").await.unwrap();
    system.projects.release_database(&keeper, &name).await.unwrap();
    assert!(inside.query_drop("SELECT * FROM t").await.is_err());
    let mut conn = server.login(&full).await.unwrap();
    let denied = errno(conn.query_drop("SELECT * FROM `kept data`.t").await);
    assert_eq!(denied, 1142);
    assert!(system.admin.exists("kept data").await.unwrap());
    let refused = system.projects.release_database(&keeper, &name).await;
    assert!(matches!(refused, Err(ProjectError::NotOwned { .. })), "{refused:?}");
    // Databases that belong to the project by name can't be released.
    let named = database("keeper_x");
    system.projects.create_database(&keeper, &named).await.unwrap();
    let refused = system.projects.release_database(&keeper, &named).await;
    assert!(matches!(refused, Err(ProjectError::OwnedByName { .. })), "{refused:?}");
    system.projects.drop_database(&keeper, &named).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_project_leaves_nothing_and_adopted_data_stays() {
    let (server, _, system) = shared().await;
    let leaver = project("leaver");
    let refused = system.projects.check_removal(&project("default"), Removal::Drop).await;
    assert!(matches!(refused, Err(ProjectError::Default(_))), "{refused:?}");
    let refused = system.projects.check_removal(&leaver, Removal::Drop).await;
    assert!(matches!(refused, Err(ProjectError::UnknownProject { .. })), "{refused:?}");
    system.projects.create(&leaver, NameClaim::Refuse).await.unwrap();
    server.sql(&["CREATE DATABASE left_over"]).await;
    let (made, adopted) = (database("leaver_made"), database("left_over"));
    system.projects.create_database(&leaver, &made).await.unwrap();
    system.projects.adopt_database(&leaver, &adopted, Drops::Tables).await.unwrap();
    let key = system.keys.issue(&leaver, Access::Full, "", None).await.unwrap();
    let refused = system.projects.check_removal(&leaver, Removal::Refuse).await;
    let Err(ProjectError::OwnsDatabases { databases, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(databases, ["leaver_made", "left_over"]);
    let full = system.projects.account(&leaver, Access::Full);
    let mut open = server.login(&full).await.unwrap();
    assert_eq!(system.projects.close(&leaver).await.unwrap(), 1);
    assert!(open.query_drop("SELECT 1").await.is_err());
    // An interrupted removal can be repeated.
    assert_eq!(system.projects.close(&leaver).await.unwrap(), 0);
    let removed = system.projects.remove(&leaver, Removal::Drop).await.unwrap();
    assert_eq!(removed.dropped, ["leaver_made"]);
    assert_eq!(removed.released, ["left_over"]);
    assert!(!system.admin.exists("leaver_made").await.unwrap());
    assert!(system.admin.exists("left_over").await.unwrap());
    let status = system.admin.key_status(key.id, None).await.unwrap();
    assert_eq!(status, origin::database::admin::KeyStatus::Unknown);
    assert_eq!(errno(server.login(&full).await), 1045);
    // A request that was refused must not restore the accounts.
    assert!(system.projects.mend(&leaver).await.is_err());
    assert_eq!(errno(server.login(&full).await), 1045);
    assert!(system.projects.require(&leaver).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_folded_as_mariadb_folds_them() {
    let (server, _, _) = shared().await;
    let mut conn = server.root().await;
    let letters: Vec<(String, String)> = conn
        .query(
            "SELECT letter, LOWER(letter COLLATE utf8mb3_general_ci) FROM (SELECT CONVERT(CHAR(seq USING ucs2) USING utf8mb3) \
             AS letter FROM mysql.seq_32_to_65535 WHERE seq NOT BETWEEN 0xD800 AND 0xDFFF) letters \
             HAVING BINARY letter <> BINARY LOWER(letter COLLATE utf8mb3_general_ci)",
        )
        .await
        .unwrap();
    assert!(letters.len() > 600, "{}", letters.len());
    let differing: Vec<_> = letters.iter().filter(|(letter, lower)| folded(letter) != *lower).collect();
    assert!(differing.is_empty(), "{differing:?}");
}
