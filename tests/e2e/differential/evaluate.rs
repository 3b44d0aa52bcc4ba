//! Evaluates a read row by row, as simply as possible. Written from the API's documentation and SQL's three-valued
//! logic; must not know how the service evaluates reads.

mod aggregate;
mod condition;
mod output;
mod pattern;

use super::cell::{Cell, Kind};
use super::json::Json;
use super::read::{By, Join, JoinKind, Place, Read, Target};
use super::world::World;
use condition::all_or_any;
pub(super) use output::{Output, Source, outputs};
use std::cmp::Ordering;

/// The index of one record for each table of a read; `None` if a join found no matching record.
type Tuple = Vec<Option<usize>>;

struct Sight<'a> {
    read: &'a Read,
    world: &'a World,
}

/// All rows of the answer, before `limit` and `offset`, in order. Rows with equal sort keys are in one group.
pub(super) struct Expected {
    pub(super) ties: Vec<Vec<Json>>,
}

impl Sight<'_> {
    fn cell(&self, tuple: &Tuple, place: Place) -> Cell {
        match tuple[place.at] {
            Some(row) => self.read.table(self.world, place.at).rows[row][place.column].clone(),
            None => Cell::Null,
        }
    }

    fn kind(&self, place: Place) -> Kind {
        self.read.column(self.world, place).kind
    }
}

/// Returns, for each record of the root table, whether it meets the read's conditions.
pub(super) fn allowed(read: &Read, world: &World) -> Vec<bool> {
    let sight = Sight { read, world };
    let either = read.either.unwrap_or(false);
    let rows = 0..world.tables[read.root].rows.len();
    rows.map(|row| read.filter.is_empty() || sight.holds(&read.filter, either, &vec![Some(row)]) == Some(true))
        .collect()
}

/// Evaluates `read` without `limit` and `offset`.
pub(super) fn evaluate(read: &Read, world: &World) -> Expected {
    let sight = Sight { read, world };
    let rows = world.tables[read.root].rows.len();
    let mut tuples: Vec<Tuple> = (0..rows).map(|row| vec![Some(row)]).collect();
    for (before, join) in read.joins.iter().enumerate() {
        tuples = joined(&sight, tuples, before + 1, join);
    }
    let either = read.either.unwrap_or(false);
    tuples.retain(|tuple| sight.holds(&read.filter, either, tuple) == Some(true));
    let outputs = outputs(read, world).expect("a read that can be answered");
    let mut rows: Vec<(Vec<Cell>, Json)> = if read.is_aggregated() {
        aggregate::rows(&sight, &outputs, tuples)
    } else {
        let row = |tuple: &Tuple| (keys(&sight, &outputs, tuple), sight.row(&outputs, tuple));
        tuples.iter().map(row).collect()
    };
    if read.distinct {
        let mut seen = Vec::new();
        rows.retain(|(_, row)| {
            let new = !seen.contains(row);
            seen.push(row.clone());
            new
        });
    }
    let kinds = kinds(&sight, &outputs);
    rows.sort_by(|(a, _), (b, _)| compare(read, &kinds, a, b));
    let mut ties: Vec<Vec<Json>> = Vec::new();
    let mut last: Option<Vec<Cell>> = None;
    for (key, row) in rows {
        match (&last, ties.last_mut()) {
            (Some(before), Some(tie)) if compare(read, &kinds, before, &key).is_eq() => {
                tie.push(row);
            }
            _ => ties.push(vec![row]),
        }
        last = Some(key);
    }
    Expected { ties }
}

fn joined(sight: &Sight<'_>, tuples: Vec<Tuple>, at: usize, join: &Join) -> Vec<Tuple> {
    let partners = sight.world.tables[join.table].rows.len();
    let mut met = vec![false; partners];
    let mut found = Vec::new();
    for tuple in tuples {
        let mut alone = true;
        for (partner, met) in met.iter_mut().enumerate() {
            let mut candidate = tuple.clone();
            candidate.push(Some(partner));
            if matches(sight, join, &candidate) {
                found.push(candidate);
                (alone, *met) = (false, true);
            }
        }
        if alone && join.kind == JoinKind::Left {
            let mut kept = tuple;
            kept.push(None);
            found.push(kept);
        }
    }
    if join.kind == JoinKind::Right {
        let strangers = (0..partners).filter(|partner| !met[*partner]);
        found.extend(strangers.map(|partner| {
            let mut kept = vec![None; at];
            kept.push(Some(partner));
            kept
        }));
    }
    found
}

fn matches(sight: &Sight<'_>, join: &Join, tuple: &Tuple) -> bool {
    let each = join.on.iter().map(|pair| {
        let source = sight.cell(tuple, pair.source);
        let target = match &pair.target {
            Target::Field(place) => sight.cell(tuple, *place),
            Target::Literal(asked) if asked.cell == Cell::Null => {
                return Some(source == Cell::Null);
            }
            Target::Literal(asked) => asked.cell.clone(),
        };
        source.compare(&target, sight.kind(pair.source)).map(Ordering::is_eq)
    });
    all_or_any(each, join.either.unwrap_or(false)) == Some(true)
}

fn keys(sight: &Sight<'_>, outputs: &[Output], tuple: &Tuple) -> Vec<Cell> {
    let place = |by: &By| match by {
        By::Field(place) => *place,
        By::Alias(alias) => match output::called(outputs, alias).source {
            Source::Field(place) => place,
            Source::Aggregate(..) => unreachable!("an aggregate of one record"),
        },
    };
    let order = sight.read.order.iter();
    order.map(|order| sight.cell(tuple, place(&order.by))).collect()
}

fn kinds(sight: &Sight<'_>, outputs: &[Output]) -> Vec<Kind> {
    let order = sight.read.order.iter();
    order
        .map(|order| match &order.by {
            By::Field(place) => sight.kind(*place),
            By::Alias(alias) => sight.output_kind(output::called(outputs, alias)),
        })
        .collect()
}

fn compare(read: &Read, kinds: &[Kind], a: &[Cell], b: &[Cell]) -> Ordering {
    let each = read.order.iter().zip(kinds).zip(a.iter().zip(b));
    each.map(|((order, kind), (a, b))| {
        let ascending = a.sort(b, *kind);
        if order.descends() { ascending.reverse() } else { ascending }
    })
    .find(|ordering| ordering.is_ne())
    .unwrap_or(Ordering::Equal)
}
