//! Tests of error codes and of error responses.

use super::*;

#[test]
fn codes_are_unique_and_snake_case() {
    let mut seen = std::collections::HashSet::new();
    for code in ErrorCode::ALL {
        assert!(seen.insert(code.as_str()), "{} twice", code.as_str());
        assert!(code.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        assert!((400..600).contains(&code.status()));
    }
}

#[test]
fn a_problem_serialises_to_the_documented_envelope() {
    let json =
        Problem::new(ErrorCode::UnknownField, "No field \"titel\".").with_hint("Did you mean \"title\"?").to_json("r1");
    assert_eq!(
        String::from_utf8_lossy(&json),
        r#"{"success":false,"payload":null,"error":{"code":"unknown_field","message":"No field \"titel\".","hint":"Did you mean \"title\"?","retryable":false,"requestId":"r1"}}"#
    );
}

#[test]
fn a_problem_of_a_batch_names_its_operation() {
    let json =
        Problem::new(ErrorCode::DuplicateKey, "It exists.").with_details(1062, "23000").in_operation(2).to_json("r1");
    assert_eq!(
        String::from_utf8_lossy(&json),
        r#"{"success":false,"payload":null,"error":{"code":"duplicate_key","message":"Operation 2: It exists.","details":{"errno":1062,"sqlState":"23000","operation":2},"retryable":false,"requestId":"r1"}}"#
    );
}

#[test]
fn several_faults_of_a_body_are_listed() {
    let (mut faults, mut made) = (Faults::default(), 0);
    for row in 0..30 {
        faults.add(|| {
            made += 1;
            Problem::new(ErrorCode::InvalidValue, "No.").with_field("n").with_row(row)
        });
    }
    assert_eq!(faults.check(|| -> Result<(), _> { panic!("no further fault would be kept") }), None);
    assert_eq!(made, 20);
    let problem = faults.end().unwrap_err().in_operation(2);
    let json: serde_json::Value = serde_json::from_slice(&problem.to_json("r1")).unwrap();
    let details = |row: usize| serde_json::json!({"field": "n", "row": row, "operation": 2});
    assert_eq!(json["error"]["details"], details(0));
    assert_eq!(json["errors"].as_array().unwrap().len(), 20);
    let last = serde_json::json!({"code": "invalid_value", "message": "Operation 2: No.", "details": details(19)});
    assert_eq!(json["errors"][19], last);
    assert!(Faults::default().end().is_ok());
}

#[test]
fn a_cause_is_not_shown_to_callers() {
    let problem = Problem::internal("It failed.", "/var/lib is gone");
    assert_eq!(problem.cause(), Some("/var/lib is gone"));
    assert!(!String::from_utf8_lossy(&problem.to_json("r1")).contains("/var"));
    assert!(!problem.to_string().contains("/var"));
}

#[test]
fn the_nearest_name_forgives_a_typo_but_not_another_word() {
    assert_eq!(nearest("titel", ["id", "title", "body"]), Some("title"));
    assert_eq!(nearest("zzzzzz", ["id", "title", "body"]), None);
    let longest = "x".repeat(IDENTIFIER_MAX_CHARS);
    let longer = longest.clone() + "x";
    for (wanted, name, is_near) in [
        ("tiXXe", "title", true),
        ("tXXXe", "title", false),
        ("ix", "id", true),
        ("xx", "id", false),
        ("*", "d", false),
        ("x", "", false),
        ("", "", false),
        ("ID", "id", true),
        (&longest, &longest, true),
        (&longer, &longest, false),
    ] {
        assert_eq!(nearest(wanted, [name]).is_some(), is_near, "{wanted} {name}");
    }
}

#[test]
fn a_problem_has_the_headers_of_its_code() {
    let problem = |code| Problem::new(code, "It failed.");
    for (problem, expected) in [
        (problem(ErrorCode::InvalidBody).with_retry_after(7), &[][..]),
        (problem(ErrorCode::MethodNotAllowed).with_allow("GET"), &[("allow", "GET")]),
        (problem(ErrorCode::InvalidKey), &[("www-authenticate", "Bearer")]),
        (problem(ErrorCode::MediaNotFound), &[("cache-control", "no-store")]),
        (problem(ErrorCode::Overloaded), &[("retry-after", "1")]),
        (problem(ErrorCode::Overloaded).with_retry_after(7), &[("retry-after", "7")]),
        (problem(ErrorCode::DatabaseUnavailable), &[("retry-after", "2"), (UNAVAILABLE_HEADER, "database")]),
    ] {
        let headers: Vec<_> = problem.headers().collect();
        let code = [(CODE_HEADER, problem.code().as_str())];
        let expected = expected.iter().chain(&code).map(|(name, value)| (*name, Cow::Borrowed(*value)));
        let expected: Vec<_> = expected.collect();
        assert_eq!(headers, expected, "{problem}");
        let is_retryable = headers.iter().any(|(name, _)| *name == "retry-after");
        assert_eq!(problem.code().retryable(), is_retryable, "{problem}");
    }
}

#[test]
fn a_rejection_of_the_database_in_a_batch_keeps_its_message() {
    let rejected = Problem::new(ErrorCode::RejectedByDatabase, "No.").in_operation(2);
    assert_eq!(rejected.to_string(), "rejected_by_database: No.");
}

#[test]
fn a_word_of_megabytes_is_near_to_nothing() {
    assert_eq!(nearest(&"title".repeat(1 << 20), ["title"]), None);
}
