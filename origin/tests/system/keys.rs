//! Keys from issue to revocation, as a running origin sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use mysql_async::prelude::Queryable;
use origin::database::admin::KeyStatus;
use origin::system::System;
use origin::system::keys::{KeyError, KeyRegistry};
use origin::system::projects::{NameClaim, ProjectError};
use shared::error::ErrorCode;
use shared::ident::{ProjectName, RoleName};
use shared::key::{Access, Grant, KeySet, RoleGrant, verify};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::server::{Installation, Server, shared};

fn default() -> ProjectName {
    ProjectName::parse("default").unwrap()
}

async fn registry(system: &System) -> Arc<KeyRegistry> {
    Arc::new(KeyRegistry::open(system.admin.clone(), system.keys.clone()).await.unwrap())
}

async fn code(registry: &KeyRegistry, token: &str) -> ErrorCode {
    registry.authenticate(Some(token)).await.unwrap_err().code()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_opens_its_project_at_once_and_at_the_edge_too() {
    let (_, _, system) = shared().await;
    let registry = registry(&system).await;
    let issued = system.keys.issue(&default(), Access::Read, "reader", None).await.unwrap();
    let caller = registry.authenticate(Some(&format!("Bearer {}", issued.token))).await.unwrap();
    assert_eq!(caller.key_id(), issued.id);
    assert_eq!(caller.project(), &default());
    assert_eq!((caller.grant(), caller.account()), (&Grant::Read, Access::Read));
    let edge = KeySet::from_jwks(&system.keys.public_keys().await.unwrap().to_jwks()).unwrap();
    assert_eq!(verify(Some(&issued.token), &edge, origin::clock::now()).unwrap(), caller.principal().as_ref().clone());
    assert_eq!(registry.authenticate(None).await.unwrap_err().code(), ErrorCode::MissingKey);
    assert_eq!(code(&registry, "a.b.c").await, ErrorCode::InvalidKey);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_by_every_origin_that_follows() {
    let (_, _, system) = shared().await;
    let (one, two) = (registry(&system).await, registry(&system).await);
    let issued = system.keys.issue(&default(), Access::Full, "", None).await.unwrap();
    for registry in [&one, &two] {
        registry.authenticate(Some(&issued.token)).await.unwrap();
    }
    assert_eq!(system.keys.revoke(issued.id, None).await.unwrap(), KeyStatus::Live);
    assert_eq!(system.keys.revoke(issued.id, None).await.unwrap(), KeyStatus::Revoked);
    for registry in [&one, &two] {
        registry.refresh().await.unwrap();
        assert_eq!(code(registry, &issued.token).await, ErrorCode::RevokedKey);
        assert_eq!(code(registry, &issued.token).await, ErrorCode::RevokedKey);
    }
    let unknown = Uuid::now_v7();
    assert!(matches!(system.keys.revoke(unknown, None).await, Err(KeyError::Unknown(id)) if id == unknown.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watching_origin_follows_by_itself() {
    let (_, _, system) = shared().await;
    let registry = registry(&system).await;
    let stop = CancellationToken::new();
    let watching = tokio::spawn(Arc::clone(&registry).watch(stop.clone()));
    let issued = system.keys.issue(&default(), Access::Full, "", None).await.unwrap();
    registry.authenticate(Some(&issued.token)).await.unwrap();
    system.keys.revoke(issued.id, None).await.unwrap();
    let refused = async {
        while registry.authenticate(Some(&issued.token)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), refused).await.unwrap();
    stop.cancel();
    watching.await.unwrap();
    let rows = system.keys.list(None).await.unwrap();
    let row = rows.iter().find(|row| row.id == issued.id).unwrap();
    assert!(row.last_used_at.is_some() && row.revoked_at.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_row_is_gone_is_refused_though_its_signature_holds() {
    let (server, _, system) = shared().await;
    let issued = system.keys.issue(&default(), Access::Full, "", None).await.unwrap();
    let mut root = server.root().await;
    root.exec_drop("DELETE FROM selkie.`keys` WHERE id = ?", (issued.id.to_string(),)).await.unwrap();
    assert_eq!(code(&*registry(&system).await, &issued.token).await, ErrorCode::InvalidKey);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_installations_key_is_refused() {
    let (server, _, system) = shared().await;
    let registry = registry(&system).await;
    // The same database with another secret: the signing keys have the same ids, but make other signatures.
    let other = Installation::new("").system(&server.address());
    let issued = other.keys.issue(&default(), Access::Full, "", None).await.unwrap();
    assert_eq!(code(&registry, &issued.token).await, ErrorCode::InvalidKey);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_listed_and_never_with_their_token() {
    let (_, _, system) = shared().await;
    let name = "Grüße, 日本 🦭";
    let day = Duration::from_secs(86_400);
    let issued = system.keys.issue(&default(), Access::Full, name, Some(day)).await.unwrap();
    let rows = system.keys.list(Some(&default())).await.unwrap();
    let row = rows.iter().find(|row| row.id == issued.id).unwrap();
    assert_eq!(row.name, name);
    assert_eq!(row.expires_at, issued.expires_at);
    assert_eq!(row.expires_at, Some(row.created_at + 86_400));
    assert!(!format!("{rows:?}").contains(&issued.token));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_no_key_is_not_issued() {
    let (_, _, system) = shared().await;
    let issue = |project: &str, name: String, lifetime: Option<u64>| {
        let (project, keys) = (ProjectName::parse(project).unwrap(), system.keys.clone());
        async move { keys.issue(&project, Access::Full, &name, lifetime.map(Duration::from_secs)).await.map(|_| ()) }
    };
    let unknown = issue("defualt", String::new(), None).await.unwrap_err();
    assert!(matches!(unknown, KeyError::Project(ProjectError::UnknownProject { .. })));
    assert_eq!(unknown.hint().unwrap(), "did you mean default?");
    assert!(matches!(issue("default", "x".repeat(101), None).await, Err(KeyError::Name)));
    assert!(matches!(issue("default", "a\nb".to_owned(), None).await, Err(KeyError::Name)));
    assert!(matches!(issue("default", String::new(), Some(0)).await, Err(KeyError::Lifetime)));
    assert!(matches!(issue("default", String::new(), Some(u64::MAX)).await, Err(KeyError::Lifetime)));
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_keeps_two_signing_keys_and_ends_the_keys_of_the_third() {
    let server = Server::start(None);
    let system = Installation::new("").system(&server.address());
    system.prepare().await.unwrap();
    let registry = registry(&system).await;
    let mut issued = Vec::new();
    for round in 0..3 {
        issued.push(system.keys.issue(&default(), Access::Full, "", None).await.unwrap());
        registry.refresh().await.unwrap();
        let plan = system.keys.plan_rotation().await.unwrap();
        assert_eq!(plan.lost.len(), usize::from(round > 0));
        registry.authenticate(Some(&issued[round].token)).await.unwrap();
        if round < 2 {
            assert_eq!(system.keys.rotate().await.unwrap(), plan);
        }
    }
    assert_eq!(system.keys.public_keys().await.unwrap().kids().count(), 2);
    registry.refresh().await.unwrap();
    assert_eq!(code(&registry, &issued[0].token).await, ErrorCode::InvalidKey);
    for key in &issued[1..] {
        registry.authenticate(Some(&key.token)).await.unwrap();
    }
}

/// Counts the SELECTs from Selkie's tables so far. The server must log all statements.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_revoked_with_the_key_that_began_their_chain_however_long_it_is() {
    const CHAIN: usize = 1_200;
    let (server, _, system) = shared().await;
    let first = system.keys.issue(&default(), Access::Full, "first", None).await.unwrap();
    let ids: Vec<Uuid> = (0..CHAIN).map(|_| Uuid::now_v7()).collect();
    let creators = std::iter::once(&first.id).chain(&ids);
    let rows: Vec<String> = ids.iter().zip(creators).map(|(id, by)| format!("('{id}', '{by}')")).collect();
    let mut root = server.root().await;
    let insert = format!(
        "INSERT INTO selkie.`keys` (id, project, name, access, kid, created_at, created_by)
         SELECT made.id, project, 'made', access, kid, created_at, made.creator FROM selkie.`keys`
         JOIN (SELECT NULL AS id, NULL AS creator UNION ALL VALUES {}) made WHERE `keys`.id = '{}' AND made.id IS NOT NULL",
        rows.join(", "),
        first.id
    );
    root.query_drop(insert).await.unwrap();
    assert_eq!(system.keys.made_by(first.id).await.unwrap().len(), CHAIN);
    assert_eq!(system.keys.revoke_made_by(first.id).await.unwrap().len(), CHAIN);
    let live = format!("SELECT COUNT(*) FROM selkie.`keys` WHERE id IN ('{}') AND revoked_at IS NULL", {
        let ids: Vec<String> = ids.iter().map(Uuid::to_string).collect();
        ids.join("', '")
    });
    assert_eq!(root.query_first::<u64, _>(live).await.unwrap(), Some(0));
}

async fn selects(server: &Server) -> u64 {
    let count = "SELECT COUNT(*) FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')
        AND argument LIKE 'SELECT%FROM selkie.%' AND argument NOT LIKE '%general_log%'";
    server.root().await.query_first(count).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_costs_few_statements_however_many_callers_there_are() {
    const CALLERS: u64 = 100;
    let server = Server::start(None);
    server.sql(&["SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1"]).await;
    let system = Installation::new("").system(&server.address());
    system.prepare().await.unwrap();
    let registry = registry(&system).await;
    let role = RoleName::parse("author").unwrap();
    let set = async |definition: &str| system.admin.set_role(&default(), &role, definition, 1).await.unwrap();
    set(r#"{"tables": {"*": {"read": true}}}"#).await;
    let mut issued = Vec::new();
    for at in 0..CALLERS {
        let claims = [("sub".to_owned(), at.into())].into();
        let grant = Grant::Role(Arc::new(RoleGrant { role: role.clone(), claims }));
        issued.push(system.keys.issue(&default(), grant, "", None).await.unwrap());
    }
    registry.refresh().await.unwrap();

    // Each key is looked up, their role once.
    let before = selects(&server).await;
    let requests = issued.iter().map(|key| registry.authenticate(Some(&key.token)));
    let callers: Vec<_> = join_all(requests).await.into_iter().map(Result::unwrap).collect();
    let asked = selects(&server).await - before;
    assert_eq!(asked, CALLERS + 1);

    let since = Instant::now();
    let mut streams: Vec<_> =
        callers.iter().map(|caller| Box::pin(Arc::clone(&registry).ended(caller.clone(), since))).collect();
    assert!(streams.iter_mut().all(|stream| stream.now_or_never().is_none()));
    let before = selects(&server).await;
    system.keys.revoke(issued[0].id, None).await.unwrap();
    registry.refresh().await.unwrap();
    let ended = |stream| tokio::time::timeout(Duration::from_secs(30), stream);
    ended(streams.remove(0)).await.unwrap();
    assert!(streams.iter_mut().all(|stream| stream.now_or_never().is_none()), "the other streams go on");
    set(r#"{"tables": {}}"#).await;
    registry.refresh().await.unwrap();
    join_all(streams.into_iter().map(ended)).await.into_iter().for_each(|outcome| outcome.unwrap());
    // Two for the revoked key. For each of the two changes: two for the number of the change, and one each for the changed
    // projects, the signing keys, the issuers, the keys of all streams, and the role.
    assert_eq!(selects(&server).await - before, 2 + 2 * 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_roles_are_looked_up_once_and_in_a_share_of_the_look_ups() {
    let server = Server::start(None);
    let system = Installation::new("").system(&server.address());
    system.prepare().await.unwrap();
    let other = ProjectName::parse("other").unwrap();
    system.projects.create(&other, NameClaim::Refuse).await.unwrap();
    let of_other = system.keys.issue(&other, Access::Full, "", None).await.unwrap();
    // Two keys of the first role, and more roles than there are connections.
    let names = ["one", "one", "two", "three", "four", "five"].map(|name| RoleName::parse(name).unwrap());
    let mut tokens = Vec::new();
    for name in &names {
        system.admin.set_role(&default(), name, r#"{"tables": {}}"#, 0).await.unwrap();
        let grant = Grant::Role(Arc::new(RoleGrant { role: name.clone(), claims: [].into() }));
        tokens.push(system.keys.issue(&default(), grant, "", None).await.unwrap().token);
        system.admin.remove_role(&default(), name).await.unwrap();
    }
    let registry = registry(&system).await;
    assert_eq!(code(&registry, &tokens[0]).await, ErrorCode::RoleForbids);

    let mut root = server.root().await;
    root.query_drop("LOCK TABLES selkie.roles WRITE").await.unwrap();
    assert_eq!(code(&registry, &tokens[1]).await, ErrorCode::RoleForbids);
    let look_up = |token: String| {
        let registry = Arc::clone(&registry);
        tokio::spawn(async move { registry.authenticate(Some(&token)).await.is_ok() })
    };
    let others: Vec<_> = tokens.split_off(2).into_iter().map(look_up).collect();
    let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Waiting for table metadata lock'";
    while root.query_first::<u64, _>(waiting).await.unwrap() < Some(2) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    registry.authenticate(Some(&of_other.token)).await.unwrap();
    others.iter().for_each(|task| task.abort());

    root.query_drop("UNLOCK TABLES").await.unwrap();
    system.admin.set_role(&default(), &names[0], r#"{"tables": {}}"#, 0).await.unwrap();
    registry.refresh().await.unwrap();
    registry.authenticate(Some(&tokens[1])).await.unwrap();
}
