//! Points at which a test can make the process crash, to check what is left behind. They do nothing in release builds.

macro_rules! points {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point { $($(#[$doc])* $variant,)* }

        impl Point {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the point's name in `SELKIE_FAULT_POINT`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

points! {
    /// Files are staged and validated; nothing is recorded yet.
    Arrived = "arrived";
    /// The keys of the new objects are committed to the ledger.
    Announced = "announced";
    /// One object is in the store.
    ObjectPublished = "object_published";
    /// All objects are in the store.
    Published = "published";
    /// Rows are written, but not committed.
    RowsWritten = "rows_written";
    /// Rows are committed.
    RowsCommitted = "rows_committed";
    /// A row is deleted, but not committed.
    RowDeleted = "row_deleted";
    /// The deletion is committed.
    DeletionCommitted = "deletion_committed";
    /// The objects are recorded as due for deletion.
    DeletionRecorded = "deletion_recorded";
    /// Objects are deleted from the store, but not yet from the ledger.
    ObjectsDeleted = "objects_deleted";
    /// Objects are deleted from the ledger too.
    LedgerCleared = "ledger_cleared";
}

/// Aborts the process if `SELKIE_FAULT_POINT` names this point.
#[cfg(debug_assertions)]
pub fn reach(point: Point) {
    use std::sync::LazyLock;
    static WANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("SELKIE_FAULT_POINT").ok());
    if WANTED.as_deref() == Some(point.as_str()) {
        // Like a kill: runs no destructor and flushes nothing.
        std::process::abort();
    }
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_: Point) {}
