//! Receipts of inserts that happen once: their tables, and the sweeping of old ones.

use mysql_async::prelude::Queryable;
use origin::projects::Claim;
use shared::ident::ProjectName;

use crate::server::{Installation, Server};

const DAY_SECONDS: u64 = 24 * 60 * 60;

#[tokio::test(flavor = "multi_thread")]
async fn receipts_older_than_a_day_are_swept_and_others_stay() {
    let server = Server::start(None);
    let installation = Installation::new("");
    let system = installation.system(&server.address());
    system.prepare().await.unwrap();
    let project = ProjectName::parse("swept-1").unwrap();
    system
        .projects
        .create(&project, Claim::Refuse)
        .await
        .unwrap();
    let mut root = server.root().await;
    root.query_drop("USE selkie_receipts").await.unwrap();
    let fill = "INSERT INTO selkie_receipts.`swept-1` (key_hash, fingerprint, created_at, answer)
        SELECT UNHEX(SHA2(seq, 256)), UNHEX(SHA2('', 256)), UNIX_TIMESTAMP() - ?, '1' FROM seq_1_to_2000
        WHERE seq % 2 = ?";
    root.exec_drop(fill, (DAY_SECONDS + 1, 0)).await.unwrap();
    root.exec_drop(fill, (DAY_SECONDS - 60, 1)).await.unwrap();
    assert_eq!(system.admin.sweep_receipts(&project).await.unwrap(), 1_000);
    assert_eq!(system.admin.sweep_receipts(&project).await.unwrap(), 0);
    let left: Option<u64> = root
        .query_first("SELECT COUNT(*) FROM selkie_receipts.`swept-1`")
        .await
        .unwrap();
    assert_eq!(left, Some(1_000));
    // Another start changes nothing of them.
    system.prepare().await.unwrap();
    let left: Option<u64> = root
        .query_first("SELECT COUNT(*) FROM selkie_receipts.`swept-1`")
        .await
        .unwrap();
    assert_eq!(left, Some(1_000));
}
