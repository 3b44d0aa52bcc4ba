//! Runs plans in a transaction: the operations of a batch, inserts with an idempotency key, and writes with options
//! (entity tags, limits, returned records, dry runs). Also builds the payloads of writes.

use super::super::request_context::RequestContext;
use super::{Failure, read};
use crate::database::DbError;
use crate::database::run::{Denied, SessionEffect, Written, integer_json};
use crate::database::transaction::{AnswerBudget, EncodedRows, Transaction};
use crate::http::respond::ETag;
use crate::query::catalog::{Layout, Traits};
use crate::query::plan::include::Included;
use crate::query::plan::scope::Scope;
use crate::query::plan::{
    ChangeAnswer, InsertAnswer, KeyedReread, MaxAffected, Param, Plan, Precondition, Predicate, Reread, Select,
    TransactionSteps, Verification,
};
use crate::query::sql::{self, Statement};
use shared::error::{ErrorCode, Problem};
use shared::operation::RecordOperation;
use shared::operation::write::InsertedRows;
use shared::{conditional, envelope};
use std::sync::Arc;

/// Maximum rows per statement, so that their keys stay below MariaDB's maximum of 65,535 placeholders.
const REREAD_MAX_ROWS: usize = 1_000;

/// Runs plans in `transaction`, which the caller must roll back after an error.
pub(in crate::http) struct InTransaction<'w, 't> {
    pub(in crate::http) context: &'w RequestContext,
    pub(in crate::http) transaction: &'w mut Transaction<'t>,
    pub(in crate::http) scope: &'w Scope<'w>,
    pub(in crate::http) effect: SessionEffect,
    pub(in crate::http) budget: &'w mut AnswerBudget,
}

pub(in crate::http) struct OperationAnswer {
    pub(in crate::http) payload: Vec<u8>,
    pub(in crate::http) cut: Option<Cut>,
    pub(in crate::http) inserted: Option<(InsertAnswer, Written)>,
}

impl From<Vec<u8>> for OperationAnswer {
    fn from(payload: Vec<u8>) -> Self {
        Self { payload, cut: None, inserted: None }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Cut {
    ByLimit,
    /// Cut by the maximum number of rows of the server or of the caller's role.
    ByMaximum,
}

impl InTransaction<'_, '_> {
    pub(in crate::http) async fn run(&mut self, plan: Plan<'_>) -> Result<OperationAnswer, Failure> {
        match plan {
            Plan::Select(select, _) => {
                let limit = select.limit().filter(|_| select.reads_one_more());
                let cut = if select.is_limited() { Cut::ByMaximum } else { Cut::ByLimit };
                let rows = self.select(select, limit).await?;
                let payload = [&b"["[..], &rows.json, b"]"].concat();
                Ok(OperationAnswer { payload, cut: rows.has_more.then_some(cut), inserted: None })
            }
            Plan::SelectOne(select, _) => only(self.select(select, None).await?),
            Plan::SelectByKey(read) => {
                let statement = sql::select_by_key(read.shape(), read.key());
                only(self.rows(statement, read.layout(), &[], None).await?)
            }
            Plan::InsertOne(insert) => {
                let (shape, row) = insert.into_parts();
                self.insert(vec![sql::insert_one(&shape, row)], InsertAnswer::Id).await
            }
            Plan::Insert(insert, _) => {
                let answer = insert.answer();
                let statements = sql::insert(insert, self.scope, self.context.app().bounds.packet_max_bytes);
                self.insert(statements, answer).await
            }
            Plan::Update(update, steps) => {
                let scope = self.scope;
                let render = |among: Option<_>| sql::update(update.among(among), scope);
                self.change(render, steps).await.map(OperationAnswer::from)
            }
            Plan::Delete(delete, steps) => {
                let statement = sql::delete(delete, self.scope);
                self.change(|_| vec![statement], steps).await.map(OperationAnswer::from)
            }
        }
    }

    async fn select(&mut self, select: Select, limit: Option<u64>) -> Result<EncodedRows, DbError> {
        let (layout, includes) = (Arc::clone(select.layout()), select.includes().to_vec());
        self.rows(sql::select(select, self.scope), &layout, &includes, limit).await
    }

    async fn rows(
        &mut self,
        statement: Statement,
        layout: &Layout,
        includes: &[Included],
        limit: Option<u64>,
    ) -> Result<EncodedRows, DbError> {
        self.transaction.rows(statement, layout, includes, self.effect, limit, self.budget).await
    }

    async fn change(
        &mut self,
        render: impl FnOnce(Option<Predicate>) -> Vec<Statement>,
        steps: Option<Box<TransactionSteps>>,
    ) -> Result<Vec<u8>, Failure> {
        let TransactionSteps { precondition, max_affected, is_dry_run, reread, verifications, answer } =
            steps.map_or_else(TransactionSteps::default, |steps| *steps);
        if let Some(precondition) = precondition {
            self.check(precondition).await?;
        }
        let keyed = match &reread {
            Some(Reread::ByKeys(reread)) => Some(&**reread),
            _ => verifications.iter().find_map(Verification::keyed),
        };
        let keys = match keyed {
            Some(reread) => self.keys(reread, max_affected).await?,
            None => Vec::new(),
        };
        // READ COMMITTED locks no gaps: another transaction may have made other records match before the update.
        let statements = render(keyed.map(|keyed| keyed.among(&keys)));
        let written = self.execute(statements, is_dry_run, max_affected, (&verifications, &keys)).await?;
        if keyed.is_some() && keys.len() as u64 != written.affected {
            return Err(DbError::RowsAdded.into());
        }
        let count = written.records.len();
        let payload = match (reread, answer) {
            (None, ChangeAnswer::Count) => integer_json(written.affected),
            (None, ChangeAnswer::Record) => one(written.records),
            (None, ChangeAnswer::Records) => list(written.records.iter().filter(|record| *record != NULL)),
            (Some(_), _) if written.affected == 0 && answer == ChangeAnswer::Record => NULL.to_vec(),
            (Some(Reread::ById(read)), _) => {
                let layout = Arc::clone(read.layout());
                // A plain read could use an older snapshot of the transaction than the update.
                let statement = sql::select_for_update(*read, self.scope);
                let rows = self.rows(statement, &layout, &[], None).await?;
                return Ok(if rows.count == 0 { NULL.to_vec() } else { rows.json });
            }
            (Some(Reread::ByKeys(reread)), _) => return self.reread(&reread, keys, answer).await,
        };
        self.budget.take(count, payload.len())?;
        Ok(payload)
    }

    async fn execute(
        &mut self,
        statements: Vec<Statement>,
        is_dry_run: bool,
        max_affected: Option<MaxAffected>,
        (verifications, keys): (&[Verification], &[Vec<Param>]),
    ) -> Result<Written, Failure> {
        if is_dry_run {
            self.transaction.save().await?;
        }
        let written = self.transaction.execute_all(statements, self.effect).await?;
        if written.affected > 0 {
            self.verify(verifications, keys).await?;
        }
        if let Some(most) = max_affected.filter(|most| written.affected > most.records) {
            return Err(most.exceeded().into());
        }
        if is_dry_run {
            self.transaction.undo().await?;
        }
        Ok(written)
    }

    async fn verify(&mut self, verifications: &[Verification], keys: &[Vec<Param>]) -> Result<(), Failure> {
        for verification in verifications {
            let mut parts = keys.chunks(REREAD_MAX_ROWS);
            let mut part = parts.next();
            loop {
                let broken = verification.broken(part.unwrap_or_default());
                let statement = sql::select_for_update(broken, self.scope);
                if !self.transaction.values(statement, 1, self.effect).await?.is_empty() {
                    let field = verification.field();
                    let denied = field.map_or(Denied::Rule, |field| Denied::Reference(field.into()));
                    return Err(DbError::RoleForbids(denied).into());
                }
                part = parts.next();
                if part.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn check(&mut self, precondition: Precondition) -> Result<(), Failure> {
        let Precondition { read, tags } = precondition;
        let layout = Arc::clone(read.layout());
        let statement = sql::select_for_update(read, self.scope);
        // No budget is needed: the record is not part of the response, and `max_allowed_packet` limits its size.
        let mut budget = AnswerBudget { rows: 1, bytes: usize::MAX };
        let rows = self.transaction.rows(statement, &layout, &[], self.effect, None, &mut budget).await?;
        let holds = rows.count == 1 && conditional::names(&tags, ETag::of(&envelope::success(&rows.json)).as_str());
        match holds {
            true => Ok(()),
            false => Err(Problem::new(
                ErrorCode::PreconditionFailed,
                "The record does not have the entity tag that If-Match names: it was changed meanwhile or is gone, or the \
                 tag is not that of the whole record.",
            )
            .with_hint("Nothing was changed. Read the record again, as JSON and without options, and send its ETag.")
            .into()),
        }
    }

    async fn keys(
        &mut self,
        reread: &KeyedReread,
        max_affected: Option<MaxAffected>,
    ) -> Result<Vec<Vec<Param>>, Failure> {
        let mut keys = reread.keys();
        if self.scope.is_ruled() {
            // The keys are read without locks first: locks on records that the rule hides would reveal them, and block their owners.
            let found = self.limited_keys(sql::select(keys.clone(), self.scope), reread, max_affected).await?;
            keys = keys.among(reread.among(&found));
        }
        self.limited_keys(sql::select_for_update(keys, self.scope), reread, max_affected).await
    }

    async fn limited_keys(
        &mut self,
        statement: Statement,
        reread: &KeyedReread,
        max_affected: Option<MaxAffected>,
    ) -> Result<Vec<Vec<Param>>, Failure> {
        let keys = self.transaction.values(statement, reread.key_width(), self.effect).await?;
        if let Some(most) = max_affected.filter(|most| keys.len() as u64 > most.records) {
            return Err(most.exceeded().into());
        }
        match keys.len() > self.budget.rows {
            true => Err(DbError::AnswerTooLarge.into()),
            false => Ok(keys),
        }
    }

    async fn reread(
        &mut self,
        reread: &KeyedReread,
        mut keys: Vec<Vec<Param>>,
        answer: ChangeAnswer,
    ) -> Result<Vec<u8>, Failure> {
        let mut parts = Vec::new();
        while !keys.is_empty() {
            let later = keys.split_off(keys.len().min(REREAD_MAX_ROWS));
            let statement = sql::select_for_update(reread.select(keys), self.scope);
            let rows = self.rows(statement, reread.layout(), &[], None).await?;
            parts.extend((rows.count > 0).then_some(rows.json));
            keys = later;
        }
        Ok(match answer {
            ChangeAnswer::Record => one(parts),
            ChangeAnswer::Records | ChangeAnswer::Count => list(parts.iter()),
        })
    }

    async fn insert(&mut self, statements: Vec<Statement>, answer: InsertAnswer) -> Result<OperationAnswer, Failure> {
        let written = self.execute(statements, answer == InsertAnswer::Count, None, (&[], &[])).await?;
        let payload = inserted(&written, answer);
        self.budget.take(written.records.len(), payload.len())?;
        Ok(OperationAnswer { payload, cut: None, inserted: Some((answer, written)) })
    }
}

fn only(rows: EncodedRows) -> Result<OperationAnswer, Failure> {
    match rows.count {
        0 => Err(read::not_found().into()),
        1 => Ok(rows.json.into()),
        _ => Err(read::several().into()),
    }
}

const NULL: &[u8] = b"null";

pub(super) fn inserted(written: &Written, answer: InsertAnswer) -> Vec<u8> {
    match (answer, written.keys.as_slice()) {
        (InsertAnswer::Ids, keys) => list(keys.iter()),
        (InsertAnswer::Id, [key, ..]) => key.clone(),
        (InsertAnswer::Id, []) if written.last_insert_id > 0 => integer_json(written.last_insert_id),
        (InsertAnswer::Id, []) | (InsertAnswer::Hidden, _) => NULL.to_vec(),
        (InsertAnswer::HiddenList(count), _) => format!("[{}]", vec!["null"; count].join(",")).into_bytes(),
        (InsertAnswer::Record, _) => written.records.first().cloned().unwrap_or_else(|| NULL.to_vec()),
        (InsertAnswer::Records, _) => list(written.records.iter()),
        (InsertAnswer::Count, _) => integer_json(written.affected),
    }
}

/// Adds a hint that earlier rows of the list are stored, if the table's engine has no transactions.
pub(super) fn mention_stored(problem: Problem, operation: &RecordOperation, traits: Traits) -> Problem {
    let is_list = matches!(operation, RecordOperation::Insert(insert) if matches!(insert.rows, InsertedRows::Batch(_)));
    let is_late = problem.details().is_some_and(|details| details.refusal.is_some() && details.row != Some(0));
    if !is_list || !is_late || traits.view || traits.inserts.transactional {
        return problem;
    }
    let hint = problem.hint().map(|hint| format!("{hint} ")).unwrap_or_default();
    problem.with_hint(format!("{hint}The rows before it are stored: the table's engine has no transactions."))
}

fn one(records: Vec<Vec<u8>>) -> Vec<u8> {
    records.into_iter().next().unwrap_or_else(|| NULL.to_vec())
}

fn list<'a>(records: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    let mut out = vec![b'['];
    for (at, record) in records.enumerate() {
        out.extend_from_slice(if at > 0 { b"," } else { b"" });
        out.extend_from_slice(record);
    }
    out.push(b']');
    out
}
