//! Truncates a response after its last whole record, so that the response is valid JSON. Does no I/O.

use serde_json::json;

const PREFIX: &[u8] = b"{\"success\":true,\"payload\":[";

pub(super) fn continued(mut answer: String, offset: u64) -> String {
    const MORE: &str = ",\"more\":true}";
    if let (Some(list), true) = (answer.as_bytes().strip_prefix(PREFIX), answer.ends_with(MORE)) {
        let (_, records) = last_whole(list);
        answer.truncate(answer.len() - 1);
        answer += &format!(",\"nextOffset\":{}}}", offset.saturating_add(records as u64));
    }
    answer
}

/// Returns a response of the whole records in `beginning`, the first bytes of a list that is too long, with a note
/// `truncated` that counts them and contains `hint(<that count>)`. Returns `None` if the payload is not a list.
pub(super) fn cut(beginning: &[u8], hint: impl FnOnce(usize) -> &'static str) -> Option<String> {
    let payload = beginning.strip_prefix(PREFIX)?;
    let (end, records) = last_whole(payload);
    let kept = std::str::from_utf8(&payload[..end]).ok()?;
    let note = json!({"records": records, "message": message(records), "hint": hint(records)});
    Some(format!("{{\"success\":true,\"payload\":[{kept}],\"truncated\":{note}}}"))
}

fn message(records: usize) -> String {
    match records {
        0 => "The first item alone is larger than a tool may return.".to_owned(),
        _ => format!("Only the first {records} items are here: the whole answer is larger than a tool may return."),
    }
}

fn last_whole(list: &[u8]) -> (usize, usize) {
    let (mut end, mut items, mut depth) = (0, 0, 0_usize);
    let mut text = StringState::Outside;
    for (at, byte) in list.iter().enumerate() {
        text = match (text, byte) {
            (StringState::Inside, b'\\') => StringState::Escaped,
            (StringState::Inside, b'"') => StringState::Outside,
            (StringState::Inside | StringState::Escaped, _) => StringState::Inside,
            (StringState::Outside, b'"') => StringState::Inside,
            (StringState::Outside, b'{' | b'[') => {
                depth += 1;
                StringState::Outside
            }
            // The list ends here; only a member after it, such as `next`, was truncated.
            (StringState::Outside, b']') if depth == 0 => return (at, items + usize::from(at > 0)),
            (StringState::Outside, b'}' | b']') => {
                depth = depth.saturating_sub(1);
                StringState::Outside
            }
            (StringState::Outside, b',') if depth == 0 => {
                (end, items) = (at, items + 1);
                StringState::Outside
            }
            (StringState::Outside, _) => StringState::Outside,
        };
    }
    (end, items)
}

#[derive(Clone, Copy)]
enum StringState {
    Outside,
    Inside,
    Escaped,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_is_kept_ends_with_a_whole_record() {
        for (list, kept) in [
            (r#"{"a":1},{"a":2},{"a"#, json!([{"a": 1}, {"a": 2}])),
            (r#"{"a":1},{"a":2}"#, json!([{"a": 1}])),
            (r#"{"a":"x\",y],\\"},{"a":[1,{"b":","}]},{"#, json!([{"a": "x\",y],\\"}, {"a": [1, {"b": ","}]}])),
            (r#"[{"a":1},{"a":2}],[{"a":3},"#, json!([[{"a": 1}, {"a": 2}]])),
            ("1,22,33", json!([1, 22])),
            (r#""é","é","#, json!(["é", "é"])),
            (r#"{"a":1"#, json!([])),
            ("", json!([])),
            (r#"{"a":1}],"next":"e"#, json!([{"a": 1}])),
            (r#"],"next":"e"#, json!([])),
        ] {
            let whole = [PREFIX, list.as_bytes()].concat();
            let cut: Value = serde_json::from_str(&cut(&whole, |_| "h").unwrap()).unwrap();
            assert_eq!(cut["payload"], kept, "{list}");
            assert_eq!(cut["truncated"]["records"], kept.as_array().unwrap().len());
            assert_eq!((&cut["truncated"]["hint"], &cut["success"]), (&json!("h"), &json!(true)));
        }
    }

    #[test]
    fn a_list_with_more_names_its_next_offset() {
        for (answer, offset, expected) in [
            (r#"[{"a":1},{"a":"]"}],"more":true}"#, 5, r#"[{"a":1},{"a":"]"}],"more":true,"nextOffset":7}"#),
            (r#"[{"a":1}],"limited":true,"more":true}"#, 0, r#"[{"a":1}],"limited":true,"more":true,"nextOffset":1}"#),
            (r#"[{"a":1}],"next":"e"}"#, 0, r#"[{"a":1}],"next":"e"}"#),
        ] {
            let [answer, expected] = [answer, expected].map(|text| format!("{{\"success\":true,\"payload\":{text}"));
            assert_eq!(continued(answer, offset), expected);
        }
        assert_eq!(continued("{}".to_owned(), 1), "{}");
    }

    #[test]
    fn a_list_may_end_within_a_character_and_one_record_is_not_cut() {
        let broken = [PREFIX, b"\"a\",\"\xc3"].concat();
        assert!(cut(&broken, |_| "").unwrap().contains("[\"a\"]"));
        assert!(cut(br#"{"success":true,"payload":{"id":1,"#, |_| "").is_none());
    }
}
