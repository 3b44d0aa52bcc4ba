//! Evaluates a condition for a record: true, false, or unknown (`None`).

use super::pattern::{is_like, matches_regexp};
use super::{Sight, Tuple};
use crate::differential::cell::{Cell, Kind, folded};
use crate::differential::read::{Asked, Condition, Leaf, Op, Operand};
use std::cmp::Ordering;

/// Returns the OR of all values if `either`, else their AND; `None` is unknown.
pub(super) fn all_or_any(each: impl IntoIterator<Item = Option<bool>>, either: bool) -> Option<bool> {
    // A value that equals `either` decides; if there is none, an unknown value makes the result unknown.
    let mut unknown = false;
    for truth in each {
        match truth {
            Some(truth) if truth == either => return Some(either),
            Some(_) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(!either)
}

fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| !truth)
}

impl Sight<'_> {
    pub(super) fn holds(&self, conditions: &[Condition], either: bool, tuple: &Tuple) -> Option<bool> {
        let each = conditions.iter().map(|condition| match condition {
            Condition::Leaf(leaf) => self.leaf_holds(leaf, tuple),
            Condition::Group { members, either, not: turned } => {
                let truth = self.holds(members, either.unwrap_or(false), tuple);
                if *turned == Some(true) { not(truth) } else { truth }
            }
        });
        all_or_any(each, either)
    }

    fn leaf_holds(&self, leaf: &Leaf, tuple: &Tuple) -> Option<bool> {
        let (cell, kind) = (self.cell(tuple, leaf.place), self.kind(leaf.place));
        let truth = match (&leaf.operand, leaf.op) {
            (_, Op::IsNull) => Some(cell == Cell::Null),
            (_, Op::IsNotNull) => Some(cell != Cell::Null),
            (Operand::None, op) => unreachable!("{op:?} without a value"),
            (Operand::One(asked), op) => one(&cell, kind, op, asked),
            (Operand::List(list), Op::Equal | Op::In) => any(&cell, kind, list),
            (Operand::List(list), Op::NotEqual | Op::NotIn) => not(any(&cell, kind, list)),
            (Operand::List(list), Op::Between) => within(&cell, kind, list),
            (Operand::List(list), Op::NotBetween) => not(within(&cell, kind, list)),
            (Operand::List(list), op) => {
                let each = list.iter().map(|asked| one(&cell, kind, op, asked));
                all_or_any(each, !leaf.every.unwrap_or(false))
            }
        };
        if leaf.not == Some(true) { not(truth) } else { truth }
    }
}

/// Returns whether a value is in a list, in which null matches NULL; `None` if that is unknown.
fn any(cell: &Cell, kind: Kind, list: &[Asked]) -> Option<bool> {
    let each = list.iter().map(|asked| one(cell, kind, Op::Equal, asked));
    all_or_any(each, true)
}

fn within(cell: &Cell, kind: Kind, list: &[Asked]) -> Option<bool> {
    let bounds = [
        cell.compare(&list[0].cell, kind).map(Ordering::is_ge),
        cell.compare(&list[1].cell, kind).map(Ordering::is_le),
    ];
    all_or_any(bounds, false)
}

fn one(cell: &Cell, kind: Kind, op: Op, asked: &Asked) -> Option<bool> {
    let compared = || cell.compare(&asked.cell, kind);
    let null = asked.cell == Cell::Null;
    match op {
        Op::Equal | Op::In if null => Some(*cell == Cell::Null),
        Op::NotEqual | Op::NotIn if null => Some(*cell != Cell::Null),
        Op::Same => Some(match compared() {
            Some(ordering) => ordering.is_eq(),
            None => null && *cell == Cell::Null,
        }),
        Op::Equal | Op::In => compared().map(Ordering::is_eq),
        Op::NotEqual | Op::NotIn => compared().map(Ordering::is_ne),
        Op::Greater => compared().map(Ordering::is_gt),
        Op::GreaterOrEqual => compared().map(Ordering::is_ge),
        Op::Less => compared().map(Ordering::is_lt),
        Op::LessOrEqual => compared().map(Ordering::is_le),
        Op::Like => text(cell, kind, asked, is_like),
        Op::NotLike => not(text(cell, kind, asked, is_like)),
        Op::Regexp => text(cell, kind, asked, matches_regexp),
        Op::NotRegexp => not(text(cell, kind, asked, matches_regexp)),
        Op::Contains => text(cell, kind, asked, |text, part| text.contains(part)),
        Op::StartsWith => text(cell, kind, asked, |text, part| text.starts_with(part)),
        Op::EndsWith => text(cell, kind, asked, |text, part| text.ends_with(part)),
        Op::Between | Op::NotBetween | Op::IsNull | Op::IsNotNull => {
            unreachable!("{op:?} with one value")
        }
    }
}

/// Tests the text of a cell, with case folded if its column compares case-insensitively; `None` if the cell is NULL.
fn text(cell: &Cell, kind: Kind, asked: &Asked, test: impl Fn(&str, &str) -> bool) -> Option<bool> {
    match (cell, &asked.cell) {
        (Cell::Null, _) => None,
        (Cell::Text(text), Cell::Text(wanted)) if kind == Kind::Loose => Some(test(&folded(text), &folded(wanted))),
        (Cell::Text(text), Cell::Text(wanted)) => Some(test(text, wanted)),
        (cell, asked) => unreachable!("{cell:?} and {asked:?} are no texts"),
    }
}
