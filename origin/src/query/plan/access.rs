//! What a caller may do with a table: everything, or what its role allows. A [`Scope`] holds [`TableAccess`]es, which
//! only [`Rights::of`] makes, so that no plan can be built without the caller's rights.

use super::bind::{self, Purpose};
use super::filter::predicate;
use super::scope::Scope;
use super::{ColumnRef, Expression, Join, Operand, Predicate, Search};
use crate::query::catalog::{Kind, Table};
use crate::query::role::{Claims, Fields, Role, TableRule, Template, WriteRule};
use shared::error::{ErrorCode, Problem};
use shared::ident::{FieldName, RoleName, shown};
use shared::operation::TablePath;
use shared::operation::filter::{Condition, Joiner};
use shared::operation::read::join::JoinKind;
use shared::policy::{Action, role_forbids};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tables for which a role keeps its view of the columns. Beyond it, all are made anew.
const VIEWS_MAX_COUNT: usize = 1_000;

/// Tables for which a caller's rules stay bound to its claims. Beyond it, all are bound anew.
const BOUND_MAX_COUNT: usize = 16;

/// What a caller may do in its project.
#[derive(Clone, Debug)]
pub enum Rights {
    /// Everything.
    Full,
    /// Every read.
    Read,
    /// What a role allows.
    Role(Arc<CallerRole>),
}

/// A role of a project, shared by its callers.
#[derive(Debug)]
pub struct ProjectRole {
    name: RoleName,
    role: Role,
    views: Mutex<HashMap<TablePath, View>>,
}

/// A role's view of a table.
#[derive(Debug)]
struct View {
    /// The table that the view was made of.
    of: Arc<Table>,
    table: Arc<Table>,
}

/// A role with the claims of one caller.
#[derive(Debug)]
pub struct CallerRole {
    role: Arc<ProjectRole>,
    claims: Claims,
    /// The access to tables, with the table that it was made of.
    bound: Mutex<Vec<(Arc<Table>, TableAccess)>>,
}

/// A table as a caller may use it.
#[derive(Clone, Debug)]
pub struct TableAccess {
    /// The columns that the caller may read are found by name.
    table: Arc<Table>,
    /// `None` if everything is allowed.
    limits: Option<Arc<Limits>>,
}

/// The rules of a role for a table, bound to a caller's claims. `None`: the action is not allowed.
#[derive(Debug, Default)]
struct Limits {
    read: Option<RowRule>,
    insert: Option<WriteLimits>,
    update: Option<WriteLimits>,
    delete: Option<RowRule>,
}

/// The condition on records; `None` for all records.
type RowRule = Option<Arc<Predicate>>;

#[derive(Debug)]
struct WriteLimits {
    /// Whether the caller may give a field, by the column's index.
    may_give: Vec<bool>,
    /// The values of columns that the caller may not give; `None` if a claim is missing or no value of its column.
    set: Option<Vec<(usize, Operand)>>,
    rows: RowRule,
}

impl ProjectRole {
    #[must_use]
    pub fn new(name: RoleName, role: Role) -> Self {
        Self { name, role, views: Mutex::default() }
    }

    #[must_use]
    pub fn name(&self) -> &RoleName {
        &self.name
    }

    #[must_use]
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// Returns the table with only the columns that the role may read, the same for all callers.
    fn view(&self, table: &Arc<Table>, rule: &TableRule) -> Arc<Table> {
        let path = TablePath { database: table.database().clone(), table: table.name().clone() };
        let mut views = lock(&self.views);
        if let Some(view) = views.get(&path)
            && Arc::ptr_eq(&view.of, table)
        {
            return Arc::clone(&view.table);
        }
        let fields = rule.read.as_ref().map(|read| &read.fields);
        let view = match fields {
            Some(Fields::All) => Arc::clone(table),
            fields => Arc::new(table.restricted(|column| fields.is_some_and(|fields| fields.has(&column.name)))),
        };
        if views.len() >= VIEWS_MAX_COUNT {
            views.clear();
        }
        views.insert(path, View { of: Arc::clone(table), table: Arc::clone(&view) });
        view
    }
}

impl CallerRole {
    #[must_use]
    pub fn new(role: Arc<ProjectRole>, claims: Claims) -> Self {
        Self { role, claims, bound: Mutex::default() }
    }

    #[must_use]
    pub fn name(&self) -> &RoleName {
        self.role.name()
    }

    #[must_use]
    pub fn role(&self) -> &Role {
        self.role.role()
    }

    #[must_use]
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    fn access(&self, table: &Arc<Table>) -> Result<TableAccess, Problem> {
        let mut bound = lock(&self.bound);
        if let Some((_, access)) = bound.iter().find(|(of, _)| Arc::ptr_eq(of, table)) {
            return Ok(access.clone());
        }
        let rule = self.role().rule(table.database(), table.name());
        let rule = rule.ok_or_else(|| no_table(table.database().as_str(), table.name().as_str()))?;
        let view = self.role.view(table, rule);
        let limits = Limits::bind(rule, table, &view, &self.claims);
        let access = TableAccess { table: view, limits: Some(Arc::new(limits)) };
        // A reloaded table replaces its former description.
        bound.retain(|(of, _)| (of.database(), of.name()) != (table.database(), table.name()));
        if bound.len() >= BOUND_MAX_COUNT {
            bound.clear();
        }
        bound.push((Arc::clone(table), access.clone()));
        Ok(access)
    }
}

/// The value is whole at every step, so a poisoned lock still guards good data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_table(database: &str, table: &str) -> Problem {
    Problem::new(ErrorCode::TableNotFound, format!("The database {} has no table {}.", shown(database), shown(table)))
}

impl Rights {
    /// Returns the access to a table.
    ///
    /// # Errors
    /// `table_not_found` if the caller's role may do nothing with the table.
    pub fn of(&self, table: &Arc<Table>) -> Result<TableAccess, Problem> {
        match self {
            Self::Full | Self::Read => Ok(TableAccess { table: Arc::clone(table), limits: None }),
            Self::Role(role) => role.access(table),
        }
    }

    /// Refuses tables with which the caller's role may do nothing, before their schema is read: the caller must not
    /// learn whether they exist.
    ///
    /// # Errors
    /// `database_not_found` or `table_not_found`.
    pub fn check(&self, path: &TablePath) -> Result<(), Problem> {
        let Self::Role(caller) = self else {
            return Ok(());
        };
        let role = caller.role();
        if role.rule(&path.database, &path.table).is_some() {
            return Ok(());
        }
        match role.knows_database(&path.database) {
            true => Err(no_table(path.database.as_str(), path.table.as_str())),
            false => Err(Problem::new(
                ErrorCode::DatabaseNotFound,
                format!("There is no database {}.", shown(path.database.as_str())),
            )),
        }
    }

    /// Returns the caller's role; `None` for full and read keys.
    #[must_use]
    pub fn role(&self) -> Option<&Arc<CallerRole>> {
        match self {
            Self::Full | Self::Read => None,
            Self::Role(role) => Some(role),
        }
    }
}

impl Limits {
    /// Resolves a rule's fields and values. `view` has the columns of `table` in another order.
    fn bind(rule: &TableRule, table: &Arc<Table>, view: &Table, claims: &Claims) -> Self {
        let rows = |rows: &Option<Template>| rows.as_ref().map(|rows| Arc::new(rows_of(rows, table, view, claims)));
        let write = |rule: &WriteRule| WriteLimits {
            may_give: view
                .all_columns()
                .map(|at| {
                    let name = &view.column(at).name;
                    rule.fields.has(name) && !rule.set.iter().any(|(set, _)| set == name)
                })
                .collect(),
            set: rule.set.iter().map(|(name, value)| set_value(name, value, view, claims)).collect(),
            rows: rows(&rule.rows),
        };
        Self {
            read: rule.read.as_ref().map(|rule| rows(&rule.rows)),
            insert: rule.insert.as_ref().map(write),
            update: rule.update.as_ref().map(write),
            delete: rule.delete.as_ref().map(|rule| rows(&rule.rows)),
        }
    }
}

/// Returns a rule's condition on the columns of `view`. It is false if a claim is missing, or if a field or value does
/// not fit the table.
fn rows_of(rows: &Template, table: &Arc<Table>, view: &Table, claims: &Claims) -> Predicate {
    let nothing = || Predicate::Any(Vec::new());
    let condition = rows.fill(claims).and_then(|query| Condition::from_query(&query, Joiner::And).ok());
    let Some(condition) = condition else {
        return nothing();
    };
    // A rule may name fields that its callers can't read.
    let whole = TableAccess { table: Arc::clone(table), limits: None };
    match predicate(&condition.unwrap_or(Condition::Any(Vec::new())), &Scope::of(&whole)) {
        Ok(predicate) => moved(predicate, &|column_ref| {
            let name = &table.column(column_ref.column).name;
            ColumnRef { source: 0, column: view.find_hidden(name).unwrap_or(column_ref.column) }
        }),
        Err(_) => nothing(),
    }
}

/// Returns a column's index and the value that the role sets it to; `None` if that is not possible.
fn set_value(name: &FieldName, value: &Template, view: &Table, claims: &Claims) -> Option<(usize, Operand)> {
    let at = view.find_hidden(name).filter(|at| !view.column(*at).generated)?;
    let value = value.fill(claims)?;
    Some((at, bind::value(view.column(at), &value, Purpose::Store).ok()?))
}

impl TableAccess {
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Returns whether the caller may do an action on records of the table.
    #[must_use]
    pub fn may(&self, action: Action) -> bool {
        self.limits.as_ref().is_none_or(|limits| match action {
            Action::Insert => limits.insert.is_some(),
            Action::Update => limits.update.is_some(),
            Action::Delete => limits.delete.is_some(),
            _ => limits.read.is_some(),
        })
    }

    /// Returns whether the caller may give the column a value in an insert or an update.
    #[must_use]
    pub fn may_write(&self, column: usize) -> bool {
        self.limits.as_ref().is_none_or(|limits| {
            let gives = |write: &Option<WriteLimits>| write.as_ref().is_some_and(|write| write.may_give[column]);
            gives(&limits.insert) || gives(&limits.update)
        })
    }

    /// Returns the condition on records for an action, which the caller may do; `None` without one.
    #[must_use]
    pub fn condition(&self, action: Action) -> Option<&Predicate> {
        let limits = self.limits.as_ref()?;
        let rows = match action {
            Action::Insert => limits.insert.as_ref()?.rows.as_ref(),
            Action::Update => limits.update.as_ref()?.rows.as_ref(),
            Action::Delete => limits.delete.as_ref()?.as_ref(),
            _ => limits.read.as_ref()?.as_ref(),
        };
        rows.map(|rows| &**rows)
    }

    /// Returns the fields that the caller may give in an insert or update, and those that its role sets.
    #[must_use]
    pub fn fields(&self, action: Action) -> (Vec<&str>, Vec<&str>) {
        let all = self.table.all_columns().map(|at| (at, self.table.column(at)));
        let name = |at: usize| self.table.column(at).name.as_str();
        let write = self.limits.as_ref().and_then(|limits| match action {
            Action::Insert => limits.insert.as_ref(),
            _ => limits.update.as_ref(),
        });
        let Some(write) = write else {
            return (all.filter(|(_, column)| !column.generated).map(|(at, _)| name(at)).collect(), Vec::new());
        };
        let given = all.filter(|(at, column)| write.may_give[*at] && !column.generated).map(|(at, _)| name(at));
        let set = write.set.as_deref().unwrap_or_default();
        (given.collect(), set.iter().map(|(at, _)| name(*at)).collect())
    }

    /// Returns the scope of a condition on the table.
    #[must_use]
    pub fn scope(&self) -> Scope<'_> {
        Scope::of(self)
    }

    fn forbids(&self, what: &str) -> Problem {
        role_forbids(&format!("{what} {}.{}", self.table.database(), self.table.name()))
    }

    /// Returns the condition on records that the caller may read.
    ///
    /// # Errors
    /// `role_forbids`
    pub(super) fn reading(&self) -> Result<RowRule, Problem> {
        let Some(limits) = &self.limits else {
            return Ok(None);
        };
        limits.read.clone().ok_or_else(|| self.forbids("read records of"))
    }

    /// Returns the condition on records that the caller may delete.
    ///
    /// # Errors
    /// `role_forbids`
    pub(super) fn deleting(&self) -> Result<RowRule, Problem> {
        let Some(limits) = &self.limits else {
            return Ok(None);
        };
        limits.delete.clone().ok_or_else(|| self.forbids("delete records of"))
    }

    /// Returns the rules for inserts.
    ///
    /// # Errors
    /// `role_forbids`
    pub(super) fn inserting(&self) -> Result<Writing<'_>, Problem> {
        self.writing(|limits| limits.insert.as_ref(), "insert records into")
    }

    /// Returns the rules for updates.
    ///
    /// # Errors
    /// `role_forbids`
    pub(super) fn updating(&self) -> Result<Writing<'_>, Problem> {
        self.writing(|limits| limits.update.as_ref(), "update records of")
    }

    fn writing(
        &self,
        limits_of: impl FnOnce(&Limits) -> Option<&WriteLimits>,
        what: &'static str,
    ) -> Result<Writing<'_>, Problem> {
        let limits = match &self.limits {
            None => None,
            Some(limits) => Some(limits_of(limits).ok_or_else(|| self.forbids(what))?),
        };
        if limits.is_some_and(|limits| limits.set.is_none()) {
            return Err(self.forbids(what).with_hint("A claim that the role needs is missing in the key or token."));
        }
        Ok(Writing { access: self, limits, what })
    }
}

/// The rules for inserts or for updates of one caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing<'a> {
    access: &'a TableAccess,
    limits: Option<&'a WriteLimits>,
    what: &'static str,
}

impl<'a> Writing<'a> {
    /// Returns the index of the column that a field names.
    ///
    /// # Errors
    /// `unknown_field`; `role_forbids` if the caller may not give the field, but may read it.
    pub(super) fn column(&self, name: &FieldName) -> Result<usize, Problem> {
        let table = &self.access.table;
        let hidden = table.find_hidden(name).filter(|at| self.may_give(*at));
        let at = hidden.map_or_else(|| table.field(name), Ok)?;
        match self.may_give(at) {
            true => Ok(at),
            false => {
                let field = shown(name.as_str());
                Err(self.access.forbids(&format!("give the field {field} a value in order to {}", self.what)))
            }
        }
    }

    fn may_give(&self, at: usize) -> bool {
        self.limits.is_none_or(|limits| limits.may_give[at])
    }

    /// Returns the columns that the role sets, with their values.
    pub(super) fn set(&self) -> &'a [(usize, Operand)] {
        self.limits.and_then(|limits| limits.set.as_deref()).unwrap_or_default()
    }

    /// Returns the condition on the records.
    pub(super) fn rows(&self) -> Option<&'a Arc<Predicate>> {
        self.limits.and_then(|limits| limits.rows.as_ref())
    }

    /// Refuses to write records with a condition that can't be checked on the new record.
    pub(super) fn unchecked(&self, why: &str) -> Problem {
        self.access.forbids(self.what).with_hint(format!("The role's rule can't be checked: {why}."))
    }
}

/// Adds to a condition that of a rule.
pub(super) fn and(condition: Option<Predicate>, rule: Option<Predicate>) -> Option<Predicate> {
    match (condition, rule) {
        // The rule comes first, which MariaDB's optimiser ignores, but a reader sees.
        (Some(Predicate::All(mut parts)), Some(rule)) if !parts.is_empty() => {
            parts.push(rule);
            Some(Predicate::All(parts))
        }
        (Some(condition), Some(rule)) => Some(Predicate::All(vec![condition, rule])),
        (one, other) => one.or(other),
    }
}

/// Adds the rules of all tables to the joins, and returns the rest: the condition on the rows of the whole join. A rule is
/// added to the join that first uses its table, so that the other tables' rows stay; only a RIGHT JOIN keeps the rows of
/// its own table, whatever its condition says.
///
/// # Errors
/// `role_forbids`
pub(super) fn restrict(joins: &mut [Join], scope: &Scope<'_>) -> Result<Option<Predicate>, Problem> {
    let mut kept = rule_of(0, scope)?;
    for (at, join) in joins.iter_mut().enumerate() {
        let own = rule_of(at + 1, scope)?;
        let rule = match join.kind {
            JoinKind::Inner | JoinKind::Left => own,
            JoinKind::Right => std::mem::replace(&mut kept, own),
        };
        let on = std::mem::replace(&mut join.on, Predicate::All(Vec::new()));
        if let Some(on) = and(Some(on), rule) {
            join.on = on;
        }
    }
    Ok(kept)
}

fn rule_of(source: usize, scope: &Scope<'_>) -> Result<Option<Predicate>, Problem> {
    let rule = scope.access(source).reading()?;
    let at_source = |column_ref: ColumnRef| ColumnRef { source, ..column_ref };
    Ok(rule.map(|rule| moved(Predicate::clone(&rule), &at_source)))
}

/// Replaces the columns of a condition.
fn moved(predicate: Predicate, to: &impl Fn(ColumnRef) -> ColumnRef) -> Predicate {
    let all = |parts: Vec<Predicate>| parts.into_iter().map(|part| moved(part, to)).collect();
    match predicate {
        Predicate::Compare(at, comparison, operand) => Predicate::Compare(to(at), comparison, operand),
        Predicate::Same(one, other) => Predicate::Same(to(one), to(other)),
        Predicate::In(at, operands) => Predicate::In(to(at), operands),
        Predicate::Between(at, low, high) => Predicate::Between(to(at), low, high),
        Predicate::IsNull(at) => Predicate::IsNull(to(at)),
        Predicate::Like(at, pattern, operand) => Predicate::Like(to(at), pattern, operand),
        Predicate::Regexp(at, operand) => Predicate::Regexp(to(at), operand),
        Predicate::Match(search) => {
            let columns = search.columns.into_iter().map(to).collect();
            Predicate::Match(Search { columns, ..search })
        }
        Predicate::Ordered(by, comparison, operand) => Predicate::Ordered(moved_step(by, to), comparison, operand),
        Predicate::OrderedNull(by) => Predicate::OrderedNull(moved_step(by, to)),
        Predicate::All(parts) => Predicate::All(all(parts)),
        Predicate::Any(parts) => Predicate::Any(all(parts)),
        Predicate::Not(part) => Predicate::Not(Box::new(moved(*part, to))),
    }
}

/// Replaces the column of a sort step. Rules have no sort steps.
fn moved_step(by: Expression, to: &impl Fn(ColumnRef) -> ColumnRef) -> Expression {
    match by {
        Expression::Column(at) => Expression::Column(to(at)),
        other => other,
    }
}

/// Returns whether a condition reads one of these columns, or a column whose value may change by itself when the record
/// is written: a generated one, or one with a time.
pub(super) fn depends_on(predicate: &Predicate, changed: &[usize], table: &Table) -> bool {
    columns(predicate).into_iter().any(|at| {
        let column = table.column(at);
        changed.contains(&at) || column.generated || column.kind == Kind::DateTime
    })
}

/// Returns the indexes of the columns that a condition on one table reads.
pub(super) fn columns(predicate: &Predicate) -> Vec<usize> {
    let found = std::cell::RefCell::new(Vec::new());
    moved(predicate.clone(), &|column_ref| {
        found.borrow_mut().push(column_ref.column);
        column_ref
    });
    found.into_inner()
}

/// Checks a rule against its table: each field that it names exists, and each value fits its field. Values that are
/// claims are not known yet.
///
/// # Errors
/// The part of the rule, such as `read.fields`, and what is wrong there.
pub fn check_rule(rule: &TableRule, table: &Arc<Table>) -> Result<(), (String, String)> {
    let known = |part: &str, name: &FieldName| match table.field(name) {
        Ok(at) => Ok(at),
        Err(problem) => Err((part.to_owned(), said(&problem))),
    };
    let fields = |part: &str, fields: &Fields| {
        let part = format!("{part}.fields");
        fields.names().iter().try_for_each(|name| known(&part, name).map(drop))
    };
    let rows = |part: &str, rows: &Option<Template>| match rows {
        Some(rows) => check_rows(rows, table).map_err(|fault| (format!("{part}.rows"), fault)),
        None => Ok(()),
    };
    if let Some(read) = &rule.read {
        fields("read", &read.fields)?;
        rows("read", &read.rows)?;
    }
    for (part, write) in [("insert", &rule.insert), ("update", &rule.update)] {
        let Some(write) = write else {
            continue;
        };
        fields(part, &write.fields)?;
        rows(part, &write.rows)?;
        for (name, value) in &write.set {
            let part = format!("{part}.set.{name}");
            let column = table.column(known(&part, name)?);
            if column.generated {
                return Err((part, "MariaDB computes this field".to_owned()));
            }
            if value.claims().is_empty()
                && let Some(value) = value.fill(&Claims::default())
                && let Err(problem) = bind::value(column, &value, Purpose::Store)
            {
                return Err((part, said(&problem)));
            }
        }
        if write.rows.is_some() && (table.traits().view || !table.traits().inserts.transactional) {
            return Err((
                format!("{part}.rows"),
                "records of a view or of an engine without transactions can't be checked".to_owned(),
            ));
        }
    }
    rule.delete.as_ref().map_or(Ok(()), |delete| rows("delete", &delete.rows))
}

/// Stands for a claim while a rule is checked.
const CLAIM: &str = "\u{E000}claim";

fn check_rows(rows: &Template, table: &Arc<Table>) -> Result<(), String> {
    let example = rows.fill_with(|_| Some(format!("\"{CLAIM}\"")));
    let condition = example.and_then(|query| Condition::from_query(&query, Joiner::And).ok().flatten());
    let whole = TableAccess { table: Arc::clone(table), limits: None };
    match condition {
        Some(condition) => check_condition(&condition, &Scope::of(&whole)),
        None => Err("it can't be read".to_owned()),
    }
}

fn check_condition(condition: &Condition, scope: &Scope<'_>) -> Result<(), String> {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().try_for_each(|part| check_condition(part, scope)),
        Condition::Not(part) => check_condition(part, scope),
        Condition::Test(field, test) if test.mentions(CLAIM) => {
            scope.resolve(field, ErrorCode::InvalidFilter).map(drop).map_err(|problem| said(&problem))
        }
        test => predicate(test, scope).map(drop).map_err(|problem| said(&problem)),
    }
}

/// Returns a problem's message and hint, without the full stop.
fn said(problem: &Problem) -> String {
    let hint = problem.hint().map(|hint| format!(" {hint}")).unwrap_or_default();
    format!("{}{hint}", problem.message()).trim_end_matches('.').to_owned()
}
