//! Generates joins of every kind, on foreign keys and on other comparable fields.

use super::conditions;
use crate::differential::dice::Dice;
use crate::differential::read::{Join, JoinKind, Match, Op, Place, Read, Target};
use crate::differential::world::World;

const KINDS: [(JoinKind, &str); 5] = [
    (JoinKind::Inner, "INNER JOIN"),
    (JoinKind::Inner, "JOIN"),
    (JoinKind::Left, "LEFT JOIN"),
    (JoinKind::Left, "left join"),
    (JoinKind::Right, "RIGHT JOIN"),
];

pub(super) fn draw(dice: &mut Dice, world: &World, read: &mut Read) {
    for at in 1..=*dice.pick(&[1, 1, 1, 2, 2, 3]) {
        let table = dice.below(world.tables.len());
        let name = world.tables[table].name;
        let taken = (0..at).any(|before| read.name(world, before) == name);
        let (kind, word) = *dice.pick(&KINDS);
        read.joins.push(Join {
            table,
            alias: (taken || dice.chance(25)).then(|| format!("j{at}")),
            kind,
            word: (kind != JoinKind::Inner || dice.chance(70)).then_some(word),
            on: Vec::new(),
            either: None,
            fields: super::fields(dice, &world.tables[table], at),
            nest: dice.maybe(),
        });
        let mut on = vec![link(dice, world, read, at)];
        if dice.chance(25) {
            on.push(matched(dice, world, read, at));
        }
        if dice.chance(20) {
            on.push(literal(dice, world, read, at));
        }
        dice.shuffle(&mut on);
        let join = &mut read.joins[at - 1];
        join.either = if on.len() > 1 { dice.maybe() } else { None };
        join.on = on;
        if join.either == Some(true) && dice.chance(60) {
            join.either = None;
        }
    }
}

fn link(dice: &mut Dice, world: &World, read: &Read, at: usize) -> Match {
    let column = |at: usize, name: &str| {
        let columns = &read.table(world, at).columns;
        let column = columns.iter().position(|column| column.name == name);
        Place { at, column: column.expect("every table has links") }
    };
    let before = if dice.chance(60) { 0 } else { dice.below(at) };
    let link = *dice.pick(&["parent", "owner"]);
    let (source, target) = if dice.chance(50) {
        (column(before, link), column(at, "id"))
    } else {
        (column(before, "id"), column(at, link))
    };
    Match { source, target: Target::Field(target) }
}

fn matched(dice: &mut Dice, world: &World, read: &Read, at: usize) -> Match {
    let source = Place { at: dice.below(at), column: dice.below(3) };
    let kind = read.column(world, source).kind;
    let same: Vec<usize> = (0..read.table(world, at).columns.len())
        .filter(|column| read.table(world, at).columns[*column].kind == kind)
        .collect();
    if same.is_empty() {
        return link(dice, world, read, at);
    }
    let target = Place { at, column: *dice.pick(&same) };
    Match { source, target: Target::Field(target) }
}

/// Returns a match between a field of an earlier or the new table, and a literal.
fn literal(dice: &mut Dice, world: &World, read: &Read, at: usize) -> Match {
    let of = dice.below(at + 1);
    let source = Place { at: of, column: dice.below(read.table(world, of).columns.len()) };
    let kind = read.column(world, source).kind;
    let value = if dice.chance(15) { conditions::null() } else { conditions::asked(dice, kind, Op::Equal) };
    Match { source, target: Target::Literal(value) }
}
