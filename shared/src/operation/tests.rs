//! Tests of parsing requests to operations.

#[path = "../../../tests/refusals/table.rs"]
mod refusals;

use super::*;
use crate::error::ErrorCode::{self, InvalidBody, InvalidFilter, InvalidQueryOption};
use crate::limits::{
    BATCH_MAX_CELLS, BATCH_MAX_ROWS, CONDITION_COMMAS_MAX_COUNT, CONDITION_MAX_COUNT, FIELDS_MAX_COUNT,
    JOIN_MATCH_MAX_COUNT, JOIN_MAX_ITEMS, JSON_MEMBERS_MAX_COUNT, LIST_MAX_VALUES, ORDER_MAX_STEPS,
    PAGE_TOKEN_MAX_BYTES, QUERY_MAX_PAIRS, SQL_PARAMS_MAX_COUNT,
};
use filter::{Comparison, Condition, Test};
use read::{Direction, Order, Selection};

fn head<'a>(method: &'a str, path: &'a str, query: &'a str) -> RequestHead<'a> {
    RequestHead { method, path, query: Some(query), ..RequestHead::default() }
}

fn parse(method: &str, path: &str, query: &str, body: &str) -> Result<Operation, Problem> {
    parse_head(&head(method, path, query))?.finish(body.as_bytes())
}

fn read(query: &str) -> Read {
    match parse("GET", "/api/v1/crud/demo/posts", query, "") {
        Ok(Operation::Records(RecordOperation::Read(read))) => read,
        other => panic!("{query}: {other:?}"),
    }
}

fn code(method: &str, path: &str, query: &str, body: &str) -> ErrorCode {
    match parse(method, path, query, body) {
        Err(problem) => problem.code(),
        Ok(operation) => panic!("accepted: {operation:?}"),
    }
}

const POSTS: &str = "/api/v1/crud/demo/posts";
const QUERY: &str = "/api/v1/crud/demo/posts/query";

#[test]
fn what_needs_no_schema_is_refused_without_one() {
    let refusals = refusals::all();
    let faults: Vec<String> = refusals
        .iter()
        .filter(|refusal| !refusal.needs_schema)
        .filter_map(|refusal| {
            let (path, query) = refusal.target.split_once('?').map_or((&*refusal.target, None), |(p, q)| (p, Some(q)));
            let headers = refusal.headers.iter().map(|(name, value)| (*name, value.as_bytes()));
            let head = RequestHead::read(refusal.method, path, query, headers);
            match parse_head(&head).and_then(|pending| pending.finish(&refusal.body)) {
                Ok(operation) => refusal.fault("accepted", &format!("{operation:.300?}"), None),
                Err(problem) => {
                    let told = format!("{} {}", problem.message(), problem.hint().unwrap_or_default());
                    let operation = problem.details().and_then(|details| details.operation);
                    refusal.fault(problem.code().as_str(), &told, operation.map(|at| at as u64))
                }
            }
        })
        .collect();
    assert!(faults.is_empty(), "{} of {} differ:\n{}", faults.len(), refusals.len(), faults.join(""));
}

#[test]
fn every_spelling_of_a_read_means_the_same() {
    let json = read(
        r#"limit=10&order={"field":"id","strategy":"DESC"}&query={"views":{"value":"5","equality":">"}}&selectFields=["id","title"]"#,
    );
    let encoded = read(
        "limit=10&order=%7B%22field%22%3A%22id%22%2C%22strategy%22%3A%22desc%22%7D&query=%7B%22views%22:%7B%22value%22:%225%22,%22equality%22:%22GREATER+THAN%22%7D%7D&selectFields=id,title",
    );
    let brackets = read(
        "limit=10&order[field]=id&order[strategy]=DESC&query[views][value]=5&query[views][equality]=%3E&selectFields[]=id&selectFields[]=title",
    );
    let indexed = read(
        "limit=10&order[0][field]=id&order[0][strategy]=DESC&query[views][value]=5&query[views][equality]=%3E&selectFields[1]=title&selectFields[0]=id",
    );
    let Ok(Operation::Records(RecordOperation::Read(body))) = parse(
        "POST",
        "/api/v1/crud/demo/posts/query",
        "",
        r#"{"limit":10,"order":[{"field":"id","strategy":"DESC"}],"query":{"views":{"value":"5","equality":">"}},"selectFields":["id","title"]}"#,
    ) else {
        panic!("the POST form is refused");
    };
    let pairs = read(
        "limit=10&order=-id&query[views][value]=5&query[views][equality]=%3E&selectFields=id&selectFields=title&count=False",
    );
    let slashed = parse(
        "GET",
        "/api/v1/crud/demo/posts/",
        "limit=10&order=-id&selectFields=id,title&query[views][value]=5&query[views][equality]=%3E",
        "",
    );
    let Ok(Operation::Records(RecordOperation::Read(slashed))) = slashed else {
        panic!("a slash at the end is refused");
    };
    for other in [encoded, brackets, indexed, body, pairs, slashed] {
        assert_eq!(json, other);
    }
}

#[test]
fn a_list_may_be_written_as_one_option_a_part() {
    for (one, other) in [
        ("selectFields=a&selectFields=b,c&selectFields=d", "selectFields=a,b,c,d"),
        (
            r#"selectFields=["a"]&selectFields={"fieldName":"b","alias":"c"}"#,
            r#"selectFields=["a",{"fieldName":"b","alias":"c"}]"#,
        ),
        ("omitFields=a&limit=1&omitFields=%20b", "omitFields=a,b&limit=1"),
        ("group=a&group=b&selectFields=a", "group=a,b&selectFields=a"),
        ("order=-a&order=b", r#"order=[{"field":"a","strategy":"DESC"},{"field":"b"}]"#),
        ("order=-a,b", r#"order=["-a",{"field":"b"}]"#),
        ("order=posts.a", r#"order={"field":"posts.a"}"#),
        ("order=[]&order=a", "order=a"),
        ("query=[]&distinct=True", "distinct=true"),
        ("query=[%20]&count=False", "query={}"),
        ("query[a][value]=1&query[a][not]=True", "query[a][value]=1&query[a][not]=1"),
    ] {
        assert_eq!(read(one), read(other), "{one}");
    }
    let field = Order { field: field::FieldRef::parse("-a").unwrap(), direction: Direction::Ascending };
    assert_eq!(read(r#"order={"field":"-a"}"#).order, [field]);
}

#[test]
fn paging_counts_from_one_and_excludes_offset() {
    assert_eq!((read("limit=10&page=3").window.limit, read("limit=10&page=3").window.offset), (Some(10), 20));
    assert_eq!((read("limit=0").window.limit, read("offset=5").window.offset), (Some(0), 5));
    assert_eq!(read("limit=9223372036854775807").window.limit, Some(i64::MAX as u64));
}

#[test]
fn conditions_nest_and_lists_read_as_in() {
    let read = read(
        r#"query={"a":1,"b":[1,2],"c":null,"g":{"__query":{"d":{"value":[1,9],"equality":"not between"},"e":{"value":null,"equality":"!="}},"operator":"or"}}"#,
    );
    let field = |name: &str| field::FieldRef::parse(name).unwrap();
    let number = |text: &str| crate::json::Value::Number(text.into());
    assert_eq!(
        read.filter,
        Some(Condition::All(vec![
            Condition::Test(field("a"), Test::Compare(Comparison::Equal, number("1"))),
            Condition::Test(field("b"), Test::In(vec![number("1"), number("2")])),
            Condition::Test(field("c"), Test::IsNull),
            Condition::Any(vec![
                Condition::Not(Box::new(Condition::Test(field("d"), Test::Between(number("1"), number("9"))))),
                Condition::Not(Box::new(Condition::Test(field("e"), Test::IsNull))),
            ]),
        ]))
    );
}

#[test]
fn names_are_decoded_from_the_path() {
    let Ok(Operation::Records(RecordOperation::ReadOne(one))) =
        parse("GET", "/api/v1/crud/my%20db/a%2Fb%60c/1%2C2,3", "", "")
    else {
        panic!()
    };
    assert_eq!((one.table.database.as_str(), one.table.table.as_str()), ("my db", "a/b`c"));
    assert_eq!((one.id.whole(), one.id.parts(2)), ("1,2,3", Some(vec!["1,2", "3"])));
    assert_eq!(one.select, Selection::All);
    let long = RecordId::decode(&"1,".repeat(5_000)).unwrap();
    assert!((1..=KEY_PARTS_MAX_COUNT).all(|wanted| long.parts(wanted).is_none()));
    assert_eq!((long.parts.len(), long.whole().len()), (KEY_PARTS_MAX_COUNT + 1, 10_000));
    assert!(RecordId::decode(&format!("{}%", "1,".repeat(5_000))).is_err());
}

#[test]
fn batches_are_brought_under_one_list_of_fields() {
    let Ok(Operation::Records(RecordOperation::Insert(insert))) =
        parse("POST", POSTS, "", r#"{"batchData":[{"a":1},{"b":"x","a":null}]}"#)
    else {
        panic!()
    };
    let names: Vec<_> = insert.fields.iter().map(crate::ident::FieldName::as_str).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(insert.rows.as_slice()[0], vec![Some(crate::json::Value::Number("1".into())), None]);
    assert_eq!(
        insert.rows.as_slice()[1],
        vec![Some(crate::json::Value::Null), Some(crate::json::Value::Text("x".into()))]
    );
}

#[test]
fn the_conditions_of_a_delete_mean_the_same_in_body_and_url() {
    let in_body = parse("DELETE", POSTS, "", r#"{"deleteKeyValues":[{"key":"a","value":1,"operator":">"}]}"#).unwrap();
    let in_url = parse("DELETE", POSTS, r#"deleteKeyValues=[{"key":"a","value":1,"operator":">"}]"#, "").unwrap();
    assert_eq!(in_body, in_url);
}

#[test]
fn json_in_no_encoding_is_read_and_a_read_has_no_body() {
    let mut request = head("POST", POSTS, "");
    request.content_type = Some("application/json; charset=utf-8");
    request.content_encoding = Some("identity");
    assert!(parse_head(&request).unwrap().check_body_type().is_ok());
    let mut without_body = head("GET", POSTS, "");
    without_body.content_encoding = Some("gzip");
    assert!(parse_head(&without_body).unwrap().check_body_type().is_ok());
}

#[test]
fn each_limit_admits_its_number_and_refuses_one_more() {
    const VALUES: usize = LIST_MAX_VALUES - 500;
    let lists: Vec<_> = (0..10).map(|at| format!("\"g{at}\":[{}]", vec!["1"; VALUES].join(","))).collect();
    let many_lists = format!("{{\"query\":{{{},\"h\":[*1*]}}}}", lists.join(","));
    let many_rows = format!("{{\"batchData\":[{{*\"f%\":1*}}{}]}}", ",{}".repeat(BATCH_MAX_ROWS - 1));
    // The text between the two * is repeated, with its index in place of %.
    for (method, path, limit, code, body) in [
        ("POST", QUERY, FIELDS_MAX_COUNT, InvalidQueryOption, r#"{"selectFields":[*"f%"*]}"#),
        ("POST", QUERY, FIELDS_MAX_COUNT, InvalidQueryOption, r#"{"selectFields":"*f%*"}"#),
        ("POST", QUERY, ORDER_MAX_STEPS, InvalidQueryOption, r#"{"order":[*{"field":"id"}*]}"#),
        (
            "POST",
            QUERY,
            JOIN_MAX_ITEMS,
            InvalidQueryOption,
            r#"{"join":[*{"tableName":"a","match":{"source":"x","target":"y"}}*]}"#,
        ),
        (
            "POST",
            QUERY,
            JOIN_MATCH_MAX_COUNT,
            InvalidQueryOption,
            r#"{"join":{"tableName":"a","match":[*{"source":"x","target":"y"}*]}}"#,
        ),
        ("POST", QUERY, CONDITION_MAX_COUNT, InvalidFilter, r#"{"query":{*"f%":1*}}"#),
        ("DELETE", POSTS, CONDITION_MAX_COUNT, InvalidFilter, r#"{"deleteKeyValues":[*{"key":"a","value":1}*]}"#),
        ("POST", QUERY, LIST_MAX_VALUES, InvalidFilter, r#"{"query":{"a":[*1*]}}"#),
        // Each list has one value more than it has commas.
        ("POST", QUERY, CONDITION_COMMAS_MAX_COUNT + 1 - 10 * VALUES, InvalidFilter, &many_lists),
        ("POST", POSTS, BATCH_MAX_ROWS, InvalidBody, r#"{"batchData":[*{"a":1}*]}"#),
        ("POST", POSTS, JSON_MEMBERS_MAX_COUNT, InvalidBody, r#"{"batchData":[{*"f%":1*}]}"#),
        ("POST", POSTS, BATCH_MAX_CELLS / BATCH_MAX_ROWS, InvalidBody, &many_rows),
        ("POST", "/api/v1/sql", SQL_PARAMS_MAX_COUNT, InvalidBody, r#"{"query":"SELECT 1","params":[*1*]}"#),
    ] {
        let [before, item, behind] = body.split('*').collect::<Vec<_>>()[..] else { panic!("{body}") };
        for (count, expected) in [(limit, None), (limit + 1, Some(code))] {
            let items: Vec<_> = (0..count).map(|at| item.replace('%', &at.to_string())).collect();
            let parsed = parse(method, path, "", &[before, &items.join(","), behind].concat());
            assert_eq!(parsed.err().map(|problem| problem.code()), expected, "{count} {:.80}", body);
        }
    }
    for (more, expected) in [(0, None), (1, Some(InvalidQueryOption))] {
        let pairs = vec!["query[a][]"; QUERY_MAX_PAIRS + more].join("&");
        assert_eq!(parse("GET", POSTS, &pairs, "").err().map(|problem| problem.code()), expected);
        let after = format!("{{\"limit\":1,\"after\":\"{}\"}}", "x".repeat(PAGE_TOKEN_MAX_BYTES + more));
        assert_eq!(parse("POST", QUERY, "", &after).err().map(|problem| problem.code()), expected);
    }
}

#[test]
fn of_many_unknown_options_as_many_are_named_as_an_answer_lists() {
    let names = |pair: fn(usize) -> String| (0..QUERY_MAX_PAIRS).map(pair).collect::<Vec<_>>();
    let query = names(|at| format!("selectFieldsx{at}=1")).join("&");
    let body = format!("{{{}}}", names(|at| format!("\"selectFieldsx{at}\":1")).join(","));
    for refused in [parse("GET", POSTS, &query, ""), parse("POST", QUERY, "", &body)] {
        let json: serde_json::Value = serde_json::from_slice(&refused.unwrap_err().to_json("r1")).unwrap();
        assert_eq!(json["errors"].as_array().unwrap().len(), 20);
        assert_eq!(json["errors"][19]["message"], "There is no option \"selectFieldsx19\" here.");
    }
    // Reading stops at a number of names that no request has.
    let known = read::READ_OPTIONS.len() + ["where", "select"].len();
    for pair in [|at| format!("x{at}=1"), |at| format!("x{at}[a]=1")] {
        let read = options::pairs(Some(&names(pair).join("&")), &[]).unwrap().len();
        assert!((known + 20..QUERY_MAX_PAIRS / 10).contains(&read), "{read}");
    }
}

#[test]
fn a_flag_is_a_boolean_in_json_or_in_words() {
    let distinct = |flag: &str| match parse("POST", QUERY, "", &format!("{{\"distinct\":{flag}}}")) {
        Ok(Operation::Records(RecordOperation::Read(read))) => Some(read.rows == read::Rows::Distinct),
        _ => None,
    };
    let not = |flag: &str| {
        let body = format!("{{\"query\":{{\"a\":{{\"value\":1,\"not\":{flag}}}}}}}");
        match parse("POST", QUERY, "", &body) {
            Ok(Operation::Records(RecordOperation::Read(read))) => Some(matches!(read.filter, Some(Condition::Not(_)))),
            _ => None,
        }
    };
    for (flag, as_option, as_not) in [
        ("true", Some(true), Some(true)),
        ("false", Some(false), Some(false)),
        ("\"true\"", Some(true), Some(true)),
        ("\"false\"", Some(false), Some(false)),
        ("\"1\"", Some(true), Some(true)),
        ("\"0\"", Some(false), Some(false)),
        ("1", Some(true), None),
        ("0", Some(false), None),
        ("2", None, None),
        ("\"yes\"", None, None),
        ("null", None, None),
    ] {
        assert_eq!((distinct(flag), not(flag)), (as_option, as_not), "{flag}");
    }
}

#[test]
fn a_row_that_exists_is_updated_or_ignored_or_refuses_the_insert() {
    use write::OnConflict;
    for (query, expected) in
        [("", OnConflict::Refuse), ("onConflict=update", OnConflict::Update), ("onConflict=ignore", OnConflict::Ignore)]
    {
        match parse("POST", POSTS, query, "{}") {
            Ok(Operation::Records(RecordOperation::Insert(insert))) => assert_eq!(insert.on_conflict, expected),
            other => panic!("{query}: {other:?}"),
        }
    }
}

#[test]
fn a_long_name_of_an_operator_is_refused() {
    let operator = "A".repeat(1 << 20);
    let body = format!("{{\"query\":{{\"a\":{{\"value\":1,\"equality\":\"{operator}\"}}}}}}");
    assert_eq!(code("POST", QUERY, "", &body), ErrorCode::InvalidFilter);
}

#[test]
fn the_form_of_an_answer_is_that_of_every_read() {
    use crate::format::Format;
    for (method, path, body) in [
        ("GET", POSTS, ""),
        ("HEAD", POSTS, ""),
        ("GET", "/api/v1/crud/demo/posts/1", ""),
        ("POST", "/api/v1/crud/demo/posts/query", "{}"),
        ("POST", "/api/v1/sql", r#"{"query":"SELECT 1"}"#),
    ] {
        for (accept, expected) in [
            (None, Format::Envelope),
            (Some("application/json"), Format::Envelope),
            (Some("text/csv"), Format::Csv),
            (Some("application/x-ndjson"), Format::NdJson),
        ] {
            let head = RequestHead { accept, ..head(method, path, "") };
            let format = match parse_head(&head).unwrap().finish(body.as_bytes()) {
                Ok(Operation::Records(RecordOperation::Read(read))) => read.format,
                Ok(Operation::Records(RecordOperation::ReadOne(read))) => read.format,
                Ok(Operation::Sql(call)) => call.format,
                other => panic!("{method} {path}: {other:?}"),
            };
            assert_eq!(format, expected, "{method} {path}");
        }
    }
}

#[test]
fn a_write_under_a_condition_that_nobody_checks_is_refused_and_a_read_is_not() {
    let refused = |head: &RequestHead<'_>| {
        let problem = parse_head(head).err()?;
        assert_eq!(problem.code(), ErrorCode::InvalidQueryOption);
        Some(problem.message().to_owned())
    };
    for (method, path, writes) in [
        ("GET", POSTS, false),
        ("GET", "/api/v1/crud/demo/posts/1", false),
        ("OPTIONS", POSTS, false),
        ("POST", "/api/v1/crud/demo/posts/query", false),
        ("POST", POSTS, true),
        ("PUT", "/api/v1/crud/demo/posts/1", true),
        ("PATCH", "/api/v1/crud/demo/posts/1", true),
        ("DELETE", "/api/v1/crud/demo/posts/1", true),
        ("PUT", POSTS, true),
        ("DELETE", POSTS, true),
        ("POST", "/api/v1/sql", true),
    ] {
        let has_tag = path != POSTS && ["PUT", "PATCH", "DELETE"].contains(&method);
        let if_match = refused(&RequestHead { if_match: Some("\"x\""), ..head(method, path, "") });
        let if_none_match = refused(&RequestHead { if_none_match: Some("*"), ..head(method, path, "") });
        let named = |text: &Option<String>, name| text.as_ref().is_some_and(|t| t.contains(name));
        assert_eq!(named(&if_match, "If-Match"), writes && !has_tag, "{method} {path}");
        assert_eq!(named(&if_none_match, "If-None-Match"), writes, "{method} {path}");
    }
}
