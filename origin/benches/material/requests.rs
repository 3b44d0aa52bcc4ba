//! Typical requests and the tables that they query, with which parsing, planning and rendering are measured.

use origin::query::catalog::{CaseSensitivity, Charset, Column, Kind, Table, Traits};
use origin::query::plan::access::{Rights, TableAccess};
use origin::query::plan::scope::Scope;
use origin::query::plan::{self, Page, Plan, PlanLimits};
use origin::query::sql::{self, Statement};
use shared::ident::{DatabaseName, FieldName, TableName};
use shared::operation::{Operation, RecordOperation, parse_head};
use shared::request::RequestHead;
use std::sync::Arc;

/// Repeats a literal ten times, separated by commas.
macro_rules! ten {
    ($text:literal) => {
        concat!(
            $text, ",", $text, ",", $text, ",", $text, ",", $text, ",", $text, ",", $text, ",", $text, ",", $text, ",",
            $text
        )
    };
}

/// Typical requests: a name, `METHOD target`, and a body.
pub(crate) const REQUESTS: [(&str, &str, &str); 8] = [
    ("one by id", "GET /api/v1/crud/demo/posts/4711", ""),
    (
        "twenty filtered and ordered",
        "GET /api/v1/crud/demo/posts?limit=20&page=3&selectFields=id,title,views,created_at\
         &order=%7B%22field%22%3A%22views%22%2C%22strategy%22%3A%22DESC%22%7D\
         &query=%7B%22status%22%3A%22published%22%2C%22views%22%3A%7B%22value%22%3A100%2C%22equality%22%3A%22%3E%3D%22%7D%7D",
        "",
    ),
    (
        "the same in brackets",
        "GET /api/v1/crud/demo/posts?limit=20&page=3&selectFields[]=id&selectFields[]=title&selectFields[]=views\
         &selectFields[]=created_at&order[field]=views&order[strategy]=DESC\
         &query[status]=published&query[views][value]=100&query[views][equality]=%3E%3D",
        "",
    ),
    (
        "the same as a body",
        "POST /api/v1/crud/demo/posts/query",
        r#"{"limit":20,"page":3,"selectFields":["id","title","views","created_at"],"order":{"field":"views","strategy":"DESC"},"query":{"status":"published","views":{"value":100,"equality":">="}}}"#,
    ),
    (
        "three tables joined",
        "GET /api/v1/crud/demo/posts?limit=20\
         &join=%5B%7B%22tableName%22%3A%22users%22%2C%22joinType%22%3A%22LEFT+JOIN%22%2C%22match%22%3A%7B%22source%22%3A%22author_id%22%2C%22target%22%3A%22id%22%7D%2C%22selectFields%22%3A%5B%22name%22%5D%7D\
         %2C%7B%22tableName%22%3A%22cities%22%2C%22joinType%22%3A%22JOIN%22%2C%22match%22%3A%7B%22source%22%3A%7B%22tableName%22%3A%22users%22%2C%22fieldName%22%3A%22city_id%22%7D%2C%22target%22%3A%22id%22%7D%7D%5D\
         &order%5Bfield%5D=created_at&query=%7B%22status%22%3A%22published%22%2C%22town%22%3A%7B%22tableName%22%3A%22cities%22%2C%22fieldName%22%3A%22name%22%2C%22value%22%3A%5B%22Rome%22%2C%22Oslo%22%5D%7D%7D",
        "",
    ),
    (
        "an insert",
        "POST /api/v1/crud/demo/posts",
        r#"{"title":"A title of usual length","body":"Some words, as many as fit on a line of text.","views":0,"price":"12.50","status":"draft","created_at":"2026-11-20T08:36:16Z"}"#,
    ),
    (
        "ten inserts",
        "POST /api/v1/crud/demo/posts",
        concat!(
            "{\"batchData\":[",
            ten!(
                "{\"title\":\"A title of usual length\",\"body\":\"Some words, as many as fit on a line of text.\",\"views\":0,\"price\":\"12.50\",\"status\":\"draft\",\"created_at\":\"2026-11-20T08:36:16Z\"}"
            ),
            "]}"
        ),
    ),
    ("an update", "PUT /api/v1/crud/demo/posts/4711", r#"{"title":"Another title","views":12}"#),
];

pub(crate) fn tables() -> [TableAccess; 3] {
    [
        table(
            "posts",
            &[
                ("id", Kind::Integer),
                ("title", Kind::Text),
                ("body", Kind::Text),
                ("views", Kind::Integer),
                ("price", Kind::Decimal),
                ("status", Kind::Text),
                ("meta", Kind::Json),
                ("author_id", Kind::Integer),
                ("created_at", Kind::DateTime),
                ("updated_at", Kind::DateTime),
            ],
        ),
        table("users", &[("id", Kind::Integer), ("name", Kind::Text), ("city_id", Kind::Integer)]),
        table("cities", &[("id", Kind::Integer), ("name", Kind::Text)]),
    ]
}

fn table(name: &str, fields: &[(&str, Kind)]) -> TableAccess {
    let column = |(name, kind): &(&str, Kind)| Column {
        name: FieldName::parse(name).expect("a name"),
        kind: *kind,
        charset: Charset::Unicode,
        case_sensitivity: CaseSensitivity::Insensitive,
        type_text: "varchar(200)".into(),
        nullable: *name != "id",
        default: None,
        auto_increment: *name == "id",
        invisible: false,
        generated: false,
        on_update: false,
        primary: *name == "id",
        unique: (*name == "id").then(|| "PRIMARY".to_owned()).into_iter().collect(),
        checks: Vec::new(),
        values: Arc::default(),
        references: None,
        comment: String::new(),
        full_text: Vec::new(),
        indexed: false,
        sorted_chars: None,
    };
    let table = Arc::new(Table::new(
        DatabaseName::parse("demo").expect("a name"),
        TableName::parse(name).expect("a name"),
        fields.iter().map(column).collect(),
        vec![0],
        Vec::new(),
        Traits::default(),
    ));
    Rights::Full.of(&table).expect("a full key sees all tables")
}

pub(crate) fn parse(target: &str, body: &str) -> RecordOperation {
    let (method, target) = target.split_once(' ').expect("a method");
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let head = RequestHead { method, path, query, ..RequestHead::default() };
    let pending = parse_head(&head).expect("a sound head");
    match pending.finish(body.as_bytes()).expect("a sound body") {
        Operation::Records(operation) => operation,
        _ => unreachable!("the requests are about records"),
    }
}

pub(crate) fn joined(operation: &RecordOperation, tables: &[TableAccess]) -> Vec<TableAccess> {
    let named = operation.joins().iter();
    named.filter_map(|join| tables.iter().find(|access| *access.table().name() == join.table)).cloned().collect()
}

pub(crate) fn plan<'a>(operation: &'a RecordOperation, scope: &Scope<'_>) -> Plan<'a> {
    let limits = PlanLimits { batch_max_rows: 10_000, read_max_rows: None };
    plan::build(operation, scope, limits, Page::default()).expect("a plan")
}

pub(crate) fn render(plan: Plan<'_>, scope: &Scope<'_>) -> Vec<Statement> {
    match plan {
        Plan::Select(plan, _) | Plan::SelectOne(plan, _) => vec![sql::select(plan, scope)],
        Plan::SelectByKey(plan) => vec![sql::select_by_key(plan.shape(), plan.key())],
        Plan::Insert(plan, _) => sql::insert(plan, scope, 16 * 1024 * 1024),
        Plan::InsertOne(plan) => {
            let (shape, row) = plan.into_parts();
            vec![sql::insert_one(&shape, row)]
        }
        Plan::Update(plan, _) => sql::update(plan, scope),
        Plan::Delete(plan, _) => vec![sql::delete(plan, scope)],
    }
}

pub(crate) fn request(name: &str) -> (&'static str, &'static str) {
    let (_, target, body) = REQUESTS.iter().find(|(known, ..)| *known == name).expect("a request of that name");
    (target, body)
}
