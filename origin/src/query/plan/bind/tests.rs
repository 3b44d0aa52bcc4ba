//! Values bound to columns of each kind, without a database.

use super::*;
use crate::query::catalog::{CaseSensitivity, CharsetCoverage};
use shared::ident::FieldName;
use std::sync::Arc;

fn column(kind: Kind, type_text: &str, values: &[&str]) -> Column {
    Column {
        name: FieldName::parse("worth").unwrap(),
        kind,
        charset: Charset::Unicode,
        case_sensitivity: CaseSensitivity::Insensitive,
        type_text: type_text.into(),
        nullable: true,
        default: None,
        auto_increment: false,
        invisible: false,
        generated: false,
        on_update: false,
        primary: false,
        unique: Vec::new(),
        checks: Vec::new(),
        values: Arc::new(values.iter().collect()),
        references: None,
        comment: String::new(),
        full_text: Vec::new(),
        indexed: false,
        sorted_chars: None,
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

#[test]
fn a_refusal_names_the_field_and_what_it_takes() {
    for (column, given, message) in [
        (column(Kind::Uuid, "uuid", &[]), text("x"), r#"The field "worth" (uuid) takes a UUID, not "x"."#),
        (
            column(Kind::Date, "date", &[]),
            text("2026-02-30"),
            r#"The field "worth" (date) takes a date such as "2026-11-20", not "2026-02-30"."#,
        ),
        (
            column(Kind::Bytes, "blob", &[]),
            Value::Bool(true),
            r#"The field "worth" (blob) takes a base64 string, not a boolean."#,
        ),
    ] {
        for (purpose, code) in [(BindFor::Store, ErrorCode::InvalidValue), (BindFor::Filter, ErrorCode::InvalidFilter)]
        {
            let problem = value(&column, &given, purpose).unwrap_err();
            assert_eq!(problem.code(), code);
            assert_eq!(problem.message(), message);
        }
    }
}

#[test]
fn a_mistyped_member_gets_the_nearest_as_its_hint() {
    let state = column(Kind::Enum, "enum('draft','public')", &["draft", "public"]);
    let problem = value(&state, &text("pubic"), BindFor::Filter).unwrap_err();
    assert_eq!(problem.hint(), Some(r#"Did you mean "public"?"#));
}

#[test]
fn addresses_and_uuids_are_bound_as_mariadb_writes_them() {
    for (kind, given, bound) in [
        (Kind::Uuid, "123E4567E89B12D3A456426655440000", Some("123e4567-e89b-12d3-a456-426655440000")),
        (Kind::Inet6, "2001:DB8:0::FF", Some("2001:db8::ff")),
        (Kind::Inet6, "::FFFF:1.2.3.4", Some("::ffff:1.2.3.4")),
        (Kind::Inet6, "1.2.3.4", None),
        (Kind::Inet4, "10.0.0.1", Some("10.0.0.1")),
        (Kind::Inet4, "10.0.0.256", None),
    ] {
        let operand = value(&column(kind, "x", &[]), &text(given), BindFor::Filter).ok();
        let expected = bound.map(|bound| plain(Param::Text(bound.into())));
        assert_eq!(operand, expected, "{given}");
    }
}

#[test]
fn base64_comes_in_either_alphabet_with_padding_or_without() {
    let blob = column(Kind::Bytes, "blob", &[]);
    let bound = |given: &str| match value(&blob, &text(given), BindFor::Store) {
        Ok(Operand { param: Param::Bytes(bytes), .. }) => Some(bytes),
        _ => None,
    };
    for given in ["+/8=", "+/8", "-_8=", "-_8"] {
        assert_eq!(bound(given), Some(vec![0xFB, 0xFF]), "{given}");
    }
    assert_eq!(bound(""), Some(vec![]));
    // Mixed alphabets, unused bits that are set, too much or too little padding, whitespace.
    for given in ["+_8=", "+/9=", "+/8==", "A", "A===", "====", "=", "+/ 8", "+/8=\n"] {
        assert_eq!(bound(given), None, "{given:?}");
    }
}

#[test]
fn a_binary_is_compared_as_it_is_stored() {
    let fixed = column(Kind::Bytes, "binary(4)", &[]);
    let bound = |purpose| value(&fixed, &text("AQI="), purpose).unwrap().param;
    assert_eq!(bound(BindFor::Filter), Param::Bytes(vec![1, 2, 0, 0]));
    assert_eq!(bound(BindFor::Store), Param::Bytes(vec![1, 2]));
}

#[test]
fn text_beyond_a_character_set_is_refused_in_a_record_and_converts_the_column_in_a_condition() {
    let coverage = Arc::new(CharsetCoverage::compared("latin1", "aé日", "aé?"));
    let old = Column {
        charset: Charset::Limited(coverage),
        case_sensitivity: CaseSensitivity::Sensitive,
        ..column(Kind::Text, "varchar(9)", &[])
    };
    let form = |given: &str| value(&old, &text(given), BindFor::Filter).unwrap().form;
    assert_eq!(form("é"), SqlConversion::Plain);
    assert_eq!(form("é日"), SqlConversion::Unicode(CaseSensitivity::Sensitive));
    assert!(value(&old, &text("é"), BindFor::Store).is_ok());
    let problem = value(&old, &text("日"), BindFor::Store).unwrap_err();
    assert_eq!(problem.hint(), Some("Its character set latin1 lacks a character of it."));
}

#[test]
fn a_type_of_many_members_is_shown_by_its_first() {
    let members = vec!["member"; 5_000].join("','");
    let wide = column(Kind::Enum, &format!("enum('{members}')"), &["member"]);
    let problem = value(&wide, &text("x"), BindFor::Store).unwrap_err();
    assert!(problem.message().len() < 300, "{}", problem.message());
}
