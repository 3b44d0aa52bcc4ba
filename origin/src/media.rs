//! Files that callers upload: what they are, and what is made of them.
//!
//! The only folder that knows the store and the image crates. It must not know HTTP.

mod boxes;
pub mod duration;
pub mod image;
pub mod sniff;
