//! The checker of JSON in pieces, held against serde_json.

use super::*;
use crate::ident::shown;
use crate::json::{Value, body_members, check};
use proptest::prelude::*;

/// What is said of a body in pieces of that size.
fn in_pieces(body: &[u8], size: usize) -> Result<(), Problem> {
    let mut checker = Checker::default();
    for piece in body.chunks(size) {
        checker.check(piece)?;
    }
    checker.finish()
}

fn said(outcome: Result<(), Problem>) -> String {
    outcome.map_or_else(|problem| problem.to_string(), |()| "ok".to_owned())
}

#[test]
fn a_fault_is_named_with_its_place() {
    for (body, expected) in [
        ("{", "it ended early, at byte 1"),
        ("{\"a\":1", "it ended early, at byte 6"),
        ("{]", "] stands at byte 1, where a key or } is expected"),
        (
            "{\"a\" 1}",
            "a number stands at byte 5, where a colon is expected",
        ),
        ("{\"a\":1,}", "} stands at byte 7, where a key is expected"),
        (
            "{\"a\":01}",
            "a number stands at byte 6, where a comma or } is expected",
        ),
        ("{\"a\":1.}", "a number lacks a digit at byte 7"),
        (
            "{\"a\":[1 2]}",
            "a number stands at byte 8, where a comma or ] is expected",
        ),
        ("{\"a\":tru}", "an unknown word stands at byte 5"),
        ("{\"a\":'x'}", "' stands at byte 5"),
        (
            "{\"a\":\"\\x\"}",
            "an escape that does not exist stands at byte 7",
        ),
        (
            "{\"a\":\"\\ud800\"}",
            "half a surrogate pair stands at byte 12",
        ),
        (
            "{\"a\":\"\\udc00\"}",
            "half a surrogate pair stands at byte 11",
        ),
        ("{\"a\":\"x\ny\"}", "a control character stands at byte 7"),
        ("{}nul", "it ended early, at byte 5"),
        ("{} {}", "{ stands at byte 3, where the end is expected"),
        (
            "{\n  \"a\": 1,\n  b\n}",
            "b stands at byte 14 (line 3, column 3)",
        ),
        (
            "{\n\"a\": \"",
            "it ended early, at byte 8 (line 2, column 7)",
        ),
    ] {
        let problem = Checker::whole(body.as_bytes()).unwrap_err();
        assert_eq!(problem.code(), ErrorCode::InvalidJson, "{body}");
        let message = format!("The body is not valid JSON: {expected}.");
        assert_eq!(problem.message(), message, "{body}");
    }
    for (body, expected) in [
        (
            &b"{\"a\":\"\xff\"}"[..],
            "The body is not UTF-8: byte 6 is broken.",
        ),
        (
            b"{\"a\":\"\xe6\x97\"}",
            "The body is not UTF-8: byte 6 is broken.",
        ),
        (
            b"{\"a\":\"\xe6\x97\xa5\xc3\"}",
            "The body is not UTF-8: byte 9 is broken.",
        ),
        (
            b"\xff",
            "The body is not valid JSON: 0xff stands at byte 0.",
        ),
        (
            b"\xef\xbb",
            "The body is not valid JSON: it ended early, at byte 2.",
        ),
        (
            b"\xef\xbb{}",
            "The body is not valid JSON: 0xef stands at byte 0.",
        ),
        (b" \n", "The body is empty."),
    ] {
        assert_eq!(Checker::whole(body).unwrap_err().message(), expected);
    }
}

#[test]
fn what_is_no_object_is_known_at_once_and_told_in_the_end() {
    for (body, kind) in [
        ("[1]", "a list"),
        (" 1.5e-3", "a number"),
        ("\"\\ud83e\\uddad\"", "a string"),
        ("null", "null"),
        ("true ", "a boolean"),
    ] {
        let mut checker = Checker::default();
        checker.check(body.as_bytes()).unwrap();
        assert!(checker.is_refused_in_the_end(), "{body}");
        let message = format!("The body must be one JSON object, not {kind}.");
        assert_eq!(checker.finish().unwrap_err().message(), message);
    }
    assert_eq!(
        Checker::whole(b"[1").unwrap_err().code(),
        ErrorCode::InvalidJson
    );
}

#[test]
fn nesting_and_length_have_an_end() {
    let nested = |levels: usize| {
        let (open, close) = ("{\"a\":".repeat(levels), "}".repeat(levels));
        Checker::whole(format!("{open}1{close}").as_bytes())
    };
    assert!(nested(JSON_NESTING_MAX_LEVELS).is_ok());
    let refused = nested(JSON_NESTING_MAX_LEVELS + 1).unwrap_err();
    assert_eq!(refused.message(), too_deep().message());
    let mut body = b"{}".to_vec();
    body.resize(JSON_BODY_MAX_BYTES, b' ');
    assert!(in_pieces(&body, 65_536).is_ok());
    body.push(b' ');
    for size in [65_536, JSON_BODY_MAX_BYTES, JSON_BODY_MAX_BYTES + 1] {
        let refused = in_pieces(&body, size).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::BodyTooLarge);
    }
}

/// Whether the parser of bodies that are whole takes one; none if it stops at a repeated key, of which
/// nothing can be known without keeping all.
fn is_taken(body: &[u8]) -> Option<bool> {
    match check(body).map(crate::json::members) {
        Ok(Ok(_)) => Some(true),
        Ok(Err(fault)) if fault.to_string().contains("is repeated") => None,
        _ => Some(false),
    }
}

/// Texts that are nearly JSON: pieces of it in a random order, most of them where they belong.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(
        r#"{ } [ ] : , "a" "é" " \ \u00e9 \ud83e\uddad \ud83e \udda 1 -0.5e+7 1e 01 - true false null nul {"k": {"k":1,"l":[
           "\"\\\/\b\f\n\r\t" [1, ]} {} []"#
            .split_whitespace()
            .map(str::as_bytes)
            .chain([&b" "[..], b"\n", b"\t", b"\xef\xbb\xbf", b"\xef", b"\xc3", b"\xf0\x9f", b"\xa6\xad", b"\x00"])
            .collect::<Vec<_>>(),
    );
    let noise = prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat());
    let leaf = prop::sample::select(vec![
        "1",
        "-1.5e3",
        "null",
        "true",
        "\"x\\u0041\"",
        "\"\u{e9}\u{1f9ad}\"",
        "\"\\ud83e\\uddad\"",
        "\"\\ud83e\"",
        "{}",
        "[ ]",
    ]);
    let value = leaf
        .prop_map(str::to_owned)
        .prop_recursive(6, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[{}]", items.join(" , "))),
                prop::collection::vec(("[a-f]{1,3}", inner), 0..4).prop_map(|members| {
                    let members: Vec<_> = members
                        .iter()
                        .map(|(key, value)| format!("{}: {value}", shown(key)))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        });
    let broken = (value, any::<prop::sample::Index>(), any::<u8>(), 0..3_u8).prop_map(
        |(text, at, byte, how)| {
            let mut bytes = text.into_bytes();
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => {}
            }
            bytes
        },
    );
    prop_oneof![noise, broken]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn a_body_is_judged_as_by_the_parser_that_reads_it_whole(body in nearly_json()) {
        let verdict = Checker::whole(&body);
        let taken = is_taken(&body);
        prop_assume!(taken.is_some());
        prop_assert_eq!(Some(verdict.is_ok()), taken, "{:?}: {:?}", String::from_utf8_lossy(&body), verdict);
    }

    #[test]
    fn the_pieces_of_a_body_make_no_difference(body in nearly_json(), size in 1..9_usize) {
        prop_assert_eq!(said(in_pieces(&body, size)), said(Checker::whole(&body)));
    }

    #[test]
    fn both_ways_of_reading_say_the_same(body in nearly_json()) {
        if let Err(problem) = Checker::whole(&body) {
            prop_assert_eq!(body_members::<Value>(&body).unwrap_err().to_string(), problem.to_string());
        }
    }
}
