//! Evaluates groups of records, and COUNT, SUM, AVG, MIN and MAX of them.

use super::output::{Output, Source, assemble, called};
use super::{Sight, Tuple};
use crate::differential::cell::{Cell, Kind};
use crate::differential::json::Json;
use crate::differential::read::{Aggregate, By};

/// Number of decimals that MariaDB adds to an average.
const AVERAGE_DIGITS: u32 = 4;

pub(super) fn kind(aggregate: Aggregate, of: Kind) -> Kind {
    match (aggregate, of) {
        (Aggregate::Count | Aggregate::CountAll | Aggregate::CountDistinct, _) => Kind::BigInt,
        // MIN and MAX of an ENUM are texts.
        (Aggregate::Min | Aggregate::Max, Kind::Enum) => Kind::Exact,
        (Aggregate::Min | Aggregate::Max, of) => of,
        (Aggregate::Sum | Aggregate::Avg, Kind::Double) => Kind::Double,
        (aggregate, of) => {
            let scale = match of {
                Kind::Decimal(scale) => scale,
                _ => 0,
            };
            let added = if aggregate == Aggregate::Avg { AVERAGE_DIGITS } else { 0 };
            Kind::Decimal(scale + added)
        }
    }
}

/// Returns one row for each group, with its sort keys.
pub(super) fn rows(sight: &Sight<'_>, outputs: &[Output], tuples: Vec<Tuple>) -> Vec<(Vec<Cell>, Json)> {
    let group = &sight.read.group;
    let mut groups: Vec<(Vec<Cell>, Vec<Tuple>)> = Vec::new();
    if group.is_empty() {
        // Without `group`, all records are one group, even if there are none.
        groups.push((Vec::new(), tuples));
    } else {
        for tuple in tuples {
            let key: Vec<Cell> =
                group.iter().map(|place| sight.cell(&tuple, *place).representative(sight.kind(*place))).collect();
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, members)) => members.push(tuple),
                None => groups.push((key, vec![tuple])),
            }
        }
    }
    let found = |source: Source, members: &[Tuple]| match source {
        Source::Field(place) => {
            members.first().map_or(Cell::Null, |tuple| sight.cell(tuple, place).representative(sight.kind(place)))
        }
        Source::Aggregate(Aggregate::CountAll, _) => Cell::Integer(members.len() as i128),
        Source::Aggregate(aggregate, place) => {
            let cells: Vec<Cell> = members.iter().map(|tuple| sight.cell(tuple, place)).collect();
            result(aggregate, sight.kind(place), cells)
        }
    };
    groups
        .into_iter()
        .map(|(_, members)| {
            let order = sight.read.order.iter();
            let keys = order
                .map(|order| match &order.by {
                    By::Field(place) => found(Source::Field(*place), &members),
                    By::Alias(alias) => found(called(outputs, alias).source, &members),
                })
                .collect();
            let none = Vec::new();
            let row =
                assemble(outputs, members.first().unwrap_or(&none), |output| found(output.source, &members).json());
            (keys, row)
        })
        .collect()
}

fn result(aggregate: Aggregate, of: Kind, mut cells: Vec<Cell>) -> Cell {
    cells.retain(|cell| *cell != Cell::Null);
    let count = |cells: &[Cell]| i128::try_from(cells.len()).expect("a small number");
    // MIN and MAX compare, and ENUM members are compared as texts.
    cells.sort_by(|a, b| a.compare(b, of).unwrap_or(std::cmp::Ordering::Equal));
    match aggregate {
        Aggregate::Count | Aggregate::CountAll => Cell::Integer(count(&cells)),
        Aggregate::CountDistinct => {
            cells.dedup_by(|a, b| a.compare(b, of).is_some_and(std::cmp::Ordering::is_eq));
            Cell::Integer(count(&cells))
        }
        _ if cells.is_empty() => Cell::Null,
        Aggregate::Min => cells[0].representative(of),
        Aggregate::Max => cells[cells.len() - 1].representative(of),
        Aggregate::Sum if of == Kind::Double => Cell::Double(doubles(&cells)),
        #[allow(clippy::cast_precision_loss, reason = "a few dozen records")]
        Aggregate::Avg if of == Kind::Double => Cell::Double(doubles(&cells) / cells.len() as f64),
        Aggregate::Sum => {
            let (digits, scale) = exact_sum(&cells);
            Cell::Decimal(digits, scale)
        }
        Aggregate::Avg => {
            let (digits, scale) = exact_sum(&cells);
            let digits = digits * 10_i128.pow(AVERAGE_DIGITS);
            Cell::Decimal(rounded_quotient(digits, count(&cells)), scale + AVERAGE_DIGITS)
        }
    }
}

fn doubles(cells: &[Cell]) -> f64 {
    cells
        .iter()
        .map(|cell| match cell {
            Cell::Double(number) => *number,
            other => unreachable!("{other:?} is no double"),
        })
        .sum()
}

fn exact_sum(cells: &[Cell]) -> (i128, u32) {
    let mut scale = 0;
    let sum = cells
        .iter()
        .map(|cell| match cell {
            Cell::Integer(number) => *number,
            Cell::Decimal(digits, places) => {
                scale = *places;
                *digits
            }
            other => unreachable!("{other:?} is no exact number"),
        })
        .sum();
    (sum, scale)
}

/// Divides, and rounds halves away from zero.
fn rounded_quotient(number: i128, by: i128) -> i128 {
    let quotient = (number.abs() * 2 + by) / (by * 2);
    quotient * number.signum()
}
