//! Reduces a read and its records as long as the disagreement remains.

use super::Stage;
use super::dice::Dice;
use super::evaluate::outputs;
use super::read::{By, Condition, Fields, Read, Target, Window};
use super::spell::Style;

/// Maximum number of requests for shrinking.
const ATTEMPTS_MAX: usize = 400;

pub(super) async fn smallest(
    stage: &mut Stage,
    read: Read,
    style: Style,
    fault: String,
    dice: &mut Dice,
) -> (Read, String) {
    let (mut read, mut fault, mut attempts) = (read, fault, 0);
    'smaller: loop {
        for candidate in simpler(&read) {
            let sound = outputs(&candidate, &stage.world).is_some_and(|fields| !fields.is_empty());
            if !sound || attempts == ATTEMPTS_MAX {
                continue;
            }
            attempts += 1;
            if let Some(found) = stage.disagreement(&candidate, style, dice).await {
                (read, fault) = (candidate, found);
                continue 'smaller;
            }
        }
        break;
    }
    for table in 0..stage.world.tables.len() {
        let mut share = stage.world.tables[table].rows.len().div_ceil(2);
        while share > 0 {
            let mut from = 0;
            while from < stage.world.tables[table].rows.len() {
                let kept = stage.world.tables[table].rows.clone();
                let to = (from + share).min(kept.len());
                stage.world.tables[table].rows.drain(from..to);
                stage.refill(table).await;
                match stage.disagreement(&read, style, dice).await {
                    Some(found) => fault = found,
                    None => {
                        stage.world.tables[table].rows = kept;
                        stage.refill(table).await;
                        from += share;
                    }
                }
            }
            share /= 2;
        }
    }
    (read, fault)
}

/// Returns copies of a read that each lack one part.
fn simpler(read: &Read) -> Vec<Read> {
    let mut found = Vec::new();
    let mut with = |change: &dyn Fn(&mut Read)| {
        let mut candidate = read.clone();
        change(&mut candidate);
        found.push(candidate);
    };
    let window = read.window;
    if window.limit.or(window.offset).is_some() {
        with(&|read| read.window = Window::default());
    }
    if window.limit.is_some() && window.offset.or(window.page).is_some() {
        with(&|read| (read.window.offset, read.window.page) = (None, None));
    }
    if read.count {
        with(&|read| read.count = false);
    }
    if read.distinct {
        with(&|read| read.distinct = false);
    }
    if read.either.is_some() {
        with(&|read| read.either = None);
    }
    for at in 0..read.order.len() {
        with(&|read| {
            read.order.remove(at);
        });
    }
    for filter in fewer(&read.filter) {
        with(&|read| read.filter.clone_from(&filter));
    }
    let aggregated = read.is_aggregated();
    if !aggregated && !matches!(read.fields, Fields::All) && read.order.is_empty() {
        with(&|read| read.fields = Fields::All);
    }
    if let Fields::Picks(picks) = &read.fields
        && picks.len() > 1
    {
        for at in 0..picks.len() {
            let mut picks = picks.clone();
            let gone = picks.remove(at);
            let ordered =
                |order: &super::read::Order| matches!(&order.by, By::Alias(name) if Some(name) == gone.alias.as_ref());
            if !read.order.iter().any(ordered) {
                with(&|read| read.fields = Fields::Picks(picks.clone()));
            }
        }
    }
    for at in 0..read.joins.len() {
        let join = &read.joins[at];
        if join.on.len() > 1 {
            for pair in 0..join.on.len() {
                with(&|read| {
                    read.joins[at].on.remove(pair);
                });
            }
        }
        if !aggregated && !matches!(join.fields, Fields::All) && read.order.is_empty() {
            with(&|read| read.joins[at].fields = Fields::All);
        }
        if join.nest.is_some() {
            with(&|read| read.joins[at].nest = None);
        }
    }
    if !read.joins.is_empty() && !needs(read, read.joins.len()) {
        with(&|read| {
            read.joins.pop();
        });
    }
    found
}

/// Returns copies of a list of conditions that each lack one condition or have a smaller one.
fn fewer(conditions: &[Condition]) -> Vec<Vec<Condition>> {
    let mut found = Vec::new();
    for (at, condition) in conditions.iter().enumerate() {
        let mut without = conditions.to_vec();
        without.remove(at);
        found.push(without);
        if let Condition::Group { members, either, not } = condition {
            for members in fewer(members).into_iter().filter(|members| !members.is_empty()) {
                let mut smaller = conditions.to_vec();
                smaller[at] = Condition::Group { members, either: *either, not: *not };
                found.push(smaller);
            }
            if let ([Condition::Leaf(leaf)], None) = (members.as_slice(), not) {
                let mut flat = conditions.to_vec();
                flat[at] = Condition::Leaf(leaf.clone());
                found.push(flat);
            }
        }
    }
    found
}

/// Returns whether anything except its own join refers to the joined table at position `at`.
fn needs(read: &Read, at: usize) -> bool {
    let filtered = read.filter.iter().any(|condition| names(condition, at));
    let ordered = read.order.iter().any(|order| match &order.by {
        By::Field(place) => place.at == at,
        By::Alias(_) => true,
    });
    let grouped = read.group.iter().any(|place| place.at == at);
    let joined = read.joins[..at - 1]
        .iter()
        .flat_map(|join| &join.on)
        .any(|pair| pair.source.at == at || matches!(&pair.target, Target::Field(place) if place.at == at));
    let all_fields = std::iter::once(&read.fields).chain(read.joins[..at - 1].iter().map(|join| &join.fields));
    let picked = all_fields.into_iter().any(|fields| match fields {
        Fields::Picks(picks) => picks.iter().any(|pick| pick.place.at == at),
        _ => false,
    });
    filtered || ordered || grouped || joined || picked
}

fn names(condition: &Condition, at: usize) -> bool {
    match condition {
        Condition::Leaf(leaf) => leaf.place.at == at,
        Condition::Group { members, .. } => members.iter().any(|member| names(member, at)),
    }
}
