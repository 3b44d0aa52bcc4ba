//! Points at which a test can crash the process. They do nothing in release builds.

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
    /// The files of an upload are staged and validated, but nothing is recorded in MariaDB.
    Arrived = "arrived";
    Announced = "announced";
    ObjectPublished = "object_published";
    Published = "published";
    RowsWritten = "rows_written";
    RowsCommitted = "rows_committed";
    RowDeleted = "row_deleted";
    DeletionCommitted = "deletion_committed";
    DeletionRecorded = "deletion_recorded";
    ObjectsDeleted = "objects_deleted";
    LedgerCleared = "ledger_cleared";
    BatchAnswered = "batch_answered";
    BatchSplit = "batch_split";
    /// The refused rows are in their file, but the journal does not record the batch.
    RowsRefused = "rows_refused";
    BatchRecorded = "batch_recorded";
}

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
