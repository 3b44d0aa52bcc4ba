//! Points at which a test lets the process die, to see what a crash there leaves behind.
//!
//! In programs built for use they are nothing at all.

macro_rules! points {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// Where the process may be told to die.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point { $($(#[$doc])* $variant,)* }

        impl Point {
            /// All points.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name by which a test asks for it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

points! {
    /// Files have arrived and were examined; nothing is known of them yet.
    Arrived = "arrived";
    /// The keys of their objects are in the ledger.
    Announced = "announced";
    /// One object is in the store.
    ObjectPublished = "object_published";
    /// All objects are.
    Published = "published";
    /// Rows are written or replaced, but not committed.
    RowsWritten = "rows_written";
    /// They are committed.
    RowsCommitted = "rows_committed";
    /// A row is deleted, which is not committed.
    RowDeleted = "row_deleted";
    /// It is.
    DeletionCommitted = "deletion_committed";
    /// Nobody may name these objects any more.
    Doomed = "doomed";
    /// Objects are deleted; the ledger still has them.
    ObjectsDeleted = "objects_deleted";
    /// It has them no more.
    Settled = "settled";
}

/// Dies here at once, if `SELKIE_FAULT_POINT` names this point.
#[cfg(debug_assertions)]
pub fn reach(point: Point) {
    use std::sync::LazyLock;
    static WANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("SELKIE_FAULT_POINT").ok());
    if WANTED.as_deref() == Some(point.as_str()) {
        // As a kill would: no destructor runs, nothing is flushed.
        std::process::abort();
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_: Point) {}
