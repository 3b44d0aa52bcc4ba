//! Media: files of callers, what they are, their thumbnails, and where all that is kept.
//!
//! The only folder that knows `object_store` and the image crates. Knows nothing of HTTP, and SQL only
//! through `db`.

pub mod image;
pub mod intake;
pub mod library;
pub mod lookup;
pub mod resumable;
pub mod sign;
pub mod sniff;
pub mod store;
pub mod url;
