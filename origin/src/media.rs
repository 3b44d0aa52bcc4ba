//! Media files: upload rights, validation, thumbnails, storage, URLs and signatures. The only folder that uses
//! `object_store` and the image crates. Independent of HTTP; reaches MariaDB only through `database::media`.

pub mod image;
pub mod intake;
pub mod library;
pub mod lookup;
pub mod payload;
pub mod resumable;
pub mod rights;
pub mod sign;
pub mod sniff;
pub mod store;
pub mod url;
