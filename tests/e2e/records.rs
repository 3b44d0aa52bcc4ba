//! Records: `/api/v1/crud/{dbName}/{tableName}[/{id}]`.

mod address;
mod asking;
mod batches;
mod compression;
mod conflict;
mod counting;
mod delete;
mod described;
mod explain;
mod faults;
mod filter;
mod filter_words;
mod gathered;
mod groups;
mod idempotency;
mod imports;
mod include;
mod insert;
mod join_refusals;
mod joins;
mod listing;
mod metadata;
mod names;
mod nests;
mod options;
mod page_tokens;
mod paging;
mod paging_texts;
mod preferences;
mod read;
mod receipts;
mod rejected;
mod search;
mod together;
mod update;
mod update_many;
mod whole_lists;
mod write_options;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    let groups = [
        address::cases(),
        batches::cases(),
        compression::cases(),
        conflict::cases(),
        counting::cases(),
        delete::cases(),
        described::cases(),
        explain::cases(),
        faults::cases(),
        filter::cases(),
        filter_words::cases(),
        gathered::cases(),
        gathered::more_cases(),
        groups::cases(),
        idempotency::cases(),
        imports::cases(),
        insert::cases(),
        join_refusals::cases(),
        include::cases(),
        joins::cases(),
        listing::cases(),
        metadata::cases(),
        names::cases(),
        nests::cases(),
        options::cases(),
        page_tokens::cases(),
        paging::cases(),
        paging_texts::cases(),
        preferences::cases(),
        read::cases(),
        search::cases(),
        together::cases(),
        receipts::cases(),
        rejected::cases(),
        update::cases(),
        update_many::cases(),
        whole_lists::cases(),
        write_options::cases(),
    ];
    groups.into_iter().flatten().collect()
}

/// A table of five records for cases that read.
const ITEMS: &[&str] = &[
    "CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), qty INT, note TEXT, day DATE)",
    "INSERT INTO items (name, qty, note, day) VALUES \
     ('apple', 5, 'red', '2026-01-01'), ('banana', 12, NULL, '2026-02-01'), ('cherry', NULL, '100%', '2026-03-01'), \
     ('date', 0, 'a_b', NULL), ('elderberry', -3, 'red wine', '2026-05-01')",
];
