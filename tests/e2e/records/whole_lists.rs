//! Reads whole lists in parts, in every way that there is, by callers with and without limits: the parts together are the
//! list, and each part but the last says that more follow.

use super::both_notations::spelled;
use crate::case::eventually;
use crate::host::{Answer, Call, Host, enc};
use crate::mcp;
use crate::media::test_folder::TestFolder;
use crate::roles::{Caller, create_role, role_of};
use crate::test_db::TestDb;
use crate::typescript::node;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

cases! {
    Both: [
        the_parts_of_every_list_make_up_the_whole,
        the_client_reads_whole_lists,
        a_batch_says_that_a_list_was_cut,
        a_read_of_lines_holds_no_record_that_is_inserted_meanwhile,
    ],
}

const SCHEMA: &[&str] = &[
    "CREATE TABLE kept (id INT PRIMARY KEY, g VARCHAR(9), n INT, d DECIMAL(9,2), f DOUBLE, body VARCHAR(60), up_id INT, \
     FULLTEXT KEY (body), FOREIGN KEY (up_id) REFERENCES kept (id))",
    "INSERT INTO kept SELECT seq, ELT(1 + seq % 5, 'a', 'B', NULL, 'c', 'b'), NULLIF(seq % 4, 0), seq / 8, seq / 10 + 0.05, \
     IF(seq % 6, 'a seal on a rock', 'a seal and a seal'), NULLIF(seq DIV 3, 0) FROM seq_1_to_14",
    "CREATE TABLE pair (a INT, b CHAR(1), n INT, size ENUM('s', 'l', 'm'), note TEXT, PRIMARY KEY (b, a))",
    "INSERT INTO pair SELECT seq % 4, CHAR(97 + seq DIV 4), seq % 3, 1 + seq % 3, CONCAT('note ', seq % 2) FROM seq_0_to_10",
    "CREATE TABLE sole (code VARCHAR(9) NOT NULL, part INT NOT NULL, n INT, UNIQUE (code, part))",
    "INSERT INTO sole SELECT CONCAT('k', seq % 3), seq, NULLIF(seq % 2, 0) FROM seq_1_to_11",
    "CREATE TABLE bare (n INT, g CHAR(1))",
    "INSERT INTO bare SELECT seq % 3, CHAR(97 + seq % 2) FROM seq_1_to_11",
    "CREATE VIEW shown AS SELECT id, g, n FROM kept WHERE id < 12",
    "CREATE VIEW counted AS SELECT n, COUNT(*) AS count FROM kept GROUP BY n UNION ALL SELECT id + 10, 1 FROM kept",
];

/// The lists: a name, a table, whether pages have a cursor, and the options.
const READS: &[(&str, &str, bool, &str)] = &[
    ("by primary key", "kept", true, r#"{}"#),
    ("sorted", "kept", true, r#"{"order": "-n"}"#),
    ("filtered", "kept", true, r#"{"query": {"n": [1, 3]}, "order": "g"}"#),
    ("by two fields", "pair", true, r#"{"order": "-n"}"#),
    ("by a unique key", "sole", true, r#"{}"#),
    ("by a unique key, sorted", "sole", true, r#"{"order": "n"}"#),
    ("without a key", "bare", false, r#"{}"#),
    ("without a key, sorted", "bare", false, r#"{"order": "-g"}"#),
    ("view", "shown", false, r#"{}"#),
    ("view, sorted", "shown", false, r#"{"order": "n"}"#),
    ("view of groups", "counted", false, r#"{"order": "count", "selectFields": ["count"]}"#),
    (
        "join",
        "kept",
        true,
        r#"{"join": [{"tableName": "pair", "joinType": "LEFT JOIN", "match": {"source": "n", "target": "n"}}], "order": "pair.b"}"#,
    ),
    (
        "join without a key",
        "pair",
        false,
        r#"{"join": [{"tableName": "bare", "joinType": "JOIN", "match": {"source": "n", "target": "n"}}], "order": "-n"}"#,
    ),
    ("groups", "kept", true, r#"{"group": ["g", "n"]}"#),
    (
        "groups of two tables",
        "kept",
        true,
        r#"{"join": [{"tableName": "pair", "joinType": "LEFT JOIN", "match": {"source": "n", "target": "n"}, "selectFields": ["b"]}], "selectFields": ["g", {"fieldName": "*", "aggregate": "COUNT"}], "group": ["g", "pair.b"], "order": "-count"}"#,
    ),
    (
        "groups by count",
        "kept",
        true,
        r#"{"selectFields": ["g", {"fieldName": "*", "aggregate": "COUNT", "alias": "c"}], "group": ["g", "n"], "order": "-c"}"#,
    ),
    (
        "groups by sum",
        "kept",
        true,
        r#"{"selectFields": [{"fieldName": "d", "aggregate": "SUM"}], "group": ["g", "n"], "order": "-sum_d"}"#,
    ),
    (
        "groups by greatest",
        "kept",
        true,
        r#"{"selectFields": ["n", {"fieldName": "g", "aggregate": "MAX"}], "group": ["n", "up_id"], "order": ["max_g", "-n"]}"#,
    ),
    (
        "groups by average",
        "kept",
        false,
        r#"{"selectFields": ["n", {"fieldName": "d", "aggregate": "AVG"}], "group": ["n", "g"], "order": "avg_d"}"#,
    ),
    (
        "groups by a floating sum",
        "kept",
        false,
        r#"{"selectFields": ["n", {"fieldName": "f", "aggregate": "SUM"}], "group": ["n", "g"], "order": "-sum_f"}"#,
    ),
    (
        "groups by fields that are not returned",
        "pair",
        true,
        r#"{"selectFields": ["a", {"fieldName": "*", "aggregate": "COUNT", "alias": "c"}], "group": ["b", "a"], "order": ["note", "-size", "-c"]}"#,
    ),
    ("distinct", "kept", true, r#"{"distinct": true, "selectFields": ["g", "n"]}"#),
    ("distinct, sorted", "bare", true, r#"{"distinct": true, "order": "-n"}"#),
    ("distinct of a view", "shown", true, r#"{"distinct": true, "selectFields": ["n"]}"#),
    (
        "full text",
        "kept",
        true,
        r#"{"fullTextSearch": {"fields": ["body"], "searchTerm": "+seal", "mode": "boolean"}}"#,
    ),
    ("with related records", "kept", true, r#"{"include": ["up", "kept"], "order": "g"}"#),
];

/// What a list may be cut by: the rule for `kept`, `maxRows`, and whether `kept` has a cursor.
const CALLERS: &[(&str, Option<u64>, bool)] = &[
    (r#"{"read": true}"#, None, true),
    (r#"{"read": true}"#, Some(2), true),
    (r#"{"read": {"rows": {"id": {"value": 3, "equality": ">"}}}}"#, Some(4), true),
    (r#"{"read": {"fields": {"omit": ["id"]}}}"#, Some(4), false),
];

/// How the whole list is read from parts of at most this many records.
const LIMIT: usize = 3;

struct Stage<'a> {
    unlimited: Caller<'a>,
    caller: Caller<'a>,
    max_rows: Option<u64>,
}

async fn stage(db: &TestDb, at: usize) -> (Stage<'_>, bool) {
    let (rule, max_rows, keyed) = CALLERS[at];
    let read = json!({"read": true});
    let mut rules = vec![("kept", serde_json::from_str(rule).unwrap())];
    rules.extend(["pair", "sole", "bare", "shown", "counted"].map(|table| (table, read.clone())));
    let mut role = role_of(db, rules);
    role["media"] = json!({"read": true});
    let unlimited = Caller::with_role(db, &create_role(&role), json!({}));
    role["maxRows"] = json!(max_rows);
    if max_rows.is_none() {
        role.as_object_mut().unwrap().remove("maxRows");
    }
    (Stage { unlimited, caller: Caller::with_role(db, &create_role(&role), json!({})), max_rows }, keyed)
}

fn with(options: &Value, more: Value) -> Value {
    let mut all = options.clone();
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

/// Returns the reads with their options, without those of related records if the caller may not read the key of `kept`.
fn reads(keyed: bool) -> impl Iterator<Item = (&'static str, &'static str, bool, Value)> {
    let may_read = move |read: &&(&str, &str, bool, &str)| keyed || !read.3.contains("include");
    READS.iter().filter(may_read).map(move |(name, table, cursor, options)| {
        let options: Value = serde_json::from_str(options).unwrap();
        let of_hidden_key = *table == "kept" && options.get("group").is_none() && options.get("distinct").is_none();
        (*name, *table, *cursor && (keyed || !of_hidden_key), options)
    })
}

fn sorted(rows: &[Value]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    rows.sort();
    rows
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}")).clone()
}

/// Sends a read as a URL (`way` 0), or by the POST form.
fn call(caller: &Caller<'_>, way: usize, table: &str, options: &Value) -> Call {
    match way {
        0 => caller.call(Method::GET, &spelled(table, options)),
        _ => caller.call(Method::POST, &format!("{}/query", enc(table))).json(options),
    }
}

/// Follows `next`, or `more` by `offset`, from these options. Returns the records, and whether the pages had cursors.
async fn followed(stage: &Stage<'_>, way: usize, table: &str, options: &Value) -> (Vec<Value>, Option<bool>) {
    let (mut read, mut all, mut has_cursor) = (options.clone(), Vec::new(), None);
    loop {
        let answer = call(&stage.caller, way, table, &read).send().await;
        let page = list(&answer.payload());
        all.extend(page.iter().cloned());
        let envelope = answer.json();
        let (next, more) = (&envelope["next"], &envelope["more"]);
        assert!(next.is_null() || more.is_null(), "{answer}");
        if next.is_null() && more.is_null() {
            return (all, has_cursor);
        }
        assert!(!page.is_empty() && all.len() < 500, "{answer}");
        has_cursor = Some(next.is_string());
        let is_limited = stage
            .max_rows
            .is_some_and(|most| options.get("limit").and_then(Value::as_u64).is_none_or(|limit| limit > most));
        assert_eq!(envelope["limited"] == json!(true), is_limited, "{answer}");
        read = match next.as_str() {
            Some(next) => with(options, json!({"after": next})),
            None => with(options, json!({"offset": all.len()})),
        };
    }
}

/// Reads pages by number, or parts by `offset`, for as long as the answer says that more follow.
async fn counted(stage: &Stage<'_>, by_page: bool, table: &str, options: &Value) -> Vec<Value> {
    let (mut all, mut number) = (Vec::new(), 0);
    // Pages that `maxRows` shortens would leave records out.
    let limit = stage.max_rows.map_or(LIMIT, |most| LIMIT.min(most as usize));
    loop {
        number += 1;
        let part = match by_page {
            true => json!({"limit": limit, "page": number}),
            false => json!({"limit": limit, "offset": all.len()}),
        };
        let answer = call(&stage.caller, number % 2, table, &with(options, part)).send().await;
        let page = list(&answer.payload());
        let envelope = answer.json();
        all.extend(page);
        if envelope["next"].is_null() && envelope["more"].is_null() {
            return all;
        }
        assert!(all.len() == number * limit && all.len() < 500, "{answer}");
    }
}

/// Reads lines of a format by `offset`, for as long as the header says that more follow.
async fn lines(stage: &Stage<'_>, accept: &str, table: &str, options: &Value) -> Vec<String> {
    let text = |answer: &Answer| -> Vec<String> {
        let lines = answer.text();
        lines.lines().skip(usize::from(accept == "text/csv")).map(str::to_owned).collect()
    };
    let whole = call(&stage.unlimited, 0, table, options).header("accept", accept).send().await;
    assert!(whole.header("x-selkie-more").is_none(), "{whole}");
    let (mut all, mut expected) = (Vec::new(), text(&whole));
    loop {
        let part = with(options, json!({"limit": LIMIT, "offset": all.len()}));
        let answer = call(&stage.caller, all.len() % 2, table, &part).header("accept", accept).send().await;
        let part = text(&answer);
        all.extend(part.iter().cloned());
        if answer.header("x-selkie-more").is_none() {
            all.sort();
            expected.sort();
            assert_eq!(all, expected, "{accept} {options}");
            return all;
        }
        assert!(!part.is_empty() && all.len() < 500, "{answer}");
    }
}

async fn by_agent(stage: &Stage<'_>, table: &str, options: &Value) -> Vec<Value> {
    let options = with(options, json!({"database": stage.caller.db.name, "table": table, "limit": LIMIT}));
    let (mut call, mut all) = (options.clone(), Vec::new());
    loop {
        let answer = mcp::tool(stage.caller.db.host, &stage.caller.key, "read_records", &call).send().await;
        let answer = mcp::outcome(&mcp::result(&answer), None);
        all.extend(list(&answer["payload"]));
        call = match (answer["next"].as_str(), answer["nextOffset"].as_u64()) {
            (Some(next), None) => with(&options, json!({"after": next})),
            (None, Some(offset)) => {
                let spellings = [json!(offset), json!(offset.to_string()), json!(offset as f64)];
                with(&options, json!({"offset": spellings[all.len() / LIMIT % 3]}))
            }
            _ => return all,
        };
        assert!(all.len() < 500, "{answer}");
    }
}

async fn the_parts_of_every_list_make_up_the_whole(host: Host) {
    let db = TestDb::new(host, SCHEMA).await;
    for at in 0..CALLERS.len() {
        let (stage, keyed) = stage(&db, at).await;
        for (name, table, cursor, options) in reads(keyed) {
            let whole = call(&stage.unlimited, 0, table, &options).send().await;
            let envelope = whole.json();
            assert!(envelope["next"].is_null() && envelope["more"].is_null(), "{whole}");
            let expected = sorted(&list(&whole.payload()));
            assert!(expected.len() > LIMIT, "{name}: {whole}");
            let limit = with(&options, json!({"limit": LIMIT}));
            for (way, options) in [(0, &limit), (1, &limit), (0, &options)] {
                let (all, has_cursor) = followed(&stage, way, table, options).await;
                assert_eq!(sorted(&all), expected, "{name}, caller {at}: {options}");
                let limits = [options.get("limit").and_then(Value::as_u64), stage.max_rows];
                let is_cut = limits.into_iter().flatten().any(|limit| expected.len() as u64 > limit);
                assert_eq!(has_cursor, is_cut.then_some(cursor), "{name}, caller {at}: {options}");
            }
            for by_page in [true, false] {
                assert_eq!(sorted(&counted(&stage, by_page, table, &options).await), expected, "{name}, caller {at}");
            }
            assert_eq!(sorted(&by_agent(&stage, table, &options).await), expected, "{name}, caller {at}");
            if options.get("include").is_none() {
                lines(&stage, "text/csv", table, &options).await;
            }
            lines(&stage, "application/x-ndjson", table, &options).await;
        }
    }
}

async fn the_client_reads_whole_lists(host: Host) {
    let db = TestDb::new(host, SCHEMA).await;
    let shelf = TestFolder::new(host);
    let names: Vec<String> = (1..=7).map(|number| format!("{number}.txt")).collect();
    for name in &names {
        shelf.put(name, "file", "text/plain", b"a seal").await;
    }
    for at in 0..CALLERS.len() {
        let (stage, keyed) = stage(&db, at).await;
        let asked: Vec<Value> = reads(keyed)
            .map(|(name, table, _, options)| json!({"name": name, "table": table, "options": options}))
            .collect();
        let variables = [
            ("SELKIE_URL", host.url()),
            ("SELKIE_KEY", &stage.caller.key),
            ("SELKIE_DATABASE", &db.name),
            ("SELKIE_READS", &json!(asked).to_string()),
            ("SELKIE_FOLDER", &shelf.folder),
        ];
        let printed = node(&["test/e2e/whole.mjs"], &variables).await;
        let read: Value = serde_json::from_str(&printed).expect("JSON");
        let files: Vec<_> = list(&read["files"]).iter().map(|file| file["name"].as_str().map(str::to_owned)).collect();
        assert_eq!(files, names.iter().cloned().map(Some).collect::<Vec<_>>(), "files, caller {at}");
        for (name, table, _, options) in reads(keyed) {
            let whole = list(&call(&stage.unlimited, 0, table, &options).send().await.payload());
            let read = &read[name];
            for way in ["pages", "stream", "batch"] {
                assert_eq!(sorted(&list(&read[way])), sorted(&whole), "{name}, caller {at}, {way}");
            }
            assert_eq!(list(&read["pagesFrom"]).len(), whole.len() - LIMIT, "{name}, caller {at}");
            assert_eq!(list(&read["streamTo"]).len(), whole.len().min(6), "{name}, caller {at}");
        }
    }
}

async fn a_batch_says_that_a_list_was_cut(host: Host) {
    let db = TestDb::new(host, SCHEMA).await;
    for (path, max_rows, more, limited) in [
        ("kept?limit=14", None, None, None),
        ("kept?limit=13", None, Some(true), None),
        ("shown?limit=3", None, Some(true), None),
        ("kept", Some(13), Some(true), Some(true)),
        ("kept", Some(14), None, None),
        ("kept?limit=2", Some(13), Some(true), None),
    ] {
        let mut role = role_of(&db, [("kept", json!({"read": true})), ("shown", json!({"read": true}))]);
        role.as_object_mut().unwrap().extend(max_rows.map(|rows| ("maxRows".to_owned(), json!(rows))));
        let caller = Caller::with_role(&db, &create_role(&role), json!({}));
        let read = |path: &str| json!({"method": "GET", "path": format!("{}/{path}", db.name)});
        let operations = json!({"operations": [read("shown?limit=0"), read(path), read("kept/1"), read(path)]});
        let answer = host.call(Method::POST, "/api/v1/batch").key(&caller.key).json(&operations).send().await;
        let envelope = answer.json();
        assert_eq!((envelope["more"].as_bool(), envelope["limited"].as_bool()), (more, limited), "{path}: {answer}");
        assert_eq!(envelope["cut"], more.map_or(Value::Null, |_| json!([1, 3])), "{path}: {answer}");
    }
}

async fn a_read_of_lines_holds_no_record_that_is_inserted_meanwhile(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (4)"]).await;
    let lock = &db.name;
    db.exec(&format!(
        "CREATE VIEW gated AS SELECT id FROM t WHERE GET_LOCK(IF(id, '{lock}', ''), 60) AND RELEASE_LOCK(IF(id, '{lock}', ''))"
    ))
    .await;
    for (accept, inserted, expected) in
        [("text/csv", 3, "id\r\n1\r\n2\r\n4\r\n"), ("application/x-ndjson", 0, "{\"id\":1}\n{\"id\":2}\n{\"id\":4}\n")]
    {
        // Holds the lock until the read waits for it, within the statement that asks whether more rows follow.
        let insert = format!(
            "BEGIN NOT ATOMIC DO GET_LOCK('{lock}', 60); \
             WHILE NOT EXISTS (SELECT * FROM information_schema.PROCESSLIST WHERE STATE = 'User lock' AND INFO LIKE '%{lock}%gated%') DO \
             DO SLEEP(0.02); END WHILE; INSERT INTO t VALUES ({inserted}); DO RELEASE_LOCK('{lock}'); END"
        );
        let read = async {
            let held = format!("SELECT IS_USED_LOCK('{lock}') IS NOT NULL AS held");
            eventually("the lock is held", Duration::from_secs(20), || async {
                (db.value(&held).await == json!(1)).then_some(())
            })
            .await;
            db.call(Method::GET, "gated?limit=3&order=id").header("accept", accept).send().await
        };
        let (_, answer) = tokio::join!(db.exec(&insert), read);
        assert_eq!((answer.status.as_u16(), answer.text()), (200, expected.to_owned()), "{answer}");
        assert_eq!(answer.header("x-selkie-more"), None, "{answer}");
        db.exec(&format!("DELETE FROM t WHERE id = {inserted}")).await;
    }
}
