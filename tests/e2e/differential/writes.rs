//! Random updates and deletes of single records, with `$add` and `If-Match`. Each answer and the table's records are
//! compared with those of a plain evaluation.

use super::cell::{Cell, Kind, pool};
use super::dice::Dice;
use super::generate::whole;
use super::world::{self, Table};
use super::{Stage, seeds, verdict};
use crate::host::{Answer, Host};
use reqwest::Method;
use serde_json::{Value, json};

/// Number of writes to a table of each schema.
const WRITES: usize = 60;

/// Maximum number of remembered entity tags, of which a write may send some.
const TAGS_MAX: usize = 20;

struct Tag {
    text: String,
    row: Vec<Cell>,
}

#[derive(Debug)]
enum Expected {
    Found(usize),
    Refusal(&'static str),
}

impl Expected {
    fn is_given_by(&self, answer: &Answer) -> bool {
        match self {
            Self::Found(count) => answer.status == 200 && answer.payload() == *count,
            Self::Refusal(code) => answer.code() == *code,
        }
    }
}

/// Returns the sum as a column of this kind stores it; `None` if the column can't hold the sum.
fn sum(kind: Kind, old: &Cell, added: &Cell) -> Option<Cell> {
    let range = match kind {
        Kind::Integer => i128::from(i32::MIN)..=i128::from(i32::MAX),
        Kind::BigInt => i128::from(i64::MIN)..=i128::from(i64::MAX),
        Kind::Unsigned => 0..=i128::from(u64::MAX),
        _ => -9_999_999_999..=9_999_999_999,
    };
    let held = |sum: i128| range.contains(&sum).then_some(sum);
    match (old, added) {
        (Cell::Null, _) => Some(Cell::Null),
        (Cell::Integer(old), Cell::Integer(added)) => held(old + added).map(Cell::Integer),
        (Cell::Decimal(old, scale), Cell::Decimal(added, _)) => held(old + added).map(|sum| Cell::Decimal(sum, *scale)),
        _ => panic!("{old:?} and {added:?} have no sum"),
    }
}

fn value(cell: &Cell) -> Value {
    serde_json::from_str(&cell.json().to_string()).expect("JSON")
}

/// Returns the value of `If-Match` of a write to the record `row`, if any, and whether the record meets the condition.
fn condition(dice: &mut Dice, tags: &[Tag], row: Option<&Vec<Cell>>) -> (Option<String>, bool) {
    match dice.below(4) {
        0 => (None, true),
        1 => (Some("*".to_owned()), row.is_some()),
        _ => {
            // The newest tags are likely to be those of the record.
            let sent = &tags[tags.len() - dice.between(1, 3).min(tags.len())..];
            let texts: Vec<&str> = sent.iter().map(|tag| tag.text.as_str()).collect();
            let is_met = sent.iter().any(|tag| Some(&tag.row) == row);
            (Some(texts.join(", ")).filter(|text| !text.is_empty()), is_met || sent.is_empty())
        }
    }
}

/// Returns the body of an update of the record `row`, and the new record; `None` if a column can't hold a sum.
fn update(dice: &mut Dice, table: &Table, row: Option<&Vec<Cell>>) -> (Value, Option<Vec<Cell>>) {
    let at = dice.between(1, table.columns.len() - 1);
    let column = &table.columns[at];
    let cell = dice.pick(&pool(column.kind)).clone();
    let mut new = row.cloned().unwrap_or_default();
    let adds = matches!(column.kind, Kind::Integer | Kind::BigInt | Kind::Unsigned | Kind::Decimal(_));
    if adds && dice.chance(60) {
        let added = match column.kind {
            Kind::Unsigned if dice.chance(50) => Cell::Integer(-1),
            _ => cell,
        };
        let body = json!({column.name: {"$add": value(&added)}});
        let Some(old) = new.get_mut(at) else { return (body, Some(new)) };
        let sum = sum(column.kind, old, &added);
        return (body, sum.map(|sum| std::mem::replace(old, sum)).map(|_| new));
    }
    if let Some(old) = new.get_mut(at) {
        old.clone_from(&cell);
    }
    (json!({column.name: value(&cell)}), Some(new))
}

pub(super) async fn writes_of_single_records_change_what_they_name(host: Host) {
    for seed in seeds(host) {
        let mut dice = Dice::new(seed);
        let stage = Stage::set(host, seed, &mut dice).await;
        let mut world = stage.world.clone();
        let Some(at) = world.tables.iter().position(|table| table.key == [0]) else {
            stage.strike().await;
            continue;
        };
        let mut tags: Vec<Tag> = Vec::new();
        for _ in 0..WRITES {
            let table = &world.tables[at];
            // Many writes are to one of a few records, so that tags of former states are sent.
            let place = match table.rows.len() {
                0 => None,
                rows => dice.chance(80).then(|| dice.below(rows.min(5))),
            };
            let id = match place.map(|place| &table.rows[place][0]) {
                Some(Cell::Integer(id)) => *id,
                _ => dice.between(1, world::ID_MAX) as i128,
            };
            let place = table.rows.iter().position(|row| row[0] == Cell::Integer(id));
            let row = place.map(|place| &table.rows[place]);
            let path = format!("{}/{id}", table.name);
            if let Some(row) = row.filter(|_| dice.chance(50)) {
                let answer = stage.db.get(&path).await;
                let text = answer.header("etag").expect("an entity tag").to_owned();
                tags.push(Tag { text, row: row.clone() });
                tags.drain(..tags.len().saturating_sub(TAGS_MAX));
            }
            let (if_match, is_met) = condition(&mut dice, &tags, row);
            let is_delete = dice.chance(10);
            let (body, new) = update(&mut dice, table, row);
            let expected = match (is_met, is_delete || new.is_some()) {
                (false, _) => Expected::Refusal("precondition_failed"),
                (true, false) => Expected::Refusal("invalid_value"),
                (true, true) => Expected::Found(usize::from(row.is_some())),
            };
            let method = if is_delete { Method::DELETE } else { Method::PUT };
            let mut call = stage.db.call(method.clone(), &path);
            if !is_delete {
                call = call.json(&body);
            }
            if let Some(if_match) = &if_match {
                call = call.header("if-match", if_match);
            }
            let before = table.sql();
            let answer = call.send().await;
            if let (Expected::Found(1), Some(place)) = (&expected, place) {
                let rows = &mut world.tables[at].rows;
                match new.filter(|_| !is_delete) {
                    Some(new) => rows[place] = new,
                    None => drop(rows.remove(place)),
                }
            }
            let fault = verdict::fault(&whole(at), &world, &stage.db.get(world.tables[at].name).await);
            assert!(
                expected.is_given_by(&answer) && fault.is_none(),
                "SELKIE_DIFFERENTIAL_SEED={seed} SELKIE_DIFFERENTIAL_ROUNDS=1: {method} {path} {body}, If-Match \
                 {if_match:?}\n  expected {expected:?}\n  {answer}\n  {}\n  {}",
                before.join(";\n  "),
                fault.unwrap_or_default(),
            );
        }
        stage.strike().await;
    }
}
