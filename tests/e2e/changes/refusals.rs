//! Requests that can't be answered.

use super::{Page, call, post};
use crate::host::{Host, enc};
use crate::test_db::TestDb;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        what_has_no_changes_is_refused,
        a_token_is_of_its_subscriptions_and_project,
    ],
}

async fn what_has_no_changes_is_refused(host: Host) {
    let tables = [
        "CREATE TABLE things (id INT PRIMARY KEY, name VARCHAR(20), FULLTEXT (name))",
        "CREATE TABLE keyless (a INT)",
        "CREATE VIEW seen AS SELECT * FROM things",
        "CREATE TABLE member (id INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TABLE united (id INT PRIMARY KEY) ENGINE=MERGE UNION=(member)",
        "CREATE TABLE versioned (id INT PRIMARY KEY, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, \
             e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
    ];
    let db = TestDb::new(host, &tables).await;
    for (table, options, code, message) in [
        ("seen", "", ErrorCode::InvalidQueryOption, "A view has no changes of its own."),
        (
            "keyless",
            "",
            ErrorCode::InvalidQueryOption,
            "The table \"keyless\" has no unique key that the caller may read.",
        ),
        ("united", "", ErrorCode::InvalidQueryOption, "The log lacks changes of the table \"united\"."),
        ("member", "", ErrorCode::InvalidQueryOption, "The log lacks changes of the table \"member\"."),
        ("versioned", "", ErrorCode::InvalidQueryOption, "The log lacks changes of the table \"versioned\"."),
        ("nothing", "", ErrorCode::TableNotFound, "The database"),
        ("things", "order=name", ErrorCode::InvalidQueryOption, "There is no option \"order\""),
        ("things", "join=x", ErrorCode::InvalidQueryOption, "There is no option \"join\""),
        ("things", "group=name", ErrorCode::InvalidQueryOption, "There is no option \"group\""),
        ("things", "selectFields=nothing", ErrorCode::UnknownField, "The table \"things\" has no field \"nothing\"."),
        ("things", "since=abc", ErrorCode::InvalidQueryOption, "The option since is no token of this feed."),
        ("things", "wait=1h", ErrorCode::InvalidQueryOption, "The option wait must be a time from 0s to 25s"),
        ("things", "limit=0", ErrorCode::InvalidQueryOption, "The option limit must be a whole number from 1 to 1000"),
        (
            "things",
            "limit=1001",
            ErrorCode::InvalidQueryOption,
            "The option limit must be a whole number from 1 to 1000",
        ),
        ("things", "since=abc&snapshot=true", ErrorCode::InvalidQueryOption, "The option since excludes snapshot"),
    ] {
        let error = call(&db, table, options).send().await.refused(code);
        let found = error["message"].as_str().unwrap_or_default();
        assert!(found.starts_with(message), "{table} {options}: {found}");
    }
    post(host, &json!({"subscriptions": []})).send().await.refused(ErrorCode::InvalidQueryOption);
}

async fn a_token_is_of_its_subscriptions_and_project(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE things (id INT PRIMARY KEY, v INT)"]).await;
    let token = Page::of(&call(&db, "things", "").send().await).next;
    call(&db, "things", &format!("since={token}")).send().await.payload();
    let other = format!("since={token}&query={}", enc("{\"v\":1}"));
    let error = call(&db, "things", &other).send().await.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(error["message"], "The token in the option since is of other subscriptions.");
    let forged = format!("since={}", token.replacen(|c: char| c.is_ascii_lowercase(), "Z", 1));
    call(&db, "things", &forged).send().await.refused(ErrorCode::InvalidQueryOption);
}
