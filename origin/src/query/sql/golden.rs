//! Compares the SQL of requests on fixed tables with `golden.txt`. `SELKIE_BLESS=1 cargo test -p selkie-origin golden`
//! rewrites that file.

use super::Statement;
use crate::query::catalog::relations::{ForeignKey, Relations};
use crate::query::catalog::{CaseSensitivity, Charset, CharsetCoverage, Column, InsertTraits, Kind, Table, Traits};
use crate::query::plan::access::{CallerRole, ProjectRole, Rights, TableAccess};
use crate::query::plan::include::{Batch, Included};
use crate::query::plan::related::{RelatedTable, RelationUse, checked_references, relation_uses};
use crate::query::plan::scope::Scope;
use crate::query::plan::{self, Page, Param, Plan, PlanLimits, Reread, Select, TransactionSteps, Verification};
use crate::query::role::{Claims, Role};
use shared::error::Problem;
use shared::ident::{DatabaseName, FieldName, RoleName, TableName};
use shared::limits::ORDER_MAX_STEPS;
use shared::operation::filter::Condition;
use shared::operation::read::{Count, Read};
use shared::operation::{Operation, TablePath, parse_head};
use shared::request::RequestHead;
use std::fmt::Write as _;
use std::sync::Arc;

const GOLDEN: &str = include_str!("golden.txt");
const LIMITS: PlanLimits = PlanLimits { batch_max_rows: 10_000, read_max_rows: None };
const PACKET_MAX_BYTES: usize = 16 * 1024 * 1024;

fn column(name: &str, kind: Kind) -> Column {
    Column {
        name: FieldName::parse(name).unwrap(),
        kind,
        charset: match name {
            "old" => {
                let latin1: String = (0..=0xFF_u8).map(char::from).collect();
                let coverage = CharsetCoverage::compared("latin1", &latin1, &latin1);
                Charset::Limited(Arc::new(coverage))
            }
            _ => Charset::Unicode,
        },
        case_sensitivity: CaseSensitivity::Insensitive,
        type_text: match kind {
            Kind::Text => "varchar(200)".into(),
            kind => format!("{kind:?}").to_lowercase().into(),
        },
        nullable: name != "id",
        default: None,
        auto_increment: name == "id",
        invisible: false,
        generated: name == "computed",
        on_update: false,
        primary: name == "id",
        unique: (name == "id").then(|| "PRIMARY".to_owned()).into_iter().collect(),
        checks: Vec::new(),
        values: Arc::default(),
        references: None,
        comment: String::new(),
        full_text: Vec::new(),
        indexed: false,
        sorted_chars: (kind == Kind::Json).then_some(256),
    }
}

fn table(name: &str, columns: Vec<Column>, key: Vec<usize>) -> Arc<Table> {
    let database = DatabaseName::parse("demo").unwrap();
    let name = TableName::parse(name).unwrap();
    let traits = Traits {
        inserts: InsertTraits { unique_key: !key.is_empty(), transactional: true, ..InsertTraits::default() },
        ..Traits::default()
    };
    Arc::new(Table::new(database, name, columns, key, Vec::new(), traits))
}

pub(crate) fn posts() -> Arc<Table> {
    let columns = vec![
        column("id", Kind::Integer),
        column("title", Kind::Text),
        column("price", Kind::Decimal),
        column("ratio", Kind::Float),
        column("views", Kind::Integer),
        column("meta", Kind::Json),
        column("raw", Kind::Bytes),
        column("place", Kind::Geometry),
        column("at", Kind::DateTime),
        column("old", Kind::Text),
        column("a`b", Kind::Text),
        column("computed", Kind::Integer),
    ];
    table("posts", columns, vec![0])
}

/// Returns the golden file's tables: `posts`, and small tables to join. `links` has a key of two columns, `log` has
/// none.
fn others() -> Vec<Arc<Table>> {
    let mut state = column("state", Kind::Enum);
    state.values = Arc::new(["draft", "live"].iter().collect());
    let mut note = column("note", Kind::Text);
    note.type_text = "text".into();
    note.sorted_chars = Some(256);
    let mut links = vec![column("post_id", Kind::Integer), column("user_id", Kind::Integer), state];
    for link in &mut links[..2] {
        link.primary = true;
        link.nullable = false;
    }
    vec![
        posts(),
        table(
            "users",
            vec![column("id", Kind::Integer), column("name", Kind::Text), column("boss_id", Kind::Integer), note],
            vec![0],
        ),
        table("links", links, vec![0, 1]),
        table("log", vec![column("post_id", Kind::Integer), column("line", Kind::Text)], Vec::new()),
    ]
}

fn named(name: &TableName) -> Arc<Table> {
    others()
        .into_iter()
        .find(|table| table.name() == name)
        .unwrap_or_else(|| panic!("{name} is none of the golden file's tables"))
}

/// The role of requests that begin with `as`.
const ROLE: &str = r#"{"tables": {
    "demo.posts": {
        "read": {"fields": {"omit": ["price", "ratio", "raw", "place", "at", "old", "a`b", "computed"]},
                 "rows": {"views": {"value": {"claim": "level"}, "equality": "<="}}},
        "insert": {"fields": ["title", "views"], "set": {"price": 1}, "rows": {"views": {"claim": "level"}}},
        "update": {"fields": ["title", "views"], "rows": {"views": {"claim": "level"}, "old": "x"}},
        "delete": {"rows": {"views": {"claim": "level"}}}},
    "demo.users": {"read": {"fields": ["name"], "rows": {"boss_id": {"claim": "sub"}}}},
    "demo.links": {"read": {"rows": {"post": {"some": {"log": {"none": {"line": {"claim": "sub"}}}}}}},
        "insert": true,
        "update": {"rows": {"post": {"some": {"users": {"every": {"name": {"claim": "sub"}}}}}}, "unchecked": ["user_id"]}},
    "demo.log": {"insert": {"fields": ["line"]}}}}"#;

/// Returns the rights of a caller with the role [`ROLE`] and these claims.
fn rights(claims: &str) -> Rights {
    let role = ProjectRole::new(RoleName::parse("golden").unwrap(), Role::parse(ROLE).unwrap(), Arc::default());
    let claims = Claims::new(&serde_json::from_str(claims).unwrap());
    Rights::Role(Arc::new(CallerRole::new(Arc::new(role), claims)))
}

/// Renders `[as CLAIMS] METHOD [@table]/path?query body` as SQL and its parameters, or as the problem.
pub(super) fn rendered(request: &str) -> String {
    let (rights, request) = match request.strip_prefix("as ").and_then(|request| request.split_once(' ')) {
        Some((claims, request)) => (rights(claims), request),
        None => (Rights::Full, request),
    };
    let mut parts = request.splitn(3, ' ');
    let (method, target, body) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap_or_default());
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let path = match path.strip_prefix('@') {
        Some(other) => format!("/api/v1/crud/demo/{other}"),
        None => format!("/api/v1/crud/demo/posts{path}"),
    };
    let head = RequestHead { method, path: &path, query, ..RequestHead::default() };
    parse_head(&head)
        .and_then(|pending| pending.finish(body.as_bytes()))
        .and_then(|operation| statements(&operation, &rights))
        .map_or_else(|problem| shown_problem(&problem), |statements| statements.iter().map(shown_statement).collect())
}

fn statements(operation: &Operation, rights: &Rights) -> Result<Vec<Statement>, Problem> {
    let Operation::Records(operation) = operation else { panic!("the golden file is about records") };
    let relations = relations();
    let of_database = |name: &TableName| TablePath { database: named(name).database().clone(), table: name.clone() };
    let whole = |name: &TableName| Rights::Full.of(&named(name));
    let access = |name: &TableName| {
        let rules = rights.related(&of_database(name));
        let uses = relation_uses(&relations, &whole(name)?, &[], &rules, &|_, _| true)?;
        rights.by(&named(name), &related(uses, &relations, &whole, &|_, _| true)?)
    };
    let root = access(&operation.table().table)?;
    let joined = operation.joins().iter().map(|join| access(&join.table)).collect::<Result<Vec<_>, _>>()?;
    let path = |name: &TableName| TablePath { database: root.table().database().clone(), table: name.clone() };
    let reads = |name: &TableName, column: &FieldName| {
        let Some(role) = rights.role() else {
            return true;
        };
        let rule = role.role().rule(&path(name).database, name);
        rule.and_then(|rule| rule.read.as_ref()).is_some_and(|read| read.fields.has(column))
    };
    let conditions = operation.filter().map(Condition::related).unwrap_or_default();
    let uses = relation_uses(&relations, &root, operation.includes(), &conditions, &reads)?;
    let related = related(uses, &relations, &access, &reads)?;
    let references = checked_references(&relations, operation, rights).into_iter().map(|relation| {
        let target = access(&relation.table)?;
        Ok(RelatedTable::referenced(relation, target))
    });
    let references: Vec<_> = references.collect::<Result<Vec<_>, Problem>>()?.into_iter().flatten().collect();
    let scope = Scope::joined(&root, operation.joins(), &joined)?;
    let scope = scope.with_related(&related).with_references(&references);
    // `after` is planned as if the last row had the sort values 1, 2, 3 …, or NULLs if `after` is `null`.
    let value = |number| if operation.after() == Some("null") { Param::Null } else { Param::Int(number) };
    let page = Page { after: Some((1..).take(ORDER_MAX_STEPS).map(value).collect()), is_head: false };
    Ok(match plan::build(operation, &scope, LIMITS, page)? {
        Plan::Select(plan, read) => selects(plan, read, &scope),
        Plan::SelectOne(plan, _) => {
            let mut statements = included(plan.includes());
            statements.insert(0, super::select(plan, &scope));
            statements
        }
        Plan::SelectByKey(plan) => vec![
            // Rendered for one request, and for a statement that it shares with two other requests.
            super::select_by_key(plan.shape(), plan.key()),
            super::select_by_keys(plan.shape(), &[plan.key(), 8, 9]),
        ],
        Plan::Insert(plan, _) => super::insert(plan, &scope, PACKET_MAX_BYTES),
        Plan::InsertOne(plan) => {
            let (shape, row) = plan.into_parts();
            vec![super::insert_one(&shape, row)]
        }
        Plan::Update(plan, more) => changes(super::update(plan, &scope), more, &scope),
        Plan::Delete(plan, more) => changes(vec![super::delete(plan, &scope)], more, &scope),
    })
}

fn related(
    uses: Vec<RelationUse<'_>>,
    relations: &Relations,
    access: &dyn Fn(&TableName) -> Result<TableAccess, Problem>,
    reads: &dyn Fn(&TableName, &FieldName) -> bool,
) -> Result<Vec<RelatedTable>, Problem> {
    let loaded = uses.into_iter().map(|RelationUse { name, relation, includes, conditions }| {
        let far = access(&relation.table)?;
        let link = relation.link.as_ref().map(|link| access(&link.table)).transpose()?;
        let inner = relation_uses(relations, &far, &includes, &conditions, reads)?;
        let inner = related(inner, relations, access, reads)?;
        Ok(RelatedTable::new(name, relation, far, link, inner))
    });
    loaded.collect()
}

/// Renders an update or delete, with the reads of its transaction before and after it; those after it lack their FOR
/// UPDATE here. The keys of changed records are rendered as if there were two, 1 and 2.
fn changes(statements: Vec<Statement>, more: Option<Box<TransactionSteps>>, scope: &Scope<'_>) -> Vec<Statement> {
    let Some(more) = more else { return statements };
    let mut all: Vec<_> = more.precondition.map(|one| super::select_for_update(one.read, scope)).into_iter().collect();
    let (mut before, mut after) = (None, None);
    match more.reread {
        None => {}
        Some(Reread::ById(read)) => after = Some(super::select(*read, scope)),
        Some(Reread::ByKeys(reread)) => {
            let key = |number| vec![Param::Int(number); scope.root().row_key().len()];
            before = Some(super::select_for_update(reread.keys(), scope));
            after = Some(super::select(reread.select(vec![key(1), key(2)]), scope));
        }
    }
    let keys: Vec<_> = [1, 2].map(|number| vec![Param::Int(number); scope.root().row_key().len()]).into();
    before = before.or_else(|| {
        more.verifications
            .iter()
            .find_map(Verification::keyed)
            .map(|reread| super::select_for_update(reread.keys(), scope))
    });
    let verified = more.verifications.iter().map(|verification| super::select(verification.broken(&keys), scope));
    let verified: Vec<_> = verified.collect();
    all.extend(before);
    all.extend(statements);
    all.extend(verified);
    all.extend(after);
    all
}

/// Renders a read, then its count if requested, then its reads of related records.
fn selects(plan: Select, read: &Read, scope: &Scope<'_>) -> Vec<Statement> {
    let mut statements = included(plan.includes());
    if read.count == Count::Exact {
        statements.insert(0, super::count(plan.clone(), scope));
    }
    statements.insert(0, super::select(plan, scope));
    statements
}

/// Renders the reads of related records, as if there were three records with the keys 1, 2 and 3.
fn included(includes: &[Included]) -> Vec<Statement> {
    let of = |included: &Included| {
        let keys: Vec<_> = (1..=3).map(|key| vec![Param::Int(key); included.parent_cells().len()]).collect();
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        // Where a list of keys is not enough, the SELECTs of a UNION as well.
        let mut batches = vec![included.batch()];
        batches.extend((included.batch() == Batch::List && included.limit().is_some()).then_some(Batch::Union));
        let mut statements: Vec<_> = batches.iter().map(|batch| super::included(included, *batch, &keys)).collect();
        statements.extend(super::golden::included(included.includes()));
        statements
    };
    includes.iter().flat_map(of).collect()
}

/// The foreign keys of the golden file's tables: users have a boss, posts and users are linked, the log is of posts.
fn relations() -> Relations {
    let key = |table: &str, column: &str, target: &str| ForeignKey {
        name: format!("{table}_{column}"),
        table: TableName::parse(table).unwrap(),
        columns: vec![FieldName::parse(column).unwrap()],
        target: TableName::parse(target).unwrap(),
        target_columns: vec![FieldName::parse("id").unwrap()],
    };
    let keys = vec![
        key("users", "boss_id", "users"),
        key("links", "post_id", "posts"),
        key("links", "user_id", "users"),
        key("log", "post_id", "posts"),
    ];
    let primary = ["post_id", "user_id"].map(|name| FieldName::parse(name).unwrap()).to_vec();
    Relations::new(&keys, &[(TableName::parse("links").unwrap(), primary)].into(), usize::MAX).unwrap().0
}

fn shown_problem(problem: &Problem) -> String {
    let hint = problem.hint().map_or_else(String::new, |hint| format!(" {hint}"));
    format!("  {problem}{hint}\n")
}

fn shown_statement(statement: &Statement) -> String {
    let mut text = format!("  {}\n", statement.text());
    for param in statement.params() {
        writeln!(text, "    {param:?}").unwrap();
    }
    text
}

#[test]
fn requests_become_the_sql_of_the_golden_file() {
    let mut written = String::new();
    for line in GOLDEN.lines().filter(|line| !line.starts_with("  ")) {
        writeln!(written, "{line}").unwrap();
        if !line.is_empty() && !line.starts_with('#') {
            written.push_str(&rendered(line));
        }
    }
    if std::env::var_os("SELKIE_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/query/sql/golden.txt"), &written).unwrap();
        return;
    }
    assert_eq!(written, GOLDEN);
}
