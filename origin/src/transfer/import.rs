//! An import: sends the rows in batches in the file's order, since a later row may refer to an earlier one. Divides a
//! refused batch until the refused rows are found. If the order does not matter, the next batch is sent while the
//! current one is being written.

mod batch;
mod survey;

use std::path::PathBuf;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::batch::{FileLayout, RowBatch};
use self::survey::Survey;
use super::api::{ApiError, InsertRequest, NoAnswer};
use super::column_type::ValuesRead;
use super::columns::{create_statement, map_columns};
use super::journal::{Done, Journal, Split, Terms};
use super::refusals::{Reason, Reject, RejectsFile};
use super::{Api, Doubt, Form, Input, MappedColumn, TableRef, TransferError};
use crate::crash_points::{self, Point};

const BATCHES_AHEAD: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    Update,
    Ignore,
}

impl Conflict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Ignore => "ignore",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportStart {
    New,
    Resume,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    Exists,
    Create,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteOrder {
    OfTheFile,
    Any,
}

type InsertTask = JoinHandle<Result<u64, NoAnswer>>;

#[derive(Clone, Debug)]
pub struct ImportOptions {
    pub table: TableRef,
    pub input: Input,
    /// The file's form; if `None`, its name tells the form, or else its first byte that is not white space.
    pub form: Option<Form>,
    /// The field of a column. An empty field leaves the column out.
    pub map: Vec<(String, String)>,
    pub on_conflict: Option<Conflict>,
    pub batch_rows: usize,
    pub rejects: PathBuf,
    pub journal: PathBuf,
    pub start: ImportStart,
    pub creation: Creation,
    /// The target, which must be the same when continuing: otherwise the server would not know the idempotency keys.
    pub target: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub imported: u64,
    /// The number of rows that `--on-conflict ignore` left as they were.
    pub unchanged: u64,
    pub refused: u64,
}

pub struct Job {
    api: Api,
    options: ImportOptions,
    survey: Survey,
    columns: Vec<MappedColumn>,
    doubts: Vec<Doubt>,
    create: Option<String>,
    order: WriteOrder,
}

impl Job {
    /// Prepares an import. Reads all rows if the table is to be created and the input is a regular file.
    pub async fn prepare(api: Api, options: ImportOptions) -> Result<Self, TransferError> {
        if options.start == ImportStart::New {
            RejectsFile::check_new(&options.rejects)?;
        }
        let (name, start, creation) = (&options.table, options.start, options.creation);
        let schema = api.schema(name).await?;
        let fields = match (schema, creation) {
            (Some(_), Creation::Create) if start == ImportStart::New => {
                let message = format!("the table {name} exists");
                return Err(TransferError::usage(message, "leave --create out to import into it"));
            }
            (None, Creation::Exists) => {
                let message = format!("there is no table {name}, or the key may not use it");
                return Err(TransferError::failed(message, "--create makes it from the file's columns"));
            }
            (Some(schema), _) if !schema.methods.iter().any(|method| method == "POST") => {
                let message = format!("the key may not insert into {name}");
                return Err(TransferError::failed(message, "use a full key, or one whose role allows it"));
            }
            (Some(schema), _) => Some(schema.fields),
            (None, Creation::Create) => None,
        };
        let (input, form, extent) = (
            options.input.clone(),
            options.form,
            match fields {
                None if options.input.size().is_some() => ValuesRead::Whole,
                _ => ValuesRead::Sample,
            },
        );
        let survey = blocking(move || Survey::of(&input, form, extent)).await?;
        let (create, columns, doubts) = match &fields {
            Some(fields) => {
                let (columns, doubts) = map_columns(&survey.columns, fields, &options.map)?;
                survey.check_mapping(&columns)?;
                (None, columns, doubts)
            }
            None => {
                let (statement, types) = create_statement(&name.table, &survey.columns, extent)?;
                let columns = survey.columns.iter().zip(types).map(|(column, of_type)| MappedColumn {
                    column: column.name.clone(),
                    field: Some((column.name.clone(), of_type)),
                    values: column.values.describe(),
                });
                (Some(statement), columns.collect(), Vec::new())
            }
        };
        let is_given = |name: &str| columns.iter().any(|column| column.goes_to(name));
        let counts_itself = match &fields {
            Some(fields) => fields.iter().any(|field| field.auto_increment && !is_given(&field.name)),
            None => !columns.iter().any(|column| column.column.eq_ignore_ascii_case("id")),
        };
        let order = match options.on_conflict {
            None if !counts_itself => WriteOrder::Any,
            _ => WriteOrder::OfTheFile,
        };
        Ok(Self { api, options, survey, columns, doubts, create, order })
    }

    pub fn columns(&self) -> &[MappedColumn] {
        &self.columns
    }

    pub fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    pub fn create_statement(&self) -> Option<&str> {
        self.create.as_deref()
    }

    pub fn rows_seen(&self) -> (u64, bool) {
        (self.survey.rows, self.survey.is_whole)
    }

    /// Sends all rows. Refused rows are no error.
    pub async fn run(
        self,
        stop: &CancellationToken,
        mut progress: impl FnMut(Imported),
    ) -> Result<Imported, TransferError> {
        let Self { api, options, survey, columns, create, order, .. } = self;
        let terms = Terms {
            target: options.target.clone(),
            table: options.table.to_string(),
            form: format!("{:?}", survey.form),
            map: columns
                .iter()
                .map(|column| (column.column.clone(), column.field.clone().map(|(name, _)| name)))
                .collect(),
            on_conflict: options.on_conflict.map(|choice| choice.as_str().to_owned()),
            batch_rows: options.batch_rows,
        };
        let journal = match options.start {
            ImportStart::New => Journal::begin(&options.journal, terms)?,
            ImportStart::Resume => Journal::resume(&options.journal, &terms)?,
        };
        if let Some(statement) = &create
            && let Err(error) = api.sql(&options.table.database, statement).await
        {
            if journal.done.batches == 0 {
                journal.delete()?;
            }
            return Err(error);
        }
        let layout = FileLayout::new(survey.form, &columns);
        let rejects = RejectsFile::open(&options.rejects, journal.done.rejects_bytes)?;
        let (sender, mut batches) = mpsc::channel(BATCHES_AHEAD);
        let (reader, batch_rows) = (layout.clone(), options.batch_rows);
        let input = options.input.clone();
        let reading = tokio::task::spawn_blocking(move || batch::read(survey, &reader, batch_rows, &sender));
        let mut sending = Sending { api, options, layout, journal, rejects, order };
        progress(sending.imported());
        let (mut next, mut attempt) = (batches.recv().await, None);
        let mut batches_of_file = 0;
        while let Some(batch) = next.take() {
            batches_of_file = batch.number + 1;
            // The next batch may be under way already; with `--resume` it is sent again under the same key.
            if stop.is_cancelled() {
                return Err(TransferError::failed(STOPPED, RESUME));
            }
            let begun = attempt.take().or_else(|| sending.attempt(&batch));
            // The hash of recorded batches must first prove the file unchanged.
            if sending.is_new(&batch) {
                next = batches.try_recv().ok();
                attempt = next.as_ref().and_then(|next| sending.attempt(next));
            }
            sending.batch(&batch, begun, stop).await?;
            progress(sending.imported());
            if next.is_none() {
                next = batches.recv().await;
            }
        }
        let read = reading.await.map_err(std::io::Error::other).and_then(|read| read);
        read.map_err(|error| input.unreadable(&error, Some(RESUME)))?;
        if batches_of_file < sending.journal.done.batches {
            return Err(sending.changed());
        }
        sending.finish()
    }
}

const STOPPED: &str = "stopped; the rows so far are imported";
const RESUME: &str = "repeat the command with --resume: it goes on behind the last row that was written";

struct Sending {
    api: Api,
    options: ImportOptions,
    layout: FileLayout,
    journal: Journal,
    rejects: RejectsFile,
    order: WriteOrder,
}

impl Sending {
    fn imported(&self) -> Imported {
        let Done { imported, unchanged, refused, .. } = self.journal.done;
        Imported { imported, unchanged, refused }
    }

    fn is_new(&self, batch: &RowBatch) -> bool {
        batch.number >= self.journal.done.batches
    }

    /// Starts the insert of a batch early; `None` if the batch can't be sent early.
    fn attempt(&self, batch: &RowBatch) -> Option<InsertTask> {
        let is_divided = batch.number == self.journal.done.batches && !self.journal.splits.is_empty();
        if self.order == WriteOrder::OfTheFile || !self.is_new(batch) || is_divided || batch.len() == 0 {
            return None;
        }
        let (api, table, layout) = (self.api.clone(), self.options.table.clone(), self.layout.clone());
        let (key, body) = (self.key(batch, ""), layout.body(batch, &batch.all()));
        Some(tokio::spawn(async move {
            let content_type = layout.content_type();
            let insert = InsertRequest { content_type, on_conflict: None, idempotency_key: &key, body: body.into() };
            api.insert(&table, insert).await
        }))
    }

    fn key(&self, batch: &RowBatch, part: &str) -> String {
        format!("{}-{}-{part}", self.journal.run, batch.number)
    }

    /// Writes a batch. `begun` is the insert that [`Self::attempt`] started.
    async fn batch(
        &mut self,
        batch: &RowBatch,
        begun: Option<InsertTask>,
        stop: &CancellationToken,
    ) -> Result<(), TransferError> {
        let mut done = self.journal.done.clone();
        if !self.is_new(batch) {
            let is_last = batch.number + 1 == done.batches;
            return if is_last && batch.hash != done.hash { Err(self.changed()) } else { Ok(()) };
        }
        let (written, refused) = self.rows(batch, begun, stop).await?;
        let mut rejects: Vec<Reject<'_>> = batch.faults.iter().map(batch::Faulty::reject).collect();
        rejects.extend(refused.iter().map(|(row, reason)| self.layout.reject(batch, *row, reason)));
        rejects.sort_by_key(|reject| reject.line);
        for reject in &rejects {
            self.rejects.write(reject)?;
        }
        done.batches += 1;
        done.hash.clone_from(&batch.hash);
        done.line = batch.last_line;
        done.imported += written;
        done.unchanged += (batch.len() - refused.len()) as u64 - written;
        done.refused += rejects.len() as u64;
        done.rejects_bytes = self.rejects.sync()?;
        crash_points::reach(Point::RowsRefused);
        self.journal.finish_batch(done)?;
        crash_points::reach(Point::BatchRecorded);
        Ok(())
    }

    /// Writes rows. Returns the number of written rows, and the batch indexes of refused rows with the reasons.
    async fn rows(
        &mut self,
        batch: &RowBatch,
        begun: Option<InsertTask>,
        stop: &CancellationToken,
    ) -> Result<(u64, Vec<(usize, Reason)>), TransferError> {
        // A failed attempt wrote nothing, or the server repeats its answer when the same key is sent again below.
        if let Some(begun) = begun
            && let Ok(Ok(written)) = begun.await
        {
            crash_points::reach(Point::BatchAnswered);
            return Ok((written, Vec::new()));
        }
        let (mut written, mut refused) = (0, Vec::new());
        let mut parts = vec![(String::new(), batch.all())];
        while let Some((part, mut rows)) = parts.pop() {
            if rows.is_empty() {
                continue;
            }
            let split = match self.journal.splits.remove(&part) {
                Some(split) => split,
                None => {
                    if stop.is_cancelled() {
                        return Err(TransferError::failed(STOPPED, RESUME));
                    }
                    match self.part(batch, &part, &rows).await? {
                        Ok(count) => {
                            crash_points::reach(Point::BatchAnswered);
                            written += count;
                            continue;
                        }
                        Err(refusal) => {
                            let split = Split { refused: named(&refusal, &rows), part };
                            self.journal.split(&split)?;
                            crash_points::reach(Point::BatchSplit);
                            split
                        }
                    }
                }
            };
            rows.retain(|row| split.refused.iter().all(|(other, _)| other != row));
            let later = rows.split_off(rows.len().div_ceil(2));
            parts.push((format!("{}1", split.part), later));
            parts.push((format!("{}0", split.part), rows));
            refused.extend(split.refused);
        }
        Ok((written, refused))
    }

    /// Writes a part of a batch. The inner error is the API's refusal if single rows may be at fault.
    async fn part(
        &self,
        batch: &RowBatch,
        part: &str,
        rows: &[usize],
    ) -> Result<Result<u64, Box<ApiError>>, TransferError> {
        let key = self.key(batch, part);
        let insert = InsertRequest {
            content_type: self.layout.content_type(),
            on_conflict: self.options.on_conflict.map(Conflict::as_str),
            idempotency_key: &key,
            body: self.layout.body(batch, rows).into(),
        };
        match self.api.insert(&self.options.table, insert).await {
            Ok(count) => Ok(Ok(count)),
            Err(NoAnswer::Refused(refusal)) if is_of_rows(&refusal, rows.len(), self.layout.form()) => Ok(Err(refusal)),
            Err(NoAnswer::Refused(refusal)) if refusal.message.contains("Idempotency-Key can't be kept") => {
                let message =
                    format!("{} takes no import: it is a view, or its engine has no transactions", self.options.table);
                Err(TransferError::failed(message, "a table with ENGINE=InnoDB takes one"))
            }
            Err(NoAnswer::Refused(refusal)) if refusal.code == "idempotency_mismatch" => Err(self.changed()),
            Err(error) => Err(match error.into() {
                TransferError::Failed { message, hint: None } => TransferError::failed(message, RESUME),
                error => error,
            }),
        }
    }

    fn changed(&self) -> TransferError {
        let input = self.options.input.name();
        TransferError::failed(
            format!("{input} is not the file whose import was broken off: its rows are others"),
            "continue with the file as it was",
        )
    }

    fn finish(self) -> Result<Imported, TransferError> {
        let imported = self.imported();
        self.journal.delete()?;
        Ok(imported)
    }
}

/// Returns whether single rows may be at fault, so that the other rows can be written alone.
fn is_of_rows(refusal: &ApiError, rows: usize, form: Form) -> bool {
    match refusal.code.as_str() {
        "invalid_body"
        | "invalid_json"
        | "invalid_value"
        | "duplicate_key"
        | "foreign_key_violation"
        | "body_too_large"
        | "rejected_by_database"
        | "sql_error" => true,
        // In CSV the header names the fields, so the fault concerns all rows.
        "unknown_field" | "invalid_identifier" => form == Form::NdJson,
        "role_forbids" => refusal.details.row.is_some() || refusal.details.field.is_none(),
        // Fewer rows may finish within the time limit.
        "query_timeout" => rows > 1,
        _ => false,
    }
}

fn named(refusal: &ApiError, rows: &[usize]) -> Vec<(usize, Reason)> {
    if let [only] = rows {
        return vec![(*only, refusal.into())];
    }
    let mut named: Vec<(usize, Reason)> = Vec::new();
    for fault in std::iter::once(refusal).chain(&refusal.others) {
        if let Some(&row) = fault.details.row.and_then(|at| rows.get(at))
            && named.iter().all(|(other, _)| *other != row)
        {
            named.push((row, fault.into()));
        }
    }
    named
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TransferError> + Send + 'static,
) -> Result<T, TransferError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(TransferError::Failed { message: error.to_string(), hint: None }))
}
