//! Resolves inserts, updates and deletes.

use super::access::{self, TableAccess, Writing, restricted};
use super::bind::{self, BindFor};
use super::filter::IdPurpose;
use super::returning::{change, check_engine, without_transactions};
use super::scope::Scope;
use super::{
    ColumnChange, Delete, Insert, InsertAnswer, InsertCheck, InsertOne, MaxAffected, OnConflict, Operand, Plan,
    PlanLimits, Predicate, Reread, Returning, TransactionSteps, Update, Verification, filter, related,
};
use crate::query::catalog::{Column, Table};
use shared::error::{ErrorCode, Faults, Problem};
use shared::format::Format;
use shared::ident::{FieldName, shown};
use shared::json::Value;
use shared::operation::RecordOperation;
use shared::operation::write::{self, Import};
use shared::policy::{Action, role_forbids};

type Row = Vec<Option<Operand>>;

pub(super) fn insert<'a>(
    insert: &'a write::Insert,
    scope: &Scope<'_>,
    limits: PlanLimits,
) -> Result<Plan<'a>, Problem> {
    let (access, batch_max_rows) = (scope.access(0), limits.batch_max_rows);
    let (table, rules) = (access.table(), access.inserting()?);
    let count = insert.rows.as_slice().len();
    if count > batch_max_rows {
        return Err(Problem::new(
            ErrorCode::InvalidBody,
            match insert.import {
                None => format!("batchData has {count} rows; {batch_max_rows} is the maximum per request."),
                Some(_) => format!("The body has {count} rows; {batch_max_rows} is the maximum per request."),
            },
        ));
    }
    writable(table)?;
    check_engine(&insert.options, table)?;
    let records = insert.options.returning.as_ref().map(|fields| Returning::of(fields, &access.scope())).transpose()?;
    let most = limits.read_max_rows.filter(|most| records.is_some() && count as u64 > *most);
    if let Some(most) = most.filter(|_| !insert.options.is_dry_run) {
        return Err(MaxAffected::of_response(most).exceeded());
    }
    let (mut columns, mut rows) = resolved(insert, table, &rules)?;
    for (at, value) in rules.set() {
        columns.push(*at);
        rows.iter_mut().for_each(|row| row.push(Some(value.clone())));
    }
    let answer = match (&insert.rows, table.key_is_readable()) {
        _ if insert.options.is_dry_run => InsertAnswer::Count,
        (write::InsertedRows::One(_), _) if records.is_some() => InsertAnswer::Record,
        (write::InsertedRows::Batch(_), _) if records.is_some() => InsertAnswer::Records,
        (write::InsertedRows::One(_), true) => InsertAnswer::Id,
        (write::InsertedRows::Batch(_), true) => InsertAnswer::Ids,
        (write::InsertedRows::One(_), false) => InsertAnswer::Hidden,
        (write::InsertedRows::Batch(rows), false) => InsertAnswer::HiddenList(rows.len()),
    };
    if insert.idempotent.is_some() && !table.traits().inserts.transactional {
        return Err(no_transactions(table));
    }
    let on_conflict = on_conflict(insert.on_conflict, table)?;
    let set_count = rules.set().len();
    let given = &columns[..columns.len() - set_count];
    let check = insert_check(on_conflict, given, scope, &rules)?;
    let set_on_conflict = match on_conflict {
        OnConflict::Update { .. } => access.updating()?.set().to_vec(),
        OnConflict::Refuse | OnConflict::Ignore { .. } | OnConflict::Skip => Vec::new(),
    };
    let returning = match (table.traits().view, answer) {
        (true, _) | (_, InsertAnswer::Hidden | InsertAnswer::HiddenList(_)) => Vec::new(),
        (false, InsertAnswer::Id)
            if on_conflict == OnConflict::Refuse && check.is_none() && is_counted(table, &columns) =>
        {
            Vec::new()
        }
        // A dry run counts the returned rows, so any column will do.
        (false, InsertAnswer::Count) if table.key().is_empty() => vec![0],
        (false, InsertAnswer::Record | InsertAnswer::Records) if !table.key_is_readable() => Vec::new(),
        (false, _) => table.key().to_vec(),
    };
    // An insert with an Idempotency-Key runs in a transaction of its own.
    let may_share = answer == InsertAnswer::Id
        && on_conflict == OnConflict::Refuse
        && check.is_none()
        && insert.idempotent.is_none();
    if may_share
        && let [row] = rows.as_mut_slice()
        && let Some(one) = InsertOne::new(table, &columns, row, &returning)
    {
        return Ok(Plan::InsertOne(one));
    }
    let is_list = matches!(insert.rows, write::InsertedRows::Batch(_));
    Ok(Plan::Insert(
        Insert { is_list, on_conflict, columns, rows, returning, records, answer, set_count, set_on_conflict, check },
        insert.idempotent.as_ref(),
    ))
}

fn insert_check(
    on_conflict: OnConflict,
    given: &[usize],
    scope: &Scope<'_>,
    inserts: &Writing<'_>,
) -> Result<Option<InsertCheck>, Problem> {
    let (access, table) = (scope.access(0), scope.root());
    let inserted = inserts.rows().map(|rule| Predicate::clone(rule));
    let updated = match on_conflict {
        OnConflict::Update { .. } => {
            let updates = access.updating()?;
            for at in given.iter().filter(|at| !is_key(**at, table)) {
                updates.column(&table.column(*at).name)?;
            }
            updates.rows().map(|rule| Predicate::clone(rule))
        }
        OnConflict::Refuse | OnConflict::Ignore { .. } | OnConflict::Skip => None,
    };
    let references = related::references(scope, given)?;
    if inserted.is_none() && updated.is_none() && references.is_empty() {
        return Ok(None);
    }
    match table.traits() {
        traits if traits.view => Err(inserts.uncheckable("this is a view")),
        traits if !traits.inserts.transactional => Err(inserts.uncheckable("the table's engine has no transactions")),
        _ => Ok(Some(InsertCheck { inserted, updated, references })),
    }
}

/// Whether the column is part of a key, which an upsert does not change in an existing record.
pub(in crate::query) fn is_key(at: usize, table: &Table) -> bool {
    table.column(at).primary || table.key().contains(&at)
}

/// Refuses a read-only view. The `Allow` header of the error has only GET, HEAD and OPTIONS.
fn writable(table: &Table) -> Result<(), Problem> {
    if !table.traits().read_only {
        return Ok(());
    }
    let name = shown(table.name().as_str());
    Err(Problem::new(ErrorCode::MethodNotAllowed, format!("The view {name} can only be read."))
        .with_hint("Write to the tables that it reads.")
        .with_allow("GET, HEAD, OPTIONS"))
}

/// The problem of an idempotency key without transactions: a record could be stored without its receipt, and again.
fn no_transactions(table: &Table) -> Problem {
    let why = without_transactions(table);
    Problem::new(
        ErrorCode::InvalidQueryOption,
        format!("The header Idempotency-Key can't be kept to with {}: {why}.", shown(table.name().as_str())),
    )
    .with_hint("Leave it out, or insert into a table whose engine is InnoDB.")
}

/// Resolves `onConflict`: values other than `Refuse` fail for views and tables without a unique key or an [`anchor`].
fn on_conflict(wanted: write::OnConflict, table: &Table) -> Result<OnConflict, Problem> {
    let traits = table.traits();
    let unfit = |what: &str| {
        Problem::new(
            ErrorCode::InvalidQueryOption,
            format!("onConflict has no meaning for {}: {what}.", shown(table.name().as_str())),
        )
        .with_hint("Leave onConflict out.")
    };
    match wanted {
        write::OnConflict::Refuse => return Ok(OnConflict::Refuse),
        _ if traits.view => {
            return Err(unfit("a view has no keys of its own"));
        }
        _ if !traits.inserts.unique_key => {
            return Err(unfit("it has no unique key that a record could hold"));
        }
        _ => {}
    }
    let anchor = anchor(table).ok_or_else(|| unfit("all of its fields are computed"))?;
    Ok(match wanted {
        write::OnConflict::Update => OnConflict::Update { anchor },
        _ if traits.inserts.update_triggers => OnConflict::Skip,
        _ => OnConflict::Ignore { anchor },
    })
}

/// The column that ON DUPLICATE KEY UPDATE sets to itself: one of the key if possible, which MariaDB has read already.
fn anchor(table: &Table) -> Option<usize> {
    let mut candidates = table.key().iter().copied().chain(table.all_columns());
    candidates.find(|at| !table.column(*at).generated)
}

/// Whether MariaDB reports the key as the last insert id: the key is one AUTO_INCREMENT column that the insert does not
/// set, and no trigger can change it.
fn is_counted(table: &Table, columns: &[usize]) -> bool {
    match table.key() {
        [at] => {
            let counts = table.column(*at).auto_increment;
            counts && !columns.contains(at) && !table.traits().stored_code
        }
        _ => false,
    }
}

fn resolved(insert: &write::Insert, table: &Table, rules: &Writing<'_>) -> Result<(Vec<usize>, Vec<Row>), Problem> {
    let given = insert.rows.as_slice();
    let is_list = matches!(insert.rows, write::InsertedRows::Batch(_));
    let import = insert.import.as_ref();
    let bind = match import.map(Import::format) {
        Some(Format::Csv) => bind::cell,
        Some(Format::NdJson | Format::Envelope) | None => stored,
    };
    let mut faults = Faults::default();
    let in_row = |at: usize, problem: Problem| if is_list { problem.with_row(at) } else { problem };
    // The error of a refused field is reported for the first row that gives the field, before errors of values.
    let mut columns: Vec<Result<usize, (usize, Problem)>> = Vec::with_capacity(insert.fields.len());
    for (nth, name) in insert.fields.iter().enumerate() {
        columns.push(writable_column(name, table, rules).map_err(|problem| {
            let first = given.iter().position(|row| row[nth].is_some()).unwrap_or_default();
            faults.add(|| in_row(first, problem.clone()));
            (first, problem)
        }));
        if faults.is_full() {
            break;
        }
    }
    let mut rows = Vec::with_capacity(given.len());
    for (at, row) in given.iter().enumerate() {
        let mut cells = Vec::with_capacity(row.len());
        for (column, cell) in columns.iter().zip(row) {
            let bound = match (column, cell) {
                (Ok(column), Some(value)) => {
                    let bound = faults.check(|| {
                        bind(table.column(*column), value).map_err(|problem| {
                            let problem = import.map_or(problem.clone(), |import| import.name_line(at, &problem));
                            in_row(at, problem)
                        })
                    });
                    bound.flatten()
                }
                (Err((first, problem)), Some(_)) if at > *first => {
                    faults.add(|| in_row(at, problem.clone()));
                    None
                }
                _ => None,
            };
            cells.push(bound);
        }
        rows.push(cells);
        if faults.is_full() {
            break;
        }
    }
    faults.end()?;
    Ok((columns.into_iter().filter_map(Result::ok).collect(), rows))
}

fn stored(column: &Column, value: &Value) -> Result<Option<Operand>, Problem> {
    bind::value(column, value, BindFor::Store).map(Some)
}

pub(super) fn update<'p>(
    update: &write::Update,
    scope: &Scope<'_>,
    max_rows: Option<u64>,
) -> Result<Plan<'p>, Problem> {
    let (table, rules) = (scope.root(), scope.access(0).updating()?);
    writable(table)?;
    let mut faults = Faults::default();
    let given = update.fields.iter().zip(&update.values);
    let changes = given.filter_map(|(name, value)| {
        faults.check(|| {
            let at = writable_column(name, table, &rules)?;
            match change(table.column(at), value)? {
                // Whether the sum overflows would reveal the value of the hidden field.
                ColumnChange::Add(_) if table.find(name).is_none() => {
                    Err(role_forbids("add to a field that it may not read"))
                }
                change => Ok((at, change)),
            }
        })
    });
    let mut changes: Vec<_> = changes.collect();
    let target = faults.check(|| target(&update.target, scope, Action::Update));
    faults.end()?;
    changes.extend(rules.set().iter().map(|(at, operand)| (*at, ColumnChange::Set(operand.clone()))));
    let rule = rules.rows().map(|rule| Predicate::clone(rule));
    let changed: Vec<_> = changes.iter().map(|(at, _)| *at).collect();
    let changes_related = rule.as_ref().is_some_and(|rule| access::changes_related(rule, &changed, table));
    let check = rule.clone().filter(|rule| changes_related || access::depends_on(rule, &changed, table));
    let given = &changed[..changed.len() - rules.set().len()];
    let references = related::references(scope, given)?;
    if let Some(check) = &check {
        if !table.traits().inserts.transactional {
            return Err(rules.uncheckable("the table's engine has no transactions"));
        }
        let is_given = |at: &usize| changes.iter().any(|(changed, _)| changed == at);
        if access::columns(check).iter().any(|at| table.column(*at).on_update && !is_given(at)) {
            return Err(rules.uncheckable("it reads a field that MariaDB sets at each update"));
        }
        if access::columns(check).into_iter().any(|at| table.column(at).generated) {
            return Err(rules.uncheckable("it reads a generated field, whose new value MariaDB does not tell"));
        }
    }
    let filter = restricted(target, rule)?.unwrap_or(Predicate::Any(Vec::new()));
    let options = &update.options;
    let most = MaxAffected::of(options, &update.target, max_rows);
    let mut steps = TransactionSteps::of(options, &update.target, (most, scope))?;
    if let (Some(steps), Some(fields)) = (&mut steps, &options.returning) {
        let returning = Returning::of(fields, scope)?;
        let changed = (changes.as_slice(), most);
        steps.reread = Some(Reread::of(returning, (&update.target, &filter), changed, table)?);
    }
    let mut update_plan = Update { changes, filter, check, references, limit: limit(most) };
    if changes_related || update_plan.may_see_old_values(table) {
        let verifications = update_plan.verifications((&update.target, most), table);
        let no_key = "changed records can't be found again by a key";
        let verifications = verifications.map_err(|_| rules.uncheckable(no_key))?;
        if !verifications.is_empty() {
            steps.get_or_insert_default().verifications = verifications;
        }
    }
    Ok(Plan::Update(update_plan, steps))
}

impl Update {
    /// Whether MariaDB may run the statement as an update of several tables, in which the checks see old values: if it
    /// reads its own table elsewhere, or joins the table with those of subqueries in WHERE.
    fn may_see_old_values(&self, table: &Table) -> bool {
        let mut checks = self.check.iter().chain(self.references.iter().map(|reference| &reference.is_readable));
        !self.filter.subqueries().is_empty() || checks.any(|check| check.reads(table))
    }

    /// Moves the checks out of the statement.
    fn verifications(
        &mut self,
        (target, most): (&write::WriteTarget, Option<MaxAffected>),
        table: &Table,
    ) -> Result<Vec<Verification>, Problem> {
        let check = self.check.take().map(|check| (check, None));
        let references = std::mem::take(&mut self.references).into_iter();
        let references = references.map(|reference| (reference.is_readable, Some(reference.field)));
        let changed = (self.changes.as_slice(), most);
        let checks = check.into_iter().chain(references);
        checks.map(|check| Verification::of(check, (target, &self.filter), changed, table)).collect()
    }
}

/// The statement's LIMIT: one more than the maximum, to show that there are too many records.
fn limit(most: Option<MaxAffected>) -> Option<u64> {
    most.map(|most| most.records.saturating_add(1))
}

pub(super) fn delete<'p>(
    delete: &write::Delete,
    scope: &Scope<'_>,
    max_rows: Option<u64>,
) -> Result<Plan<'p>, Problem> {
    let rule = scope.access(0).deleting()?.map(|rule| Predicate::clone(&rule));
    writable(scope.root())?;
    let filter =
        restricted(Some(target(&delete.target, scope, Action::Delete)?), rule)?.unwrap_or(Predicate::Any(Vec::new()));
    let options = &delete.options;
    let most = MaxAffected::of(options, &delete.target, max_rows);
    let steps = TransactionSteps::of(options, &delete.target, (most, scope))?;
    let records = options.returning.as_ref().map(|fields| Returning::of(fields, scope)).transpose()?;
    Ok(Plan::Delete(Delete { filter, limit: limit(most), records }, steps))
}

fn target(target: &write::WriteTarget, scope: &Scope<'_>, action: Action) -> Result<Predicate, Problem> {
    match target {
        write::WriteTarget::Record(id) => filter::by_id(id, scope.root(), IdPurpose::Write),
        write::WriteTarget::Matching(condition) => filter::predicate(condition, &scope.clone().with_action(action)),
    }
}

pub fn may_set(field: &str, operation: &RecordOperation, access: &TableAccess) -> bool {
    let rules = match operation {
        RecordOperation::Insert(_) => access.inserting(),
        RecordOperation::Update(_) => access.updating(),
        _ => return false,
    };
    let name = FieldName::parse(field);
    name.and_then(|name| rules?.column(&name)).is_ok()
}

fn writable_column(name: &FieldName, table: &Table, rules: &Writing<'_>) -> Result<usize, Problem> {
    let at = rules.column(name)?;
    match table.column(at).generated {
        false => Ok(at),
        true => Err(Problem::new(
            ErrorCode::InvalidValue,
            format!("The field {} is computed by MariaDB and takes no value.", shown(name.as_str())),
        )
        .with_hint("Leave it out.")
        .with_field(name.as_str())),
    }
}
