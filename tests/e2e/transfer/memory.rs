//! The memory of an import doesn't grow with its file.

use super::{Way, WorkingDirectory};
use crate::host::Host;
use crate::service::peak_bytes;
use crate::test_db::TestDb;
use std::io::Write as _;
use std::process::Stdio;

cases! {
    Origin: [an_import_runs_in_constant_memory],
}

/// Bytes of a row's text.
const ROW_BYTES: usize = 64 * 1024;

/// Number of rows after which the memory is measured first, and of all rows.
const FIRST_ROWS: usize = 400;
const ROWS: usize = 1_600;

/// Maximum growth of memory while the later rows, 75 MiB of text, are imported.
const GROWTH_MAX_BYTES: u64 = 24 * 1024 * 1024;

async fn an_import_runs_in_constant_memory(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, word MEDIUMTEXT)"]).await;
    // Imports directly, so that the memory of the origin inside the process counts too.
    let directory = WorkingDirectory::new(Way::Direct);
    let import = ["import", &format!("{}.t", db.name), "-", "--format", "ndjson"];
    let mut child = directory.command(&import).stdin(Stdio::piped()).spawn().expect("it runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    let row = format!("{{\"word\": \"{}\"}}\n", "x".repeat(ROW_BYTES));
    let id = i32::try_from(child.id()).expect("a process id");
    let peak = || peak_bytes(id).expect("a peak");
    let mut first = 0;
    for written in 0..ROWS {
        if written == FIRST_ROWS {
            first = peak();
        }
        pipe.write_all(row.as_bytes()).expect("it reads");
    }
    let last = peak();
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, ROWS);
    assert!(last - first < GROWTH_MAX_BYTES, "from {first} to {last} bytes");
}
