//! Rules through relations: the rows of a rule are chosen by records of other tables, which the role need not read.

use super::{Caller, create_role, is_claim, role_of, try_set};
use crate::host::{Host, option};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        reads_find_records_by_those_of_other_tables,
        a_rule_may_ask_for_none_every_and_linked_records,
        a_rule_holds_inside_of_subqueries_and_joins_of_any_name,
        writes_keep_to_rules_through_relations,
        upserts_and_batches_keep_to_rules_through_relations,
        a_membership_acts_at_once,
        an_update_that_also_changes_the_records_of_its_rule_is_judged_by_its_outcome,
        an_update_that_cascades_to_a_table_behind_another_is_judged_by_its_outcome,
        conditions_on_the_same_table_do_not_lift_the_rule_of_an_update,
        a_rule_over_a_relation_that_is_gone_denies,
        changes_of_a_table_with_such_a_rule_are_refused,
    ],
    Origin: [a_rule_must_name_existing_relations],
}

/// Person 7 is in teams 1 and 3, person 8 in team 2. Docs 1, 3 and 5 are of teams 1 and 3, doc 6 of none.
const TABLES: &[&str] = &[
    "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(20) COLLATE utf8mb4_bin)",
    "CREATE TABLE teams (id INT PRIMARY KEY, name VARCHAR(20))",
    "CREATE TABLE members (team_id INT, person_id INT, id INT, PRIMARY KEY (team_id, person_id), \
     FOREIGN KEY (team_id) REFERENCES teams (id), FOREIGN KEY (person_id) REFERENCES people (id))",
    "CREATE TABLE docs (id INT PRIMARY KEY AUTO_INCREMENT, team_id INT, title VARCHAR(20), words INT, \
     FOREIGN KEY (team_id) REFERENCES teams (id))",
    "CREATE TABLE notes (id INT PRIMARY KEY, doc_id INT, flag INT, FOREIGN KEY (doc_id) REFERENCES docs (id))",
    "INSERT INTO people VALUES (7, 'Ann'), (8, 'Bob')",
    "INSERT INTO teams VALUES (1, 'red'), (2, 'blue'), (3, 'green')",
    "INSERT INTO members VALUES (1, 7, 2), (3, 7, 1), (2, 8, 3)",
    "INSERT INTO docs VALUES (1, 1, 'a', 1), (2, 2, 'b', 10), (3, 3, 'c', 100), (4, 2, 'd', 10), (5, 1, 'e', 1000), (6, NULL, 'f', 5)",
    "INSERT INTO notes VALUES (1, 1, 0), (2, 2, 1), (3, 3, 1), (4, 4, 0), (5, 3, 0)",
];

/// The rule that the caller is a member of the record's team.
fn of_own_team() -> Value {
    json!({"team": {"some": {"members": {"some": {"person_id": {"claim": "sub"}}}}}})
}

fn everything(rows: &Value) -> Value {
    json!({"read": {"rows": rows}, "insert": {"rows": rows}, "update": {"rows": rows}, "delete": {"rows": rows}})
}

fn member<'a>(db: &'a TestDb, rule: Value) -> Caller<'a> {
    Caller::new(db, [("docs", rule), ("notes", json!({"read": true}))], json!({"sub": 7}))
}

async fn titles(db: &TestDb) -> Value {
    db.value("SELECT GROUP_CONCAT(CONCAT(title, COALESCE(team_id, '-')) ORDER BY id SEPARATOR ' ') FROM docs").await
}

async fn reads_find_records_by_those_of_other_tables(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = member(&db, everything(&of_own_team()));
    assert_eq!(caller.ids("docs").await, [1, 3, 5]);
    assert_eq!(caller.ids("docs?query={\"id\":[1,2,3]}&searchOperator=OR").await, [1, 3]);
    for id in 1..=6 {
        let answer = caller.get(&format!("docs/{id}")).await;
        match [1, 3, 5].contains(&id) {
            true => assert_eq!(answer.payload()["id"], id),
            false => drop(answer.refused(ErrorCode::RecordNotFound)),
        }
    }
    let counted = caller.get("docs?count=true&limit=2&order[field]=id").await.json();
    assert_eq!((&counted["count"], &counted["payload"][1]["id"]), (&json!(3), &json!(3)));
    let next = counted["next"].as_str().expect("a cursor");
    assert_eq!(caller.ids(&format!("docs?limit=2&order[field]=id&after={next}")).await, [5]);
    let sum = json!({"selectFields": [{"fieldName": "words", "aggregate": "SUM", "alias": "sum"}]});
    assert_eq!(caller.post("docs/query", &sum).await.payload(), json!([{"sum": "1101"}]));
    let groups = json!({"group": "team_id", "selectFields": ["team_id", {"aggregate": "COUNT", "alias": "n"}], "order": {"field": "team_id"}});
    let expected = json!([{"team_id": 1, "n": 2}, {"team_id": 3, "n": 1}]);
    assert_eq!(caller.post("docs/query", &groups).await.payload(), expected);
    let included = caller.get("notes?include=doc&selectFields=id&order[field]=id").await.payload();
    let docs: Vec<_> = included.as_array().unwrap().iter().map(|note| note["doc"]["title"].clone()).collect();
    assert_eq!(docs, [json!("a"), json!(null), json!("c"), json!(null), json!("c")]);
    let related = option("query", &json!({"doc": {"some": {"words": {"gte": 1}}}}));
    assert_eq!(caller.ids(&format!("notes?{related}")).await, [1, 3, 5]);
    let join = json!({"join": [{"tableName": "docs", "joinType": "LEFT JOIN", "match": {"source": "doc_id", "target": "id"},
        "selectFields": ["title"]}], "selectFields": ["id"], "order": {"field": "id"}});
    let joined = caller.post("notes/query", &join).await.payload();
    assert_eq!(joined[1], json!({"id": 2, "title": null}));
    assert_eq!(joined[2], json!({"id": 3, "title": "c"}));
    let export =
        caller.call(Method::GET, "docs?selectFields=id&order[field]=id").header("accept", "text/csv").send().await;
    assert_eq!(export.text().split_whitespace().collect::<Vec<_>>(), ["id", "1", "3", "5"]);
    let lines = caller.call(Method::GET, "docs?selectFields=id").header("accept", "application/x-ndjson").send().await;
    assert_eq!(lines.text().lines().count(), 3);
    caller.get("teams").await.refused(ErrorCode::TableNotFound);
    caller.get("docs?include=team").await.refused(ErrorCode::InvalidQueryOption);
    let nobody = Caller::new(&db, [("docs", everything(&of_own_team()))], json!({}));
    assert_eq!(nobody.ids("docs").await, [0; 0]);
}

async fn a_rule_may_ask_for_none_every_and_linked_records(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let sub = || json!({"claim": "sub"});
    for (rows, ids) in [
        (json!({"team": {"some": {}}}), vec![1, 2, 3, 4, 5]),
        (json!({"team": {"none": {}}}), vec![6]),
        (json!({"team": {"none": {"members": {"some": {"person_id": sub()}}}}}), vec![2, 4, 6]),
        (json!({"notes": {"every": {"flag": 0}}}), vec![1, 4, 5, 6]),
        (json!({"notes": {"none": {"flag": 1}}, "team": {"some": {"people": {"some": {"id": sub()}}}}}), vec![1, 5]),
        (
            json!({"team": {"some": {"people": {"some": {"name": {"value": {"claim": "name"}, "equality": "LIKE"}}}}}}),
            vec![],
        ),
        (
            json!({"team": {"some": {"people": {"every": {"name": {"value": {"claim": "names"}, "equality": "IN"}}}}}}),
            vec![1, 3, 5],
        ),
        (
            json!({"either": {"operator": "OR", "__query": {"team": {"some": {"name": "blue"}}, "words": {"lt": 6}}}}),
            vec![1, 2, 4, 6],
        ),
        (json!({"team": {"some": {"id": {"claim": "text"}}}}), vec![]),
        (json!({"team": {"none": {"id": {"claim": "text"}}}}), vec![]),
        (json!({"team": {"some": {"id": {"claim": "absent"}}}}), vec![]),
    ] {
        let claims = json!({"sub": 7, "name": "A%", "names": ["Ann", "Cid"], "text": "7e0"});
        let caller = Caller::new(&db, [("docs", json!({"read": {"rows": rows}}))], claims);
        assert_eq!(caller.ids("docs").await, ids, "{rows}");
    }
}

async fn a_rule_holds_inside_of_subqueries_and_joins_of_any_name(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let linked = json!({"team": {"some": {"people": {"some": {"id": {"claim": "sub"}}}}}});
    let own = json!({"people": {"some": {"id": {"claim": "sub"}}}});
    let rules = [
        ("docs", json!({"read": {"rows": linked}})),
        ("teams", json!({"read": {"rows": own}})),
        ("notes", json!({"read": {"rows": {"doc": {"some": linked}}}})),
    ];
    let caller = Caller::new(&db, rules, json!({"sub": 7}));
    assert_eq!(caller.ids("teams").await, [1, 3]);
    assert_eq!(caller.ids("notes").await, [1, 3, 5]);
    for query in
        [json!({"docs": {"some": {"notes": {"some": {}}}}}), json!({"docs": {"every": {"team": {"some": {}}}}})]
    {
        assert_eq!(caller.ids(&format!("teams?{}", option("query", &query))).await, [1, 3], "{query}");
    }
    for alias in ["related1", "link1", "members", "people", "RELATED2", "Link2"] {
        for kind in ["INNER JOIN", "LEFT JOIN", "RIGHT JOIN"] {
            let join = json!([{"tableName": "teams", "alias": alias, "joinType": kind,
                "match": {"source": "team_id", "target": "id"}, "selectFields": []}]);
            let answer = caller.get(&format!("docs?{}&selectFields=id", option("join", &join))).await;
            let payload = answer.payload();
            let mut ids: Vec<_> = payload.as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect();
            ids.sort_unstable();
            assert_eq!(ids, [1, 3, 5], "{alias} {kind}");
        }
    }
}

async fn writes_keep_to_rules_through_relations(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = member(&db, everything(&of_own_team()));
    let before = "a1 b2 c3 d2 e1 f-";
    for (path, body) in [
        ("docs", json!({"team_id": 2, "title": "x"})),
        ("docs", json!({"title": "x"})),
        ("docs", json!({"batchData": [{"team_id": 1, "title": "y"}, {"team_id": 2, "title": "x"}]})),
        ("docs?returning=*", json!({"team_id": 2, "title": "x"})),
    ] {
        caller.post(path, &body).await.refused(ErrorCode::RoleForbids);
    }
    caller.put("docs/1", &json!({"team_id": 2})).await.refused(ErrorCode::RoleForbids);
    caller.put("docs/1?returning=*", &json!({"team_id": null})).await.refused(ErrorCode::RoleForbids);
    let all = json!({"query": {"id": {"gte": 0}}, "data": {"team_id": 2}});
    caller.put("docs", &all).await.refused(ErrorCode::RoleForbids);
    assert_eq!(caller.put("docs/2", &json!({"title": "x"})).await.payload(), json!(0));
    assert_eq!(caller.delete("docs/4").await.payload(), json!(0));
    assert_eq!(caller.delete("docs/4?returning=id").await.payload(), json!(null));
    assert_eq!(titles(&db).await, json!(before));
    let tag = caller.get("docs/1").await.header("etag").expect("a tag").to_owned();
    let matching =
        caller.call(Method::PUT, "docs/1").header("if-match", &tag).json(&json!({"title": "A"})).send().await;
    assert_eq!(matching.payload(), json!(1));
    let stale = caller.call(Method::PUT, "docs/1").header("if-match", &tag).json(&json!({"title": "B"})).send().await;
    stale.refused(ErrorCode::PreconditionFailed);
    assert_eq!(
        caller.put("docs/1?returning=id,team_id", &json!({"team_id": 3})).await.payload(),
        json!({"id": 1, "team_id": 3})
    );
    let renamed = json!({"query": {"id": {"gte": 0}}, "data": {"title": "n"}});
    assert_eq!(caller.put("docs?dryRun=true", &renamed).await.payload(), json!(3));
    assert_eq!(caller.put("docs?returning=id", &renamed).await.payload(), json!([{"id": 1}, {"id": 3}, {"id": 5}]));
    assert_eq!(titles(&db).await, json!("n3 b2 n3 d2 n1 f-"));
    let inserted = caller.post("docs?returning=id,title", &json!({"team_id": 3, "title": "g"})).await.payload();
    assert_eq!(inserted["title"], "g");
    db.exec("DELETE FROM notes").await;
    let some = json!({"query": {"notes": {"none": {}}}});
    assert_eq!(
        caller.delete_where("docs?maxAffected=3", &some).await.refused(ErrorCode::TooManyAffected)["code"],
        "too_many_affected"
    );
    let gone = caller.delete_where("docs?returning=title", &some).await.payload();
    assert_eq!(gone.as_array().unwrap().len(), 4, "{gone}");
    assert_eq!(titles(&db).await, json!("b2 d2 f-"));
}

async fn upserts_and_batches_keep_to_rules_through_relations(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = member(&db, everything(&of_own_team()));
    let upsert = "docs?onConflict=update";
    for body in [
        json!({"id": 2, "team_id": 1, "title": "x"}),
        json!({"id": 1, "team_id": 2, "title": "x"}),
        json!({"id": 9, "team_id": 2, "title": "x"}),
        json!({"batchData": [{"id": 1, "team_id": 1, "title": "x"}, {"id": 2, "team_id": 1, "title": "x"}]}),
    ] {
        caller.post(upsert, &body).await.refused(ErrorCode::RoleForbids);
    }
    let path = db.path("docs");
    let insert = |team: i64| json!({"method": "POST", "path": path, "body": {"team_id": team, "title": "x"}});
    caller.batch(&[insert(1), insert(2)]).await.refused(ErrorCode::RoleForbids);
    assert_eq!(titles(&db).await, json!("a1 b2 c3 d2 e1 f-"));
    assert_eq!(caller.post(upsert, &json!({"id": 1, "team_id": 3, "title": "A"})).await.payload(), json!(1));
    caller.batch(&[insert(1), json!({"method": "GET", "path": format!("{path}/1")})]).await.payload();
    assert_eq!(titles(&db).await, json!("A3 b2 c3 d2 e1 f- x1"));
}

async fn a_membership_acts_at_once(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = member(&db, everything(&of_own_team()));
    for round in 0..3 {
        caller.get("docs/2").await.refused(ErrorCode::RecordNotFound);
        db.exec("INSERT INTO members VALUES (2, 7, 9)").await;
        assert_eq!(caller.get("docs/2").await.payload()["title"], "b", "{round}");
        assert_eq!(caller.ids("docs").await, [1, 2, 3, 4, 5]);
        db.exec("DELETE FROM members WHERE id = 9").await;
    }
    let other =
        Caller::with_role(&db, &create_role(&role_of(&db, [("docs", everything(&of_own_team()))])), json!({"sub": 8}));
    assert_eq!(other.ids("docs").await, [2, 4]);
}

/// A tree whose records 1 and 3 belong to person 7.
const TREE: &[&str] = &[
    "CREATE TABLE tree (id INT PRIMARY KEY, parent_id INT, owner INT, title VARCHAR(9), \
     FOREIGN KEY (parent_id) REFERENCES tree (id))",
    "CREATE TABLE leaves (id INT PRIMARY KEY, tree_id INT, \
     FOREIGN KEY (tree_id) REFERENCES tree (id) ON UPDATE CASCADE)",
    "INSERT INTO tree VALUES (1, NULL, 7, 'a'), (2, 1, 8, 'b'), (3, 2, 7, 'c'), (4, 2, 8, 'd')",
    "INSERT INTO leaves VALUES (1, 3)",
];

async fn an_update_that_also_changes_the_records_of_its_rule_is_judged_by_its_outcome(host: Host) {
    let db = TestDb::new(host, TREE).await;
    let parent = json!({"parent": {"some": {"owner": {"claim": "sub"}}}});
    let rules = json!({"read": {"rows": parent}, "update": {"rows": parent, "unchecked": ["parent_id"]}});
    let caller = Caller::new(&db, [("tree", rules)], json!({"sub": 7}));
    assert_eq!(caller.ids("tree").await, [2]);
    caller.put("tree/2", &json!({"parent_id": 4})).await.refused(ErrorCode::RoleForbids);
    caller.put("tree/2", &json!({"parent_id": 2})).await.refused(ErrorCode::RoleForbids);
    assert_eq!(caller.put("tree/4", &json!({"parent_id": 4})).await.payload(), json!(0), "a denied record is no match");
    assert_eq!(caller.put("tree/2", &json!({"parent_id": 3, "title": "B"})).await.payload(), json!(1));
    assert_eq!(caller.put("tree/2", &json!({"parent_id": 2, "owner": 7})).await.payload(), json!(1), "its own parent");
    caller.put("tree/2", &json!({"owner": 8})).await.refused(ErrorCode::RoleForbids);
    // The update of the records 2, 3 and 4, whose parent is now 2, also changes their parent.
    assert_eq!(caller.ids("tree").await, [2, 3, 4]);
    for path in ["tree", "tree?dryRun=true", "tree?returning=id"] {
        let all = json!({"query": {"id": {"gte": 0}}, "data": {"owner": 8}});
        caller.put(path, &all).await.refused(ErrorCode::RoleForbids);
    }
    let some = json!({"query": {"id": [3, 4]}, "data": {"owner": 9}});
    assert_eq!(caller.put("tree?returning=owner", &some).await.payload(), json!([{"owner": 9}, {"owner": 9}]));
    let leaf = json!({"update": {"rows": {"leaves": {"none": {}}}}});
    let leafless = Caller::new(&db, [("tree", leaf)], json!({}));
    assert_eq!(leafless.put("tree/3", &json!({"title": "x"})).await.payload(), json!(0));
    assert_eq!(leafless.put("tree/4", &json!({"id": 40})).await.payload(), json!(1));
    let leafy = json!({"update": {"rows": {"leaves": {"some": {}}}}});
    let leafy = Caller::new(&db, [("tree", leafy)], json!({}));
    assert_eq!(leafy.put("tree/3", &json!({"id": 30})).await.payload(), json!(1), "the leaves follow the key");
}

async fn an_update_that_cascades_to_a_table_behind_another_is_judged_by_its_outcome(host: Host) {
    for key in ["UNIQUE KEY (code)", "KEY (code)"] {
        let clubs = format!(
            "CREATE TABLE clubs (id INT PRIMARY KEY, person_id INT, code VARCHAR(9), note VARCHAR(9), {key}, \
             FOREIGN KEY (person_id) REFERENCES people (id))"
        );
        let tables = [
            "CREATE TABLE people (id INT PRIMARY KEY)",
            &clubs,
            "CREATE TABLE badges (id INT PRIMARY KEY, person_id INT, code VARCHAR(9), \
             FOREIGN KEY (person_id) REFERENCES people (id), \
             FOREIGN KEY (code) REFERENCES clubs (code) ON UPDATE CASCADE)",
            "INSERT INTO people VALUES (1)",
            "INSERT INTO clubs VALUES (1, 1, 'a', 'x')",
            "INSERT INTO badges VALUES (1, 1, 'a')",
        ];
        let db = TestDb::new(host, &tables).await;
        let rows = json!({"person": {"some": {"badges": {"some": {"code": {"value": ["a", "b"], "equality": "IN"}}}}}});
        let caller = Caller::new(&db, [("clubs", everything(&rows))], json!({}));
        let path = format!("{}/1", db.path("clubs"));
        for path in ["clubs/1", "clubs/1?returning=*", "clubs/1?dryRun=true"] {
            caller.put(path, &json!({"code": "z"})).await.refused(ErrorCode::RoleForbids);
        }
        let all = json!({"query": {"id": 1}, "data": {"code": "z", "note": "y"}});
        caller.put("clubs", &all).await.refused(ErrorCode::RoleForbids);
        let new = json!({"id": 1, "person_id": 1, "code": "z", "note": "y"});
        caller.post("clubs?onConflict=update", &new).await.refused(ErrorCode::RoleForbids);
        let batch = json!({"method": "PUT", "path": path, "body": {"code": "z"}});
        caller.batch(&[batch]).await.refused(ErrorCode::RoleForbids);
        assert_eq!(db.value("SELECT CONCAT(code, note) FROM clubs").await, json!("ax"), "{key}");
        assert_eq!(caller.put("clubs/1", &json!({"code": "b", "note": "y"})).await.payload(), json!(1), "{key}");
        assert_eq!(caller.put("clubs/1", &json!({"note": "z"})).await.payload(), json!(1), "{key}");
        assert_eq!(db.value("SELECT CONCAT(code, note) FROM clubs").await, json!("bz"), "{key}");
    }
}

async fn conditions_on_the_same_table_do_not_lift_the_rule_of_an_update(host: Host) {
    let db = TestDb::new(host, TREE).await;
    let own = is_claim("owner", "sub");
    let rules = json!({"read": true, "update": {"rows": own}});
    let caller = Caller::new(&db, [("tree", rules)], json!({"sub": 7}));
    let child = json!({"parent": {"some": {}}});
    for path in ["tree", "tree?dryRun=true", "tree?returning=id", "tree?maxAffected=9"] {
        let given_away = json!({"query": child, "data": {"owner": 8}});
        caller.put(path, &given_away).await.refused(ErrorCode::RoleForbids);
    }
    let path = db.path("tree");
    let batch = json!({"method": "PUT", "path": path, "body": {"query": child, "data": {"owner": 8}}});
    caller.batch(&[batch]).await.refused(ErrorCode::RoleForbids);
    let kept = json!({"query": child, "data": {"owner": 7, "title": "x"}});
    assert_eq!(caller.put("tree", &kept).await.payload(), json!(1));
    assert_eq!(db.value("SELECT GROUP_CONCAT(owner ORDER BY id) FROM tree").await, json!("7,8,7,8"));
}

async fn a_rule_over_a_relation_that_is_gone_denies(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let rule = json!({"read": {"rows": of_own_team()}, "delete": {"rows": {"title": "zz"}}});
    let caller = member(&db, rule);
    assert_eq!(caller.ids("docs").await, [1, 3, 5]);
    let key = db
        .value(
            "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS \
        WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME = 'docs'",
        )
        .await;
    db.exec(&format!("ALTER TABLE docs DROP FOREIGN KEY {}", key.as_str().expect("a name"))).await;
    assert_eq!(caller.ids("docs").await, [0; 0]);
    assert_eq!(caller.delete("docs/1").await.payload(), json!(0));
}

async fn changes_of_a_table_with_such_a_rule_are_refused(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = member(&db, everything(&of_own_team()));
    for rest in ["docs", "docs?snapshot=true", "docs?query={\"title\":\"a\"}"] {
        let path = format!("/api/v1/changes/{}/{rest}", db.name);
        let refusal = host.call(Method::GET, &path).key(&caller.key).send().await.refused(ErrorCode::RoleForbids);
        let said = format!("{}", refusal["message"]);
        assert!(said.contains(&format!("{}.docs", db.name)), "{refusal}");
        assert!(refusal["hint"].as_str().is_some_and(|hint| hint.contains("read rule")), "{refusal}");
    }
}

async fn a_rule_must_name_existing_relations(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    for (rows, part, said) in [
        (json!({"crew": {"some": {}}}), "read", "has no relation \"crew\". Its relations are team, notes"),
        (json!({"teams": {"some": {"member": {"some": {}}}}}), "update", "Did you mean \"members\"?"),
        (json!({"team": {"some": {"colour": 1}}}), "insert", "has no field \"colour\""),
        (json!({"team": {"some": {"people": {"some": {"id": {"value": "x"}}}}}}), "delete", "\"id\""),
    ] {
        let role = role_of(&db, [("docs", json!({part: {"rows": rows}}))]);
        let output = try_set(shared(), "default", &unique("role"), &role.to_string());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "{rows}: {text}");
        assert!(text.contains(&format!("docs\".{part}.rows")), "{text}");
    }
    let name = create_role(&role_of(&db, [("docs", everything(&of_own_team()))]));
    let table = format!("{}.docs", db.name);
    let checked = shared().cli(&["role", "check", &name, "--table", &table, "--as", r#"{"sub": 7}"#]);
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(text.contains("`teams` AS `related1` WHERE `related1`.`id` = `docs`.`team_id`"), "{text}");
    assert!(
        text.contains("`related1`.`id` IN (SELECT `related2`.`team_id`") && text.contains("`person_id` = ?)), with 7"),
        "{text}"
    );
    let folded = json!({"team": {"some": {"name": {"claim": "team"}}}});
    let output = try_set(
        shared(),
        "default",
        &unique("role"),
        &role_of(&db, [("docs", json!({"read": {"rows": folded}}))]).to_string(),
    );
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.contains("compares claims to name"), "{text}");
}
