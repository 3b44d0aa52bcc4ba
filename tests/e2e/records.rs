//! Records: `/api/v1/crud/{dbName}/{tableName}[/{id}]`.

mod address;
mod batches;
mod conflict;
mod delete;
mod filter;
mod filter_words;
mod idempotency;
mod insert;
mod metadata;
mod names;
mod options;
mod read;
mod receipts;
mod update;
mod update_many;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    let groups = [
        address::cases(),
        batches::cases(),
        conflict::cases(),
        delete::cases(),
        filter::cases(),
        filter_words::cases(),
        idempotency::cases(),
        insert::cases(),
        metadata::cases(),
        names::cases(),
        options::cases(),
        read::cases(),
        receipts::cases(),
        update::cases(),
        update_many::cases(),
    ];
    groups.into_iter().flatten().collect()
}

/// A table of five records that read cases share in shape.
const ITEMS: &[&str] = &[
    "CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), qty INT, note TEXT, day DATE)",
    "INSERT INTO items (name, qty, note, day) VALUES \
     ('apple', 5, 'red', '2026-01-01'), ('banana', 12, NULL, '2026-02-01'), ('cherry', NULL, '100%', '2026-03-01'), \
     ('date', 0, 'a_b', NULL), ('elderberry', -3, 'red wine', '2026-05-01')",
];
