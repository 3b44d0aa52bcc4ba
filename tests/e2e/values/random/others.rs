//! Random bytes, JSON documents and geometries.

use super::{COUNT, Equal, Samples, come_back, quoted};
use crate::host::Host;
use crate::test_db::TestDb;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use reqwest::Method;
use serde_json::Value;

cases! {
    Both: [random_bytes_documents_and_places_come_back_and_are_found],
}

fn bytes(most: usize, length: Option<usize>) -> Samples {
    (prop::collection::vec(any::<u8>(), 0..=most), any::<bool>())
        .prop_map(move |(bytes, bare)| {
            let mut kept = bytes.clone();
            kept.resize(length.unwrap_or(kept.len()), 0);
            let sent = STANDARD.encode(&bytes);
            let sent = if bare { sent.trim_end_matches('=').replace('+', "-").replace('/', "_") } else { sent };
            (quoted(&sent), quoted(&STANDARD.encode(&kept)))
        })
        .boxed()
}

fn documents() -> Samples {
    let number =
        select(&["0", "-1", "1.50", "1e3", "12345678901234567890.0987654321", "-0.0"][..]).prop_map(str::to_owned);
    let leaf = prop_oneof![
        select(&["true", "false", "\"\"", "\"a\\\"b\\u00e9\"", "\"é🦭\""][..]).prop_map(str::to_owned),
        number,
    ];
    let document = leaf.prop_recursive(3, 12, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3).prop_map(|parts| format!("[{}]", parts.join(", ")));
        // A key may occur twice in an object, since MariaDB stores the text.
        let object = prop::collection::vec((select(&["a", "b", ""][..]), inner), 0..3).prop_map(|members| {
            let members: Vec<_> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            format!("{{{}}}", members.join(" ,"))
        });
        prop_oneof![list, object]
    });
    // A condition would treat a list as a list of values.
    document
        .prop_filter("no list", |text| !text.starts_with('['))
        .prop_map(|text| match serde_json::from_str(&text) {
            // The service encodes a value that is only a string again, but leaves strings within a document unchanged.
            Ok(Value::String(bare)) => (text, quoted(&bare)),
            _ => (text.clone(), text),
        })
        .boxed()
}

fn places() -> impl Strategy<Value = String> {
    let number = prop_oneof![any::<i16>().prop_map(f64::from), -180.0..180.0];
    let position = (number.clone(), number).prop_map(|(x, y)| format!("[{x},{y}]"));
    let list = |part: BoxedStrategy<String>| {
        prop::collection::vec(part, 2..4).prop_map(|parts| format!("[{}]", parts.join(","))).boxed()
    };
    let ring = (0..50_u8, 1..50_u8).prop_map(|(from, size)| {
        let to = from + size;
        format!("[[{from},{from}],[{to},{from}],[{to},{to}],[{from},{from}]]")
    });
    let polygon = ring.prop_map(|ring| format!("[{ring}]")).boxed();
    let position = position.boxed();
    let line = list(position.clone());
    let of = |kind: &'static str, part: BoxedStrategy<String>| {
        part.prop_map(move |part| format!("{{\"type\":\"{kind}\",\"coordinates\":{part}}}")).boxed()
    };
    let plain = prop_oneof![
        of("Point", position.clone()),
        of("LineString", line.clone()),
        of("Polygon", polygon.clone()),
        of("MultiPoint", list(position)),
        of("MultiLineString", list(line)),
        of("MultiPolygon", list(polygon)),
    ];
    let several = prop::collection::vec(plain.clone(), 0..3)
        .prop_map(|parts| format!("{{\"type\":\"GeometryCollection\",\"geometries\":[{}]}}", parts.join(",")));
    prop_oneof![6 => plain, 1 => several]
}

async fn random_bytes_documents_and_places_come_back_and_are_found(host: Host) {
    come_back(host, "VARBINARY(40)", Equal::Exactly, &bytes(40, None)).await;
    come_back(host, "BINARY(8)", Equal::Exactly, &bytes(8, Some(8))).await;
    come_back(host, "MEDIUMBLOB", Equal::Exactly, &bytes(60, None)).await;
    come_back(host, "JSON", Equal::Exactly, &documents()).await;
    let points = places().prop_filter("a point", |text| text.contains("\"Point\"") && !text.contains("geometries"));
    come_back(host, "POINT", Equal::AsPlaces, &points.prop_map(|text| (text.clone(), text)).boxed()).await;
    // Other shapes are compared only with the inserted text, not by ST_Equals.
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v GEOMETRY)"]).await;
    let mut runner = TestRunner::new(Config::default());
    for _ in 0..3 * COUNT {
        let place = places().new_tree(&mut runner).expect("a place").current();
        let body = format!("{{\"v\":{place}}}");
        let id = db.call(Method::POST, "t").bytes(body).send().await.payload();
        let back = db.get(&format!("t/{id}")).await.raw_record()["v"].clone();
        assert!(Equal::AsPlaces.holds(&back, &place), "{place} comes back as {back}");
    }
}
