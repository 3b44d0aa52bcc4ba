//! Subscriptions, checked against the schema and the caller's rights, and planned.

use super::feed::WaitedFor;
use super::token::Meaning;
use crate::database::log_reader::{CellEncoding, LogSource, LoggedTable, RowImage, TableFacts};
use crate::query::catalog::Table;
use crate::query::plan::access::TableAccess;
use crate::query::plan::{self, FollowedRead};
use crate::query::sql::{self, ImageColumn, Statement};
use sha2::{Digest as _, Sha256};
use shared::error::Problem;
use shared::operation::TablePath;
use shared::operation::changes::Subscription;
use shared::operation::webhook::ChangeType;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// One subscription.
pub struct Followed {
    pub id: Option<Box<str>>,
    path: TablePath,
    access: TableAccess,
    plan: FollowedRead,
    /// The types of changes that are wanted.
    pub types: Vec<ChangeType>,
    /// Set by [`Subscriptions::set_facts`].
    facts: Option<TableFacts>,
}

/// The subscriptions of one request.
pub struct Subscriptions {
    pub all: Vec<Followed>,
    pub meaning: Meaning,
}

impl Followed {
    pub fn new(subscription: &Subscription, access: TableAccess, max_rows: Option<u64>) -> Result<Self, Problem> {
        let plan = plan::follow(&subscription.read, &access.scope(), max_rows)?;
        let table = access.table();
        let path = TablePath { database: table.database().clone(), table: table.name().clone() };
        Ok(Self { id: subscription.id.clone(), path, plan, types: ChangeType::ALL.to_vec(), access, facts: None })
    }

    pub fn path(&self) -> &TablePath {
        &self.path
    }

    pub fn access(&self) -> &TableAccess {
        &self.access
    }

    pub fn table(&self) -> &Arc<Table> {
        self.access.table()
    }

    pub fn plan(&self) -> &FollowedRead {
        &self.plan
    }

    /// Renders the read of the subscription's records. The key's values come after the cells of each row.
    pub fn snapshot(&self) -> Statement {
        sql::select_with_key(self.plan.of_snapshot(), &self.plan.key, &self.access.scope())
    }

    /// Renders the list whose changes the subscription follows.
    fn list(&self) -> Statement {
        sql::select_with_key(self.plan.select.clone(), &self.plan.key, &self.access.scope())
    }

    /// Renders the read of the logged rows in `document`, as the list would show them. `columns` come from
    /// [`Self::columns`].
    pub fn read_images(&self, columns: &[ImageColumn], document: String) -> Statement {
        sql::images(self.plan.select.clone(), &self.plan.key, &self.access.scope(), columns, document)
    }

    /// Returns where a row of the log has the columns of the table; `None` if the logged table has other columns than
    /// the table has now.
    pub fn columns(&self, logged: &LoggedTable, source: &LogSource) -> Option<Vec<ImageColumn>> {
        let table = self.table();
        let mut columns = Vec::with_capacity(logged.columns.len());
        for at in table.all_columns() {
            let name = table.column(at).name.as_str();
            let (index, column) =
                logged.columns.iter().enumerate().find(|(_, column)| column.name.eq_ignore_ascii_case(name))?;
            let collation = match column.collation {
                Some(number) => Some(source.collation(number)?.clone()),
                None => None,
            };
            let is_base64 = column.encoding == CellEncoding::Base64;
            let of = logged.columns.len();
            columns.push(ImageColumn { at: index, of, column: at, is_base64, collation, expression: None });
        }
        // A system-versioned table may have two more columns, which the schema does not list, and each unique text column
        // has one.
        let hashes = logged.columns.iter().filter(|column| is_hash(&column.name)).count();
        let listed_hashes = table.all_columns().filter(|at| is_hash(table.column(*at).name.as_str())).count();
        let hidden = hashes.saturating_sub(listed_hashes) + if self.row_end().is_some() { 2 } else { 0 };
        (logged.columns.len() <= columns.len() + hidden).then_some(columns)
    }

    /// Adds the expressions of generated columns, for rows without their values.
    pub fn add_expressions(&self, columns: &mut [ImageColumn]) {
        let generated = self.facts.iter().flat_map(|facts| &facts.generated);
        for (name, expression) in generated {
            let is_it =
                |column: &&mut ImageColumn| self.table().column(column.column).name.as_str().eq_ignore_ascii_case(name);
            if let Some(column) = columns.iter_mut().find(is_it) {
                column.expression = Some(expression.clone());
            }
        }
    }

    fn row_end(&self) -> Option<&str> {
        self.facts.as_ref()?.row_end.as_deref()
    }

    /// Whether the row is a past version of a record in a system-versioned table.
    pub fn is_history(&self, logged: &LoggedTable, image: &RowImage) -> bool {
        /// The end of the row's period in present rows: the maximum of TIMESTAMP before and since MariaDB 11.5.
        const PRESENT: [&str; 2] = ["\"2038-01-19 03:14:07.999999\"", "\"2106-02-07 06:28:15.999999\""];
        let at = self.row_end().and_then(|name| logged.columns.iter().position(|column| *column.name == *name));
        at.is_some_and(|at| !PRESENT.contains(&image.cell(at)))
    }
}

impl Subscriptions {
    pub fn new(asked: &[Subscription], all: Vec<Followed>) -> Self {
        let (mut asked_text, mut schema, mut seen) = (String::new(), String::new(), String::new());
        for (subscription, followed) in asked.iter().zip(&all) {
            let _ = writeln!(asked_text, "{subscription:?}");
            let table = followed.table();
            let columns = table.all_columns().map(|at| table.column(at));
            let columns = columns.map(|column| format!("{} {} {}", column.name, column.type_text, column.nullable));
            // A role moves the columns that it hides to the end.
            let columns: BTreeSet<String> = columns.collect();
            let _ = writeln!(schema, "{columns:?}");
            let list = followed.list();
            let _ = writeln!(seen, "{} {:?}", list.text(), list.params());
        }
        let meaning = Meaning { asked: hash(&asked_text), schema: hash(&schema), seen: hash(&seen) };
        Self { all, meaning }
    }

    pub fn set_facts(&mut self, tables: &[(TablePath, TableFacts)]) {
        for followed in &mut self.all {
            let facts = tables.iter().find(|(path, _)| *path == followed.path).map(|(_, facts)| facts.clone());
            followed.facts = facts;
        }
    }

    pub fn tables(&self) -> Vec<TablePath> {
        let mut tables: Vec<TablePath> = Vec::new();
        for followed in &self.all {
            if !tables.contains(&followed.path) {
                tables.push(followed.path.clone());
            }
        }
        tables
    }

    /// Returns what a request waits for: any change of a subscription's table or, if all records of the list have one
    /// value in an integer column, a change of a row with that value.
    pub fn waited_for(&self) -> Vec<WaitedFor> {
        let waited = self.all.iter().map(|followed| {
            let only = followed.plan.equals.as_ref().map(|(column, digits)| {
                let name = followed.table().column(*column).name.as_str();
                (name.into(), digits.as_str().into())
            });
            (followed.path.clone(), only)
        });
        waited.collect()
    }
}

/// Whether MariaDB gives this name to the hidden column with the hash of a unique text column.
fn is_hash(name: &str) -> bool {
    name.strip_prefix("DB_ROW_HASH_").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn hash(text: &str) -> [u8; Meaning::BYTES] {
    let whole = Sha256::digest(text.as_bytes());
    let mut short = [0; Meaning::BYTES];
    short.copy_from_slice(&whole[..Meaning::BYTES]);
    short
}
