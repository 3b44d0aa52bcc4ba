//! Generates random reads that the service must answer.

mod conditions;
mod joins;

use super::cell::Kind;
use super::dice::Dice;
use super::evaluate::{Source, outputs};
use super::read::{Aggregate, By, Fields, Naming, Order, Pick, Place, Read, Window};
use super::world::{Table, World};

/// Aliases that are not the name of a column.
const ALIASES: [&str; 8] = ["a", "sum", "first name", "Preis", "x1", "größe", "the.dot", "most"];

pub(super) fn read(dice: &mut Dice, world: &World) -> Read {
    loop {
        let read = drawn(dice, world);
        // The service refuses two fields of one name, which other tests cover.
        if outputs(&read, world).is_some_and(|outputs| !outputs.is_empty()) {
            return read;
        }
    }
}

pub(super) fn pageable(dice: &mut Dice, world: &World) -> Read {
    let mut read = read(dice, world);
    read.window = Window { limit: Some(dice.between(1, 9)), offset: None, page: None };
    read
}

pub(super) fn whole(root: usize) -> Read {
    Read {
        root,
        joins: Vec::new(),
        fields: Fields::All,
        filter: Vec::new(),
        either: None,
        order: Vec::new(),
        group: Vec::new(),
        distinct: false,
        count: false,
        window: Window::default(),
    }
}

pub(super) fn filtered(dice: &mut Dice, world: &World, root: usize) -> Read {
    let mut read = whole(root);
    let members = *dice.pick(&[1, 1, 2, 3]);
    read.filter = conditions::draw(dice, world, &read, members, 0);
    read.either = dice.maybe();
    read
}

fn drawn(dice: &mut Dice, world: &World) -> Read {
    let root = dice.below(world.tables.len());
    let mut read = Read { count: dice.chance(20), window: window(dice), ..whole(root) };
    if dice.chance(50) {
        joins::draw(dice, world, &mut read);
    }
    if dice.chance(25) {
        aggregated(dice, world, &mut read);
    } else {
        read.fields = fields(dice, &world.tables[root], 0);
        read.distinct = dice.chance(15);
    }
    let members = *dice.pick(&[0, 1, 1, 2, 2, 3, 4]);
    read.filter = conditions::draw(dice, world, &read, members, 0);
    if !read.filter.is_empty() {
        read.either = dice.maybe();
    }
    order(dice, world, &mut read);
    read
}

fn window(dice: &mut Dice) -> Window {
    let mut window = Window::default();
    if dice.chance(50) {
        window.limit = Some(*dice.pick(&[0, 1, 2, 3, 5, 8, 20, 100]));
        match dice.below(4) {
            0 => window.offset = Some(dice.below(12)),
            1 => window.page = Some(dice.between(1, 4)),
            _ => {}
        }
    } else if dice.chance(10) {
        window.offset = Some(dice.below(12));
    }
    window
}

/// Returns some columns of a table, each once, in random order.
fn some_columns(dice: &mut Dice, table: &Table) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..table.columns.len()).collect();
    dice.shuffle(&mut columns);
    columns.truncate(dice.between(1, table.columns.len()));
    columns
}

fn fields(dice: &mut Dice, table: &Table, at: usize) -> Fields {
    match dice.below(4) {
        0 => {
            let mut omitted = some_columns(dice, table);
            omitted.truncate(table.columns.len() - 1);
            if omitted.is_empty() { Fields::All } else { Fields::Omit(omitted) }
        }
        1 | 2 => {
            let columns = some_columns(dice, table);
            let picks = columns.into_iter().map(|column| Pick {
                place: Place { at, column },
                alias: dice.chance(25).then(|| (*dice.pick(&ALIASES)).to_owned()),
                aggregate: None,
            });
            Fields::Picks(picks.collect())
        }
        _ => Fields::All,
    }
}

/// Turns the read into a grouped read, or into aggregates over all records.
fn aggregated(dice: &mut Dice, world: &World, read: &mut Read) {
    for _ in 0..*dice.pick(&[0, 1, 1, 2]) {
        let place = any_place(dice, world, read);
        if !read.group.contains(&place) {
            read.group.push(place);
        }
    }
    let mut picks: Vec<Pick> = Vec::new();
    for place in read.group.clone() {
        if dice.chance(85) {
            picks.push(Pick {
                place,
                alias: dice.chance(20).then(|| format!("g{}_{}", place.at, place.column)),
                aggregate: None,
            });
        }
    }
    for number in 0..dice.between(0, 3) {
        let place = any_place(dice, world, read);
        picks.push(aggregate(dice, world, read, place, format!("n{number}")));
    }
    dice.shuffle(&mut picks);
    for at in 1..=read.joins.len() {
        let join = &mut read.joins[at - 1];
        (join.fields, join.nest) = (Fields::All, None);
        if dice.chance(20) {
            let column = dice.below(read.table(world, at).columns.len());
            let pick = aggregate(dice, world, read, Place { at, column }, format!("m{at}"));
            read.joins[at - 1].fields = Fields::Picks(vec![pick]);
        }
    }
    // Without picks, the group's fields are shown.
    read.fields = match picks.is_empty() {
        true if read.group.is_empty() => {
            let place = any_place(dice, world, read);
            let pick = aggregate(dice, world, read, place, "n".to_owned());
            Fields::Picks(vec![pick])
        }
        true => Fields::All,
        false => Fields::Picks(picks),
    };
    read.distinct = false;
}

fn aggregate(dice: &mut Dice, world: &World, read: &Read, place: Place, alias: String) -> Pick {
    const ANY: [Aggregate; 5] =
        [Aggregate::Count, Aggregate::CountAll, Aggregate::CountDistinct, Aggregate::Min, Aggregate::Max];
    const OF_NUMBERS: [Aggregate; 2] = [Aggregate::Sum, Aggregate::Avg];
    let sums = read.column(world, place).kind.is_number() && dice.chance(50);
    let of: &[Aggregate] = if sums { &OF_NUMBERS } else { &ANY };
    Pick { place, alias: Some(alias), aggregate: Some(*dice.pick(of)) }
}

fn any_place(dice: &mut Dice, world: &World, read: &Read) -> Place {
    let at = dice.below(read.joins.len() + 1);
    Place { at, column: dice.below(read.table(world, at).columns.len()) }
}

fn order(dice: &mut Dice, world: &World, read: &mut Read) {
    let outputs = outputs(read, world).unwrap_or_default();
    for _ in 0..*dice.pick(&[0, 1, 1, 2, 3]) {
        let by = if read.is_aggregated() || read.distinct || dice.chance(20) {
            // Such a read can only be ordered by fields of the answer, and an alias is one.
            let Some(output) = (!outputs.is_empty()).then(|| dice.pick(&outputs)) else {
                continue;
            };
            match output.source {
                // MariaDB finds MIN and MAX of an ENUM as text, but may sort them by number.
                Source::Aggregate(Aggregate::Min | Aggregate::Max, place)
                    if read.column(world, place).kind == Kind::Enum =>
                {
                    continue;
                }
                _ if is_alias(read, &output.name) => By::Alias(output.name.clone()),
                Source::Field(place) => By::Field(place),
                Source::Aggregate(..) => continue,
            }
        } else {
            By::Field(any_place(dice, world, read))
        };
        let words = [None, Some("ASC"), Some("asc"), Some("DESC"), Some("DESC"), Some("desc")];
        read.order.push(Order {
            by,
            strategy: *dice.pick(&words),
            naming: *dice.pick(&[Naming::Plain, Naming::Apart, Naming::Labelled]),
        });
    }
    let whole = dice.chance(40) && !read.is_aggregated() && !read.distinct && read.joins.is_empty();
    if whole {
        let key = world.tables[read.root].key.clone();
        read.order.extend(key.into_iter().map(|column| Order {
            by: By::Field(Place { at: 0, column }),
            strategy: None,
            naming: Naming::Plain,
        }));
    }
    let mut named: Vec<By> = Vec::new();
    read.order.retain(|order| {
        let new = !named.contains(&order.by);
        named.push(order.by.clone());
        new
    });
}

/// Returns whether a name of the answer is an alias of a field that is not nested.
fn is_alias(read: &Read, name: &str) -> bool {
    let gives = |fields: &Fields| match fields {
        Fields::Picks(picks) => picks.iter().any(|pick| pick.alias.as_deref() == Some(name)),
        _ => false,
    };
    let flat = read.joins.iter().filter(|join| join.nest != Some(true));
    let nested = read.joins.iter().filter(|join| join.nest == Some(true));
    (gives(&read.fields) || flat.clone().any(|join| gives(&join.fields)))
        && !nested.clone().any(|join| gives(&join.fields))
}
