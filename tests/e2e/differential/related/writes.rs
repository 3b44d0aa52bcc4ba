//! Random writes under rules through relations, and under the rule of a referenced table.

use super::super::dice::Dice;
use super::super::seeds;
use super::{Condition, Row, SCHEMA, World, claims, rows};
use crate::host::Host;
use crate::roles::{Caller, create_role, role_of};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};

/// Number of writes for each random set of records.
const WRITES: usize = 30;

/// What a role may do with the table `c`, and the records of `b` that it may refer to.
struct WriteRules {
    insert: Condition,
    update: Condition,
    delete: Condition,
    reference: Condition,
}

/// A write, the expected payload (`None` if the role forbids the write), and the records of `c` after the write.
type Write = (Method, String, Value, Option<Value>, Vec<Row>);

fn write(dice: &mut Dice, world: &World, rules: &WriteRules) -> Write {
    let rows = world.table("c");
    let may = |rule: &Condition, row: &Row| rule.holds(row, world) == Some(true);
    let refers_to_readable = |row: &Row| {
        let target = world.table("b").iter().find(|target| target["id"] == row["b_id"]);
        target.is_some_and(|target| may(&rules.reference, target))
    };
    let b_count = world.table("b").len();
    let ids: Vec<usize> = (0..dice.between(1, 5)).map(|_| dice.between(1, rows.len() + 2)).collect();
    let is_meant = |row: &Row| ids.iter().any(|id| row["id"] == *id);
    let x = if dice.chance(15) { Value::Null } else { dice.below(4).into() };
    let refused = |(method, path, body)| (method, path, body, None, rows.to_vec());
    match dice.below(3) {
        0 => {
            let id = rows.iter().filter_map(|row| row["id"].as_u64()).max().unwrap_or_default() + 1;
            let row = json!({"id": id, "b_id": dice.between(1, b_count), "x": x});
            let request = (Method::POST, "c".to_owned(), row.clone());
            let row = row.as_object().expect("an object").clone();
            match may(&rules.insert, &row) && refers_to_readable(&row) {
                true => {
                    let (method, path, body) = request;
                    (method, path, body, Some(id.into()), rows.iter().cloned().chain([row]).collect())
                }
                false => refused(request),
            }
        }
        1 => {
            let field = *dice.pick(&["b_id", "x"]);
            let new = if field == "x" { x } else { dice.between(1, b_count).into() };
            let request = (Method::PUT, "c".to_owned(), json!({"query": {"id": ids}, "data": {field: new}}));
            let (mut after, mut count, mut kept) = (rows.to_vec(), 0, true);
            for row in after.iter_mut().filter(|row| is_meant(row) && may(&rules.update, row)) {
                row.insert(field.to_owned(), new.clone());
                count += 1;
                kept &= may(&rules.update, row) && (field == "x" || refers_to_readable(row));
            }
            match kept {
                true => (request.0, request.1, request.2, Some(count.into()), after),
                false => refused(request),
            }
        }
        _ => {
            let (gone, after): (Vec<Row>, Vec<Row>) =
                rows.iter().cloned().partition(|row| is_meant(row) && may(&rules.delete, row));
            let body = json!({"query": {"id": ids}});
            (Method::DELETE, "c".to_owned(), body, Some(gone.len().into()), after)
        }
    }
}

pub(in super::super) async fn writes_keep_to_rules_through_relations(host: Host) {
    for seed in seeds(host) {
        let mut dice = Dice::new(seed);
        let (inserts, mut world) = rows(&mut dice);
        let statements: Vec<&str> = SCHEMA.iter().copied().chain(inserts.iter().map(String::as_str)).collect();
        let db = TestDb::new(host, &statements).await;
        // An update of several records that are related to each other has no outcome for each alone.
        let mut rule = |table: &str| loop {
            let (rule, spelled) = Condition::draw_rule(&mut dice, table, 3);
            if !rule.reaches("c") {
                return (rule, spelled);
            }
        };
        let [(insert, inserts), (update, updates), (delete, deletes)] = [(); 3].map(|()| rule("c"));
        let (reference, references) = rule("b");
        let role = role_of(
            &db,
            [
                ("b", json!({"read": {"rows": references}})),
                (
                    "c",
                    json!({"read": true, "insert": {"rows": inserts}, "update": {"rows": updates}, "delete": {"rows": deletes}}),
                ),
            ],
        );
        let caller = Caller::with_role(&db, &create_role(&role), claims());
        let rules = WriteRules { insert, update, delete, reference };
        for _ in 0..WRITES {
            let (method, path, body, expected, after) = write(&mut dice, &world, &rules);
            let answer = caller.call(method.clone(), &path).json(&body).send().await;
            let found = (answer.status == 200).then(|| answer.payload());
            let records = db.get("c?order[field]=id").await.payload();
            let expected_records: Value = after.iter().cloned().map(Value::Object).collect();
            assert!(
                found == expected
                    && records == expected_records
                    && (found.is_some() || answer.code() == "role_forbids"),
                "SELKIE_DIFFERENTIAL_SEED={seed} SELKIE_DIFFERENTIAL_ROUNDS=1: {method} {path} {body}\n  {answer}\n  expected \
                 {expected:?} and {expected_records}\n  found {records}\n  role {role}\n  {}",
                statements.join(";\n  ")
            );
            let table = world.tables.iter_mut().find(|(name, _)| *name == "c");
            table.expect("a table").1 = after;
        }
        db.exec(&format!("DROP DATABASE {}", db.name)).await;
    }
}
