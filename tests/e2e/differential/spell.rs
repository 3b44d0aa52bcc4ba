//! How a read is written: as options with JSON values, and those in one of the encodings that the interface takes.

use super::dice::Dice;
use super::read::{
    Aggregate, By, Condition, Fields, Join, Leaf, Naming, Operand, Pick, Place, Read, Target,
};
use super::world::{Table, World};
use crate::door::{Call, enc};
use crate::room::Room;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Options by name, each with its value.
pub(super) type Options = Vec<(&'static str, Value)>;

/// All options of a read.
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
        let joins: Vec<Value> = read
            .joins
            .iter()
            .enumerate()
            .map(|(before, join)| joined(read, world, join, before + 1))
            .collect();
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
        // A single one may stand without a list; which of both, the first field's naming decides.
        let alone = list.len() == 1 && read.order[0].naming != Naming::Labelled;
        options.push((
            "order",
            if alone {
                list.remove(0)
            } else {
                Value::from(list)
            },
        ));
    }
    if !read.group.is_empty() {
        let fields: Vec<String> = read
            .group
            .iter()
            .map(|place| dotted(read, world, *place))
            .collect();
        options.push(("group", json!(fields)));
    }
    if read.distinct {
        options.push(("distinct", json!(true)));
    }
    if read.count {
        options.push(("count", json!(true)));
    }
    for (name, number) in [
        ("limit", read.window.limit),
        ("offset", read.window.offset),
        ("page", read.window.page),
    ] {
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

/// The picks of the table at a place.
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
    put("joinType", json!(join.word));
    if let Some(alias) = &join.alias {
        put("alias", json!(alias));
    }
    let place = |place: Place, own: usize| {
        let field = read.column(world, place).name;
        if place.at == own {
            json!(field)
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
    put(
        "match",
        if pairs.len() == 1 {
            pairs.remove(0)
        } else {
            Value::from(pairs)
        },
    );
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

/// `field` of the root, `alias.field` of another.
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

fn conditions(read: &Read, world: &World, conditions: &[Condition]) -> Value {
    let mut object = Map::new();
    for (position, condition) in conditions.iter().enumerate() {
        let label = format!("c{position}");
        let (key, value) = match condition {
            Condition::Group { members, either } => {
                let mut group = json!({"__query": self::conditions(read, world, members)});
                if let Some(either) = either {
                    group["operator"] = word(*either);
                }
                (label, group)
            }
            Condition::Leaf(leaf) => {
                let key = match (leaf.naming, leaf.place.at) {
                    (Naming::Labelled, _) => label.clone(),
                    (Naming::Plain, _) => dotted(read, world, leaf.place),
                    (Naming::Apart, _) => read.column(world, leaf.place).name.to_owned(),
                };
                // A key stands once: the second condition on a field needs a label.
                if object.contains_key(&key) {
                    let labelled = Leaf {
                        naming: Naming::Labelled,
                        ..leaf.clone()
                    };
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
    let bare = leaf.naming == Naming::Plain
        && leaf.word.is_none()
        && leaf.not.is_none()
        && leaf.every.is_none();
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

/// How options reach the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// One JSON value for each parameter.
    Json,
    /// `order[field]=id`, wherever that can say it.
    Brackets,
    /// Any of those for each option.
    Mixed,
    /// The POST twin.
    Twin,
}

pub(super) const STYLES: [Style; 4] = [Style::Json, Style::Brackets, Style::Mixed, Style::Twin];

/// The request for options in a style.
pub(super) fn request(
    room: &Room,
    table: &Table,
    options: &Options,
    style: Style,
    dice: &mut Dice,
) -> Call {
    if style == Style::Twin {
        let body: Map<String, Value> = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let path = format!("{}/query", table.name);
        return room.call(Method::POST, &path).json(&Value::Object(body));
    }
    let mut parts: Vec<String> = Vec::new();
    for (name, value) in options {
        parts.extend(encoded(name, value, style, dice));
    }
    let path = if parts.is_empty() {
        table.name.to_owned()
    } else {
        format!("{}?{}", table.name, parts.join("&"))
    };
    room.call(Method::GET, &path)
}

/// The parameters that an option becomes.
fn encoded(name: &str, value: &Value, style: Style, dice: &mut Dice) -> Vec<String> {
    let brackets = style == Style::Brackets || (style == Style::Mixed && dice.chance(50));
    match value {
        Value::String(text) => vec![format!("{name}={}", enc(text))],
        Value::Number(number) => vec![format!("{name}={number}")],
        Value::Bool(value) => vec![format!("{name}={}", flag(*value, dice))],
        Value::Array(items)
            if style == Style::Mixed
                && ["selectFields", "omitFields"].contains(&name)
                && items.iter().all(Value::is_string)
                && dice.chance(60) =>
        {
            let names: Vec<String> = items
                .iter()
                .map(|item| enc(item.as_str().unwrap_or_default()))
                .collect();
            vec![format!(
                "{name}={}",
                names.join(dice.pick::<&str>(&[",", "%2C"]))
            )]
        }
        value if brackets && is_sayable(value) => {
            let mut parts = Vec::new();
            let spelling = Spelling {
                open: dice.pick::<&str>(&["[", "%5B"]),
                close: dice.pick::<&str>(&["]", "%5D"]),
                indexed: dice.chance(50),
            };
            spelling.flatten(name.to_owned(), value, dice, &mut parts);
            parts
        }
        value => {
            let text = enc(&value.to_string());
            let text = if dice.chance(50) {
                text.replace("%20", "+")
            } else {
                text
            };
            vec![format!("{name}={text}")]
        }
    }
}

fn flag(value: bool, dice: &mut Dice) -> &'static str {
    match (value, dice.chance(50)) {
        (true, true) => "true",
        (true, false) => "1",
        (false, true) => "false",
        (false, false) => "0",
    }
}

/// Brackets have no null, and no list or object without members.
fn is_sayable(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty() && items.iter().all(is_sayable),
        Value::Object(members) => !members.is_empty() && members.values().all(is_sayable),
        _ => true,
    }
}

struct Spelling {
    open: &'static str,
    close: &'static str,
    /// Lists of scalars with their indices, as PHP writes them; else with empty brackets, as axios does.
    indexed: bool,
}

impl Spelling {
    fn flatten(&self, path: String, value: &Value, dice: &mut Dice, parts: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let path = format!("{path}{}{}{}", self.open, enc(name), self.close);
                    self.flatten(path, member, dice, parts);
                }
            }
            Value::Array(items) => {
                let flat = items
                    .iter()
                    .all(|item| !item.is_array() && !item.is_object());
                for (index, item) in items.iter().enumerate() {
                    let path = if flat && !self.indexed {
                        format!("{path}{}{}", self.open, self.close)
                    } else {
                        format!("{path}{}{index}{}", self.open, self.close)
                    };
                    self.flatten(path, item, dice, parts);
                }
            }
            Value::String(text) => parts.push(format!("{path}={}", enc(text))),
            // A value that is true is 1; only where a word is read may it be the word.
            Value::Bool(value) => {
                let last = path.rsplit(self.open).next().unwrap_or_default();
                let word = last.starts_with("not") || last.starts_with("nest");
                let text = if word {
                    flag(*value, dice)
                } else {
                    ["0", "1"][usize::from(*value)]
                };
                parts.push(format!("{path}={text}"));
            }
            other => parts.push(format!("{path}={other}")),
        }
    }
}
