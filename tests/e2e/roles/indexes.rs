//! Row rules and relations on indexed fields: MariaDB must read few records, not the whole table. MariaDB counts the
//! records that it reads of each table (`userstat`), so the test measures the statements of real requests.

use super::Caller;
use crate::host::{Host, option};
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

cases! {
    Both: [
        reads_under_a_role_use_the_index_of_its_rule,
        related_records_are_found_by_the_indexes_of_their_keys,
        a_claim_uses_the_index_of_a_field_of_any_type,
        rules_through_relations_use_the_indexes_of_foreign_keys,
    ],
}

/// Maximum number of records of one table that MariaDB may read for one request. It needs 10 to 40; a scan of any table
/// reads 1,000.
const READ_MAX: u64 = 200;

/// 10 people a team, 2 tasks a person, 2 labels a task.
const TABLES: &[&str] = &[
    "CREATE TABLE people (id INT PRIMARY KEY, team INT NOT NULL, name VARCHAR(20), KEY (team))",
    "CREATE TABLE tasks (id INT PRIMARY KEY, person_id INT, team INT NOT NULL, title VARCHAR(20), KEY (team), \
     FOREIGN KEY (person_id) REFERENCES people (id))",
    "CREATE TABLE labels (id INT PRIMARY KEY, word VARCHAR(20))",
    "CREATE TABLE task_labels (task_id INT, label_id INT, hidden INT NOT NULL, PRIMARY KEY (task_id, label_id), \
     FOREIGN KEY (task_id) REFERENCES tasks (id), FOREIGN KEY (label_id) REFERENCES labels (id))",
    "INSERT INTO people SELECT seq, seq % 200, CONCAT('p', seq) FROM seq_1_to_2000",
    "INSERT INTO tasks SELECT seq, seq % 2000 + 1, (seq % 2000 + 1) % 200, CONCAT('t', seq % 7) FROM seq_1_to_4000",
    "INSERT INTO labels SELECT seq, CONCAT('w', seq % 5) FROM seq_1_to_1000",
    "INSERT INTO task_labels SELECT id, id % 1000 + 1, 0 FROM tasks",
    "INSERT INTO task_labels SELECT id, (id + 500) % 1000 + 1, 0 FROM tasks",
    "ANALYZE TABLE people, tasks, labels, task_labels",
];

/// Returns how many records of each table MariaDB has read so far.
fn counted(db: &TestDb) -> BTreeMap<String, u64> {
    let query = format!(
        "SELECT TABLE_NAME, ROWS_READ FROM information_schema.TABLE_STATISTICS WHERE TABLE_SCHEMA = '{}'",
        db.name
    );
    let rows = shared().root_sql(&query).expect("the statistics");
    let counts = rows.lines().filter_map(|line| line.split_once('\t'));
    counts.map(|(table, count)| (table.to_owned(), count.parse().expect("a number"))).collect()
}

async fn reads_few(caller: &Caller<'_>, rest: &str) {
    let before = counted(caller.db);
    let answer = caller.call(Method::GET, rest).send().await;
    let payload = answer.payload();
    assert!(payload.is_object() || payload.as_array().is_some_and(|records| !records.is_empty()), "{rest}: {answer}");
    let after = counted(caller.db);
    let read: BTreeMap<_, _> =
        after.iter().map(|(table, count)| (table, count - before.get(table).copied().unwrap_or_default())).collect();
    assert!(read.values().any(|count| *count > 0), "{rest}: nothing was counted");
    assert!(read.values().all(|count| *count <= READ_MAX), "{rest}: {read:?}");
}

fn count_reads() {
    shared().root_sql("SET GLOBAL userstat = 1").expect("statistics");
}

/// Returns a key that sees only the tasks and people of team 7, and a key with full access.
fn callers(db: &TestDb) -> [Caller<'_>; 2] {
    let of_team = json!({"read": {"rows": {"team": {"claim": "team"}}}});
    let rules = [
        ("people", of_team.clone()),
        ("tasks", of_team),
        ("labels", json!({"read": true})),
        ("task_labels", json!({"read": {"rows": {"hidden": 0}}})),
    ];
    [Caller::new(db, rules, json!({"team": 7})), Caller { db, key: shared().full_key.clone() }]
}

async fn reads_under_a_role_use_the_index_of_its_rule(host: Host) {
    count_reads();
    let db = TestDb::new(host, TABLES).await;
    let [caller, _] = callers(&db);
    for rest in [
        "people/7",
        "people",
        "people?limit=5",
        "people?limit=3&count=true",
        "people?order=name&limit=5",
        "people?selectFields=[{\"fieldName\":\"id\",\"aggregate\":\"COUNT\"}]",
        "people?query={\"name\":\"p207\"}",
    ] {
        reads_few(&caller, rest).await;
    }
}

async fn related_records_are_found_by_the_indexes_of_their_keys(host: Host) {
    count_reads();
    let db = TestDb::new(host, TABLES).await;
    let limited = |relation: &str| json!({"relation": relation, "limit": 1, "order": {"field": "id"}});
    let is = |value: &str| json!({"title": value});
    let conditions = [
        ("people", json!({"tasks": {"some": is("t3")}})),
        ("people", json!({"tasks": {"none": is("t3")}})),
        ("people", json!({"tasks": {"every": {"title": {"value": "t9", "equality": "!="}}}})),
        ("tasks", json!({"person": {"some": {"name": {"value": "p%", "equality": "LIKE"}}}})),
        ("tasks", json!({"person": {"none": {"name": "nobody"}}})),
        ("tasks", json!({"labels": {"some": {"word": "w2"}}})),
        ("tasks", json!({"labels": {"none": {"word": "w9"}}})),
        ("tasks", json!({"labels": {"every": {"word": {"value": "w9", "equality": "!="}}}})),
    ];
    let includes = [
        ("tasks", json!("person")),
        ("people", json!("tasks")),
        ("people", limited("tasks")),
        ("tasks", json!("labels")),
        ("tasks", limited("labels")),
        ("people", json!({"relation": "tasks", "include": [{"relation": "labels", "limit": 1}]})),
    ];
    for caller in &callers(&db) {
        for (table, include) in &includes {
            let options = format!("{}&{}", option("include", include), option("query", &json!({"team": 7})));
            reads_few(caller, &format!("{table}?{options}")).await;
        }
        for (table, condition) in &conditions {
            let mut query = condition.clone();
            query["team"] = json!(7);
            reads_few(caller, &format!("{table}?{}", option("query", &query))).await;
        }
    }
    let [caller, _] = &callers(&db);
    for (table, condition) in &conditions {
        reads_few(caller, &format!("{table}?{}", option("query", condition))).await;
    }
}

async fn rules_through_relations_use_the_indexes_of_foreign_keys(host: Host) {
    count_reads();
    let db = TestDb::new(host, TABLES).await;
    let of_label = json!({"labels": {"some": {"id": {"claim": "label"}}}});
    let of_person = json!({"person": {"some": {"tasks": {"some": {"labels": {"some": {"id": {"claim": "label"}}}}}}}});
    for rows in [json!({"person": {"some": {"id": {"claim": "label"}}}}), of_label, of_person] {
        let rule = json!({"read": {"rows": rows}, "update": {"rows": rows}});
        let caller = Caller::new(&db, [("tasks", rule)], json!({"label": 8}));
        for rest in ["tasks", "tasks?limit=2&count=true", "tasks?query={\"title\":{\"ne\":\"x\"}}"] {
            reads_few(&caller, rest).await;
        }
        let ids = caller.ids("tasks").await;
        reads_few(&caller, &format!("tasks/{}", ids[0])).await;
    }
}

async fn a_claim_uses_the_index_of_a_field_of_any_type(host: Host) {
    count_reads();
    let fields = [
        ("an_int", "INT", "seq", json!(7)),
        ("a_bigint", "BIGINT UNSIGNED", "seq", json!("7")),
        ("a_decimal", "DECIMAL(12,2)", "seq", json!("7")),
        ("a_text", "VARCHAR(20)", "CONCAT('u', seq)", json!("u7")),
        ("a_number_as_text", "VARCHAR(20)", "seq", json!(7)),
        ("a_latin_text", "VARCHAR(20) CHARACTER SET latin1", "CONCAT('é', seq)", json!("é7")),
        ("an_ascii_text", "CHAR(20) CHARACTER SET ascii COLLATE ascii_bin", "CONCAT('u', seq)", json!("u7")),
        (
            "a_uuid",
            "UUID",
            "CONCAT('0192f3a1-7c1e-7d3a-9d55-', LPAD(HEX(seq), 12, '0'))",
            json!("0192f3a1-7c1e-7d3a-9d55-000000000007"),
        ),
        ("a_date", "DATE", "DATE('2020-01-01') + INTERVAL seq DAY", json!("2020-01-08")),
        ("a_time", "DATETIME", "TIMESTAMP('2020-01-01') + INTERVAL seq DAY", json!("2020-01-08 00:00:00")),
        ("a_binary", "VARBINARY(20)", "CONCAT('u', seq)", json!("dTc=")),
    ];
    let columns: String =
        fields.iter().map(|(name, sql_type, ..)| format!(", {name} {sql_type}, KEY ({name})")).collect();
    let values: String = fields.iter().map(|(_, _, value, _)| format!(", {value}")).collect();
    let tables = [
        format!("CREATE TABLE owned (id INT PRIMARY KEY{columns})"),
        format!("INSERT INTO owned SELECT seq{values} FROM seq_1_to_1000"),
        "ANALYZE TABLE owned".to_owned(),
    ];
    let db = TestDb::new(host, &tables.each_ref().map(String::as_str)).await;
    for (name, _, _, owner) in &fields {
        let rows = |value: Value| [("owned", json!({"read": {"fields": ["id"], "rows": {*name: value}}}))];
        let single = Caller::new(&db, rows(json!({"claim": "sub"})), json!({"sub": owner}));
        let of_list = rows(json!({"value": {"claim": "subs"}, "equality": "IN"}));
        let several = Caller::new(&db, of_list, json!({"subs": [owner]}));
        for caller in [single, several] {
            reads_few(&caller, "owned").await;
            assert_eq!(caller.get("owned").await.payload(), json!([{"id": 7}]), "{name}");
        }
    }
}
