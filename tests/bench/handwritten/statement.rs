//! The statements of the workloads, for the floor and the hand-written server.

use std::sync::LazyLock;

use crate::workload::BATCH_ROWS;

pub(crate) const BY_ID: &str = "SELECT * FROM posts WHERE id = ?";
pub(crate) const LISTING: &str = "SELECT * FROM posts WHERE is_published = 1 AND category = ? ORDER BY id DESC LIMIT ?";
pub(crate) const STORIES: &str = "SELECT * FROM stories ORDER BY id DESC LIMIT 20";
pub(crate) const ALL_POSTS: &str = "SELECT * FROM posts";
pub(crate) const ALL_MILLION: &str = "SELECT * FROM million";
pub(crate) const INSERT: &str =
    "INSERT INTO inbox (title, body, category, price, is_published, views, published_at) VALUES (?, ?, ?, ?, ?, ?, ?)";

/// Reads the writers of twenty stories.
pub(crate) static WRITERS: LazyLock<String> =
    LazyLock::new(|| format!("SELECT * FROM writers WHERE id IN ({})", twenty_placeholders()));
/// Reads all replies to twenty stories, of which the caller keeps the first five of each story.
pub(crate) static REPLIES: LazyLock<String> = LazyLock::new(|| {
    let placeholders = twenty_placeholders();
    format!("SELECT * FROM replies WHERE story_id IN ({placeholders}) ORDER BY story_id DESC, id DESC")
});

pub(crate) static INSERT_BATCH: LazyLock<String> = LazyLock::new(|| {
    let more = ", (?, ?, ?, ?, ?, ?, ?)".repeat(BATCH_ROWS as usize - 1);
    format!("{INSERT}{more}")
});

fn twenty_placeholders() -> String {
    vec!["?"; 20].join(", ")
}
