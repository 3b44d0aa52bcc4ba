//! Generates conditions, and the values to compare with in every form that the API accepts.

use crate::differential::cell::{Cell, Kind, decimal, pool};
use crate::differential::dice::Dice;
use crate::differential::read::{Asked, Condition, Leaf, Naming, Op, Operand, Read};
use crate::differential::world::World;
use serde_json::{Value, json};

const NESTING_MAX: usize = 3;

pub(super) fn draw(dice: &mut Dice, world: &World, read: &Read, count: usize, depth: usize) -> Vec<Condition> {
    (0..count)
        .map(|_| {
            if depth < NESTING_MAX && dice.chance(20) {
                let members = dice.between(1, 3);
                Condition::Group {
                    members: draw(dice, world, read, members, depth + 1),
                    either: dice.maybe(),
                    not: if dice.chance(30) { dice.maybe() } else { None },
                }
            } else {
                Condition::Leaf(leaf(dice, world, read))
            }
        })
        .collect()
}

const OPS: [Op; 13] = [
    Op::Equal,
    Op::Equal,
    Op::NotEqual,
    Op::Greater,
    Op::GreaterOrEqual,
    Op::Less,
    Op::LessOrEqual,
    Op::Same,
    Op::In,
    Op::NotIn,
    Op::Between,
    Op::NotBetween,
    Op::IsNull,
];

/// The operators for ENUM columns: the API doesn't define an order of members, so those of order are missing.
const MEMBER_OPS: [Op; 7] = [Op::Equal, Op::NotEqual, Op::Same, Op::In, Op::NotIn, Op::IsNull, Op::IsNotNull];

const TEXT_OPS: [Op; 8] =
    [Op::Like, Op::NotLike, Op::Regexp, Op::NotRegexp, Op::Contains, Op::StartsWith, Op::EndsWith, Op::IsNotNull];

fn words(op: Op) -> &'static [&'static str] {
    match op {
        Op::Equal => &["=", "==", "EQUAL", "equal"],
        Op::NotEqual => &["!=", "<>", "NOT EQUAL"],
        Op::Greater => &[">", "GREATER THAN"],
        Op::GreaterOrEqual => &[">=", "GREATER THAN OR EQUAL"],
        Op::Less => &["<", "less than"],
        Op::LessOrEqual => &["<=", "LESS THAN OR EQUAL"],
        Op::Same => &["<=>"],
        Op::In => &["IN", "in"],
        Op::NotIn => &["NOT IN", "not in"],
        Op::Between => &["BETWEEN", "between"],
        Op::NotBetween => &["NOT BETWEEN"],
        Op::IsNull => &["IS NULL", "is null"],
        Op::IsNotNull => &["IS NOT NULL"],
        Op::Like => &["LIKE", "LIKE_RAW", "like"],
        Op::NotLike => &["NOT LIKE", "NOT LIKE_RAW"],
        Op::Regexp => &["REGEXP"],
        Op::NotRegexp => &["NOT REGEXP", "not regexp"],
        Op::Contains => &["CONTAINS", "contains"],
        Op::StartsWith => &["STARTS WITH", "starts with"],
        Op::EndsWith => &["ENDS WITH"],
    }
}

fn leaf(dice: &mut Dice, world: &World, read: &Read) -> Leaf {
    let place = super::any_place(dice, world, read);
    let kind = read.column(world, place).kind;
    let op = match kind {
        Kind::Enum => *dice.pick(&MEMBER_OPS),
        kind if kind.is_text() && dice.chance(45) => *dice.pick(&TEXT_OPS),
        _ => *dice.pick(&OPS),
    };
    // Beside `address <=> x`, MariaDB 10.11 replaces the address by x in other comparisons and compares its text there.
    let op = match (kind, op) {
        (Kind::Address, Op::Same) => Op::Equal,
        (_, op) => op,
    };
    let asked = |dice: &mut Dice| asked(dice, kind, op);
    let several = |dice: &mut Dice, from| {
        let count = dice.between(from, 4);
        Operand::List((0..count).map(|_| asked(dice)).collect())
    };
    let operand = match op {
        Op::IsNull | Op::IsNotNull => Operand::None,
        Op::Between | Op::NotBetween => Operand::List(vec![asked(dice), asked(dice)]),
        Op::Equal | Op::NotEqual | Op::Same if dice.chance(15) => Operand::One(null()),
        Op::In | Op::NotIn if dice.chance(85) => {
            let empty = dice.chance(5);
            let mut list = several(dice, usize::from(!empty));
            if let Operand::List(list) = &mut list
                && dice.chance(15)
            {
                list.push(null());
            }
            list
        }
        _ if dice.chance(20) => several(dice, 1),
        _ => Operand::One(asked(dice)),
    };
    let joined = matches!(operand, Operand::List(_))
        && !matches!(op, Op::Equal | Op::NotEqual | Op::In | Op::NotIn | Op::Between | Op::NotBetween);
    Leaf {
        place,
        op,
        word: (op != Op::Equal || dice.chance(40)).then(|| *dice.pick(words(op))),
        operand,
        not: if dice.chance(30) { dice.maybe() } else { None },
        every: if joined { dice.maybe() } else { None },
        naming: *dice.pick(&[Naming::Plain, Naming::Plain, Naming::Apart, Naming::Labelled]),
    }
}

pub(super) fn null() -> Asked {
    Asked { cell: Cell::Null, json: Value::Null }
}

/// Returns a random value of a column's kind, or a pattern.
pub(super) fn asked(dice: &mut Dice, kind: Kind, op: Op) -> Asked {
    let pattern = match op {
        Op::Like | Op::NotLike => Some(like(dice)),
        Op::Regexp | Op::NotRegexp => Some(regexp(dice)),
        _ => None,
    };
    let cell = match pattern {
        // A case-insensitive collation also ignores accents, but the evaluation only folds ASCII.
        Some(pattern) if kind == Kind::Loose => Cell::Text(pattern.replace('é', "e")),
        Some(pattern) => Cell::Text(pattern),
        // Values outside a column's range can still be less or greater than its values.
        None if is_ordering(op) && kind == Kind::Integer && dice.chance(15) => {
            Cell::Decimal(*dice.pick(&[-5, 15, 25, 30]), 1)
        }
        None if is_ordering(op) && kind == Kind::Decimal(2) && dice.chance(15) => {
            Cell::Decimal(*dice.pick(&[-50, 1001, 1500, 2249]), 3)
        }
        None => dice.pick(&pool(kind)).clone(),
    };
    let json = json(dice, &cell);
    Asked { cell, json }
}

fn is_ordering(op: Op) -> bool {
    matches!(op, Op::Greater | Op::GreaterOrEqual | Op::Less | Op::LessOrEqual)
}

fn json(dice: &mut Dice, cell: &Cell) -> Value {
    let second = dice.chance(30);
    match cell {
        Cell::Null => Value::Null,
        Cell::Integer(number @ 0..=1) if dice.chance(15) => json!(*number == 1),
        Cell::Integer(number) if second => json!(number.to_string()),
        Cell::Integer(number) => match i64::try_from(*number) {
            Ok(number) => json!(number),
            Err(_) => json!(u64::try_from(*number).expect("of a column")),
        },
        Cell::Decimal(digits, scale) if second => {
            let text = decimal(*digits, *scale);
            let short: f64 = text.parse().expect("a number");
            json!(short)
        }
        Cell::Decimal(digits, scale) => json!(decimal(*digits, *scale)),
        Cell::Double(number) if second => json!(number.to_string()),
        Cell::Double(number) => json!(number),
        Cell::Text(text) => match text.parse::<i64>() {
            Ok(number) if second && number.to_string() == *text => json!(number),
            _ => json!(text),
        },
        Cell::Time(text) if text.contains('.') && dice.chance(30) => {
            json!(text.trim_end_matches('0').trim_end_matches('.'))
        }
        Cell::Time(text) if second && text.len() > "2026-01-01".len() => {
            json!(format!("{}Z", text.replace(' ', "T")))
        }
        Cell::Time(text) => json!(text),
    }
}

fn like(dice: &mut Dice) -> String {
    const PARTS: [&str; 12] = ["%", "%", "_", "a", "b", "B", "é", "\\%", "\\_", "\\\\", "\\a", "ab"];
    let count = dice.between(1, 4);
    (0..count).map(|_| *dice.pick::<&str>(&PARTS)).collect()
}

fn regexp(dice: &mut Dice) -> String {
    const ATOMS: [&str; 9] = ["a", "b", "B", ".", "[ab]", "[Bé]", "e", "%", "1"];
    let mut pattern = String::new();
    if dice.chance(40) {
        pattern.push('^');
    }
    for _ in 0..dice.between(1, 3) {
        pattern.push_str(dice.pick::<&str>(&ATOMS));
    }
    if dice.chance(40) {
        pattern.push('$');
    }
    pattern
}
