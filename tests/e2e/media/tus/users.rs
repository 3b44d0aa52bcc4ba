//! The share of callers with roles in a project's unfinished uploads.

use super::upload::{Upload, metadata};
use crate::host::{Answer, Host};
use crate::roles::set_role_in;
use crate::service::shared;
use crate::test_db::unique;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;
use shared::limits::{TUS_EMPTY_SECONDS, TUS_OPEN_MAX_COUNT};

cases! {
    Both: [
        users_leave_uploads_to_full_keys_and_empty_uploads_give_way,
        an_upload_without_a_byte_expires_earlier,
    ],
}

fn root(statement: &str) -> String {
    shared().root_sql(statement).unwrap().trim().to_owned()
}

async fn create(host: Host, key: &str) -> Answer {
    Upload::creation(host, 3, &metadata(&[("filename", &unique("f"))])).key(key).send().await
}

async fn users_leave_uploads_to_full_keys_and_empty_uploads_give_way(host: Host) {
    let project = unique("tus");
    shared().create_project(&project);
    set_role_in(shared(), &project, "user", &json!({"media": {"upload": true}}));
    let user = |sub: u32| shared().create_role_key(&project, "user", &[format!("sub={sub}")]).token;
    let keys = [user(1), user(2), user(3)];
    let full = shared().create_key(&project, "full", &[]).token;
    let first = format!("UNHEX(SHA2(CONCAT('{project}', CHAR(0), 'sub', CHAR(0), 1), 256))");
    let of_first = format!("project = '{project}' AND uploader = {first}");
    let begin = |uploads: std::ops::RangeInclusive<usize>| {
        root(&format!(
            "INSERT INTO selkie.media_uploads (id, project, length, received, metadata, created_at, expires_at, uploader)
             SELECT UNHEX(MD5(CONCAT('{project}', seq))), '{project}', 3, 1, '', 0, UNIX_TIMESTAMP() + 600, {first}
             FROM selkie.seq_{}_to_{}",
            uploads.start(),
            uploads.end()
        ))
    };
    // The share of users is more than one of them may have.
    begin(1..=TUS_OPEN_MAX_COUNT);
    create(host, &keys[0]).await.refused(ErrorCode::RateLimited);
    assert_eq!(create(host, &keys[1]).await.status, 201);
    let all = TUS_OPEN_MAX_COUNT * 3 / 2 - 1;
    begin(TUS_OPEN_MAX_COUNT + 1..=all);
    let [_, second, third] = keys;
    let refused = create(host, &second).await;
    let error = refused.refused(ErrorCode::RateLimited);
    assert!(error["message"].as_str().unwrap().contains("callers with roles"), "{error}");
    assert_eq!(create(host, &full).await.status, 201);

    // The second user needs as much room again as it has uploads.
    root(&format!("UPDATE selkie.media_uploads SET received = 0 WHERE {of_first} ORDER BY id LIMIT 2"));
    assert_eq!(create(host, &second).await.status, 201);
    let left = root(&format!("SELECT COUNT(*), SUM(received) FROM selkie.media_uploads WHERE {of_first}"));
    assert_eq!(left, format!("{0}\t{0}", all - 2));
    assert_eq!(create(host, &third).await.status, 201);
    // The other users' empty uploads stay, because these users do not have the most.
    create(host, &third).await.refused(ErrorCode::RateLimited);
}

async fn an_upload_without_a_byte_expires_earlier(host: Host) {
    let upload = Upload::begin(host, 3, &metadata(&[("filename", &unique("f"))])).await;
    let id = upload.path.rsplit('/').next().unwrap().replace('-', "");
    let lifetime = || -> u64 {
        let lifetime = format!("SELECT expires_at - created_at FROM selkie.media_uploads WHERE id = UNHEX('{id}')");
        root(&lifetime).parse().unwrap()
    };
    assert_eq!(lifetime(), TUS_EMPTY_SECONDS);
    upload.patch(0, b"x").await;
    assert!(lifetime() >= 24 * 60 * 60);
    assert_eq!(upload.call(Method::DELETE).send().await.status, 204);
}
