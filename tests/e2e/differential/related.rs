//! Random includes and conditions on related records, compared with a plain evaluation over lists of rows, with and
//! without a role whose rules hide records, by fields of their own or by related records.

mod writes;

pub(super) use writes::writes_keep_to_rules_through_relations;

use super::dice::Dice;
use super::seeds;
use crate::host::Host;
use crate::roles::{Caller, create_role, role_of};
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Number of reads for each random set of records.
const READS: usize = 40;

const SCHEMA: &[&str] = &[
    "CREATE TABLE a (id INT PRIMARY KEY, boss_id INT, x INT, FOREIGN KEY (boss_id) REFERENCES a (id))",
    "CREATE TABLE b (id INT PRIMARY KEY, a_id INT, other_id INT, x INT, FOREIGN KEY (a_id) REFERENCES a (id), \
     FOREIGN KEY (other_id) REFERENCES a (id))",
    "CREATE TABLE c (id INT PRIMARY KEY, b_id INT NOT NULL, x INT, FOREIGN KEY (b_id) REFERENCES b (id))",
    "CREATE TABLE ab (a_id INT, b_id INT, x INT, PRIMARY KEY (a_id, b_id), FOREIGN KEY (a_id) REFERENCES a (id), \
     FOREIGN KEY (b_id) REFERENCES b (id))",
];

/// A relation: its table, its name in requests, its target table, and the columns that must be equal.
struct Relation {
    of: &'static str,
    name: &'static str,
    to: &'static str,
    is_one: bool,
    /// The columns of the table and of the target, or the two columns of the link table `ab` if there is one.
    on: (&'static str, &'static str),
    link: Option<(&'static str, &'static str)>,
}

const fn relation(
    of: &'static str,
    name: &'static str,
    to: &'static str,
    is_one: bool,
    on: (&'static str, &'static str),
) -> Relation {
    Relation { of, name, to, is_one, on, link: None }
}

const RELATIONS: &[Relation] = &[
    relation("a", "boss", "a", true, ("boss_id", "id")),
    relation("a", "a", "a", false, ("id", "boss_id")),
    relation("a", "b.a_id", "b", false, ("id", "a_id")),
    relation("a", "b.other_id", "b", false, ("id", "other_id")),
    relation("a", "ab", "ab", false, ("id", "a_id")),
    Relation { of: "a", name: "b.ab.b_id", to: "b", is_one: false, on: ("id", "a_id"), link: Some(("b_id", "id")) },
    relation("b", "a_id", "a", true, ("a_id", "id")),
    relation("b", "other", "a", true, ("other_id", "id")),
    relation("b", "c", "c", false, ("id", "b_id")),
    Relation { of: "b", name: "a.ab.a_id", to: "a", is_one: false, on: ("id", "b_id"), link: Some(("a_id", "id")) },
    relation("c", "b", "b", true, ("b_id", "id")),
    relation("ab", "a", "a", true, ("a_id", "id")),
    relation("ab", "b", "b", true, ("b_id", "id")),
];

type Row = Map<String, Value>;

/// The records that the caller may read, by table.
#[derive(Clone)]
struct World {
    tables: Vec<(&'static str, Vec<Row>)>,
}

enum Condition {
    /// `x` compared with a number, or `x IS NULL` if there is no number.
    Leaf(&'static str, Option<i64>),
    Group(bool, Vec<Condition>),
    Related(usize, &'static str, Option<Box<Condition>>),
}

struct Include {
    relation: usize,
    alias: String,
    filter: Option<Condition>,
    /// The direction of an order by `x`; `None` for no order.
    order: Option<bool>,
    limit: Option<usize>,
    includes: Vec<Include>,
}

fn relations(of: &str) -> Vec<usize> {
    (0..RELATIONS.len()).filter(|at| RELATIONS[*at].of == of).collect()
}

impl Condition {
    fn draw(dice: &mut Dice, table: &str, depth: usize) -> Self {
        match dice.below(4) {
            0 if depth > 0 => {
                Self::Group(dice.chance(50), (0..2).map(|_| Self::draw(dice, table, depth - 1)).collect())
            }
            1 | 2 if depth > 0 => {
                let relation = *dice.pick(&relations(table));
                let quantifier = *dice.pick(&["some", "none", "every"]);
                let inner = dice.chance(80).then(|| Box::new(Self::draw(dice, RELATIONS[relation].to, depth - 1)));
                Self::Related(relation, quantifier, inner)
            }
            _ if dice.chance(15) => Self::Leaf("IS NULL", None),
            _ => {
                let equality: &'static str = dice.pick::<&'static str>(&["=", "!=", "<", ">="]);
                Self::Leaf(equality, Some(dice.below(4) as i64))
            }
        }
    }

    /// Whether the condition, or one in it, is on records of the table.
    fn reaches(&self, table: &str) -> bool {
        match self {
            Self::Leaf(..) => false,
            Self::Group(_, parts) => parts.iter().any(|part| part.reaches(table)),
            Self::Related(relation, _, inner) => {
                RELATIONS[*relation].to == table || inner.as_ref().is_some_and(|inner| inner.reaches(table))
            }
        }
    }

    /// Draws a rule for a table, and spells it with numbers as claims: `{"claim": "n2"}` is 2.
    fn draw_rule(dice: &mut Dice, table: &str, depth: usize) -> (Self, Value) {
        let (rule, mut spelled) = (Self::draw(dice, table, depth), Map::new());
        rule.spelled(&mut spelled);
        let mut spelled = spelled.into();
        claimed(&mut spelled, dice);
        (rule, spelled)
    }

    fn spelled(&self, out: &mut Map<String, Value>) {
        let label = format!("g{}", out.len());
        match self {
            Self::Leaf(equality, value) => {
                out.insert(label, json!({"fieldName": "x", "equality": equality, "value": value}));
            }
            Self::Group(is_or, parts) => {
                let mut inner = Map::new();
                parts.iter().for_each(|part| {
                    let mut one = Map::new();
                    part.spelled(&mut one);
                    inner.insert(format!("g{}", inner.len()), json!({"__query": one}));
                });
                out.insert(label, json!({"__query": inner, "operator": if *is_or { "OR" } else { "AND" }}));
            }
            Self::Related(relation, quantifier, inner) => {
                let mut condition = Map::new();
                inner.iter().for_each(|inner| inner.spelled(&mut condition));
                out.insert(RELATIONS[*relation].name.to_owned(), json!({*quantifier: condition}));
            }
        }
    }

    /// Returns whether the condition holds; `None` for SQL's NULL.
    fn holds(&self, row: &Row, world: &World) -> Option<bool> {
        match self {
            Self::Leaf(_, None) => Some(row["x"].is_null()),
            Self::Leaf(equality, Some(value)) => {
                let x = row["x"].as_i64()?;
                Some(match *equality {
                    "=" => x == *value,
                    "!=" => x != *value,
                    "<" => x < *value,
                    _ => x >= *value,
                })
            }
            Self::Group(is_or, parts) => {
                let parts: Vec<_> = parts.iter().map(|part| part.holds(row, world)).collect();
                let decisive = Some(*is_or);
                match (parts.contains(&decisive), parts.contains(&None)) {
                    (true, _) => decisive,
                    (false, true) => None,
                    (false, false) => Some(!*is_or),
                }
            }
            Self::Related(relation, quantifier, inner) => {
                let meets = |other: &Row| inner.as_ref().is_none_or(|inner| inner.holds(other, world) == Some(true));
                let related = world.related(*relation, row);
                Some(match *quantifier {
                    "some" => related.into_iter().any(meets),
                    "none" => !related.into_iter().any(meets),
                    _ => related.into_iter().all(meets),
                })
            }
        }
    }
}

/// Replaces some of the numbers that are compared by claims.
fn claimed(spelled: &mut Value, dice: &mut Dice) {
    match spelled {
        Value::Object(members) => members.iter_mut().for_each(|(name, member)| match member.as_i64() {
            Some(number) if name == "value" && dice.chance(50) => *member = json!({"claim": format!("n{number}")}),
            _ => claimed(member, dice),
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| claimed(item, dice)),
        _ => {}
    }
}

/// The claims that rules of [`Condition::draw_rule`] need.
fn claims() -> Value {
    json!({"n0": 0, "n1": 1, "n2": 2, "n3": 3})
}

impl Include {
    fn draw(dice: &mut Dice, table: &str, depth: usize, left: &mut usize) -> Vec<Self> {
        let mut all = Vec::new();
        for _ in 0..dice.between(1, 2) {
            if *left == 0 {
                break;
            }
            *left -= 1;
            let relation = *dice.pick(&relations(table));
            let Relation { to, is_one, .. } = RELATIONS[relation];
            all.push(Self {
                relation,
                alias: format!("r{left}"),
                filter: dice.chance(40).then(|| Condition::draw(dice, to, 1)),
                order: (!is_one && dice.chance(50)).then(|| dice.chance(50)),
                limit: (!is_one && dice.chance(50)).then(|| dice.below(4)),
                includes: if depth > 1 && dice.chance(60) { Self::draw(dice, to, depth - 1, left) } else { Vec::new() },
            });
        }
        all
    }

    fn spelled(&self) -> Value {
        let mut include = json!({"relation": RELATIONS[self.relation].name, "as": self.alias});
        if let Some(filter) = &self.filter {
            let mut query = Map::new();
            filter.spelled(&mut query);
            include["query"] = query.into();
        }
        if let Some(is_ascending) = self.order {
            include["order"] = json!({"field": "x", "strategy": if is_ascending { "ASC" } else { "DESC" }});
        }
        if let Some(limit) = self.limit {
            include["limit"] = limit.into();
        }
        if !self.includes.is_empty() {
            include["include"] = self.includes.iter().map(Self::spelled).collect();
        }
        include
    }

    fn member(&self, row: &Row, world: &World) -> Value {
        let mut found = world.related(self.relation, row);
        found.retain(|other| self.filter.as_ref().is_none_or(|filter| filter.holds(other, world) == Some(true)));
        let key = |row: &Row| ["id", "a_id", "b_id"].map(|name| row.get(name).and_then(Value::as_i64));
        let key = |row: &Row| if row.contains_key("id") { [key(row)[0], None, None] } else { key(row) };
        found.sort_by_key(|row| (row["x"].as_i64().filter(|_| self.order.is_some()), key(row)));
        if self.order == Some(false) {
            found.reverse();
        }
        found.truncate(self.limit.unwrap_or(usize::MAX));
        let mut rows = found.into_iter().map(|row| shown(row, &self.includes, world));
        match RELATIONS[self.relation].is_one {
            true => rows.next().unwrap_or(Value::Null),
            false => rows.collect(),
        }
    }
}

fn shown(row: &Row, includes: &[Include], world: &World) -> Value {
    let mut row = row.clone();
    for include in includes {
        let member = include.member(&row, world);
        row.insert(include.alias.clone(), member);
    }
    row.into()
}

impl World {
    fn table(&self, name: &str) -> &[Row] {
        &self.tables.iter().find(|(table, _)| *table == name).expect("a table").1
    }

    fn related(&self, relation: usize, row: &Row) -> Vec<&Row> {
        let Relation { to, on: (own, other), link, .. } = RELATIONS[relation];
        let equal = |row: &Row, field: &str, value: &Value| !value.is_null() && row[field] == *value;
        match link {
            None => self.table(to).iter().filter(|found| equal(found, other, &row[own])).collect(),
            Some((far, target)) => {
                let links = self.table("ab").iter().filter(|link| equal(link, other, &row[own]));
                links.flat_map(|link| self.table(to).iter().filter(|found| equal(found, target, &link[far]))).collect()
            }
        }
    }
}

/// Returns random rows as SQL and as JSON.
fn rows(dice: &mut Dice) -> (Vec<String>, World) {
    let number = |number: Option<usize>| number.map_or(Value::Null, Value::from);
    let (mut a, mut b, mut c, mut ab) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let count = dice.between(2, 9);
    let maybe = |dice: &mut Dice, most: usize| dice.chance(75).then(|| dice.between(1, most));
    for id in 1..=count {
        let boss = dice.chance(60).then(|| dice.between(1, id));
        a.push(json!({"id": id, "boss_id": boss, "x": number(maybe(dice, 4))}));
        let (one, other) = (maybe(dice, count), maybe(dice, count));
        b.push(json!({"id": id, "a_id": one, "other_id": other, "x": number(maybe(dice, 4))}));
    }
    for id in 1..=3 * count {
        c.push(json!({"id": id, "b_id": dice.between(1, count), "x": number(maybe(dice, 4))}));
    }
    for one in 1..=count {
        for other in 1..=count {
            if dice.chance(30) {
                ab.push(json!({"a_id": one, "b_id": other, "x": number(maybe(dice, 4))}));
            }
        }
    }
    let mut statements = Vec::new();
    let tables = [("a", a), ("b", b), ("c", c), ("ab", ab)].map(|(name, rows)| {
        let rows: Vec<Row> = rows.into_iter().map(|row| row.as_object().expect("an object").clone()).collect();
        for row in &rows {
            let names: Vec<_> = row.keys().map(String::as_str).collect();
            let values: Vec<_> = row.values().map(|value| value.to_string().to_uppercase()).collect();
            statements.push(format!("INSERT INTO {name} ({}) VALUES ({})", names.join(", "), values.join(", ")));
        }
        (name, rows)
    });
    (statements, World { tables: tables.into() })
}

pub(super) async fn related_records_are_those_of_a_plain_evaluation(host: Host) {
    for seed in seeds(host) {
        let mut dice = Dice::new(seed);
        let (inserts, mut world) = rows(&mut dice);
        let statements: Vec<&str> = SCHEMA.iter().copied().chain(inserts.iter().map(String::as_str)).collect();
        let db = TestDb::new(host, &statements).await;
        let mut key = shared().full_key.clone();
        let mut rules = Vec::new();
        if dice.chance(60) {
            // A rule looks at all records of other tables.
            let whole = world.clone();
            for (name, rows) in &mut world.tables {
                let rule = dice.chance(70).then(|| Condition::draw_rule(&mut dice, name, 2));
                let spelled = rule.as_ref().map_or(json!({}), |(_, spelled)| spelled.clone());
                rules.push((*name, json!({"read": {"rows": spelled}})));
                rows.retain(|row| rule.as_ref().is_none_or(|(rule, _)| rule.holds(row, &whole) == Some(true)));
            }
            key = Caller::with_role(&db, &create_role(&role_of(&db, rules.clone())), claims()).key;
        }
        for _ in 0..READS {
            let table = *dice.pick(&["a", "b", "c"]);
            let filter = dice.chance(60).then(|| Condition::draw(&mut dice, table, 2));
            let includes = Include::draw(&mut dice, table, 3, &mut 8);
            let include: Value = includes.iter().map(Include::spelled).collect();
            let mut options = json!({"include": include, "order": {"field": "id"}});
            if let Some(filter) = &filter {
                let mut query = Map::new();
                filter.spelled(&mut query);
                options["query"] = query.into();
            }
            let chosen = world.table(table).iter();
            let chosen =
                chosen.filter(|row| filter.as_ref().is_none_or(|filter| filter.holds(row, &world) == Some(true)));
            let expected: Value = chosen.map(|row| shown(row, &includes, &world)).collect();
            let answer = db.call(Method::POST, &format!("{table}/query")).key(&key).json(&options).send().await;
            let found = answer.payload();
            assert_eq!(
                found,
                expected,
                "SELKIE_DIFFERENTIAL_SEED={seed} SELKIE_DIFFERENTIAL_ROUNDS=1: {table} {options}\n  rules {rules:?}\n  {}",
                statements.join(";\n  ")
            );
        }
        db.exec(&format!("DROP DATABASE {}", db.name)).await;
    }
}
