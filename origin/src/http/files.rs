//! `GET /media/{project}/{folder…}/{name}`: the bytes of files.

mod condition;
mod disposition;
mod range;
