//! Random SQL literals for columns of each type, with the extremes often.

use crate::dice::Dice;
use std::fmt::Write as _;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Values {
    Integer {
        bits: u32,
        unsigned: bool,
    },
    Real,
    Decimal {
        precision: usize,
        scale: usize,
    },
    Bits(usize),
    Year,
    Date,
    Time,
    DateTime,
    Timestamp,
    /// Of at most this number of characters.
    Text(usize),
    /// Of at most this number of bytes.
    Binary(usize),
    /// Of this number of members.
    Enum(usize),
    Set(usize),
    Json,
    Uuid,
    Inet4,
    Inet6,
    Point,
    Line,
    Polygon,
    Vector(usize),
    /// Never inserted.
    Generated,
}

impl Values {
    pub(crate) fn literal(self, dice: &mut Dice) -> String {
        match self {
            _ if dice.chance(15) => "NULL".to_owned(),
            Self::Integer { bits, unsigned } => integer(dice, bits, unsigned),
            Self::Real => real(dice),
            Self::Decimal { precision, scale } => decimal(dice, precision, scale),
            Self::Bits(bits) => (random_u64(dice) >> (64 - bits)).to_string(),
            Self::Year => (*dice.pick(&[0, 1901, 2155, 1970, 2026])).to_string(),
            Self::Date => (*dice.pick(&DATES)).to_owned(),
            Self::Time => {
                let hours = *dice.pick(&[0, 0, 10, 838, 23]);
                let sign = if dice.chance(50) { "-" } else { "" };
                format!("'{sign}{hours}:{:02}:{:02}.{}'", dice.below(60), dice.below(60), fraction(dice))
            }
            Self::DateTime => datetime(dice, &DATES),
            Self::Timestamp if dice.chance(10) => "'0000-00-00 00:00:00'".to_owned(),
            Self::Timestamp => datetime(dice, &["'1970-01-02'", "'2000-02-29'", "'2026-12-31'", "'2038-01-18'"]),
            Self::Text(max) => text(dice, max),
            Self::Binary(max) => {
                let length = if dice.chance(20) { max } else { dice.between(0, max.min(40)) };
                let zeros = dice.between(0, length);
                let byte = |_| format!("{:02X}", dice.below(256));
                let bytes: String = (zeros..length).map(byte).collect();
                format!("CONCAT(X'{bytes}', REPEAT(X'00', {zeros}))")
            }
            Self::Enum(count) => dice.between(0, count).to_string(),
            Self::Set(count) => (random_u64(dice) >> (64 - count)).to_string(),
            Self::Json => {
                (*dice.pick(&["'{}'", "'[1, \"é😀\", null]'", "'{\"a\": {\"b\": 1.50}}'", "'null'"])).to_owned()
            }
            Self::Uuid => uuid(dice),
            Self::Inet4 => (*dice.pick(&["'0.0.0.0'", "'255.255.255.255'", "'1.2.3.0'", "'10.0.0.7'"])).to_owned(),
            Self::Inet6 => inet6(dice),
            Self::Point => format!("ST_GeomFromText('POINT({} -0.5)', 4326)", dice.below(100)),
            Self::Line => "ST_GeomFromText('LINESTRING(0 0, 1 1, 2 5)')".to_owned(),
            Self::Polygon => "ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))')".to_owned(),
            Self::Vector(dimensions) => {
                let numbers: Vec<String> = (0..dimensions).map(|_| format!("{}.5", dice.below(9))).collect();
                format!("VEC_FromText('[{}]')", numbers.join(","))
            }
            Self::Generated => "DEFAULT".to_owned(),
        }
    }
}

const DATES: [&str; 7] =
    ["'0000-00-00'", "'2026-00-00'", "'2026-11-00'", "'1000-01-01'", "'9999-12-31'", "'2024-02-29'", "'0001-01-01'"];

fn random_u64(dice: &mut Dice) -> u64 {
    (0..8).fold(0, |number, _| number << 8 | u64::try_from(dice.below(256)).unwrap())
}

fn integer(dice: &mut Dice, bits: u32, unsigned: bool) -> String {
    let highest = if unsigned { u64::MAX >> (64 - bits) } else { u64::MAX >> (65 - bits) };
    let random = random_u64(dice) & highest;
    let number = *dice.pick(&[0, 1, highest, highest - 1, random]);
    if unsigned || dice.chance(50) { number.to_string() } else { (-i128::from(number) - 1).to_string() }
}

fn real(dice: &mut Dice) -> String {
    let special = ["0", "1e-45", "-1e-38", "3.4028235e38", "-1.7976931348623157e308", "2.2250738585072014e-308", "0.1"];
    if dice.chance(50) {
        return (*dice.pick(&special)).to_owned();
    }
    let sign = if dice.chance(50) { "-" } else { "" };
    format!("{sign}{}.{}e{}", dice.below(10), random_u64(dice), i64::try_from(dice.below(60)).unwrap() - 30)
}

fn decimal(dice: &mut Dice, precision: usize, scale: usize) -> String {
    let mut digits = |count: usize| -> String {
        let digit = *dice.pick(&[None, Some('9'), Some('0')]);
        (0..count).map(|_| digit.unwrap_or_else(|| char::from(b'0' + u8::try_from(dice.below(10)).unwrap()))).collect()
    };
    let (integer, fraction) = (digits(precision - scale), digits(scale));
    let sign = if dice.chance(50) { "-" } else { "" };
    format!("{sign}0{integer}.{fraction}")
}

fn fraction(dice: &mut Dice) -> String {
    let random = format!("{:06}", dice.below(1_000_000));
    (*dice.pick(&["0", "999999", "000001", "34", "345678", &random])).to_owned()
}

fn datetime(dice: &mut Dice, dates: &[&str]) -> String {
    let date = dice.pick(dates).trim_matches('\'');
    let (hour, minute, second) = (dice.below(24), dice.below(60), dice.below(60));
    format!("'{date} {hour:02}:{minute:02}:{second:02}.{}'", fraction(dice))
}

fn text(dice: &mut Dice, max: usize) -> String {
    let alphabet: Vec<char> = (*dice.pick(&["ab, '\\", "aéüß€", "aЖя日本", "a😀é"])).chars().collect();
    let max = max.saturating_sub(2);
    let short = dice.between(0, max.min(12));
    let repeated = if dice.chance(25) { max / short.max(1) } else { 1 };
    let mut hex = String::new();
    for _ in 0..short {
        let mut buffer = [0; 4];
        for byte in dice.pick(&alphabet).encode_utf8(&mut buffer).bytes() {
            write!(hex, "{byte:02X}").unwrap();
        }
    }
    let end = if max > 0 && dice.chance(20) { "20" } else { "" };
    format!("CONCAT(REPEAT(_utf8mb4 X'{hex}', {repeated}), _utf8mb4 X'{end}')")
}

fn uuid(dice: &mut Dice) -> String {
    let fixed = ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"];
    if dice.chance(20) {
        return format!("'{}'", dice.pick(&fixed));
    }
    let version = dice.pick(&['1', '3', '4', '5', '6', '7']);
    let variant = dice.pick(&['8', 'b', '1']);
    let end = if dice.chance(30) { 0 } else { random_u64(dice) >> 16 };
    format!("'{:08x}-{:04x}-{version}000-{variant}abc-{end:012x}'", dice.below(1 << 32), dice.below(1 << 16))
}

fn inet6(dice: &mut Dice) -> String {
    let group = |_| if dice.chance(60) { "0".to_owned() } else { format!("{:x}", dice.below(1 << 16)) };
    let groups: Vec<String> = (0..8).map(group).collect();
    let special = ["::", "::1", "::ffff:1.2.3.4", "::1.2.3.4", "2001:db8::"];
    if dice.chance(30) { format!("'{}'", dice.pick(&special)) } else { format!("'{}'", groups.join(":")) }
}
