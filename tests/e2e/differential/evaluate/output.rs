//! The fields of an answer: what they are called, where they stand, and what is in them.

use super::{Sight, Tuple};
use crate::differential::cell::Kind;
use crate::differential::json::Json;
use crate::differential::read::{Aggregate, Fields, Pick, Place, Read};
use crate::differential::world::World;

/// One field of the answer's rows.
pub(in crate::differential) struct Output {
    pub(in crate::differential) name: String,
    /// The object that it stands in, and the place of the table whose record that object is.
    pub(in crate::differential) nest: Option<(String, usize)>,
    pub(in crate::differential) source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::differential) enum Source {
    Field(Place),
    Aggregate(Aggregate, Place),
}

/// The fields of a read in order; `None` if two would have one name.
pub(in crate::differential) fn outputs(read: &Read, world: &World) -> Option<Vec<Output>> {
    let mut outputs: Vec<Output> = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    for at in 0..=read.joins.len() {
        let join = at.checked_sub(1).map(|join| &read.joins[join]);
        let fields = join.map_or(&read.fields, |join| &join.fields);
        let nests = join.is_some_and(|join| join.nest == Some(true));
        let nest = nests.then(|| (read.name(world, at).to_owned(), at));
        if let Some((name, _)) = &nest {
            if taken.contains(name) {
                return None;
            }
            taken.push(name.clone());
        }
        for pick in picked(fields, read.table(world, at).columns.len()) {
            let place = Place {
                at,
                column: pick.column,
            };
            let mut name = pick
                .alias
                .unwrap_or_else(|| read.column(world, place).name.to_owned());
            if nest.is_none() {
                if at > 0 && taken.contains(&name) {
                    name = format!("{}_{name}", read.name(world, at));
                }
                if taken.contains(&name) {
                    return None;
                }
                taken.push(name.clone());
            }
            let source = match pick.aggregate {
                Some(aggregate) => Source::Aggregate(aggregate, place),
                None => Source::Field(place),
            };
            outputs.push(Output {
                name,
                nest: nest.clone(),
                source,
            });
        }
    }
    Some(outputs)
}

/// The picks that all kinds of choice come to.
fn picked(fields: &Fields, columns: usize) -> Vec<Pick> {
    let plain = |column| Pick {
        column,
        alias: None,
        aggregate: None,
    };
    match fields {
        Fields::All => (0..columns).map(plain).collect(),
        Fields::Omit(omitted) => (0..columns)
            .filter(|column| !omitted.contains(column))
            .map(plain)
            .collect(),
        Fields::Picks(picks) => picks.clone(),
    }
}

/// The field of the answer that an alias names.
pub(super) fn called<'a>(outputs: &'a [Output], alias: &str) -> &'a Output {
    let called = outputs
        .iter()
        .find(|output| output.nest.is_none() && output.name == alias);
    called.expect("an alias of the read")
}

impl Sight<'_> {
    pub(super) fn output_kind(&self, output: &Output) -> Kind {
        match output.source {
            Source::Field(place) => self.kind(place),
            Source::Aggregate(aggregate, place) => {
                super::aggregate::kind(aggregate, self.kind(place))
            }
        }
    }

    /// The row that a tuple becomes.
    pub(super) fn row(&self, outputs: &[Output], tuple: &Tuple) -> Json {
        let distinct = self.read.distinct;
        assemble(outputs, tuple, |output| match output.source {
            Source::Field(place) => {
                let cell = self.cell(tuple, place);
                if distinct {
                    cell.representative(self.kind(place)).json()
                } else {
                    cell.json()
                }
            }
            Source::Aggregate(..) => unreachable!("an aggregate of one record"),
        })
    }
}

/// Puts values under their names, and in their objects: one whose table has no record here is null.
pub(super) fn assemble(
    outputs: &[Output],
    tuple: &Tuple,
    mut value: impl FnMut(&Output) -> Json,
) -> Json {
    let mut row: Vec<(String, Json)> = Vec::new();
    for output in outputs {
        let member = (output.name.clone(), value(output));
        match &output.nest {
            None => row.push(member),
            Some((object, at)) => match row.iter_mut().find(|(name, _)| name == object) {
                Some((_, Json::Object(members))) => members.push(member),
                Some(_) => {}
                None if tuple[*at].is_none() => row.push((object.clone(), Json::Null)),
                None => row.push((object.clone(), Json::Object(vec![member]))),
            },
        }
    }
    Json::Object(row)
}
