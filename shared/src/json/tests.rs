//! Tests of JSON parsing: strings, limits and messages.

use super::*;
use proptest::prelude::*;

#[test]
fn numbers_and_objects_keep_their_text() {
    let members = members(r#"{"a": 1.50, "b": {"x": 1e2}, "c": "\u00e9", "d": [1], "e": null}"#).unwrap();
    assert_eq!(members[0].1, Value::Number("1.50".into()));
    assert_eq!(members[1].1, Value::Object(r#"{"x": 1e2}"#.into()));
    assert_eq!(members[2].1, Value::Text("é".into()));
    assert_eq!(members[3].1, Value::List("[1]".into()));
    assert_eq!(members[4].1, Value::Null);
}

#[test]
fn a_value_of_every_kind_gives_its_kind_and_its_text() {
    for (text, kind, json) in [
        ("null", "null", "null"),
        ("true", "a boolean", "true"),
        ("false", "a boolean", "false"),
        ("-1.50e3", "a number", "-1.50e3"),
        (r#""\u00e9\"\n""#, "a string", r#""é\"\n""#),
        (" [1, 2] ", "a list", "[1, 2]"),
        (r#"{"a": 1.0}"#, "an object", r#"{"a": 1.0}"#),
    ] {
        let value = value(text).unwrap();
        assert_eq!((value.kind(), &*value.to_json()), (kind, json), "{text}");
    }
    assert!(value("1 2").is_err());
}

#[test]
fn a_byte_order_mark_is_skipped_and_a_broken_byte_is_named() {
    assert_eq!(check(b"\xEF\xBB\xBF{}").unwrap(), "{}");
    let broken = check(b"{\"a\":\"\xff\"}").unwrap_err();
    assert_eq!(broken.message(), "The body is not UTF-8: byte 6 is broken.");
}

#[test]
fn a_message_says_what_was_expected() {
    let told = |fault: serde_json::Error| fault.to_string();
    assert!(told(members("[]").err().unwrap()).contains("expected an object"));
    assert!(told(items("{}", 3).unwrap_err()).contains("expected a list"));
    let repeated = told(members(r#"{"a":1,"a":2}"#).err().unwrap());
    assert!(repeated.contains("\"a\" is repeated"), "{repeated}");
}

#[test]
fn a_repeated_key_is_refused_also_when_escaped() {
    assert_eq!(body_members::<Value>(br#"{"a":1,"\u0061":2}"#).unwrap_err().code(), ErrorCode::InvalidBody);
}

#[test]
fn a_line_break_within_a_text_gets_a_hint() {
    let broken = body_members::<Value>(b"{\"a\":\"x\ny\"}").unwrap_err();
    assert!(broken.hint().unwrap().contains(r"\n"), "{broken}");
    assert_eq!(body_members::<Value>(b"{\"a\":1").unwrap_err().hint(), None);
}

#[test]
fn a_repeated_key_is_found_among_many() {
    let keys: Vec<String> = (0..40).map(|at| format!("\"k{at}\":1")).collect();
    for count in [1, FEW_KEYS - 1, FEW_KEYS, FEW_KEYS + 1, 40] {
        let keys = keys[..count].join(",");
        assert_eq!(members(&format!("{{{keys}}}")).unwrap().len(), count);
        for repeated in [0, count - 1] {
            let object = format!("{{{keys},\"k{repeated}\":1}}");
            assert!(members(&object).is_err(), "{object}");
        }
    }
}

#[test]
fn a_fault_is_named_with_its_place() {
    for (body, expected) in [
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("{\"a\":1", "EOF while parsing an object at line 1 column 6"),
        ("{]", "key must be a string at line 1 column 2"),
        ("{\"a\" 1}", "expected `:` at line 1 column 6"),
        ("{\"a\":1,}", "key must be a string at line 1 column 8"),
        ("{\"a\":01}", "invalid number at line 1 column 7"),
        ("{\"a\":1.}", "invalid number at line 1 column 8"),
        ("{\"a\":[1 2]}", "expected `,` or `]` at line 1 column 9"),
        ("{\"a\":tru}", "expected ident at line 1 column 9"),
        ("{\"a\":'x'}", "expected value at line 1 column 6"),
        ("{\"a\":\"\\x\"}", "invalid escape at line 1 column 8"),
        ("{\"a\":\"\\ud800\"}", "a text holds half of a surrogate pair"),
        ("{\"a\":\"\\udc00\"}", "a text holds half of a surrogate pair"),
        ("{\"\\ud800\\u0041\":1}", "a text holds half of a surrogate pair"),
        ("{} {}", "trailing characters at line 1 column 4"),
        ("{\n  \"a\": 1,\n  b\n}", "key must be a string at line 3 column 3"),
    ] {
        let problem = body_members::<Value>(body.as_bytes()).unwrap_err();
        assert_eq!(problem.code(), ErrorCode::InvalidJson, "{body}");
        let message = format!("The body is not valid JSON: {expected}.");
        assert_eq!(problem.message(), message, "{body}");
    }
    for (body, message) in [
        (&b"{\"a\":\"\xe6\x97\xa5\xc3\"}"[..], "The body is not UTF-8: byte 9 is broken."),
        (b"\xef\xbb{}", "The body is not UTF-8: byte 0 is broken."),
        (b" \n", "The body is empty."),
    ] {
        assert_eq!(body_members::<Value>(body).unwrap_err().message(), message);
    }
}

#[test]
fn a_lone_half_of_a_surrogate_pair_passes_in_nested_json() {
    assert!(body_members::<Value>(b"{\"a\":[\"\\ud800\"]}").is_ok());
}

#[test]
fn what_is_no_json_and_what_is_no_object_are_told_apart() {
    for text in ["", "{", "{'a':1}", "{\"a\":NaN}", "{\"a\":\"\\ud800\"}", "{} {}"] {
        assert_eq!(body_members::<Value>(text.as_bytes()).unwrap_err().code(), ErrorCode::InvalidJson, "{text}");
    }
    for text in ["[]", "1", "null", "\"x\""] {
        assert_eq!(body_members::<Value>(text.as_bytes()).unwrap_err().code(), ErrorCode::InvalidBody, "{text}");
    }
    assert_eq!(body_members::<Value>(b"{\"a\":\"\xff\"}").unwrap_err().code(), ErrorCode::InvalidJson);
}

#[test]
fn a_body_of_the_wrong_kind_is_named_by_its_kind_and_not_repeated() {
    for (text, kind) in [
        (format!("{:?}", "x".repeat(5_000)), "a string"),
        ("-1.5e3".to_owned(), "a number"),
        (" [1]".to_owned(), "a list"),
        ("false".to_owned(), "a boolean"),
        ("null".to_owned(), "null"),
    ] {
        assert_eq!(
            body_members::<Value>(text.as_bytes()).unwrap_err().message(),
            format!("The body must be one JSON object, not {kind}.")
        );
    }
}

#[test]
fn a_long_list_is_read_only_as_far_as_its_refusal_needs() {
    assert_eq!(items("[1, 2, 3]", 3).unwrap().len(), 3);
    assert_eq!(items("[1, 2, 3, 4, 5, 6]", 3).unwrap().len(), 4);
    assert!(items("[1, 2, 3, 4, x]", 3).is_err());
    assert!(items("[1] 2", 3).is_err());
}

#[test]
fn an_object_of_more_keys_than_a_table_has_columns_is_refused() {
    let object = |count: usize| {
        let members: Vec<_> = (0..count).map(|at| format!("\"k{at}\":1")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(members(&object(JSON_MEMBERS_MAX_COUNT)).is_ok());
    let refused = body_members::<Value>(object(JSON_MEMBERS_MAX_COUNT + 1).as_bytes()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidBody);
}

#[test]
fn commas_are_counted_outside_of_strings() {
    assert_eq!(commas(r#"{"a,\",":[1,2],"b":3}"#), 2);
    assert_eq!(commas(r#"["\\", ",", 1]"#), 2);
    assert_eq!(commas("[]"), 0);
}

#[test]
fn nesting_counts_brackets_outside_of_strings() {
    let deep = "[".repeat(JSON_NESTING_MAX_LEVELS);
    assert!(check(deep.as_bytes()).is_ok());
    for too_deep in ["[", "{"] {
        assert!(check(format!("{deep}{too_deep}").as_bytes()).is_err());
    }
    assert!(check(format!("\"\\\"{deep}[\"").as_bytes()).is_ok());
    assert!(check(format!("\"\\\\\"{deep}[").as_bytes()).is_err());
    // Brackets beside each other count as one level; a closing bracket without an opening one is ignored.
    assert!(check("[]{}".repeat(100).as_bytes()).is_ok());
    assert!(check(format!("]{deep}").as_bytes()).is_ok());
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = body_members::<Value>(&bytes);
    }
}
