//! The media library through both hosts: uploads in every shape, refusals, lists, single files, deletion.
//! `media/serving.rs`, `parts.rs` and `private.rs` test how bytes are served.

mod cli;
mod edge_uploads;
mod fixtures;
mod library;
mod parts;
mod private;
mod refusals;
mod serving;
mod shapes;
pub(crate) mod test_folder;
mod tus;
