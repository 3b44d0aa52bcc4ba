//! What the two accounts of a project may and may not do in MariaDB.

use mysql_async::prelude::Queryable;
use origin::database::admin::Drops;
use origin::system::SystemSchemaError;
use origin::system::projects::{NameClaim, ProjectError};
use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;

use crate::server::{Installation, Server, errno, shared};

fn project(name: &str) -> ProjectName {
    ProjectName::parse(name).unwrap()
}

fn database(name: &str) -> DatabaseName {
    DatabaseName::parse(name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_sees_its_own_databases_and_nothing_else() {
    let (server, _, system) = shared().await;
    let (mine, other) = (project("mine"), project("other"));
    for (project, name) in [(&mine, "mine-data"), (&other, "other-data")] {
        system.projects.create(project, NameClaim::Refuse).await.unwrap();
        system.projects.create_database(project, &database(name)).await.unwrap();
    }
    server.sql(&["CREATE TABLE `mine-data`.t (id INT PRIMARY KEY)", "CREATE TABLE `other-data`.t (id INT)"]).await;
    for access in [Access::Full, Access::Read] {
        let mut conn = server.login(&system.projects.account(&mine, access)).await.unwrap();
        let seen: Vec<String> = conn.query("SHOW DATABASES").await.unwrap();
        assert_eq!(seen, ["information_schema", "mine-data"], "{access}");
        for statement in [
            "SELECT * FROM selkie.`keys`",
            "SELECT * FROM mysql.user",
            "SELECT * FROM mysql.global_priv",
            "SELECT * FROM `other-data`.t",
            "SHOW TABLES FROM selkie",
            "USE mysql",
            "USE selkie",
            "USE `other-data`",
            "DROP DATABASE selkie",
            "CREATE USER x",
            "GRANT SELECT ON `mine-data`.* TO root@localhost",
            "SELECT 1 INTO OUTFILE '/tmp/never'",
            "LOAD DATA INFILE '/etc/hostname' INTO TABLE `mine-data`.t",
            "SET GLOBAL max_connections = 1",
            "FLUSH PRIVILEGES",
            "SHUTDOWN",
            "INSTALL SONAME 'ha_federatedx'",
        ] {
            let refused = errno(conn.query_drop(statement).await);
            assert!([1044, 1045, 1142, 1227].contains(&refused), "{access}: {statement} gave {refused}");
        }
        let leaked: Option<Option<String>> = conn.query_first("SELECT LOAD_FILE('/etc/hostname')").await.unwrap();
        assert_eq!(leaked, Some(None));
        let foreign: Option<u64> = conn
            .query_first("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER NOT LIKE 'selkie-mine-%'")
            .await
            .unwrap();
        assert_eq!(foreign, Some(0), "{access} sees other sessions");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_read_account_reads_and_changes_nothing() {
    let (server, _, system) = shared().await;
    let reader = project("reader");
    system.projects.create(&reader, NameClaim::Refuse).await.unwrap();
    system.projects.create_database(&reader, &database("read-data")).await.unwrap();
    server
        .sql(&[
            "CREATE TABLE `read-data`.t (id INT PRIMARY KEY)",
            "INSERT INTO `read-data`.t VALUES (1)",
            "CREATE VIEW `read-data`.v AS SELECT * FROM `read-data`.t",
            "CREATE SEQUENCE `read-data`.s",
            "CREATE FUNCTION `read-data`.f() RETURNS INT MODIFIES SQL DATA BEGIN DELETE FROM t; RETURN 1; END",
        ])
        .await;
    let mut conn = server.login(&system.projects.account(&reader, Access::Read)).await.unwrap();
    let rows: Vec<u32> = conn.query("SELECT id FROM `read-data`.v").await.unwrap();
    assert_eq!(rows, [1]);
    conn.query_drop("USE `read-data`").await.unwrap();
    for statement in [
        "INSERT INTO t VALUES (2)",
        "UPDATE t SET id = 2",
        "DELETE FROM t",
        "REPLACE INTO t VALUES (1)",
        "TRUNCATE t",
        "DROP TABLE t",
        "ALTER TABLE t ADD c INT",
        "CREATE TABLE u (id INT)",
        "CREATE TEMPORARY TABLE u (id INT)",
        "CREATE VIEW w AS SELECT 1",
        "CREATE INDEX i ON t (id)",
        "LOCK TABLES t WRITE",
        "SELECT f()",
        "SELECT NEXT VALUE FOR s",
        "CREATE DATABASE reader_x",
        "CREATE DATABASE x",
    ] {
        let refused = errno(conn.query_drop(statement).await);
        assert!([1044, 1142, 1370].contains(&refused), "{statement} gave {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_account_makes_databases_of_its_prefix_only() {
    let (server, _, system) = shared().await;
    let maker = project("maker");
    system.projects.create(&maker, NameClaim::Refuse).await.unwrap();
    let mut conn = server.login(&system.projects.account(&maker, Access::Full)).await.unwrap();
    for statement in [
        "CREATE DATABASE maker_x",
        "CREATE TABLE maker_x.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT) WITH SYSTEM VERSIONING",
        "INSERT INTO maker_x.t (v) VALUES (1)",
        "DELETE HISTORY FROM maker_x.t",
        "CREATE TABLE maker_x.u (t INT, FOREIGN KEY (t) REFERENCES maker_x.t (id))",
        "CREATE INDEX i ON maker_x.t (v)",
        "CREATE VIEW maker_x.v AS SELECT * FROM maker_x.t",
        "CREATE PROCEDURE maker_x.p() SELECT 1",
        "CALL maker_x.p()",
        "CREATE TRIGGER maker_x.g BEFORE INSERT ON maker_x.t FOR EACH ROW SET NEW.v = 1",
        "CREATE EVENT maker_x.e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "CREATE TEMPORARY TABLE maker_x.m (id INT)",
        "LOCK TABLES maker_x.t WRITE",
        "UNLOCK TABLES",
    ] {
        conn.query_drop(statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    for name in ["maker", "makerx", "maker-x", "x", "makerXx", "selkie_x", "mysql_x", "test", "other_x"] {
        let refused = errno(conn.query_drop(format!("CREATE DATABASE `{name}`")).await);
        assert_eq!(refused, 1044, "{name}");
    }
    let mut reader = server.login(&system.projects.account(&maker, Access::Read)).await.unwrap();
    let seen: Vec<u32> = reader.query("SELECT v FROM maker_x.t").await.unwrap();
    assert_eq!(seen, [1]);
    let owned = system.projects.databases(Some(&maker)).await.unwrap();
    let names: Vec<&str> = owned.iter().map(|database| database.name.as_str()).collect();
    assert_eq!(names, ["maker_x"]);
    conn.query_drop("DROP DATABASE maker_x").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn wildcards_in_a_name_grant_nothing_beside_it() {
    let (server, _, system) = shared().await;
    let wild = project("wild");
    system.projects.create(&wild, NameClaim::Refuse).await.unwrap();
    let names = ["a_b", "c%d", "e\\f", "g`h", "i'j", "k\"l", "m.n", "größe", "日本_語", "o\\_p"];
    for name in names {
        system.projects.create_database(&wild, &database(name)).await.unwrap();
    }
    server
        .sql(&["CREATE DATABASE axb", "CREATE DATABASE cxxd", "CREATE DATABASE `o_p`", "CREATE DATABASE `日本x語`"])
        .await;
    for access in [Access::Full, Access::Read] {
        let mut conn = server.login(&system.projects.account(&wild, access)).await.unwrap();
        let mut seen: Vec<String> = conn.query("SHOW DATABASES").await.unwrap();
        let mut expected: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        expected.push("information_schema".to_owned());
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected, "{access}");
    }
    let mut conn = server.login(&system.projects.account(&wild, Access::Full)).await.unwrap();
    for name in names {
        let table = format!("CREATE TABLE `{}`.t (id INT)", name.replace('`', "``"));
        conn.query_drop(table).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_mends_passwords_and_takes_back_what_others_granted() {
    let (server, _, system) = shared().await;
    let bent = project("bent");
    system.projects.create(&bent, NameClaim::Refuse).await.unwrap();
    system.projects.create_database(&bent, &database("bent-data")).await.unwrap();
    let full = system.projects.account(&bent, Access::Full);
    let read = system.projects.account(&bent, Access::Read);
    // A full key's SQL can do this to its own account.
    let mut conn = server.login(&full).await.unwrap();
    conn.query_drop("SET PASSWORD = PASSWORD('mine now')").await.unwrap();
    assert_eq!(errno(server.login(&full).await), 1045);
    server
        .sql(&[
            "GRANT FILE, PROCESS ON *.* TO 'selkie-bent-ro'@'localhost'",
            "GRANT INSERT ON `bent-data`.* TO 'selkie-bent-ro'@'localhost' WITH GRANT OPTION",
            "GRANT SELECT ON mysql.* TO 'selkie-bent-ro'@'localhost'",
            "GRANT SELECT ON mysql.user TO 'selkie-bent-rw'@'localhost'",
            "CREATE ROLE bent_role",
            "GRANT ALL ON *.* TO bent_role",
            "GRANT bent_role TO 'selkie-bent-rw'@'localhost'",
            "REVOKE ALL PRIVILEGES ON `bent-data`.* FROM 'selkie-bent-rw'@'localhost'",
        ])
        .await;
    system.projects.mend(&bent).await.unwrap();
    let mut conn = server.login(&full).await.unwrap();
    conn.query_drop("CREATE TABLE `bent-data`.t (id INT)").await.unwrap();
    assert_eq!(errno(conn.query_drop("SET ROLE bent_role").await), 1959);
    assert_eq!(errno(conn.query_drop("SELECT * FROM mysql.user").await), 1142);
    let mut conn = server.login(&read).await.unwrap();
    let rows: Vec<u32> = conn.query("SELECT id FROM `bent-data`.t").await.unwrap();
    assert!(rows.is_empty());
    assert_eq!(errno(conn.query_drop("INSERT INTO `bent-data`.t VALUES (1)").await), 1142);
    assert_eq!(errno(conn.query_drop("SELECT * FROM mysql.user").await), 1142);
    let grants: Vec<String> = conn.query("SHOW GRANTS").await.unwrap();
    assert!(!grants.concat().contains("FILE") && !grants.concat().contains("GRANT OPTION"), "{grants:?}");
    // The accounts have exactly their rights again, so that a further start succeeds.
    system.prepare().await.unwrap();
    server.sql(&["DROP ROLE bent_role"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tcp_accounts_work_too() {
    let server = Server::start(Some(19_011));
    server
        .sql(&[
            "CREATE USER 'boss'@'%' IDENTIFIED BY 'Boss-1-word'",
            "GRANT ALL ON *.* TO 'boss'@'%' WITH GRANT OPTION",
        ])
        .await;
    let installation = Installation::new("");
    let address = server.tcp_address("boss", "Boss-1-word");
    let system = installation.system(&address);
    system.prepare().await.unwrap();
    let name = project("default");
    system.projects.create_database(&name, &database("data")).await.unwrap();
    let mut root = server.root().await;
    let hosts: Vec<(String, String)> =
        root.query("SELECT User, Host FROM mysql.user WHERE User LIKE 'selkie-%' ORDER BY User").await.unwrap();
    let expected = [("selkie-default-ro", "%"), ("selkie-default-rw", "%")];
    assert_eq!(hosts, expected.map(|(user, host)| (user.to_owned(), host.to_owned())));
    let login = origin::database::admin::LoginCheck::Refused(String::new());
    let checked = system.admin.check_login(&system.projects.account(&name, Access::Full)).await.unwrap();
    assert_ne!(std::mem::discriminant(&checked), std::mem::discriminant(&login), "{checked:?}");
}

const READY_MADE: &str = "[accounts.default]
rw = { user = \"app\", password = \"app-rw\" }
ro = { user = \"app_read\", password = \"app-ro\" }
";

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_who_may_not_make_users_is_told_so_and_ready_made_accounts_do() {
    let server = Server::start(Some(19_012));
    server
        .sql(&[
            "CREATE USER 'humble'@'%' IDENTIFIED BY 'x'",
            "GRANT ALL ON selkie.* TO 'humble'@'%'",
            "GRANT ALL ON app_data.* TO 'humble'@'%'",
            "CREATE USER app@'%' IDENTIFIED BY 'app-rw'",
            "CREATE USER app_read@'%' IDENTIFIED BY 'app-ro'",
            "GRANT ALL ON app_data.* TO app@'%'",
            "GRANT SELECT, SHOW VIEW ON app_data.* TO app_read@'%'",
            "CREATE DATABASE app_data",
        ])
        .await;
    let address = server.tcp_address("humble", "x");
    let refused = Installation::new("").system(&address).prepare().await.unwrap_err();
    assert!(matches!(refused, SystemSchemaError::Project(ProjectError::MayNotMakeAccounts { .. })), "{refused}");
    assert!(refused.hint().unwrap().contains("[accounts."), "{refused:?}");

    server.sql(&["DELETE FROM selkie.projects"]).await;
    let installation = Installation::new(READY_MADE);
    let system = installation.system(&address);
    let name = project("default");
    system.migrate().await.unwrap();
    // The accounts have rights on a database that belongs to no project yet.
    let early = system.prepare().await.unwrap_err();
    assert!(early.to_string().contains("which is not the project's"), "{early}");
    assert!(early.hint().unwrap().contains("database adopt"), "{early:?}");
    system.projects.adopt_database(&name, &database("app_data"), Drops::Tables).await.unwrap();
    system.prepare().await.unwrap();
    assert_eq!(system.projects.account(&name, Access::Read).user, "app_read");

    server.sql(&["GRANT FILE ON *.* TO app_read@'%'"]).await;
    let refused = system.prepare().await.unwrap_err().to_string();
    assert!(refused.contains("FILE on the whole server"), "{refused}");
    server.sql(&["REVOKE FILE ON *.* FROM app_read@'%'", "SET PASSWORD FOR app@'%' = PASSWORD('y')"]).await;
    let refused = system.prepare().await.unwrap_err().to_string();
    assert!(refused.contains("app") && !refused.contains("app-rw"), "{refused}");
}
