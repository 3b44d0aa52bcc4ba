//! The fields of an answer: their names, their position, and their values.

use super::{Sight, Tuple};
use crate::differential::cell::Kind;
use crate::differential::json::Json;
use crate::differential::read::{Aggregate, Fields, Pick, Place, Read};
use crate::differential::world::World;

pub(in crate::differential) struct Output {
    pub(in crate::differential) name: String,
    pub(in crate::differential) nest: Option<(String, usize)>,
    pub(in crate::differential) source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::differential) enum Source {
    Field(Place),
    Aggregate(Aggregate, Place),
}

/// Returns the fields of a read's rows in order; `None` if two fields would have the same name.
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
        for pick in picked(read, world, fields, at) {
            let place = pick.place;
            let given = pick.alias.is_some();
            let mut name = pick.alias.unwrap_or_else(|| read.column(world, place).name.to_owned());
            if nest.is_none() {
                if place.at > 0 && !given && taken.contains(&name) {
                    name = format!("{}_{name}", read.name(world, place.at));
                }
                if taken.contains(&name) {
                    return None;
                }
                taken.push(name.clone());
            } else if outputs.iter().any(|other| other.nest == nest && other.name == name) {
                return None;
            }
            let source = match pick.aggregate {
                Some(aggregate) => Source::Aggregate(aggregate, place),
                None => Source::Field(place),
            };
            outputs.push(Output { name, nest: nest.clone(), source });
        }
    }
    Some(outputs)
}

fn picked(read: &Read, world: &World, fields: &Fields, at: usize) -> Vec<Pick> {
    let plain = |place| Pick { place, alias: None, aggregate: None };
    let columns = 0..read.table(world, at).columns.len();
    let places = columns.map(|column| Place { at, column });
    match fields {
        // A grouped read shows the group's fields, but not the other fields of its records.
        Fields::All if read.is_aggregated() && at == 0 => read.group.iter().copied().map(plain).collect(),
        Fields::All if read.is_aggregated() => Vec::new(),
        Fields::All => places.map(plain).collect(),
        Fields::Omit(omitted) => places.filter(|place| !omitted.contains(&place.column)).map(plain).collect(),
        Fields::Picks(picks) => picks.clone(),
    }
}

pub(super) fn called<'a>(outputs: &'a [Output], alias: &str) -> &'a Output {
    let called = outputs.iter().find(|output| output.nest.is_none() && output.name == alias);
    called.expect("an alias of the read")
}

impl Sight<'_> {
    pub(super) fn output_kind(&self, output: &Output) -> Kind {
        match output.source {
            Source::Field(place) => self.kind(place),
            Source::Aggregate(aggregate, place) => super::aggregate::kind(aggregate, self.kind(place)),
        }
    }

    pub(super) fn row(&self, outputs: &[Output], tuple: &Tuple) -> Json {
        let distinct = self.read.distinct;
        assemble(outputs, tuple, |output| match output.source {
            Source::Field(place) => {
                let cell = self.cell(tuple, place);
                if distinct { cell.representative(self.kind(place)).json() } else { cell.json() }
            }
            Source::Aggregate(..) => unreachable!("an aggregate of one record"),
        })
    }
}

/// Builds a row from its values. A nested object whose table has no record is null.
pub(super) fn assemble(outputs: &[Output], tuple: &Tuple, mut value: impl FnMut(&Output) -> Json) -> Json {
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
