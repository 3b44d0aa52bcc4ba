//! Roles with random rules on random tables. A caller with a role must read what a full key would read of the same
//! tables without the denied records and fields. Its writes must change exactly the allowed records.

use super::cell::{Cell, pool};
use super::dice::Dice;
use super::evaluate::allowed;
use super::generate::{self, whole};
use super::read::{Condition, Leaf, Op, Operand, Read};
use super::spell::{self, STYLES};
use super::world::{self, World};
use super::{PAGED, READS, Stage, paging, seeds, verdict};
use crate::host::{Answer, Host};
use crate::roles::{Caller, create_role, role_of};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Number of writes to the tables of each schema.
const WRITES: usize = 30;

/// Maximum number of claims of a caller, so that the key is not too long.
const CLAIMS_MAX: usize = 12;

#[derive(Default)]
struct Claims(Map<String, Value>);

impl Claims {
    fn take(&mut self, dice: &mut Dice, condition: &mut Condition) {
        match condition {
            Condition::Group { members, .. } => members.iter_mut().for_each(|member| self.take(dice, member)),
            // A claim in a pattern is literal text, other than a value that is written there.
            Condition::Leaf(Leaf { op: Op::Like | Op::NotLike | Op::Regexp | Op::NotRegexp, .. }) => {}
            Condition::Leaf(Leaf { operand, op, .. }) => {
                let is_text = matches!(op, Op::Contains | Op::StartsWith | Op::EndsWith);
                let values = match operand {
                    Operand::None => &mut [][..],
                    Operand::One(asked) => std::slice::from_mut(asked),
                    Operand::List(list) => list,
                };
                for asked in values {
                    // A claim that is null would deny all records, so null is not replaced; nor is an empty text to find.
                    let denies = asked.json.is_null() || is_text && asked.json == "";
                    if !denies && self.0.len() < CLAIMS_MAX && dice.chance(50) {
                        let name = format!("c{}", self.0.len());
                        self.0.insert(name.clone(), std::mem::replace(&mut asked.json, json!({"claim": name})));
                    }
                }
            }
        }
    }
}

fn rule(dice: &mut Dice, world: &World, table: usize, claims: &mut Claims) -> (Read, Value) {
    let read = generate::filtered(dice, world, table);
    let mut written = read.clone();
    written.filter.iter_mut().for_each(|condition| claims.take(dice, condition));
    let rows = spell::query(&written, world);
    (read, rows)
}

/// Returns the table without the records that a rule denies, and without these columns.
fn visible(world: &World, rule: &Read, hidden: &[usize]) -> world::Table {
    let mut table = world.tables[rule.root].clone();
    let mut may = allowed(rule, world).into_iter();
    table.rows.retain(|_| may.next() == Some(true));
    let keep = |at: &usize| !hidden.contains(at);
    let kept: Vec<usize> = (0..table.columns.len()).filter(keep).collect();
    table.columns = kept.iter().map(|at| table.columns[*at].clone()).collect();
    table.rows.iter_mut().for_each(|row| *row = kept.iter().map(|at| row[*at].clone()).collect());
    let place = |at: &usize| kept.iter().position(|kept| kept == at).expect("a key's column stays");
    table.key = table.key.iter().map(place).collect();
    table
}

/// Returns random columns to hide: none that is part of a key, is `id`, or is used by the generator to join tables.
fn some_hidden(dice: &mut Dice, table: &world::Table) -> Vec<usize> {
    let links = |at: &usize| matches!(&*table.columns[*at].name, "parent" | "owner");
    let columns = (1..table.columns.len()).filter(|at| !table.key.contains(at) && !links(at));
    columns.filter(|_| dice.chance(20)).collect()
}

pub(super) async fn reads_of_a_role_answer_what_a_plain_evaluation_of_its_records_answers(host: Host) {
    for seed in seeds(host) {
        let mut dice = Dice::new(seed);
        let mut stage = Stage::set(host, seed, &mut dice).await;
        let (mut claims, mut rules, mut seen) = (Claims::default(), Vec::new(), Vec::new());
        for (at, table) in stage.world.tables.iter().enumerate() {
            let hidden = some_hidden(&mut dice, table);
            let names: Vec<&str> = hidden.iter().map(|at| table.columns[*at].name).collect();
            let (rule, rows) = match dice.chance(80) {
                true => rule(&mut dice, &stage.world, at, &mut claims),
                false => (whole(at), json!({})),
            };
            rules.push((table.name, json!({"read": {"rows": rows, "fields": {"omit": names}}})));
            seen.push(visible(&stage.world, &rule, &hidden));
        }
        let role = role_of(&stage.db, rules);
        let key = Caller::with_role(&stage.db, &create_role(&role), Value::Object(claims.0.clone())).key;
        stage.key = key;
        let tables: Vec<String> = stage.world.tables.iter().flat_map(world::Table::sql).collect();
        stage.world = World { tables: seen };
        let report = |fault: &str, read: &Read, stage: &Stage| {
            let mut report = format!("SELKIE_DIFFERENTIAL_SEED={seed} SELKIE_DIFFERENTIAL_ROUNDS=1: {fault}\n");
            write!(report, "  role {role}\n  claims {:?}\n  {}\n", claims.0, tables.join(";\n  ")).expect("a text");
            for (name, value) in spell::options(read, &stage.world) {
                writeln!(report, "  {name} = {value}").expect("a text");
            }
            report
        };
        for _ in 0..READS {
            let read = generate::read(&mut dice, &stage.world);
            let style = *dice.pick(&STYLES);
            if let Some(fault) = stage.disagreement(&read, style, &mut dice).await {
                panic!("{}", report(&fault, &read, &stage));
            }
        }
        if stage.world.tables.iter().any(|table| !table.key.is_empty()) {
            for _ in 0..PAGED {
                let read = generate::pageable(&mut dice, &stage.world);
                if let Some(fault) = paging::fault(&stage, &read, &mut dice).await {
                    panic!("{}", report(&fault, &read, &stage));
                }
            }
        }
        stage.strike().await;
    }
}

struct WriteRules {
    insert: Read,
    update: Read,
    delete: Read,
}

/// Returns whether a record is allowed by a rule.
fn allows(rule: &Read, world: &World, row: &[Cell]) -> bool {
    let mut one = world.clone();
    one.tables[rule.root].rows = vec![row.to_vec()];
    allowed(rule, &one) == [true]
}

fn value(cell: &Cell) -> Value {
    serde_json::from_str(&cell.json().to_string()).expect("JSON")
}

struct Write {
    what: String,
    answer: Answer,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    Payload(Value),
    Refusal(&'static str),
}

/// An option of an update or delete of several records.
#[derive(Clone, Copy, PartialEq)]
enum WriteOption {
    None,
    DryRun,
    MaxAffected(usize),
    ReturningIds,
}

impl WriteOption {
    fn random(dice: &mut Dice) -> Self {
        match dice.below(4) {
            0 => Self::None,
            1 => Self::DryRun,
            2 => Self::MaxAffected(dice.below(4)),
            _ => Self::ReturningIds,
        }
    }

    fn text(self) -> String {
        match self {
            Self::None => String::new(),
            Self::DryRun => "?dryRun=true".to_owned(),
            Self::MaxAffected(most) => format!("?maxAffected={most}"),
            Self::ReturningIds => "?returning=id".to_owned(),
        }
    }

    /// Returns the expected answer to a write that affects the records with these ids, and whether the write is done.
    fn outcome(self, ids: &[Value]) -> (Expected, bool) {
        match self {
            Self::MaxAffected(most) if ids.len() > most => (Expected::Refusal("too_many_affected"), false),
            Self::ReturningIds => {
                let mut records: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
                records.sort_by_key(|record| record["id"].as_i64());
                (Expected::Payload(Value::Array(records)), true)
            }
            _ => (Expected::Payload(json!(ids.len())), self != Self::DryRun),
        }
    }
}

fn sorted(mut payload: Value) -> Value {
    if let Some(records) = payload.as_array_mut() {
        records.sort_by_key(|record| record["id"].as_i64());
    }
    payload
}

async fn random_write(dice: &mut Dice, caller: &Caller<'_>, world: &mut World, rules: &WriteRules) -> Write {
    use reqwest::Method;
    let at = rules.insert.root;
    let name = world.tables[at].name;
    let send = |method: Method, option: WriteOption, body: &Value| {
        let path = format!("{name}{}", option.text());
        let what = format!("{method} {path} {body}");
        let sent = caller.call(method, &path).json(body).send();
        async move { (what, sent.await) }
    };
    let ids: Vec<i128> = (0..dice.between(1, 6)).map(|_| dice.between(1, world::ID_MAX) as i128).collect();
    let is_meant = |row: &[Cell]| matches!(&row[0], Cell::Integer(id) if ids.contains(id));
    let listed: Vec<i64> = ids.iter().map(|id| i64::try_from(*id).expect("a small number")).collect();
    let by_query = dice.chance(50);
    let condition = |name: &str| match by_query {
        true => ("query".to_owned(), json!({"id": listed})),
        false => (name.to_owned(), json!([{"key": "id", "value": listed}])),
    };
    match dice.below(3) {
        0 => {
            let option = WriteOption::random(dice);
            let may = allowed(&rules.delete, world);
            let rows = &mut world.tables[at].rows;
            let affected = rows.iter().zip(&may).filter(|(row, may)| **may && is_meant(row));
            let (expected, is_done) = option.outcome(&affected.map(|(row, _)| value(&row[0])).collect::<Vec<_>>());
            let mut may = may.into_iter();
            rows.retain(|row| !(may.next() == Some(true) && is_meant(row) && is_done));
            let body = Map::from_iter([condition("deleteKeyValues")]);
            let (what, answer) = send(Method::DELETE, option, &body.into()).await;
            Write { what, answer, expected }
        }
        1 => {
            let column = dice.between(1, world.tables[at].columns.len() - 1);
            let changed = &world.tables[at].columns[column];
            let cell = match changed.nullable && dice.chance(20) {
                true => Cell::Null,
                false => dice.pick(&pool(changed.kind)).clone(),
            };
            let data = json!({changed.name: value(&cell)});
            let may = allowed(&rules.update, world);
            let mut rows = world.tables[at].rows.clone();
            let mut affected = Vec::new();
            for (row, _) in rows.iter_mut().zip(may).filter(|(row, may)| *may && is_meant(row)) {
                row[column] = cell.clone();
                affected.push(value(&row[0]));
            }
            let changes = rows.iter().zip(&world.tables[at].rows).filter(|(new, old)| new != old);
            let mut kept = changes.map(|(new, _)| new).all(|new| allows(&rules.update, world, new));
            kept |= affected.is_empty();
            let option = match WriteOption::random(dice) {
                // The role and `maxAffected` would both refuse the write, and either refusal would be right.
                WriteOption::MaxAffected(_) if !kept => WriteOption::None,
                option => option,
            };
            let (expected, is_done) = match kept {
                true => option.outcome(&affected),
                false => (Expected::Refusal("role_forbids"), false),
            };
            if is_done {
                world.tables[at].rows = rows;
            }
            let body = Map::from_iter([condition("updateKeyValues"), ("data".to_owned(), data)]);
            let (what, answer) = send(Method::PUT, option, &body.into()).await;
            Write { what, answer, expected }
        }
        _ => {
            let rows = &world.tables[at].rows;
            let mut new = world.tables[at].row(dice);
            let free = (1..).find(|id| rows.iter().all(|row| row[0] != Cell::Integer(*id)));
            new[0] = Cell::Integer(free.expect("a number"));
            let fields = world.tables[at].columns.iter().zip(&new);
            let body: Map<String, Value> = fields.map(|(column, cell)| (column.name.to_owned(), value(cell))).collect();
            let mut expected = Expected::Refusal("role_forbids");
            if allows(&rules.insert, world, &new) {
                expected = Expected::Payload(value(&new[0]));
                world.tables[at].rows.push(new);
            }
            let (what, answer) = send(Method::POST, WriteOption::None, &body.into()).await;
            Write { what, answer, expected }
        }
    }
}

pub(super) async fn writes_of_a_role_change_what_its_rules_allow(host: Host) {
    for seed in seeds(host) {
        let mut dice = Dice::new(seed);
        let stage = Stage::set(host, seed, &mut dice).await;
        let mut world = stage.world.clone();
        let Some(at) = world.tables.iter().position(|table| table.key == [0]) else {
            stage.strike().await;
            continue;
        };
        let mut claims = Claims::default();
        let [(insert, inserts), (update, updates), (delete, deletes)] =
            [(); 3].map(|()| rule(&mut dice, &world, at, &mut claims));
        let rules = WriteRules { insert, update, delete };
        let written = json!({
            "read": {"fields": ["id"]}, "insert": {"rows": inserts}, "update": {"rows": updates}, "delete": {"rows": deletes},
        });
        let role = role_of(&stage.db, [(world.tables[at].name, written)]);
        let claims = Value::Object(claims.0);
        let caller = Caller::with_role(&stage.db, &create_role(&role), claims.clone());
        for _ in 0..WRITES {
            let before = world.tables[at].sql();
            let write = random_write(&mut dice, &caller, &mut world, &rules).await;
            let right = match &write.expected {
                Expected::Payload(payload) => write.answer.status == 200 && sorted(write.answer.payload()) == *payload,
                Expected::Refusal(code) => write.answer.code() == *code,
            };
            let records = stage.db.get(world.tables[at].name).await;
            let fault = verdict::fault(&whole(at), &world, &records);
            assert!(
                right && fault.is_none(),
                "SELKIE_DIFFERENTIAL_SEED={seed} SELKIE_DIFFERENTIAL_ROUNDS=1: {}\n  expected {:?}\n  {}\n  role {role}\n  \
                 claims {claims}\n  {}\n  {}",
                write.what,
                write.expected,
                write.answer,
                before.join(";\n  "),
                fault.unwrap_or_default(),
            );
        }
        stage.strike().await;
    }
}
