//! Tests the fingerprints of reads: equal for all notations of one meaning, different for different meanings.

use crate::fingerprint::Fingerprint;
use crate::operation::{Operation, RecordOperation, parse_head};
use crate::request::RequestHead;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const POSTS: &str = "/api/v1/crud/demo/posts";

fn print(head: &RequestHead<'_>, body: &str) -> Fingerprint {
    match parse_head(head).and_then(|pending| pending.finish(body.as_bytes())) {
        Ok(Operation::Records(RecordOperation::Read(read))) => Fingerprint::of(&read),
        Ok(Operation::Records(RecordOperation::ReadOne(read))) => Fingerprint::of(&read),
        other => panic!("{head:?}: {other:?}"),
    }
}

fn got(path: &str, query: &str) -> Fingerprint {
    let head = RequestHead { method: "GET", path, query: Some(query), ..RequestHead::default() };
    print(&head, "")
}

fn posted(body: &str) -> Fingerprint {
    let head = RequestHead { method: "POST", path: "/api/v1/crud/demo/posts/query", ..RequestHead::default() };
    print(&head, body)
}

#[test]
fn every_spelling_of_a_read_has_one_fingerprint() {
    let meant = posted(
        r#"{"limit": 2, "page": 3, "selectFields": ["id", "views"], "query": {"category": "sea", "views": {"value": "5", "equality": ">"}},
           "order": {"field": "views", "strategy": "DESC"}, "distinct": false}"#,
    );
    for query in [
        r#"limit=2&page=3&selectFields=id,views&query={"category":"sea","views":{"value":"5","equality":">"}}&order={"field":"views","strategy":"DESC"}"#,
        r#"order=[{"strategy":"desc","field":"views"}]&query={"x":{"fieldName":"views","equality":"greater than","value":"5"},"category":"sea"}&selectFields=["id","views"]&offset=4&limit=2"#,
        "limit=2&page=3&selectFields[]=id&selectFields[]=views&query[category]=sea&query[views][value]=5&query[views][equality]=%3E&order[field]=views&order[strategy]=DESC",
        r#"limit=2&page=3&select=id&select=views&where={"category":{"eq":"sea"},"views":{"gt":"5"}}&order=-views"#,
        "limit=2&page=3&selectFields=id&selectFields=views&query[category]=sea&query[views][value]=5&query[views][equality]=%3E&order=-views&distinct=False",
        "query[views][equality]=%3E&query[views][value]=5&query[category]=sea&order[0][field]=views&order[0][strategy]=desc&selectFields[1]=views&selectFields[0]=id&page=3&limit=2&count=false",
    ] {
        assert_eq!(got(POSTS, query), meant, "{query}");
    }
}

const ONE: &str = "/api/v1/crud/demo/posts/1";

/// Paths and queries of reads that all have different meanings.
const READS: &[(&str, &str)] = &[
    (POSTS, ""),
    ("/api/v1/crud/demo/authors", ""),
    ("/api/v1/crud/other/posts", ""),
    (ONE, ""),
    ("/api/v1/crud/demo/posts/1,2", ""),
    ("/api/v1/crud/demo/posts/1%2C2", ""),
    (ONE, "selectFields=id"),
    (POSTS, "selectFields=id"),
    (POSTS, "omitFields=id"),
    (POSTS, "selectFields=id,title"),
    (POSTS, "selectFields=title,id"),
    (POSTS, "limit=1"),
    (POSTS, "limit=0"),
    (POSTS, "offset=1"),
    (POSTS, "limit=1&offset=1"),
    (POSTS, "limit=1&after=x"),
    (POSTS, "distinct=true"),
    (POSTS, "count=true"),
    (POSTS, "explain=true"),
    (POSTS, "group=id"),
    (POSTS, r#"order={"field":"id"}"#),
    (POSTS, r#"order={"field":"id","strategy":"DESC"}"#),
    (POSTS, r#"order=[{"field":"id"},{"field":"title"}]"#),
    (POSTS, r#"order=[{"field":"title"},{"field":"id"}]"#),
    (POSTS, r#"query={"id":1}"#),
    // These values mean different things for a JSON column.
    (POSTS, r#"query={"id":"1"}"#),
    (POSTS, r#"query={"id":true}"#),
    (POSTS, r#"query={"id":null}"#),
    (POSTS, r#"query={"id":[1]}"#),
    (POSTS, r#"query={"id":{"value":[1],"not":true}}"#),
    (POSTS, r#"query={"id":{"value":1,"equality":"!="}}"#),
    (POSTS, r#"query={"id":{"value":"1","equality":"LIKE"}}"#),
    (POSTS, r#"query={"id":{"value":"1","equality":"REGEXP"}}"#),
    (POSTS, r#"query={"id":{"value":"1","equality":"CONTAINS"}}"#),
    (POSTS, r#"query={"id":{"value":"1","equality":"ENDS WITH"}}"#),
    (POSTS, r#"query={"id":{"value":"1","equality":"MATCH"}}"#),
    (POSTS, r#"query={"id":{"value":[1,2],"equality":"BETWEEN"}}"#),
    (POSTS, r#"query={"id":{"value":[2,1],"equality":"BETWEEN"}}"#),
    (POSTS, r#"query={"id":1,"title":"a"}"#),
    (POSTS, r#"query={"id":1,"title":"a"}&searchOperator=OR"#),
    (POSTS, r#"query={"g":{"__query":{"id":1,"title":"a"},"not":true}}"#),
    (POSTS, r#"fullTextSearch={"fields":["title"],"searchTerm":"a"}"#),
    (POSTS, r#"fullTextSearch={"fields":["title"],"searchTerm":"a","mode":"boolean"}"#),
    (POSTS, r#"fullTextSearch={"fields":["title"],"searchTerm":"a","scoreAlias":"s"}"#),
    (POSTS, r#"join={"tableName":"a","match":{"source":"x","target":"y"}}"#),
    (POSTS, r#"join={"tableName":"a","match":{"source":"x","targetLiteral":"y"}}"#),
    (POSTS, r#"join={"tableName":"a","joinType":"LEFT JOIN","match":{"source":"x","target":"y"}}"#),
    (POSTS, r#"join={"tableName":"a","alias":"b","match":{"source":"x","target":"y"}}"#),
    (POSTS, r#"join={"tableName":"a","nest":true,"match":{"source":"x","target":"y"}}"#),
    (POSTS, r#"join={"tableName":"a","selectFields":[],"match":{"source":"x","target":"y"}}"#),
    (POSTS, r#"join={"tableName":"a","operator":"OR","match":{"source":"x","target":"y"}}"#),
];

#[test]
fn what_means_something_else_has_another_fingerprint() {
    let prints: Vec<_> = READS.iter().map(|(path, query)| got(path, query)).collect();
    for (at, print) in prints.iter().enumerate() {
        let twin = prints[..at].iter().position(|other| other == print);
        assert_eq!(twin, None, "{:?} and {:?}", READS[at], twin.map(|twin| READS[twin]));
    }
    let csv = RequestHead { method: "GET", path: POSTS, accept: Some("text/csv"), ..RequestHead::default() };
    assert_ne!(print(&csv, ""), prints[0]);
}

/// A generated read with few distinct words, so that two reads are often equal: its options, and its meaning as text.
#[derive(Clone, Debug)]
struct Drawn {
    options: Map<String, Value>,
    meaning: String,
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b"])
}

/// Generates a condition on one of two fields: its label, its JSON, and its meaning as text.
fn condition(label: &'static str) -> impl Strategy<Value = (String, Value, String)> {
    let values = prop::collection::vec(0..2u8, 1..3);
    (name(), values, 0..3u8).prop_map(move |(field, mut values, kind)| {
        let (value, meaning) = match kind {
            0 => (json!(values[0]), format!("{field}={}", values[0])),
            1 => {
                let value = json!({"fieldName": field, "value": values, "equality": "IN"});
                values.sort_unstable();
                (value, format!("{field} in {values:?}"))
            }
            _ => (json!({"value": values[0], "equality": "<", "fieldName": field}), format!("{field}<{}", values[0])),
        };
        // For a bare value, the label is the name of the field.
        let label = if kind == 0 { field } else { label };
        (label.to_owned(), value, meaning)
    })
}

fn conditions() -> impl Strategy<Value = (Value, String)> {
    (condition("c"), condition("d"), any::<bool>()).prop_map(|(one, two, either)| {
        let mut members = Map::new();
        let mut meanings = Vec::new();
        for (label, value, meaning) in [one, two] {
            if members.insert(label, value).is_some() {
                meanings.clear();
            }
            meanings.push(meaning);
        }
        meanings.sort_unstable();
        let meaning = match (meanings.len(), either) {
            (1, _) => meanings.remove(0),
            (_, false) => format!("all {meanings:?}"),
            (_, true) => format!("any {meanings:?}"),
        };
        let operator = if either { "OR" } else { "AND" };
        let group = json!({"__query": members, "operator": operator});
        (json!({"group": group}), meaning)
    })
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let names = || prop::collection::vec(name(), 1..3);
    (prop::option::of(conditions()), prop::option::of(names()), prop::option::of(0..2u8), any::<bool>(), any::<bool>())
        .prop_map(|(conditions, names, limit, omit, distinct)| {
            let mut options = Map::new();
            let mut meaning = format!("{limit:?} {distinct}");
            if let Some((query, means)) = conditions {
                options.insert("query".into(), query);
                meaning += &means;
            }
            if let Some(mut names) = names {
                names.dedup();
                let option = if omit { "omitFields" } else { "selectFields" };
                options.insert(option.into(), json!(names));
                if omit {
                    names.sort_unstable();
                }
                meaning += &format!("{option} {names:?}");
            }
            if let Some(limit) = limit {
                options.insert("limit".into(), json!(limit));
            }
            options.insert("distinct".into(), json!(distinct));
            Drawn { options, meaning }
        })
}

impl Drawn {
    fn in_url(&self, backwards: bool) -> Fingerprint {
        let mut pairs: Vec<String> = self
            .options
            .iter()
            .map(|(name, value)| {
                let value = value.to_string();
                format!("{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC))
            })
            .collect();
        if backwards {
            pairs.reverse();
        }
        got(POSTS, &pairs.join("&"))
    }

    fn in_body(&self) -> Fingerprint {
        posted(&serde_json::to_string_pretty(&self.options).unwrap())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_reads_have_one_fingerprint_if_they_mean_the_same(one in drawn(), two in drawn(), backwards: bool) {
        prop_assert_eq!(one.in_url(backwards), one.in_body());
        let same = one.in_body() == two.in_url(backwards);
        prop_assert_eq!(same, one.meaning == two.meaning, "{:?} {:?}", one, two);
    }
}
