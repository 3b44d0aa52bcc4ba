//! Writes a read as options with JSON values, which `encode` then encodes for a request.

mod encode;

use super::read::{Aggregate, By, Condition, Fields, Join, Leaf, Naming, Operand, Pick, Place, Read, Target};
use super::world::{Table, World};
pub(super) use encode::{STYLES, Style, request};
use serde_json::{Map, Value, json};

pub(super) type Options = Vec<(&'static str, Value)>;

pub(super) fn options(read: &Read, world: &World) -> Options {
    let mut options: Options = Vec::new();
    let table = read.table(world, 0);
    match &read.fields {
        Fields::All => {}
        Fields::Omit(columns) => options.push(("omitFields", names(table, columns))),
        Fields::Picks(picks) => {
            options.push(("selectFields", picked(read, world, picks, 0)));
        }
    }
    if !read.joins.is_empty() {
        let joins: Vec<Value> =
            read.joins.iter().enumerate().map(|(before, join)| joined(read, world, join, before + 1)).collect();
        options.push(("join", Value::from(joins)));
    }
    if !read.filter.is_empty() {
        options.push(("query", conditions(read, world, &read.filter)));
    }
    if let Some(either) = read.either {
        options.push(("searchOperator", word(either)));
    }
    if !read.order.is_empty() {
        let mut list: Vec<Value> = read.order.iter().map(|o| order(read, world, o)).collect();
        // A list with a single step of order may be written without the list.
        let alone = list.len() == 1 && read.order[0].naming != Naming::Labelled;
        options.push(("order", if alone { list.remove(0) } else { Value::from(list) }));
    }
    if !read.group.is_empty() {
        let fields: Vec<String> = read.group.iter().map(|place| dotted(read, world, *place)).collect();
        // A single field may be written without a list.
        options.push(match (fields.as_slice(), read.window.limit.is_some()) {
            ([field], true) => ("group", json!(field)),
            _ => ("group", json!(fields)),
        });
    }
    if read.distinct {
        options.push(("distinct", json!(true)));
    }
    if read.count {
        options.push(("count", json!(true)));
    }
    for (name, number) in [("limit", read.window.limit), ("offset", read.window.offset), ("page", read.window.page)] {
        if let Some(number) = number {
            options.push((name, json!(number)));
        }
    }
    options
}

fn word(either: bool) -> Value {
    Value::from(if either { "OR" } else { "AND" })
}

fn names(table: &Table, columns: &[usize]) -> Value {
    let names: Vec<&str> = columns.iter().map(|at| table.columns[*at].name).collect();
    json!(names)
}

/// Returns the picked fields of a table as JSON.
fn picked(read: &Read, world: &World, picks: &[Pick], own: usize) -> Value {
    let picks = picks.iter().map(|pick| {
        let mut object = Map::new();
        if let Some(aggregate) = pick.aggregate {
            let aggregate = match aggregate {
                Aggregate::Count | Aggregate::CountAll => "COUNT",
                Aggregate::CountDistinct => "COUNT_DISTINCT",
                Aggregate::Sum => "SUM",
                Aggregate::Avg => "AVG",
                Aggregate::Min => "MIN",
                Aggregate::Max => "MAX",
            };
            object.insert("aggregate".to_owned(), json!(aggregate));
        }
        if let Some(alias) = &pick.alias {
            object.insert("alias".to_owned(), json!(alias));
        }
        let name = read.column(world, pick.place).name;
        if pick.place.at != own {
            let table = read.name(world, pick.place.at);
            object.insert("tableName".to_owned(), json!(table));
        }
        if object.is_empty() {
            return json!(name);
        }
        if pick.aggregate == Some(Aggregate::CountAll) {
            object.remove("tableName");
        } else {
            object.insert("fieldName".to_owned(), json!(name));
        }
        Value::Object(object)
    });
    picks.collect()
}

fn joined(read: &Read, world: &World, join: &Join, at: usize) -> Value {
    let table = read.table(world, at);
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("tableName", json!(table.name));
    if let Some(word) = join.word {
        put("joinType", json!(word));
    }
    if let Some(alias) = &join.alias {
        put("alias", json!(alias));
    }
    let place = |place: Place, own: usize| {
        let field = read.column(world, place).name;
        if place.at == own {
            json!(field)
        } else if place.column % 2 == 1 {
            json!(dotted(read, world, place))
        } else {
            json!({"tableName": read.name(world, place.at), "fieldName": field})
        }
    };
    let mut pairs: Vec<Value> = join
        .on
        .iter()
        .map(|pair| match &pair.target {
            Target::Field(target) => {
                json!({"source": place(pair.source, 0), "target": place(*target, at)})
            }
            Target::Literal(asked) => {
                json!({"source": place(pair.source, 0), "targetLiteral": asked.json})
            }
        })
        .collect();
    put("match", if pairs.len() == 1 { pairs.remove(0) } else { Value::from(pairs) });
    if let Some(either) = join.either {
        put("operator", word(either));
    }
    match &join.fields {
        Fields::All => {}
        Fields::Omit(columns) => {
            put("omitFields", names(table, columns));
        }
        Fields::Picks(picks) => {
            put("selectFields", picked(read, world, picks, at));
        }
    }
    if let Some(nest) = join.nest {
        put("nest", json!(nest));
    }
    Value::Object(object)
}

fn dotted(read: &Read, world: &World, place: Place) -> String {
    let field = read.column(world, place).name;
    match place.at {
        0 => field.to_owned(),
        at => format!("{}.{field}", read.name(world, at)),
    }
}

fn order(read: &Read, world: &World, order: &super::read::Order) -> Value {
    let mut object = Map::new();
    match &order.by {
        By::Alias(alias) => {
            object.insert("field".to_owned(), json!(alias));
        }
        By::Field(place) if order.naming == Naming::Plain || place.at == 0 => {
            object.insert("field".to_owned(), json!(dotted(read, world, *place)));
        }
        By::Field(place) => {
            object.insert("field".to_owned(), json!(read.column(world, *place).name));
            object.insert("tableName".to_owned(), json!(read.name(world, place.at)));
        }
    }
    if let Some(strategy) = order.strategy {
        object.insert("strategy".to_owned(), json!(strategy));
    }
    Value::Object(object)
}

/// Writes the conditions of a read, as the option `query` takes them.
pub(super) fn query(read: &Read, world: &World) -> Value {
    let written = conditions(read, world, &read.filter);
    match read.either {
        Some(true) if read.filter.len() > 1 => json!({"g": {"__query": written, "operator": "OR"}}),
        _ => written,
    }
}

fn conditions(read: &Read, world: &World, conditions: &[Condition]) -> Value {
    let mut object = Map::new();
    for (position, condition) in conditions.iter().enumerate() {
        let label = format!("c{position}");
        let (key, value) = match condition {
            Condition::Group { members, either, not } => {
                let mut group = json!({"__query": self::conditions(read, world, members)});
                if let Some(either) = either {
                    group["operator"] = word(*either);
                }
                if let Some(not) = not {
                    group["not"] = json!(not);
                }
                (label, group)
            }
            Condition::Leaf(leaf) => {
                let key = match (leaf.naming, leaf.place.at) {
                    (Naming::Labelled, _) => label.clone(),
                    (Naming::Plain, _) => dotted(read, world, leaf.place),
                    (Naming::Apart, _) => read.column(world, leaf.place).name.to_owned(),
                };
                // A JSON object can have a key only once, so a second condition on the same field needs a label.
                if object.contains_key(&key) {
                    let labelled = Leaf { naming: Naming::Labelled, ..leaf.clone() };
                    (label, self::leaf(read, world, &labelled))
                } else {
                    (key, self::leaf(read, world, leaf))
                }
            }
        };
        object.insert(key, value);
    }
    Value::Object(object)
}

fn leaf(read: &Read, world: &World, leaf: &Leaf) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    let value = match &leaf.operand {
        Operand::None => None,
        Operand::One(asked) => Some(asked.json.clone()),
        Operand::List(list) => Some(list.iter().map(|asked| asked.json.clone()).collect()),
    };
    let bare = leaf.naming == Naming::Plain && leaf.word.is_none() && leaf.not.is_none() && leaf.every.is_none();
    match value {
        Some(value) if bare => return value,
        Some(value) => {
            put("value", value);
        }
        None => {}
    }
    if let Some(word) = leaf.word {
        put("equality", json!(word));
    }
    if let Some(not) = leaf.not {
        put("not", json!(not));
    }
    if let Some(every) = leaf.every {
        put("operator", word(!every));
    }
    if leaf.naming == Naming::Labelled {
        put("fieldName", json!(read.column(world, leaf.place).name));
    }
    if leaf.naming == Naming::Apart || (leaf.naming == Naming::Labelled && leaf.place.at > 0) {
        put("tableName", json!(read.name(world, leaf.place.at)));
    }
    Value::Object(object)
}
