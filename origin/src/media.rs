//! Media: files of callers, their thumbnails, and where both are kept.
//!
//! The only folder that knows `object_store`. Knows nothing of HTTP, and SQL only through `db`.

pub mod sign;
pub mod store;
pub mod url;
