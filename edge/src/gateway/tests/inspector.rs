//! What inspectors say of bodies, and after how many bytes.

use super::*;

const MEDIA: &str = "/api/v1/media";

fn upload(content_type: Option<&str>, body: BodyLength) -> Result<Inspector, Problem> {
    let mut call = call("POST", MEDIA, Some(key(Access::Full)));
    call.content_type = content_type.map(str::to_owned);
    call.body = body;
    match decide(&gateway(), &call, NOW)? {
        Decision::Forward(BodyPlan::Inspect(upload)) => Ok(upload),
        other => panic!("not an upload: {other:?}"),
    }
}

/// What the checker says of a body in pieces of that size, and after how many bytes.
fn verdict(content_type: Option<&str>, body: &[u8], piece: usize) -> (&'static str, usize) {
    let mut upload = upload(content_type, BodyLength::Unknown).unwrap();
    let mut seen = 0;
    for chunk in body.chunks(piece) {
        seen += chunk.len();
        if let Err(problem) = upload.check(chunk) {
            return (problem.code().as_str(), seen);
        }
    }
    let code = upload
        .finish()
        .map_or_else(|problem| problem.code().as_str(), |()| "ok");
    (code, seen)
}

const FORM: Option<&str> = Some("multipart/form-data; boundary=b");

#[test]
fn an_upload_is_judged_the_same_in_pieces_of_any_size() {
    let good =
        r#"{"media": [{"name": "a", "base64": "data:text/plain;base64,aGk="}], "type": "file"}"#;
    let part = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\nhi\r\n";
    let kind = "--b\r\nContent-Disposition: form-data; name=\"type\"\r\n\r\nfile\r\n";
    for (content_type, body, expected) in [
        (None, good.to_owned(), "ok"),
        (None, good.replace("aGk=", "a*k="), "invalid_media"),
        (None, good.replace("\"file\"", "\"nope\""), "invalid_body"),
        (None, good[..good.len() - 1].to_owned(), "invalid_json"),
        (None, format!("{good}x"), "invalid_json"),
        (None, String::new(), "invalid_json"),
        (None, "{}".to_owned(), "invalid_body"),
        (FORM, format!("{part}{kind}--b--\r\n"), "ok"),
        (FORM, part.to_owned(), "invalid_body"),
    ] {
        for piece in [1, 3, 64, 4_096] {
            let (code, _) = verdict(content_type, body.as_bytes(), piece);
            assert_eq!(code, expected, "{body:?} in pieces of {piece}");
        }
    }
}

#[test]
fn a_json_body_that_ends_early_enough_is_judged_whole_and_a_long_one_by_its_form() {
    let inspector = |body| {
        let mut query = call(
            "POST",
            "/api/v1/crud/demo/posts/query",
            Some(key(Access::Read)),
        );
        query.body = body;
        match decide(&gateway(), &query, NOW) {
            Ok(Decision::Forward(BodyPlan::Inspect(inspector))) => inspector,
            other => panic!("not inspected: {other:?}"),
        }
    };
    let large = BodyLength::Known(2_000_000);
    for (body, of_its_form, whole) in [
        (r#"{"limit": 1}"#, "ok", "ok"),
        (r#"{"limit": "x"}"#, "ok", "invalid_query_option"),
        (r#"{"limit": 1"#, "invalid_json", "invalid_json"),
        ("[]", "invalid_body", "invalid_body"),
        (" ", "ok", "invalid_json"),
    ] {
        let code = |outcome: Result<(), Problem>| {
            outcome.map_or_else(|problem| problem.code().as_str(), |()| "ok")
        };
        let run = |mut inspector: Inspector, held| {
            inspector.check(body.as_bytes())?;
            assert_eq!(inspector.is_refused_in_the_end(), body == "[]");
            match held {
                Some(held) => inspector.finish_held(held),
                None => inspector.finish(),
            }
        };
        assert_eq!(code(run(inspector(large), None)), of_its_form, "{body}");
        let held = Some(body.as_bytes());
        assert_eq!(
            code(run(inspector(BodyLength::Unknown), held)),
            whole,
            "{body}"
        );
    }
    let mut fault = inspector(BodyLength::Unknown);
    assert!(fault.check(b"{,").is_err());
}

#[test]
fn a_fault_is_found_where_it_stands_and_not_at_the_end() {
    let body = format!(
        r#"{{"media": [{{"name": "a", "base64": "*{}"#,
        "A".repeat(2_000)
    );
    let (code, seen) = verdict(None, body.as_bytes(), 10);
    assert_eq!(code, "invalid_media");
    assert!(seen <= 50, "only after {seen} bytes");
}

#[test]
fn an_upload_that_is_announced_too_large_is_refused_at_once_and_another_when_it_is() {
    assert!(upload(None, BodyLength::Known(4_096)).is_ok());
    let refused = upload(None, BodyLength::Known(4_097)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BodyTooLarge);
    let spaces = vec![b' '; 5_000];
    assert_eq!(verdict(None, &spaces, 1_000), ("body_too_large", 5_000));
}

#[test]
fn an_upload_takes_a_full_key_and_a_type_that_is_read() {
    let read = call("POST", MEDIA, Some(key(Access::Read)));
    assert_eq!(code(&read), "full_access_required");
    for content_type in ["text/plain", "application/x-www-form-urlencoded"] {
        let refused = upload(Some(content_type), BodyLength::Known(10)).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::UnsupportedMediaType);
    }
    let refused = upload(Some("multipart/form-data"), BodyLength::Known(10)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidBody);
}

#[test]
fn a_log_line_names_the_key_and_the_route_and_nothing_that_the_caller_chose() {
    let gateway = gateway();
    let line = |call: &Call, status, origin_ms| {
        let mut record = RequestRecord::begin(&call.method);
        if let Err(problem) = gateway.decide(call, NOW, &mut record) {
            record.refused(&problem);
        }
        let ending = Ending {
            status,
            total_ms: 12.7,
            origin_ms,
        };
        record.line(&call.request_id, &ending)
    };
    let path = "/api/v1/crud/shop/secrets/7?selectFields=secret";
    let read = line(&call("GET", path, Some(key(Access::Read))), 200, Some(9.2));
    assert_eq!(
        read,
        r#"{"message":"request","id":"r1","method":"GET","route":"/api/v1/crud/{db}/{table}/{id}","status":200,"key":"01936f2a-7b3c-7def-8abc-0123456789ab","project":"default","upstream_ms":9,"total_ms":12}"#
    );
    let refused = line(&call("DELETE", path, Some(key(Access::Read))), 400, None);
    assert!(
        refused.contains(r#""code":"invalid_query_option","#),
        "{refused}"
    );
    let stranger = line(&call("BREW", path, None), 405, None);
    assert_eq!(
        stranger,
        r#"{"message":"request","id":"r1","method":"OTHER","route":"none","status":405,"code":"method_not_allowed","total_ms":12}"#
    );
}
