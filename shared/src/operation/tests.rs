//! Tests of parsing requests to operations.

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
fn a_comparison_given_as_operator_is_told_its_place() {
    for (operator, part) in
        [(">", r#""equality": ">""#), ("like", r#""equality": "like""#), ("XOR", "given as equality")]
    {
        let query = format!(r#"query={{"views":{{"value":5,"operator":"{operator}"}}}}"#);
        let problem = parse("GET", POSTS, &query, "").unwrap_err();
        assert_eq!(problem.code(), ErrorCode::InvalidFilter);
        assert!(problem.hint().is_some_and(|hint| hint.contains(part)), "{problem:?}");
    }
}

#[test]
fn paging_counts_from_one_and_excludes_offset() {
    assert_eq!((read("limit=10&page=3").window.limit, read("limit=10&page=3").window.offset), (Some(10), 20));
    assert_eq!((read("limit=0").window.limit, read("offset=5").window.offset), (Some(0), 5));
    assert_eq!(read("limit=9223372036854775807").window.limit, Some(i64::MAX as u64));
    for query in [
        "page=1",
        "limit=5&page=0",
        "limit=5&page=1&offset=0",
        "limit=-1",
        "limit=1.5",
        "limit=",
        "limit=x",
        "limit=%2B1",
        "limit=9223372036854775808",
        "limit=99999999999999999999",
    ] {
        assert_eq!(code("GET", POSTS, query, ""), ErrorCode::InvalidQueryOption, "{query}");
    }
}

#[test]
fn unknown_and_repeated_options_are_refused_by_name() {
    for query in [
        "limits=1",
        "limit=1&limit=2",
        "join=nowhere",
        "count=many",
        "query[a]=1&query[a]=2",
        "selectFields=a&omitFields=b",
        "order=",
        "order=id,,title",
        "limit=1&limit=1",
        "query={}&query={}",
        "selectFields=a&selectFields=a",
        "selectFields=a&selectFields[]=b",
        "order={\"field\":\"id\",\"strategy\":\"UP\"}",
        "selectFields=",
        "selectFields=a,b,c,a",
        "omitFields=a,b,c,a",
        "limit=%zz",
        "limit=%ff",
    ] {
        assert_eq!(code("GET", POSTS, query, ""), ErrorCode::InvalidQueryOption, "{query}");
    }
    let problem = parse("GET", POSTS, "limits=1", "").unwrap_err();
    assert_eq!(problem.hint(), Some("Did you mean \"limit\"?"));
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
fn a_filter_that_can_not_be_meant_is_refused() {
    for query in [
        r#"query={"a":{"value":1,"equality":"~"}}"#,
        r#"query={"a":{"value":null,"equality":">"}}"#,
        r#"query={"a":{"value":1,"equality":"BETWEEN"}}"#,
        r#"query={"a":{"value":[1,null],"equality":"BETWEEN"}}"#,
        r#"query={"a":{"value":[null,1],"equality":"BETWEEN"}}"#,
        r#"query={"a":{"value":[1,2,3],"equality":"BETWEEN"}}"#,
        r#"query={"a":{"equality":"="}}"#,
        r#"query={"a":{"value":1,"foo":2}}"#,
        r#"query={"a":{"value":[],"equality":"LIKE"}}"#,
        r#"query={"g":{"__query":{}}}"#,
        r#"query=[1]"#,
        "query=5",
        r#"query={"a":1,"a":2}"#,
    ] {
        assert_eq!(code("GET", POSTS, query, ""), ErrorCode::InvalidFilter, "{query}");
    }
}

#[test]
fn routes_and_methods() {
    for path in [
        "/",
        "/api",
        "/api/v2/crud/a/b",
        "/api/v1/",
        "/api/v1/crud//",
        "/api/v1/crud/demo//",
        "/api/v1/crud/demo/posts//",
        "/api/v1/crud/demo/posts/1//",
        "/api/v1/crud//t",
        "/api/v1/crud/a/b/c/d",
        "/api/v1/sqlx",
    ] {
        assert_eq!(code("GET", path, "", ""), ErrorCode::RouteNotFound, "{path}");
    }
    assert_eq!(code("LOCK", POSTS, "", "{}"), ErrorCode::MethodNotAllowed);
    assert_eq!(code("GET", "/api/v1/sql", "", ""), ErrorCode::MethodNotAllowed);
    assert_eq!(code("POST", "/api/v1/crud/demo/posts/5", "", "{}"), ErrorCode::MethodNotAllowed);
    assert_eq!(code("GET", "/api/v1/crud/demo/a%zz", "", ""), ErrorCode::InvalidIdentifier);
    assert_eq!(code("GET", "/api/v1/crud/demo/%ff", "", ""), ErrorCode::InvalidIdentifier);
    let long = "x".repeat(17_000);
    assert_eq!(code("GET", POSTS, &long, ""), ErrorCode::UriTooLong);
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
    for body in
        [r#"{"batchData":[]}"#, r#"{"batchData":{}}"#, r#"{"batchData":[1]}"#, r#"{"batchData":[{}],"a":1}"#, "[]"]
    {
        assert_eq!(code("POST", POSTS, "", body), ErrorCode::InvalidBody, "{body}");
    }
}

#[test]
fn no_delete_without_a_target_and_none_with_two() {
    assert_eq!(code("DELETE", POSTS, "", ""), ErrorCode::InvalidBody);
    assert_eq!(code("DELETE", POSTS, "", "{}"), ErrorCode::InvalidBody);
    assert_eq!(code("DELETE", POSTS, "", r#"{"deleteKeyValues":[]}"#), ErrorCode::InvalidFilter);
    assert_eq!(
        code("DELETE", "/api/v1/crud/demo/posts/1", "", r#"{"deleteKeyValues":[{"key":"a","value":1}]}"#),
        ErrorCode::InvalidBody
    );
    let in_body = parse("DELETE", POSTS, "", r#"{"deleteKeyValues":[{"key":"a","value":1,"operator":">"}]}"#).unwrap();
    let in_url = parse("DELETE", POSTS, r#"deleteKeyValues=[{"key":"a","value":1,"operator":">"}]"#, "").unwrap();
    assert_eq!(in_body, in_url);
}

#[test]
fn no_update_of_many_without_conditions_and_none_without_data() {
    let one = r#"[{"key":"a","value":1}]"#;
    for (body, expected) in [
        ("{}".to_owned(), ErrorCode::InvalidBody),
        (r#"{"data":{"b":2}}"#.to_owned(), ErrorCode::InvalidBody),
        (r#"{"updateKeyValues":[],"data":{"b":2}}"#.to_owned(), ErrorCode::InvalidFilter),
        (r#"{"updateKeyValuesOperator":"OR","data":{"b":2}}"#.to_owned(), ErrorCode::InvalidBody),
        (format!(r#"{{"updateKeyValues":{one}}}"#), ErrorCode::InvalidBody),
        (format!(r#"{{"updateKeyValues":{one},"data":{{}}}}"#), ErrorCode::InvalidBody),
        (format!(r#"{{"updateKeyValues":{one},"data":[]}}"#), ErrorCode::InvalidBody),
        (format!(r#"{{"updateKeyValues":{one},"data":{{"b":2}},"b":3}}"#), ErrorCode::InvalidBody),
        (format!(r#"{{"deleteKeyValues":{one},"data":{{"b":2}}}}"#), ErrorCode::InvalidBody),
    ] {
        for method in ["PUT", "PATCH"] {
            assert_eq!(code(method, POSTS, "", &body), expected, "{body}");
        }
    }
    let problem = parse("PUT", POSTS, "", r#"{"updateKeyValues":[{"key":"a"}],"data":{"b":2}}"#).unwrap_err();
    assert!(problem.message().contains("updateKeyValues"), "another list is named: {problem}");
}

#[test]
fn another_content_type_is_refused() {
    let mut request = head("POST", POSTS, "");
    request.content_type = Some("text/plain");
    assert_eq!(parse_head(&request).unwrap().check_body_type().unwrap_err().code(), ErrorCode::UnsupportedMediaType);
    request.content_type = Some("application/json; charset=utf-8");
    assert!(parse_head(&request).unwrap().check_body_type().is_ok());
    for (encoding, is_read) in [("identity", true), ("gzip", false), ("br, gzip", false)] {
        request.content_encoding = Some(encoding);
        let checked = parse_head(&request).unwrap().check_body_type();
        assert_eq!(checked.is_ok(), is_read, "{encoding}");
    }
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
fn an_unknown_part_and_a_part_of_the_wrong_kind_are_told_apart() {
    for (body, expected) in [
        (r#"{"selectFields":[{"fieldName":5}]}"#, "The option selectFields.fieldName must be a string, not 5."),
        (r#"{"selectFields":[{"x":5}]}"#, r#"The option selectFields has no part "x"."#),
        (r#"{"omitFields":[{"fieldName":5}]}"#, "The option omitFields.fieldName must be a name, not 5."),
        (r#"{"omitFields":[{"x":5}]}"#, r#"The option omitFields has no part "x"."#),
        (r#"{"join":{"alias":5}}"#, "The option join.alias must be a string, not 5."),
        (r#"{"join":{"x":5}}"#, r#"The option join has no part "x"."#),
        (r#"{"join":{"match":{"x":5}}}"#, r#"The option join.match has no part "x"."#),
        (r#"{"fullTextSearch":{"mode":5}}"#, "The option fullTextSearch.mode must be a string, not 5."),
        (r#"{"fullTextSearch":{"x":5}}"#, r#"The option fullTextSearch has no part "x"."#),
        (r#"{"order":{"strategy":5}}"#, "The option order.strategy must be ASC or DESC, not 5."),
        (r#"{"order":{"x":5}}"#, r#"The option order has no part "x"."#),
        (r#"{"query":{"a":{"fieldName":5}}}"#, r#"fieldName of the condition "a" must be a string, not a number."#),
        (r#"{"query":{"a":{"x":5}}}"#, r#"The condition "a" has no part "x"."#),
        (r#"{"query":{"g":{"__query":5}}}"#, r#"__query of "g" must be an object, not a number."#),
        (r#"{"query":{"g":{"__query":{"a":1},"x":5}}}"#, r#"The condition "g" has no part "x"."#),
    ] {
        let problem = parse("POST", QUERY, "", body).unwrap_err();
        assert_eq!(problem.message(), expected);
    }
}

#[test]
fn a_row_that_exists_is_updated_or_ignored_or_refuses_the_insert() {
    use write::OnConflict;
    for (query, expected) in [
        ("", Ok(OnConflict::Refuse)),
        ("onConflict=update", Ok(OnConflict::Update)),
        ("onConflict=ignore", Ok(OnConflict::Ignore)),
        ("onConflict=replace", Err(ErrorCode::InvalidQueryOption)),
        ("onconflict=update", Err(ErrorCode::InvalidQueryOption)),
    ] {
        let on_conflict = parse("POST", POSTS, query, "{}").map(|operation| match operation {
            Operation::Records(RecordOperation::Insert(insert)) => insert.on_conflict,
            other => panic!("{other:?}"),
        });
        assert_eq!(on_conflict.map_err(|problem| problem.code()), expected, "{query}");
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
