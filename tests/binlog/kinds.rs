//! Random columns of every type, and how a `SELECT` shows them.

use crate::dice::Dice;
use crate::literals::Values;

pub(crate) struct Column {
    pub(crate) definition: String,
    pub(crate) values: Values,
    pub(crate) shown: Shown,
    /// Fraction digits of a time.
    pub(crate) digits: u8,
}

/// How the server is asked for a value, and how the decoded value is printed for the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// As text; the decoder must give the same text.
    Text,
    /// As a number, compared by its value.
    Number,
    /// In hexadecimal digits; the decoder must say that it can't convert the text.
    Foreign,
    /// In hexadecimal digits.
    Binary,
    Uuid,
    Inet4,
    Inet6,
}

impl Column {
    fn new(definition: impl Into<String>, values: Values, shown: Shown) -> Self {
        Self { definition: definition.into(), values, shown, digits: 0 }
    }

    pub(crate) fn is_generated(&self) -> bool {
        matches!(self.values, Values::Generated)
    }

    pub(crate) fn random(dice: &mut Dice, has_vectors: bool) -> Self {
        match dice.below(if has_vectors { 17 } else { 16 }) {
            0 | 1 => integer(dice),
            2 => real(dice),
            3 => decimal(dice),
            4 => {
                let bits = dice.between(1, 64);
                Self::new(format!("BIT({bits})"), Values::Bits(bits), Shown::Text)
            }
            5 | 6 => time(dice),
            7 | 8 => text(dice),
            9 => binary(dice),
            10 => list(dice),
            11 => Self::new("JSON", Values::Json, Shown::Text),
            12 => address(dice),
            13 => {
                let types = ["GEOMETRY", "POINT", "LINESTRING", "POLYGON"];
                let (at, values) =
                    *dice.pick(&[(0, Values::Line), (1, Values::Point), (2, Values::Line), (3, Values::Polygon)]);
                Self::new(types[at], values, Shown::Binary)
            }
            14 => compressed(dice),
            15 => {
                let kind = *dice.pick(&["VIRTUAL", "PERSISTENT", "PERSISTENT INVISIBLE"]);
                Self::new(format!("INT AS (id * 2) {kind}"), Values::Generated, Shown::Text)
            }
            _ => {
                let dimensions = dice.between(1, 5);
                Self::new(format!("VECTOR({dimensions})"), Values::Vector(dimensions), Shown::Binary)
            }
        }
    }
}

fn integer(dice: &mut Dice) -> Column {
    let (name, bits) = *dice.pick(&[("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)]);
    let unsigned = dice.chance(50);
    let sign = if unsigned { " UNSIGNED" } else { "" };
    Column::new(format!("{name}{sign}"), Values::Integer { bits, unsigned }, Shown::Text)
}

fn real(dice: &mut Dice) -> Column {
    let definition = *dice.pick(&["FLOAT", "DOUBLE", "FLOAT UNSIGNED", "DOUBLE UNSIGNED"]);
    Column::new(definition, Values::Real, Shown::Number)
}

fn decimal(dice: &mut Dice) -> Column {
    let precision = dice.between(1, 65);
    let scale = dice.between(0, precision.min(38));
    let sign = *dice.pick(&["", " UNSIGNED"]);
    Column::new(format!("DECIMAL({precision},{scale}){sign}"), Values::Decimal { precision, scale }, Shown::Text)
}

fn time(dice: &mut Dice) -> Column {
    let digits = dice.between(0, 6);
    let mut column = match dice.below(8) {
        0 => Column::new("DATE", Values::Date, Shown::Text),
        1 => Column::new("YEAR", Values::Year, Shown::Text),
        2..4 => Column::new(format!("TIME({digits})"), Values::Time, Shown::Text),
        4 | 5 => Column::new(format!("DATETIME({digits})"), Values::DateTime, Shown::Text),
        _ => Column::new(format!("TIMESTAMP({digits})"), Values::Timestamp, Shown::Text),
    };
    column.digits = u8::try_from(digits).unwrap();
    column
}

/// Character sets that the decoder converts, then others.
const CHARSETS: [(&str, Shown); 14] = [
    ("utf8mb4", Shown::Text),
    ("utf8mb4 COLLATE utf8mb4_bin", Shown::Text),
    ("utf8mb3", Shown::Text),
    ("latin1", Shown::Text),
    ("latin1 COLLATE latin1_general_cs", Shown::Text),
    ("ascii", Shown::Text),
    ("ucs2", Shown::Text),
    ("utf16", Shown::Text),
    ("utf16le", Shown::Text),
    ("utf32", Shown::Text),
    ("latin2", Shown::Foreign),
    ("cp1251", Shown::Foreign),
    ("sjis", Shown::Foreign),
    ("gbk", Shown::Foreign),
];

fn text(dice: &mut Dice) -> Column {
    let (charset, shown) = *dice.pick(&CHARSETS);
    let max = *dice.pick(&[1, 7, 63, 64, 200, 255]);
    let (name, max) = match dice.below(7) {
        0 | 1 => (format!("CHAR({max})"), max),
        2 | 3 => (format!("VARCHAR({max})"), max),
        4 => ("TINYTEXT".to_owned(), 60),
        5 => ("TEXT".to_owned(), 300),
        _ => ((*dice.pick(&["MEDIUMTEXT", "LONGTEXT"])).to_owned(), 70_000),
    };
    Column::new(format!("{name} CHARACTER SET {charset}"), Values::Text(max), shown)
}

fn binary(dice: &mut Dice) -> Column {
    let max = *dice.pick(&[1, 16, 200, 255]);
    let (name, max) = match dice.below(6) {
        0 | 1 => (format!("BINARY({max})"), max),
        2 | 3 => (format!("VARBINARY({})", max * 3), max * 3),
        4 => ("TINYBLOB".to_owned(), 255),
        _ => ((*dice.pick(&["BLOB", "MEDIUMBLOB", "LONGBLOB"])).to_owned(), 2_000),
    };
    Column::new(name, Values::Binary(max), Shown::Binary)
}

fn list(dice: &mut Dice) -> Column {
    let (charset, shown) = *dice.pick(&CHARSETS);
    let is_set = dice.chance(50);
    let count = if is_set { dice.between(1, 64) } else { *dice.pick(&[1, 2, 255, 256, 400]) };
    let word = if charset.starts_with("ascii") || shown == Shown::Foreign { "m" } else { "é" };
    let members: Vec<String> = (0..count).map(|number| format!("'{word}{number}'")).collect();
    let name = if is_set { "SET" } else { "ENUM" };
    let values = if is_set { Values::Set(count) } else { Values::Enum(count) };
    Column::new(format!("{name}({}) CHARACTER SET {charset}", members.join(",")), values, shown)
}

fn address(dice: &mut Dice) -> Column {
    match dice.below(3) {
        0 => Column::new("UUID", Values::Uuid, Shown::Uuid),
        1 => Column::new("INET4", Values::Inet4, Shown::Inet4),
        _ => Column::new("INET6", Values::Inet6, Shown::Inet6),
    }
}

fn compressed(dice: &mut Dice) -> Column {
    let (charset, shown) = *dice.pick(&CHARSETS);
    match dice.below(4) {
        0 => {
            let max = *dice.pick(&[20, 63, 254, 255, 256, 1_000]);
            let definition = format!("VARCHAR({max}) COMPRESSED CHARACTER SET {charset}");
            Column::new(definition, Values::Text(max), shown)
        }
        1 => Column::new(format!("MEDIUMTEXT COMPRESSED CHARACTER SET {charset}"), Values::Text(70_000), shown),
        2 => Column::new("VARBINARY(300) COMPRESSED", Values::Binary(300), Shown::Binary),
        _ => Column::new("BLOB COMPRESSED", Values::Binary(5_000), Shown::Binary),
    }
}
