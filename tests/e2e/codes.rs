//! The error codes: those of the enum and of the table in docs/api.md are the same. `ledger.rs` checks at
//! the end of a whole run that each code was returned.

use crate::host::Host;
use crate::service::workspace;
use shared::error::ErrorCode;
use std::collections::BTreeSet;
use std::fs;

cases! {
    Own: [the_docs_have_all_codes_and_no_others, what_is_retryable_is_what_passes_by_itself],
}

async fn the_docs_have_all_codes_and_no_others(_: Host) {
    let api = fs::read_to_string(workspace().join("docs/api.md")).expect("docs/api.md");
    let rows = api.lines().filter_map(|line| {
        let (status, codes) = line.strip_prefix("| ")?.split_once(" | ")?;
        Some((status.parse::<u16>().ok()?, codes))
    });
    let documented: BTreeSet<(u16, &str)> =
        rows.flat_map(|(status, codes)| words(codes).map(move |code| (status, code))).collect();
    let known: BTreeSet<(u16, &str)> = ErrorCode::ALL.iter().map(|code| (code.status(), code.as_str())).collect();
    assert_eq!(documented, known, "the table of errors in docs/api.md");
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
    text.split('`').skip(1).step_by(2).filter(is_word)
}

async fn what_is_retryable_is_what_passes_by_itself(_: Host) {
    for code in ErrorCode::ALL {
        let passes = match code {
            // The client's statement is too slow, and would be again.
            ErrorCode::QueryTimeout => false,
            // Waiting does not create free space.
            ErrorCode::StorageFull => false,
            ErrorCode::Deadlock
            | ErrorCode::IdempotencyInProgress
            | ErrorCode::UploadLocked
            | ErrorCode::RateLimited => true,
            _ => code.status() > 500,
        };
        assert_eq!(code.retryable(), passes, "{}", code.as_str());
    }
}
