//! What a caller may do with a table: everything, or what its role allows. Other modules get a [`TableAccess`] only
//! from [`Rights::of`], and a [`Scope`] consists of them, so that no plan is built without the caller's rights.

mod check;
mod claims_in_patterns;
mod limits;
mod rules;
mod views;

use super::related::RelatedTable;
use super::scope::Scope;
use super::{Operand, Predicate};
use crate::query::catalog::{Column, Table};
use crate::query::role::{Claims, Fields, Role, TableRule};
pub use check::{check_fields, check_rows};
pub(in crate::query) use rules::and;
pub(super) use rules::{ReadRules, changes_related, column_refs, columns, depends_on, own_rule, read_rule, restricted};
use shared::error::{ErrorCode, Problem};
use shared::ident::{DatabaseName, FieldName, RoleName, TableName, shown};
use shared::operation::filter::Related;
use shared::operation::write::OnConflict;
use shared::operation::{RecordOperation, TablePath};
use shared::policy::{Action, role_forbids};
use std::sync::{Arc, Mutex, PoisonError, Weak};
pub use views::Views;

/// Maximum tables whose rules, with the claims filled in, are cached for a caller. A full cache is emptied.
const BOUND_MAX_COUNT: usize = 16;

#[derive(Clone, Debug)]
pub enum Rights {
    Full,
    /// Writes of such a caller are refused by [`shared::policy::permit`], not by [`TableAccess`].
    Read,
    Role(Arc<CallerRole>),
}

#[derive(Debug)]
pub struct ProjectRole {
    name: RoleName,
    role: Role,
    number: u64,
    views: Arc<Views>,
}

#[derive(Debug)]
pub struct CallerRole {
    role: Arc<ProjectRole>,
    claims: Claims,
    bound: Mutex<Vec<Bound>>,
}

#[derive(Debug)]
struct Bound {
    /// The whole table, of which `view` is what the role sees. Other caches limit the memory of both.
    of: Weak<Table>,
    view: Weak<Table>,
    limits: Arc<Limits>,
}

#[derive(Clone, Debug)]
pub struct TableAccess {
    /// The table's description, in which columns that the caller may not read are hidden ([`Table::restricted`]).
    table: Arc<Table>,
    limits: Option<Arc<Limits>>,
}

#[derive(Debug, Default)]
struct Limits {
    read: Option<RowRule>,
    insert: Option<WriteLimits>,
    update: Option<WriteLimits>,
    delete: Option<RowRule>,
}

type RowRule = Option<Arc<Predicate>>;

#[derive(Debug)]
struct WriteLimits {
    may_give: Vec<bool>,
    /// The values that the role sets; `None` if a column is missing or generated, or a claim is missing or unfit.
    set: Option<Vec<(usize, Operand)>>,
    rows: RowRule,
}

impl ProjectRole {
    pub fn new(name: RoleName, role: Role, views: Arc<Views>) -> Self {
        Self { name, role, number: views.number(), views }
    }

    pub fn name(&self) -> &RoleName {
        &self.name
    }

    pub fn role(&self) -> &Role {
        &self.role
    }

    fn view(&self, table: &Arc<Table>, rule: &TableRule) -> Arc<Table> {
        let fields = rule.read.as_ref().map(|read| &read.fields);
        if let Some(Fields::All) = fields {
            return Arc::clone(table);
        }
        let may_read = |column: &Column| fields.is_some_and(|fields| fields.has(&column.name));
        self.views.get(self.number, table, || table.restricted(may_read))
    }
}

impl CallerRole {
    pub fn new(role: Arc<ProjectRole>, claims: Claims) -> Self {
        Self { role, claims, bound: Mutex::default() }
    }

    pub fn name(&self) -> &RoleName {
        self.role.name()
    }

    pub fn role(&self) -> &Role {
        self.role.role()
    }

    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Returns what identifies a caller: the role, the subject (`sub`), and the claims in the rules. Other claims, such
    /// as the time of issue, may differ between two tokens of one caller.
    pub fn identity(&self) -> Vec<u8> {
        let mut names = self.role().claims();
        names.insert("sub");
        let claims = names.into_iter().filter_map(|name| Some([name, self.claims.get(name)?]));
        let mut bytes = Vec::new();
        for part in [self.name().as_str()].into_iter().chain(claims.flatten()) {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }

    /// Rules that reach other tables are resolved each time: the cache must not hold the descriptions of these tables.
    fn access(&self, table: &Arc<Table>, related: &[RelatedTable]) -> Result<TableAccess, Problem> {
        let rule = self.role().rule(table.database(), table.name());
        let rule = rule.ok_or_else(|| no_table(table.database().as_str(), table.name().as_str()))?;
        if rule.related().next().is_some() {
            let view = self.role.view(table, rule);
            let limits = Arc::new(Limits::bind(rule, table, &view, &self.claims, related));
            return Ok(TableAccess { table: view, limits: Some(limits) });
        }
        // The list is valid after every step, so a poisoned lock can be used.
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bound) = bound.iter().find(|bound| bound.of.as_ptr() == Arc::as_ptr(table))
            && let Some(view) = bound.view.upgrade()
        {
            return Ok(TableAccess { table: view, limits: Some(Arc::clone(&bound.limits)) });
        }
        let view = self.role.view(table, rule);
        let limits = Arc::new(Limits::bind(rule, table, &view, &self.claims, &[]));
        bound.retain(|bound| bound.view.strong_count() > 0);
        if bound.len() >= BOUND_MAX_COUNT {
            bound.clear();
        }
        let (of, of_role) = (Arc::downgrade(table), Arc::downgrade(&view));
        bound.push(Bound { of, view: of_role, limits: Arc::clone(&limits) });
        Ok(TableAccess { table: view, limits: Some(limits) })
    }
}

fn no_table(database: &str, table: &str) -> Problem {
    Problem::new(ErrorCode::TableNotFound, format!("The database {} has no table {}.", shown(database), shown(table)))
}

impl Rights {
    /// Rules of a role that reach other tables allow no record. [`Rights::by`] resolves them too.
    pub fn of(&self, table: &Arc<Table>) -> Result<TableAccess, Problem> {
        self.by(table, &[])
    }

    /// `related` are the tables that the role's rules for the table reach ([`Rights::related`]), with full rights.
    pub fn by(&self, table: &Arc<Table>, related: &[RelatedTable]) -> Result<TableAccess, Problem> {
        match self {
            Self::Full | Self::Read => Ok(TableAccess { table: Arc::clone(table), limits: None }),
            Self::Role(role) => role.access(table, related),
        }
    }

    /// Whether a write of the field may refer to related records only if the caller may read them.
    pub fn checks_reference(&self, operation: &RecordOperation, field: &FieldName) -> bool {
        let path = operation.table();
        let Some(rule) = self.role().and_then(|caller| caller.role().rule(&path.database, &path.table)) else {
            return false;
        };
        let (is_given, rules) = match operation {
            RecordOperation::Insert(insert) => {
                let updates = insert.on_conflict == OnConflict::Update;
                (insert.fields.contains(field), [rule.insert.as_ref(), rule.update.as_ref().filter(|_| updates)])
            }
            RecordOperation::Update(update) => (update.fields.contains(field), [rule.update.as_ref(), None]),
            _ => return false,
        };
        is_given && rules.into_iter().flatten().any(|rule| !rule.unchecked.contains(field))
    }

    /// Whether the caller may read some records of the table, but not all.
    pub fn hides_rows(&self, path: &TablePath) -> bool {
        let rule = self.role().and_then(|caller| caller.role().rule(&path.database, &path.table));
        rule.is_some_and(TableRule::hides_rows)
    }

    /// The conditions on related records in the rules for the table.
    pub fn related(&self, path: &TablePath) -> Vec<&Related> {
        let rule = self.role().and_then(|caller| caller.role().rule(&path.database, &path.table));
        rule.into_iter().flat_map(TableRule::related).collect()
    }

    /// Refuses tables with which the caller's role may do nothing, before their schema is read: the caller must not
    /// learn whether they exist.
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

    /// Whether the role's rule lists the field for reads; true without a role. Reads may still be denied, because a
    /// field that the rule omits does not exist ([`TableRule::of_table`]).
    pub fn reads(&self, database: &DatabaseName, table: &TableName, field: &FieldName) -> bool {
        let Self::Role(caller) = self else {
            return true;
        };
        let read = caller.role().rule(database, table).and_then(|rule| rule.read.as_ref());
        read.is_some_and(|read| read.fields.has(field))
    }

    pub fn role(&self) -> Option<&Arc<CallerRole>> {
        match self {
            Self::Full | Self::Read => None,
            Self::Role(role) => Some(role),
        }
    }
}

impl TableAccess {
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether the role allows the action; true without a role, even for a write by [`Rights::Read`]. All actions but
    /// writes of records count as reads.
    pub fn may(&self, action: Action) -> bool {
        self.limits.as_ref().is_none_or(|limits| match action {
            Action::Insert => limits.insert.is_some(),
            Action::Update => limits.update.is_some(),
            Action::Delete => limits.delete.is_some(),
            _ => limits.read.is_some(),
        })
    }

    pub fn may_write(&self, column: usize) -> bool {
        self.limits.as_ref().is_none_or(|limits| {
            let gives = |write: &Option<WriteLimits>| write.as_ref().is_some_and(|write| write.may_give[column]);
            gives(&limits.insert) || gives(&limits.update)
        })
    }

    /// Whether the role sets the column in inserts. False if any value that the role sets can't be resolved.
    pub fn sets(&self, column: usize) -> bool {
        let insert = self.limits.as_ref().and_then(|limits| limits.insert.as_ref()?.set.as_ref());
        insert.is_some_and(|set| set.iter().any(|(at, _)| *at == column))
    }

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

    pub fn rules_have_parsed_patterns(&self) -> bool {
        [Action::Read, Action::Insert, Action::Update, Action::Delete]
            .into_iter()
            .filter_map(|action| self.condition(action))
            .any(Predicate::has_parsed_pattern)
    }

    pub fn fields(&self, action: Action) -> (Vec<&str>, Vec<&str>) {
        let name = |at: usize| self.table.column(at).name.as_str();
        let set = self.write_limits(action).and_then(|write| write.set.as_deref()).unwrap_or_default();
        (self.given(action).into_iter().map(name).collect(), set.iter().map(|(at, _)| name(*at)).collect())
    }

    /// The columns that the caller may give, without generated columns. Call [`TableAccess::may`] first: all columns
    /// are returned if the role forbids the action.
    pub fn given(&self, action: Action) -> Vec<usize> {
        let write = self.write_limits(action);
        let may_give = |at: usize| write.is_none_or(|write| write.may_give[at]);
        self.table.all_columns().filter(|at| may_give(*at) && !self.table.column(*at).generated).collect()
    }

    fn write_limits(&self, action: Action) -> Option<&WriteLimits> {
        let limits = self.limits.as_ref()?;
        match action {
            Action::Insert => limits.insert.as_ref(),
            _ => limits.update.as_ref(),
        }
    }

    pub fn scope(&self) -> Scope<'_> {
        Scope::of(self)
    }

    fn forbids(&self, what: &str) -> Problem {
        role_forbids(&format!("{what} {}.{}", self.table.database(), self.table.name()))
    }

    pub(super) fn reading(&self) -> Result<RowRule, Problem> {
        let Some(limits) = &self.limits else {
            return Ok(None);
        };
        limits.read.clone().ok_or_else(|| self.forbids("read records of"))
    }

    pub(super) fn deleting(&self) -> Result<RowRule, Problem> {
        let Some(limits) = &self.limits else {
            return Ok(None);
        };
        limits.delete.clone().ok_or_else(|| self.forbids("delete records of"))
    }

    pub(super) fn inserting(&self) -> Result<Writing<'_>, Problem> {
        self.writing(|limits| limits.insert.as_ref(), "insert records into")
    }

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

#[derive(Clone, Copy, Debug)]
pub(super) struct Writing<'a> {
    access: &'a TableAccess,
    limits: Option<&'a WriteLimits>,
    what: &'static str,
}

impl<'a> Writing<'a> {
    pub(super) fn column(&self, name: &FieldName) -> Result<usize, Problem> {
        let table = &self.access.table;
        let hidden = table.find_hidden(name).filter(|at| self.may_give(*at));
        let at = hidden.map_or_else(|| table.field(name), Ok)?;
        match self.may_give(at) {
            true => Ok(at),
            false => {
                let field = shown(name.as_str());
                let what = format!("give the field {field} a value in order to {}", self.what);
                Err(self.access.forbids(&what).with_field(name.as_str()))
            }
        }
    }

    fn may_give(&self, at: usize) -> bool {
        self.limits.is_none_or(|limits| limits.may_give[at])
    }

    pub(super) fn set(&self) -> &'a [(usize, Operand)] {
        self.limits.and_then(|limits| limits.set.as_deref()).unwrap_or_default()
    }

    pub(super) fn rows(&self) -> Option<&'a Arc<Predicate>> {
        self.limits.and_then(|limits| limits.rows.as_ref())
    }

    pub(super) fn uncheckable(&self, why: &str) -> Problem {
        self.access.forbids(self.what).with_hint(format!("The role's rule can't be checked: {why}."))
    }
}
