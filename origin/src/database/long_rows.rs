//! Limits the memory and the time of encoding long rows, whose JSON may be six times as long as their text. Knows
//! nothing of statements.

use super::DbError;
use super::run::related::size;
use crate::project_quota::{ProjectQuota, QuotaGuard};
use mysql_async::Row;
use shared::ident::ProjectName;
use std::time::Duration;
use tokio::task::block_in_place;
use uuid::Uuid;

/// Bytes from which a row is counted, and encoded off the async threads.
const LONG_ROW_MIN_BYTES: usize = 512 * 1024;
/// Maximum of the long rows that are encoded at once or whose text is still to be sent.
pub const LONG_ROWS_MAX_BYTES: u64 = 128 * 1024 * 1024;
/// The maximum for one project: one row of the greatest length that the driver accepts.
pub const LONG_ROWS_PER_PROJECT_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The long rows of all projects. Clones share the counts.
#[derive(Clone)]
pub(super) struct LongRows {
    bytes: ProjectQuota,
    wait_timeout: Duration,
}

/// Admits the rows of one answer.
pub(super) struct AnswersLongRows {
    all: LongRows,
    project: ProjectName,
    caller: Uuid,
    held: Option<QuotaGuard>,
}

impl LongRows {
    pub(super) fn new(wait_timeout: Duration) -> Self {
        let bytes = ProjectQuota::with_callers(LONG_ROWS_MAX_BYTES, LONG_ROWS_PER_PROJECT_MAX_BYTES);
        Self { bytes, wait_timeout }
    }

    pub(super) fn of_answer(&self, project: &ProjectName, caller: Uuid) -> AnswersLongRows {
        AnswersLongRows { all: self.clone(), project: project.clone(), caller, held: None }
    }

    /// Waits until a row of this length may be encoded. A short row is not counted.
    pub(super) async fn admit(
        &self,
        project: &ProjectName,
        caller: Uuid,
        bytes: usize,
    ) -> Result<Option<QuotaGuard>, DbError> {
        if bytes < LONG_ROW_MIN_BYTES {
            return Ok(None);
        }
        let taken = self.bytes.take_as(project, caller, (bytes as u64).min(self.bytes.share()));
        let guard = tokio::time::timeout(self.wait_timeout, taken).await;
        guard.map(Some).map_err(|_| DbError::Overloaded)
    }
}

impl AnswersLongRows {
    /// Waits until the row may be encoded, and returns it. Counts one long row until [`AnswersLongRows::release`].
    pub(super) async fn admit(&mut self, row: Option<Row>) -> Result<Option<Row>, DbError> {
        if let (None, Some(row)) = (&self.held, &row) {
            self.held = self.all.admit(&self.project, self.caller, size(row)).await?;
        }
        Ok(row)
    }

    /// Must be called when the client has taken the text of the rows.
    pub(super) fn release(&mut self) {
        self.held = None;
    }
}

/// Runs the encoding of a row. That of a long row leaves other tasks to other threads.
pub(super) fn encode<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes < LONG_ROW_MIN_BYTES { work() } else { block_in_place(work) }
}
