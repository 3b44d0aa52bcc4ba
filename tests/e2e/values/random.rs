//! Random values of every type: each comes back in its one form, and finds its record by it.

use crate::door::{Door, enc};
use crate::room::Room;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use reqwest::Method;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, Ipv6Addr};

cases! {
    Both: [
        random_numbers_come_back_and_are_found,
        random_texts_come_back_and_are_found,
        random_times_come_back_and_are_found,
        random_bytes_documents_and_places_come_back_and_are_found,
    ],
}

/// Values of each type in one run.
const COUNT: usize = 24;

/// A value as it is sent, and as it must come back: both JSON texts.
type Sample = (String, String);
type Samples = BoxedStrategy<Sample>;

/// How two answers are held against each other.
#[derive(Clone, Copy)]
enum Equal {
    /// To the byte.
    Exactly,
    /// As 64-bit floating-point numbers, to the bit.
    AsDoubles,
    /// As 32-bit ones.
    AsFloats,
    /// As JSON values in which 1 and 1.0 are the same.
    AsPlaces,
    /// As IPv6 addresses: MariaDB shortens a single zero too.
    AsAddresses,
}

impl Equal {
    fn holds(self, left: &str, right: &str) -> bool {
        // MariaDB keeps no sign of a zero: adding one without takes it off here too.
        let doubles = |text: &str| {
            text.parse::<f64>()
                .map(|number| (number + 0.0).to_bits())
                .ok()
        };
        let floats = |text: &str| {
            text.parse::<f32>()
                .map(|number| (number + 0.0).to_bits())
                .ok()
        };
        let address = |text: &str| text.trim_matches('"').parse::<Ipv6Addr>().ok();
        match self {
            Self::AsAddresses => address(left) == address(right),
            Self::Exactly => left == right,
            Self::AsDoubles => doubles(left) == doubles(right),
            Self::AsFloats => floats(left) == floats(right),
            Self::AsPlaces => {
                let value =
                    |text: &str| serde_json::from_str::<Value>(&text.replace(".0", "")).ok();
                value(left) == value(right)
            }
        }
    }
}

/// Inserts a batch of samples, reads them back, finds each by what was read, and changes it to the same.
async fn come_back(door: Door, kind: &str, equal: Equal, samples: &Samples) {
    let room = Room::new(
        door,
        &[&format!(
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v {kind})"
        )],
    )
    .await;
    let mut runner = TestRunner::new(Config::default());
    let samples: Vec<Sample> = (0..COUNT)
        .map(|_| samples.new_tree(&mut runner).expect("a value").current())
        .collect();
    let rows: Vec<String> = samples
        .iter()
        .map(|(sent, _)| format!("{{\"v\":{sent}}}"))
        .collect();
    let body = format!("{{\"batchData\":[{}]}}", rows.join(","));
    let ids: Vec<i64> = serde_json::from_value(
        room.call(Method::POST, "t")
            .bytes(body)
            .send()
            .await
            .payload(),
    )
    .expect("ids");
    let mut read = Vec::new();
    for (id, (sent, expected)) in ids.iter().zip(&samples) {
        let value = room.get(&format!("t/{id}")).await.raw_record()["v"].clone();
        assert!(
            equal.holds(&value, expected),
            "{kind}: {sent} comes back as {value}, not {expected}"
        );
        read.push(value);
    }
    for (id, value) in ids.iter().zip(&read) {
        let same = ids.iter().zip(&read).filter(|(_, other)| *other == value);
        let same: Vec<Value> = same.map(|(id, _)| json!(id)).collect();
        let query = enc(&format!("{{\"v\":{{\"value\":{value}}}}}"));
        let found = room
            .column(&format!("t?order[field]=id&query={query}"), "id")
            .await;
        assert_eq!(found, same, "{kind}: {value} finds others");
        let body = format!("{{\"v\":{value}}}");
        let changed = room
            .call(Method::PUT, &format!("t/{id}"))
            .bytes(body)
            .send()
            .await;
        assert_eq!(changed.payload(), 1, "{kind}: {value}");
        let again = room.get(&format!("t/{id}")).await.raw_record()["v"].clone();
        assert_eq!(again, *value, "{kind} after a change to the same");
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn integers(least: i128, most: i128) -> Samples {
    const SAFE: i128 = (1 << 53) - 1;
    let near_safe = prop_oneof![
        Just(SAFE),
        Just(SAFE + 1),
        Just(-SAFE),
        Just(-SAFE - 1),
        Just(SAFE + 2)
    ];
    prop_oneof![Just(least), Just(most), least..=most, -3..4_i128, near_safe]
        .prop_filter("in range", move |number| (least..=most).contains(number))
        .prop_flat_map(|number| {
            let safe = number.abs() <= SAFE;
            let out = if safe {
                number.to_string()
            } else {
                quoted(&number.to_string())
            };
            let spelled = select(vec![
                number.to_string(),
                quoted(&number.to_string()),
                format!("{number}.00"),
            ]);
            (spelled, Just(out))
        })
        .boxed()
}

fn decimals(whole: usize, scale: usize) -> Samples {
    let digits = |most| prop::collection::vec(0..10_u8, 0..=most);
    (any::<bool>(), digits(whole), digits(scale), 0..3_u8)
        .prop_map(move |(negative, whole, fraction, spelling)| {
            let text = |digits: &[u8]| digits.iter().map(u8::to_string).collect::<String>();
            let (whole, fraction) = (text(&whole), text(&fraction));
            let bare = whole.trim_start_matches('0');
            let zero = bare.is_empty() && fraction.bytes().all(|digit| digit == b'0');
            let sign = if negative { "-" } else { "" };
            let point = if scale > 0 { "." } else { "" };
            let lead = if bare.is_empty() { "0" } else { bare };
            let out = format!(
                "{}{lead}{point}{fraction:0<scale$}",
                if zero { "" } else { sign }
            );
            let sent = match spelling {
                0 => format!("{sign}{lead}.{fraction}0"),
                1 => quoted(&format!("{sign}{lead}.{fraction}")),
                // Every digit before the point, and the point moved back.
                _ => {
                    let digits = format!("{whole}{fraction}");
                    let digits = digits.trim_start_matches('0');
                    let digits = if digits.is_empty() { "0" } else { digits };
                    format!("{sign}{digits}e-{}", fraction.len())
                }
            };
            (sent, quoted(&out))
        })
        .boxed()
}

async fn random_numbers_come_back_and_are_found(door: Door) {
    for (kind, bits) in [
        ("TINYINT", 8),
        ("SMALLINT", 16),
        ("MEDIUMINT", 24),
        ("INT", 32),
        ("BIGINT", 64),
    ] {
        let half = 1_i128 << (bits - 1);
        come_back(door, kind, Equal::Exactly, &integers(-half, half - 1)).await;
        let unsigned = format!("{kind} UNSIGNED");
        come_back(door, &unsigned, Equal::Exactly, &integers(0, 2 * half - 1)).await;
    }
    come_back(
        door,
        "INT(9) ZEROFILL",
        Equal::Exactly,
        &integers(0, i128::from(u32::MAX)),
    )
    .await;
    for width in [1, 7, 8, 9, 31, 53, 54, 63, 64] {
        come_back(
            door,
            &format!("BIT({width})"),
            Equal::Exactly,
            &integers(0, (1 << width) - 1),
        )
        .await;
    }
    come_back(door, "YEAR", Equal::Exactly, &integers(1901, 2155)).await;
    for (kind, whole, scale) in [
        ("DECIMAL(65,30)", 35, 30),
        ("DECIMAL(65,0)", 65, 0),
        ("DECIMAL(38,38)", 0, 38),
        ("DECIMAL(5,2)", 3, 2),
    ] {
        come_back(door, kind, Equal::Exactly, &decimals(whole, scale)).await;
    }
    let doubles = any::<u64>()
        .prop_map(f64::from_bits)
        .prop_filter("finite", |number| number.is_finite());
    let near = prop_oneof![
        Just(-0.0),
        Just(0.1 + 0.2),
        Just(5e-324),
        Just(f64::MAX),
        Just(1e22),
        -10.0..10.0
    ];
    let doubles = prop_oneof![3 => doubles, 1 => near]
        .prop_map(|number| (format!("{number:e}"), format!("{number:e}")));
    come_back(door, "DOUBLE", Equal::AsDoubles, &doubles.boxed()).await;
    let floats = any::<u32>()
        .prop_map(f32::from_bits)
        .prop_filter("finite", |number| number.is_finite());
    let near = prop_oneof![
        Just(-0.0),
        Just(0.1),
        Just(1e-45),
        Just(f32::MAX),
        Just(1e38),
        Just(16_777_216.0)
    ];
    let floats = prop_oneof![3 => floats, 1 => near]
        .prop_map(|number| (format!("{number:e}"), format!("{number:e}")));
    come_back(door, "FLOAT", Equal::AsFloats, &floats.boxed()).await;
}

fn texts(alphabet: &'static str) -> Samples {
    prop::collection::vec(select(alphabet.chars().collect::<Vec<_>>()), 0..20)
        .prop_map(|chars| {
            let text = quoted(&String::from_iter(chars));
            (text.clone(), text)
        })
        .boxed()
}

async fn random_texts_come_back_and_are_found(door: Door) {
    for (kind, alphabet) in [
        (
            "VARCHAR(20) COLLATE utf8mb4_nopad_bin",
            "aA\"'\\`%_\0\u{1}\n\t é日🦭\u{10ffff}",
        ),
        (
            "TEXT CHARACTER SET latin1 COLLATE latin1_nopad_bin",
            "aA\"\\%_\0\t éß€ÿŒ\u{81}",
        ),
        (
            "VARCHAR(20) CHARACTER SET utf8mb3 COLLATE utf8mb3_nopad_bin",
            "aA\\ é日\u{fffd}",
        ),
        (
            "VARCHAR(20) CHARACTER SET ucs2 COLLATE ucs2_nopad_bin",
            "aA\\ é日",
        ),
        (
            "LONGTEXT CHARACTER SET utf16 COLLATE utf16_nopad_bin",
            "aA\\ é日🦭",
        ),
        (
            "VARCHAR(20) CHARACTER SET utf32 COLLATE utf32_nopad_bin",
            "aA\\ é日🦭",
        ),
        (
            "VARCHAR(20) CHARACTER SET sjis COLLATE sjis_nopad_bin",
            "aA\\ 日本表ソｱ",
        ),
        (
            "VARCHAR(20) CHARACTER SET cp932 COLLATE cp932_nopad_bin",
            "aA\\ 日本①表",
        ),
        (
            "VARCHAR(20) CHARACTER SET gbk COLLATE gbk_nopad_bin",
            "aA\\ 中文誠乗",
        ),
        (
            "VARCHAR(20) CHARACTER SET big5 COLLATE big5_nopad_bin",
            "aA\\ 中文功許",
        ),
        (
            "VARCHAR(20) CHARACTER SET euckr COLLATE euckr_nopad_bin",
            "aA\\ 한글",
        ),
        (
            "VARCHAR(20) CHARACTER SET koi8r COLLATE koi8r_nopad_bin",
            "aA\\ жЯ─",
        ),
        (
            "VARCHAR(20) CHARACTER SET ascii COLLATE ascii_nopad_bin",
            "aA\\\0\u{7f} ~",
        ),
    ] {
        come_back(door, kind, Equal::Exactly, &texts(alphabet)).await;
    }
    let member = select(&["a", "b c", "d'e", "", "3", "é"][..])
        .prop_map(|text| (quoted(text), quoted(text)));
    come_back(
        door,
        "ENUM('a','b c','d''e','','3','é')",
        Equal::Exactly,
        &member.boxed(),
    )
    .await;
    let members = prop::sample::subsequence(vec!["z", "y", "x w", "1"], 0..=4).prop_shuffle();
    let set = members.prop_map(|sent| {
        let all = ["z", "y", "x w", "1"];
        let kept: Vec<&str> = all
            .into_iter()
            .filter(|member| sent.contains(member))
            .collect();
        (quoted(&sent.join(",")), quoted(&kept.join(",")))
    });
    come_back(door, "SET('z','y','x w','1')", Equal::Exactly, &set.boxed()).await;
    let uuids = (any::<u128>(), any::<bool>()).prop_map(|(bits, simple)| {
        // Version 4 of the variant of RFC 9562: MariaDB has no room for all others.
        let bits = bits & !(0xF << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
        let uuid = uuid::Uuid::from_u128(bits);
        let sent = if simple {
            uuid.simple().to_string().to_uppercase()
        } else {
            uuid.to_string()
        };
        (quoted(&sent), quoted(&uuid.to_string()))
    });
    come_back(door, "UUID", Equal::Exactly, &uuids.boxed()).await;
    let sparse = prop::collection::vec(prop_oneof![Just(0), any::<u16>()], 8).prop_map(|parts| {
        let parts: [u16; 8] = parts.try_into().expect("eight");
        let address = quoted(&Ipv6Addr::from(parts).to_string());
        (address.clone(), address)
    });
    come_back(door, "INET6", Equal::AsAddresses, &sparse.boxed()).await;
    let v4 = any::<u32>().prop_map(|bits| quoted(&Ipv4Addr::from(bits).to_string()));
    come_back(
        door,
        "INET4",
        Equal::Exactly,
        &v4.prop_map(|text| (text.clone(), text)).boxed(),
    )
    .await;
}

/// A fraction of up to nine digits, and what a column of so many digits keeps of it.
fn fractions(kept: usize) -> impl Strategy<Value = (String, String)> {
    prop::collection::vec(0..10_u8, 0..=9).prop_map(move |digits| {
        let digits: String = digits.iter().map(u8::to_string).collect();
        let sent = if digits.is_empty() {
            String::new()
        } else {
            format!(".{digits}")
        };
        let out: String = format!("{digits:0<6}").chars().take(kept).collect();
        (
            sent,
            if kept == 0 {
                String::new()
            } else {
                format!(".{out}")
            },
        )
    })
}

/// Days and times of a column of so many digits; those with an offset stay within their day.
fn moments(years: std::ops::Range<u16>, kept: usize) -> Samples {
    let day = (years, 1..13_u8, 1..29_u8)
        .prop_map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"));
    let clock = (6..18_u8, 0..60_u8, 0..60_u8);
    let zone = select(&["", "Z", "z", "+00:00", "-00:00", "+05:30", "-06:00"][..]);
    (
        day,
        clock,
        fractions(kept),
        select(&[" ", "T", "t"][..]),
        zone,
    )
        .prop_map(
            |(day, (hour, minute, second), (fraction, kept), mark, zone)| {
                let (hours, minutes) = match zone {
                    "+05:30" => (5, 30),
                    "-06:00" => (-6, 0),
                    _ => (0, 0),
                };
                let local = i32::from(hour) * 60 + i32::from(minute) + hours * 60 + minutes;
                let sent = format!(
                    "{day}{mark}{:02}:{:02}:{second:02}{fraction}{zone}",
                    local / 60,
                    local % 60
                );
                (
                    quoted(&sent),
                    quoted(&format!("{day} {hour:02}:{minute:02}:{second:02}{kept}")),
                )
            },
        )
        .boxed()
}

async fn random_times_come_back_and_are_found(door: Door) {
    for kept in [0, 1, 3, 6] {
        come_back(
            door,
            &format!("DATETIME({kept})"),
            Equal::Exactly,
            &moments(1..9999, kept),
        )
        .await;
        let stamp = format!("TIMESTAMP({kept}) NULL");
        come_back(door, &stamp, Equal::Exactly, &moments(1971..2037, kept)).await;
        let times = (
            any::<bool>(),
            0..839_u16,
            0..60_u8,
            0..60_u8,
            fractions(kept),
        )
            .prop_map(|(negative, hour, minute, second, (fraction, kept))| {
                let clock = format!("{hour:02}:{minute:02}:{second:02}");
                let zero = format!("{clock}{kept}")
                    .bytes()
                    .all(|byte| b"0:.".contains(&byte));
                let sign = |shown: bool| if shown { "-" } else { "" };
                let sent = format!("{}{clock}{fraction}", sign(negative));
                (
                    quoted(&sent),
                    quoted(&format!("{}{clock}{kept}", sign(negative && !zero))),
                )
            });
        come_back(
            door,
            &format!("TIME({kept})"),
            Equal::Exactly,
            &times.boxed(),
        )
        .await;
    }
    // With zeros where month or day are not known.
    let dates = (0..10_000_u16, 0..13_u8, 0..29_u8).prop_map(|(year, month, day)| {
        let date = quoted(&format!("{year:04}-{month:02}-{day:02}"));
        (date.clone(), date)
    });
    come_back(door, "DATE", Equal::Exactly, &dates.boxed()).await;
}

fn bytes(most: usize, length: Option<usize>) -> Samples {
    (prop::collection::vec(any::<u8>(), 0..=most), any::<bool>())
        .prop_map(move |(bytes, bare)| {
            let mut kept = bytes.clone();
            kept.resize(length.unwrap_or(kept.len()), 0);
            let sent = STANDARD.encode(&bytes);
            let sent = if bare {
                sent.trim_end_matches('=')
                    .replace('+', "-")
                    .replace('/', "_")
            } else {
                sent
            };
            (quoted(&sent), quoted(&STANDARD.encode(&kept)))
        })
        .boxed()
}

fn documents() -> Samples {
    let number = select(
        &[
            "0",
            "-1",
            "1.50",
            "1e3",
            "12345678901234567890.0987654321",
            "-0.0",
        ][..],
    )
    .prop_map(str::to_owned);
    let leaf = prop_oneof![
        select(&["true", "false", "\"\"", "\"a\\\"b\\u00e9\"", "\"é🦭\""][..])
            .prop_map(str::to_owned),
        number,
    ];
    let document = leaf.prop_recursive(3, 12, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3)
            .prop_map(|parts| format!("[{}]", parts.join(", ")));
        // A key may stand twice: MariaDB keeps the text.
        let object =
            prop::collection::vec((select(&["a", "b", ""][..]), inner), 0..3).prop_map(|members| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| format!("\"{key}\":{value}"))
                    .collect();
                format!("{{{}}}", members.join(" ,"))
            });
        prop_oneof![list, object]
    });
    // A bare list would be a list of values to a condition.
    document
        .prop_filter("no list", |text| !text.starts_with('['))
        .prop_map(|text| match serde_json::from_str(&text) {
            // A bare string is written anew; what is inside a document stays as it was.
            Ok(Value::String(bare)) => (text, quoted(&bare)),
            _ => (text.clone(), text),
        })
        .boxed()
}

fn places() -> impl Strategy<Value = String> {
    let number = prop_oneof![any::<i16>().prop_map(f64::from), -180.0..180.0];
    let position = (number.clone(), number).prop_map(|(x, y)| format!("[{x},{y}]"));
    let list = |part: BoxedStrategy<String>| {
        prop::collection::vec(part, 2..4)
            .prop_map(|parts| format!("[{}]", parts.join(",")))
            .boxed()
    };
    let ring = (0..50_u8, 1..50_u8).prop_map(|(from, size)| {
        let to = from + size;
        format!("[[{from},{from}],[{to},{from}],[{to},{to}],[{from},{from}]]")
    });
    let polygon = ring.prop_map(|ring| format!("[{ring}]")).boxed();
    let position = position.boxed();
    let line = list(position.clone());
    let of = |kind: &'static str, part: BoxedStrategy<String>| {
        part.prop_map(move |part| format!("{{\"type\":\"{kind}\",\"coordinates\":{part}}}"))
            .boxed()
    };
    let plain = prop_oneof![
        of("Point", position.clone()),
        of("LineString", line.clone()),
        of("Polygon", polygon.clone()),
        of("MultiPoint", list(position)),
        of("MultiLineString", list(line)),
        of("MultiPolygon", list(polygon)),
    ];
    let several = prop::collection::vec(plain.clone(), 0..3).prop_map(|parts| {
        format!(
            "{{\"type\":\"GeometryCollection\",\"geometries\":[{}]}}",
            parts.join(",")
        )
    });
    prop_oneof![6 => plain, 1 => several]
}

async fn random_bytes_documents_and_places_come_back_and_are_found(door: Door) {
    come_back(door, "VARBINARY(40)", Equal::Exactly, &bytes(40, None)).await;
    come_back(door, "BINARY(8)", Equal::Exactly, &bytes(8, Some(8))).await;
    come_back(door, "MEDIUMBLOB", Equal::Exactly, &bytes(60, None)).await;
    come_back(door, "JSON", Equal::Exactly, &documents()).await;
    let points = places().prop_filter("a point", |text| {
        text.contains("\"Point\"") && !text.contains("geometries")
    });
    come_back(
        door,
        "POINT",
        Equal::AsPlaces,
        &points.prop_map(|text| (text.clone(), text)).boxed(),
    )
    .await;
    // What ST_Equals says of other shapes is another matter: they come back.
    let room = Room::new(
        door,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v GEOMETRY)"],
    )
    .await;
    let mut runner = TestRunner::new(Config::default());
    for _ in 0..3 * COUNT {
        let place = places().new_tree(&mut runner).expect("a place").current();
        let body = format!("{{\"v\":{place}}}");
        let id = room
            .call(Method::POST, "t")
            .bytes(body)
            .send()
            .await
            .payload();
        let back = room.get(&format!("t/{id}")).await.raw_record()["v"].clone();
        assert!(
            Equal::AsPlaces.holds(&back, &place),
            "{place} comes back as {back}"
        );
    }
}
