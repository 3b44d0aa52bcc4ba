//! Compares an answer with the expected answer. Rows with equal sort keys may come in any order.

use super::cell::{Kind, folded};
use super::evaluate::{Expected, Source, evaluate, outputs};
use super::json::Json;
use super::read::{Aggregate, Read};
use super::world::World;
use crate::host::Answer;
use reqwest::StatusCode;

/// Returns a description of the fault in the answer to a read; `None` if the answer is right.
pub(super) fn fault(read: &Read, world: &World, answer: &Answer) -> Option<String> {
    let expected = evaluate(read, world);
    let body = match envelope(answer) {
        Ok(body) => body,
        Err(fault) => return Some(format!("{fault}; expected {}", expected.shown())),
    };
    let total: usize = expected.ties.iter().map(Vec::len).sum();
    let count = read.count.then(|| Json::Number(total.to_string()));
    if body.member("count") != count.as_ref() {
        return Some(format!("the count should be {count:?}"));
    }
    let rows = rows(read, world, &body);
    differs(&expected, read.window.start(), read.window.limit.unwrap_or(usize::MAX), &rows)
}

pub(super) fn envelope(answer: &Answer) -> Result<Json, String> {
    if answer.status != StatusCode::OK {
        return Err("it is refused".to_owned());
    }
    let body: Json = answer.read();
    if body.member("success") != Some(&Json::Bool(true)) {
        return Err("it is no success".to_owned());
    }
    Ok(body)
}

/// Returns the rows of an answer. Of equal texts in a case-insensitive column, MariaDB may return any in a grouped or
/// distinct row, so such texts are case-folded.
pub(super) fn rows(read: &Read, world: &World, body: &Json) -> Vec<Json> {
    let rows = match body.member("payload") {
        Some(Json::List(rows)) => rows.clone(),
        other => panic!("no list of rows: {other:?}"),
    };
    if !read.distinct && !read.is_aggregated() {
        return rows;
    }
    let outputs = outputs(read, world).unwrap_or_default();
    let loose = outputs.iter().filter(|output| match output.source {
        Source::Field(place) | Source::Aggregate(Aggregate::Min | Aggregate::Max, place) => {
            read.column(world, place).kind == Kind::Loose
        }
        Source::Aggregate(..) => false,
    });
    let loose: Vec<(Option<&str>, &str)> = loose
        .map(|output| {
            let object = output.nest.as_ref().map(|(name, _)| name.as_str());
            (object, output.name.as_str())
        })
        .collect();
    rows.into_iter().map(|row| fold(row, None, &loose)).collect()
}

fn fold(row: Json, object: Option<&str>, loose: &[(Option<&str>, &str)]) -> Json {
    let Json::Object(members) = row else {
        return row;
    };
    let members = members.into_iter().map(|(name, value)| {
        let value = match value {
            Json::Text(text) if loose.contains(&(object, name.as_str())) => Json::Text(folded(&text)),
            Json::Object(_) if object.is_none() => fold(value, Some(&name), loose),
            other => other,
        };
        (name, value)
    });
    Json::Object(members.collect())
}

impl Expected {
    fn shown(&self) -> String {
        let ties: Vec<String> = self
            .ties
            .iter()
            .map(|tie| {
                let rows: Vec<String> = tie.iter().map(ToString::to_string).collect();
                rows.join(" ~ ")
            })
            .collect();
        format!("(~ joins what is tied)\n    {}", ties.join("\n    "))
    }
}

/// Compares a window of the expected rows with the answer's rows. Returns the first difference; `None` if there is
/// none.
pub(super) fn differs(expected: &Expected, start: usize, limit: usize, rows: &[Json]) -> Option<String> {
    let total: usize = expected.ties.iter().map(Vec::len).sum();
    let count = total.saturating_sub(start).min(limit);
    if rows.len() != count {
        return Some(format!("{} rows came, {count} of {total} should have: {}", rows.len(), expected.shown()));
    }
    let (mut passed, mut rest) = (0, rows);
    for tie in &expected.ties {
        let from = passed.max(start);
        passed += tie.len();
        let here = passed.saturating_sub(from).min(rest.len());
        let (came, after) = rest.split_at(here);
        rest = after;
        // If the window contains only some rows of a group with equal sort keys, any of them may be in the answer, but
        // none twice.
        let mut left = tie.clone();
        for row in came {
            match left.iter().position(|known| known == row) {
                Some(at) => {
                    left.swap_remove(at);
                }
                None => {
                    return Some(format!("the row {row} is wrong, or in a wrong place: {}", expected.shown()));
                }
            }
        }
    }
    None
}
