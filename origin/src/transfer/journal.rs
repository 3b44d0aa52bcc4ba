//! The journal of an import: JSON lines that record the progress, so that an interrupted import can be continued with
//! no row lost and none written twice. A batch that may have been written before a crash is sent again under the same
//! idempotency keys, with the same rows.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shared::limits::IDEMPOTENCY_LIFETIME_SECONDS;
use uuid::Uuid;

use super::TransferError;
use super::refusals::Reason;
use crate::clock::now;

/// The time in seconds by which a journal expires before the server forgets the last batch's idempotency keys.
const EXPIRY_MARGIN_SECONDS: u64 = 300;

/// What must be the same when the import is continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Terms {
    pub(super) target: String,
    pub(super) table: String,
    pub(super) form: String,
    pub(super) map: Vec<(String, Option<String>)>,
    pub(super) on_conflict: Option<String>,
    pub(super) batch_rows: usize,
}

/// The progress of an import. The counts are sums over all batches so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) batches: u64,
    pub(super) hash: String,
    pub(super) imported: u64,
    pub(super) unchanged: u64,
    pub(super) refused: u64,
    pub(super) rejects_bytes: u64,
    pub(super) line: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Split {
    /// A part of a batch; the empty string is the whole batch. When a part is divided, its refused rows are left out,
    /// and `0` is appended for the first half of the others, `1` for the second half.
    pub(super) part: String,
    pub(super) refused: Vec<(usize, Reason)>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum JournalLine {
    Begun { run: Uuid, terms: Terms, at: u64 },
    Split { split: Split, at: u64 },
    Done { done: Done, at: u64 },
}

#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    pub(super) run: Uuid,
    pub(super) done: Done,
    /// The parts of the batch after `done`, by [`Split::part`].
    pub(super) splits: HashMap<String, Split>,
}

impl Journal {
    pub(super) fn begin(path: &Path, terms: Terms) -> Result<Self, TransferError> {
        let failed = |error: &std::io::Error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => TransferError::usage(
                format!("{} says that an earlier import was broken off", path.display()),
                "--resume continues it; to begin again, delete that file and the rows that were imported",
            ),
            _ => TransferError::file(path, "written", error),
        };
        let file =
            OpenOptions::new().create_new(true).append(true).read(true).open(path).map_err(|error| failed(&error))?;
        let mut journal =
            Self { path: path.to_owned(), file, run: Uuid::now_v7(), done: Done::default(), splits: HashMap::new() };
        journal.lock()?;
        let line = JournalLine::Begun { run: journal.run, terms, at: now() };
        journal.append(&line)?;
        Ok(journal)
    }

    pub(super) fn resume(path: &Path, terms: &Terms) -> Result<Self, TransferError> {
        let opened = OpenOptions::new().append(true).read(true).open(path);
        let file = opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => TransferError::usage(
                format!("there is no broken import to continue: {} doesn't exist", path.display()),
                "leave --resume out to begin one; it must run in the directory where it was begun",
            ),
            _ => TransferError::file(path, "read", &error),
        })?;
        let (done, splits) = (Done::default(), HashMap::new());
        let mut journal = Self { path: path.to_owned(), file, run: Uuid::nil(), done, splits };
        journal.lock()?;
        let last = journal.read(terms)?;
        if now().saturating_sub(last) > IDEMPOTENCY_LIFETIME_SECONDS - EXPIRY_MARGIN_SECONDS {
            let message = format!(
                "the import was broken off more than a day ago: whether the rows after line {} were written can't be told",
                journal.done.line
            );
            let hint = "look into the table, delete the journal, and import the rest of the file";
            return Err(TransferError::failed(message, hint));
        }
        Ok(journal)
    }

    fn lock(&self) -> Result<(), TransferError> {
        self.file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                let message = format!("another import uses {}", self.path.display());
                TransferError::failed(message, "wait until it ends")
            }
            TryLockError::Error(error) => TransferError::file(&self.path, "locked", &error),
        })
    }

    /// Reads the journal and removes an incomplete last line. Returns the last line's time (seconds since 1970).
    fn read(&mut self, wanted: &Terms) -> Result<u64, TransferError> {
        let failed = |error: std::io::Error| TransferError::file(&self.path, "read", &error);
        let size = self.file.metadata().map_err(failed)?.len();
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut lines = BufReader::new((&self.file).take(size));
        let (mut whole, mut last, mut text) = (0, None, String::new());
        loop {
            text.clear();
            let length = lines.read_line(&mut text).map_err(failed)?;
            if !text.ends_with('\n') {
                break;
            }
            whole += length as u64;
            let line = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
            last = Some(match line {
                JournalLine::Begun { run, terms, at } => {
                    self.run = run;
                    terms.check(wanted)?;
                    at
                }
                JournalLine::Split { split, at } => {
                    self.splits.insert(split.part.clone(), split);
                    at
                }
                JournalLine::Done { done, at } => {
                    self.done = done;
                    self.splits.clear();
                    at
                }
            });
        }
        drop(lines);
        self.file.set_len(whole).map_err(failed)?;
        last.ok_or_else(|| {
            let message = format!("{} is empty: no row was imported", self.path.display());
            TransferError::failed(message, "delete it, and leave --resume out")
        })
    }

    fn append(&mut self, line: &JournalLine) -> Result<(), TransferError> {
        let failed = |error: std::io::Error| TransferError::file(&self.path, "written", &error);
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(failed)
    }

    /// Records that a part is divided. Must be called before the halves are sent.
    pub(super) fn split(&mut self, split: &Split) -> Result<(), TransferError> {
        self.append(&JournalLine::Split { split: split.clone(), at: now() })
    }

    pub(super) fn finish_batch(&mut self, done: Done) -> Result<(), TransferError> {
        self.append(&JournalLine::Done { done: done.clone(), at: now() })?;
        self.done = done;
        self.splits.clear();
        Ok(())
    }

    pub(super) fn delete(self) -> Result<(), TransferError> {
        std::fs::remove_file(&self.path).map_err(|error| TransferError::file(&self.path, "deleted", &error))
    }
}

impl Terms {
    fn check(&self, wanted: &Self) -> Result<(), TransferError> {
        let differing = [
            ("the origin or edge, or the key", self.target != wanted.target),
            ("the table", self.table != wanted.table),
            ("the file's form", self.form != wanted.form),
            ("the file's columns, or --map", self.map != wanted.map),
            ("--on-conflict", self.on_conflict != wanted.on_conflict),
            ("--batch-rows", self.batch_rows != wanted.batch_rows),
        ];
        match differing.iter().find(|(_, differs)| *differs) {
            None => Ok(()),
            Some((what, _)) => {
                let message = format!("the broken import had another value: {what}");
                Err(TransferError::usage(message, "continue with the same arguments, key and file"))
            }
        }
    }
}
