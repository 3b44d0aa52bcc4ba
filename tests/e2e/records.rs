//! Records: `/api/v1/crud/{dbName}/{tableName}[/{id}]`.

mod address;
mod batches;
mod both_notations;
mod coalesced_inserts;
mod coalesced_reads;
mod compression;
mod conflict;
mod counting;
mod delete;
mod described;
mod explain;
mod expressions;
mod faults;
mod filter;
mod filter_words;
mod groups;
mod idempotency;
mod imports;
mod include;
mod insert;
mod joins;
mod listing;
mod metadata;
mod names;
mod nests;
mod page_tokens;
mod paging;
mod paging_texts;
mod preferences;
mod read;
mod receipts;
mod rejected;
mod search;
mod update;
mod update_many;
mod whole_lists;
mod write_options;

/// A table of five records for cases that read.
const ITEMS: &[&str] = &[
    "CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), qty INT, note TEXT, day DATE)",
    "INSERT INTO items (name, qty, note, day) VALUES \
     ('apple', 5, 'red', '2026-01-01'), ('banana', 12, NULL, '2026-02-01'), ('cherry', NULL, '100%', '2026-03-01'), \
     ('date', 0, 'a_b', NULL), ('elderberry', -3, 'red wine', '2026-05-01')",
];
