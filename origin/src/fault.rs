//! Points at which a test can crash the process, to check the state that a crash leaves. They do nothing in release
//! builds.

macro_rules! points {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point { $($(#[$doc])* $variant,)* }

        impl Point {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

points! {
    /// Reached when the files of an upload are staged and validated, but no file or object is recorded in MariaDB.
    Arrived = "arrived";
    Announced = "announced";
    ObjectPublished = "object_published";
    Published = "published";
    /// Reached when the files' rows are written, but not committed.
    RowsWritten = "rows_written";
    RowsCommitted = "rows_committed";
    /// Reached when a file's row is deleted, but the deletion is not committed.
    RowDeleted = "row_deleted";
    DeletionCommitted = "deletion_committed";
    /// Reached when objects that no file refers to, found by a sweep or left by a failed publication, are marked for
    /// deletion in the ledger.
    DeletionRecorded = "deletion_recorded";
    /// Reached when objects are deleted from the media store, but not from the ledger.
    ObjectsDeleted = "objects_deleted";
    /// Reached when objects are deleted from the media store and the ledger.
    LedgerCleared = "ledger_cleared";
    /// Reached when an import's request has written its rows, but the import's journal does not record it.
    BatchAnswered = "batch_answered";
    BatchSplit = "batch_split";
    /// Reached when a batch of an import is written and its refused rows are in the file of refused rows, but the
    /// journal does not record the batch.
    RowsRefused = "rows_refused";
    BatchRecorded = "batch_recorded";
}

/// Aborts the process if `SELKIE_FAULT_POINT` names this point.
#[cfg(debug_assertions)]
pub fn reach(point: Point) {
    use std::sync::LazyLock;
    static WANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("SELKIE_FAULT_POINT").ok());
    if WANTED.as_deref() == Some(point.as_str()) {
        // `abort` acts like SIGKILL: no destructor runs and nothing is flushed.
        std::process::abort();
    }
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_: Point) {}
