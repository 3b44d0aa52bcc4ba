//! Projects and their databases: made, adopted, dropped, refused.

use mysql_async::prelude::Queryable;
use origin::db::admin::Inserted;
use origin::projects::{Claim, Presence, ProjectError};
use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;

use crate::server::shared;

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
    assert_eq!(
        system.projects.create(&twice, Claim::Refuse).await.unwrap(),
        Inserted::New
    );
    assert_eq!(
        system.projects.create(&twice, Claim::Refuse).await.unwrap(),
        Inserted::Existing
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_never_comes_into_databases_that_are_there_by_its_name() {
    let (server, _, system) = shared().await;
    server.sql(&["CREATE DATABASE squat_prod"]).await;
    let squat = project("squat");
    let refused = system
        .projects
        .create(&squat, Claim::Refuse)
        .await
        .unwrap_err();
    assert!(matches!(refused, ProjectError::Covers { .. }), "{refused}");
    assert_eq!(
        system.projects.create(&squat, Claim::Take).await.unwrap(),
        Inserted::New
    );
    for name in ["information", "performance", "mysql", "sys", "selkie"] {
        let refused = system
            .projects
            .create(&project(name), Claim::Take)
            .await
            .unwrap_err();
        assert!(matches!(refused, ProjectError::Reserved(_)), "{refused}");
    }
    // Recorded for another project: not even a claim takes it.
    let holder = project("holder");
    system
        .projects
        .create(&holder, Claim::Refuse)
        .await
        .unwrap();
    system
        .projects
        .create_database(&holder, &database("late_data"))
        .await
        .unwrap();
    let refused = system
        .projects
        .create(&project("late"), Claim::Take)
        .await
        .unwrap_err();
    assert!(matches!(refused, ProjectError::Owned { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn adopting_refuses_what_is_not_to_be_had() {
    let (server, _, system) = shared().await;
    let (one, two) = (project("one"), project("two"));
    for name in [&one, &two] {
        system.projects.create(name, Claim::Refuse).await.unwrap();
    }
    server
        .sql(&["CREATE DATABASE stray", "CREATE DATABASE two_own"])
        .await;
    for name in [
        "mysql",
        "MySQL",
        "selkie",
        "information_schema",
        "performance_schema",
        "sys",
    ] {
        let refused = system
            .projects
            .adopt_database(&one, &database(name))
            .await
            .unwrap_err();
        assert!(matches!(refused, ProjectError::System(_)), "{refused}");
    }
    let refused = system
        .projects
        .adopt_database(&one, &database("nowhere"))
        .await
        .unwrap_err();
    assert!(matches!(refused, ProjectError::NotThere(_)), "{refused}");
    let refused = system
        .projects
        .adopt_database(&one, &database("two_own"))
        .await
        .unwrap_err();
    assert!(matches!(refused, ProjectError::Owned { .. }), "{refused}");
    system
        .projects
        .adopt_database(&one, &database("stray"))
        .await
        .unwrap();
    let refused = system
        .projects
        .adopt_database(&two, &database("stray"))
        .await
        .unwrap_err();
    assert!(matches!(refused, ProjectError::Owned { .. }), "{refused}");
    let refused = system
        .projects
        .create_database(&one, &database("stray"))
        .await
        .unwrap_err();
    assert!(matches!(refused, ProjectError::Exists(_)), "{refused}");
    let long = database(&"_".repeat(40));
    let refused = system
        .projects
        .create_database(&one, &long)
        .await
        .unwrap_err();
    assert!(matches!(refused, ProjectError::NameTooLong(_)), "{refused}");
    let refused = system
        .projects
        .adopt_database(&project("tow"), &database("stray"))
        .await
        .unwrap_err();
    assert_eq!(refused.hint().unwrap(), "did you mean two?");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_database_is_gone_with_its_rights() {
    let (server, _, system) = shared().await;
    let gone = project("gone");
    system.projects.create(&gone, Claim::Refuse).await.unwrap();
    let name = database("gone-data");
    system.projects.create_database(&gone, &name).await.unwrap();
    let refused = system
        .projects
        .drop_database(&project("default"), &name)
        .await
        .unwrap_err();
    assert!(matches!(refused, ProjectError::Owned { .. }), "{refused}");
    // Dropped by a full key: still the project's, and said to be missing.
    let mut conn = server
        .login(&system.projects.account(&gone, Access::Full))
        .await
        .unwrap();
    conn.query_drop("DROP DATABASE `gone-data`").await.unwrap();
    let listed = system.projects.databases(Some(&gone)).await.unwrap();
    assert_eq!(listed[0].presence, Presence::Missing);
    system.projects.drop_database(&gone, &name).await.unwrap();
    assert!(
        system
            .projects
            .databases(Some(&gone))
            .await
            .unwrap()
            .is_empty()
    );
    let mut conn = server
        .login(&system.projects.account(&gone, Access::Full))
        .await
        .unwrap();
    let grants: Vec<String> = conn.query("SHOW GRANTS").await.unwrap();
    assert!(!grants.concat().contains("gone-data"), "{grants:?}");
    let refused = system
        .projects
        .drop_database(&gone, &database("mysql"))
        .await
        .unwrap_err();
    assert!(matches!(refused, ProjectError::System(_)), "{refused}");
    let refused = system
        .projects
        .drop_database(&gone, &database("nobodys"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ProjectError::NotOwned { .. }),
        "{refused}"
    );
}
