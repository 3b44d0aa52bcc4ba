//! Imports that are killed: afterwards each row must be in the table once, and each refused row in its file once.

use super::{Way, WorkingDirectory};
use crate::case::eventually;
use crate::host::Host;
use crate::service::kill;
use crate::test_db::TestDb;
use rustix::process::Signal;
use serde_json::json;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

cases! {
    Both: [
        a_killed_import_goes_on_with_no_row_lost_or_doubled,
        standard_input_is_continued,
        an_import_stops_at_the_first_ctrl_c_and_goes_on,
        a_continued_import_is_the_same,
    ],
    Origin: [a_killed_import_without_a_url_goes_on],
}

/// The fault points of `origin/src/fault.rs` at which the process ends as if by SIGKILL.
pub(crate) const POINTS: [&str; 4] = ["batch_answered", "batch_split", "rows_refused", "batch_recorded"];

/// Maximum number of runs of an import that is killed again and again, until it must have finished.
const RUNS_MAX: usize = 60;

const CREATE: &str = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, CHECK (n < 100))";

async fn a_killed_import_goes_on_with_no_row_lost_or_doubled(host: Host) {
    goes_on(host, Way::Url(host), 14, &POINTS).await;
}

async fn a_killed_import_without_a_url_goes_on(host: Host) {
    goes_on(host, Way::Direct, 8, &["batch_answered", "batch_recorded"]).await;
}

/// Imports rows 0 to `rows`, of which rows 3 and 6 are refused, and kills the process at each point in turn.
async fn goes_on(host: Host, way: Way, rows: usize, points: &[&str]) {
    let db = TestDb::new(host, &[CREATE]).await;
    let directory = WorkingDirectory::new(way);
    let table = format!("{}.t", db.name);
    let numbers: Vec<usize> = (0..rows).map(|n| if n == 3 || n == 6 { 100 + n } else { n }).collect();
    let lines: String = numbers.iter().map(|n| format!("{n}\n")).collect();
    directory.write("rows.csv", format!("n\n{lines}"));
    let import = ["import", &table, "rows.csv", "--batch-rows", "5"];
    let mut ended = None;
    for run in 0..RUNS_MAX {
        let more: &[&str] = if run == 0 { &[] } else { &["--resume"] };
        let mut command = directory.command(&[&import[..], more].concat());
        let output = command.env("SELKIE_FAULT_POINT", points[run % points.len()]).output().expect("it runs");
        if output.status.signal().is_none() {
            ended = Some(output);
            break;
        }
    }
    let output = ended.expect("an end");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let expected: Vec<_> = numbers.iter().filter(|n| **n < 100).map(|n| json!({"n": n})).collect();
    assert_eq!(db.exec("SELECT n FROM t ORDER BY id").await, json!(expected));
    let rejects = directory.rejects("rows.rejected.ndjson");
    let refused: Vec<_> = rejects.iter().map(|reject| (reject["line"].clone(), reject["row"]["n"].clone())).collect();
    assert_eq!(refused, [(json!(5), json!("103")), (json!(8), json!("106"))]);
    assert!(!directory.path("rows.import-journal").exists());
}

async fn standard_input_is_continued(host: Host) {
    let db = TestDb::new(host, &[CREATE]).await;
    let directory = WorkingDirectory::new(Way::Url(host));
    let table = format!("{}.t", db.name);
    let lines: Vec<String> = (0..3_000).map(|n| format!("{{\"n\": {}}}\n", n % 100)).collect();
    let import = ["import", &table, "-", "--batch-rows", "40"];
    let mut child = directory.command(&import).stdin(Stdio::piped()).spawn().expect("it runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(lines[..2_000].concat().as_bytes()).expect("it reads");
    eventually("rows", Duration::from_secs(60), async || (db.value("SELECT COUNT(*) FROM t").await != 0).then_some(()))
        .await;
    kill(i32::try_from(child.id()).expect("an id"), Signal::KILL);
    child.wait().expect("its end");
    drop(pipe);
    let mut child =
        directory.command(&[&import[..], &["--resume"]].concat()).stdin(Stdio::piped()).spawn().expect("it runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(lines.concat().as_bytes()).expect("it reads");
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = db.exec("SELECT n, COUNT(*) AS times FROM t GROUP BY n HAVING COUNT(*) != 30").await;
    assert_eq!(found, json!([]));
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 3_000);
}

async fn an_import_stops_at_the_first_ctrl_c_and_goes_on(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    let directory = WorkingDirectory::new(Way::Url(host));
    let table = format!("{}.t", db.name);
    let lines = |ids: std::ops::Range<u32>| ids.map(|id| format!("{{\"id\": {id}}}\n")).collect::<String>();
    let import = ["import", &table, "-", "--batch-rows", "40"];
    let mut child = directory.command(&import).stdin(Stdio::piped()).spawn().expect("it runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(lines(0..2_000).as_bytes()).expect("it reads");
    eventually("rows", Duration::from_secs(60), async || (db.value("SELECT COUNT(*) FROM t").await != 0).then_some(()))
        .await;
    kill(i32::try_from(child.id()).expect("an id"), Signal::INT);
    // The import reads the rest of its input only if the signal has no effect.
    let _ = pipe.write_all(lines(2_000..12_000).as_bytes());
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("stopped") && told.contains("--resume"), "{told}");
    let mut child =
        directory.command(&[&import[..], &["--resume"]].concat()).stdin(Stdio::piped()).spawn().expect("it runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(lines(0..12_000).as_bytes()).expect("it reads");
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 12_000);
}

async fn a_continued_import_is_the_same(host: Host) {
    let db = TestDb::new(host, &[CREATE, "CREATE TABLE other (n INT)"]).await;
    let directory = WorkingDirectory::new(Way::Url(host));
    let (table, other) = (format!("{}.t", db.name), format!("{}.other", db.name));
    directory.write("rows.csv", "n\n1\n2\n3\n");
    let import = ["import", &table, "rows.csv", "--batch-rows", "2"];
    let mut command = directory.command(&import);
    let output = command.env("SELKIE_FAULT_POINT", "batch_recorded").output().expect("it runs");
    assert!(output.status.signal().is_some());
    let (_, told) = directory.exits(2, &import);
    assert!(told.contains("broken off") && told.contains("--resume"), "{told}");
    for (arguments, part) in [
        (["import", &other, "rows.csv", "--resume", "--batch-rows", "2"], "the table"),
        (["import", &table, "rows.csv", "--resume", "--batch-rows", "3"], "--batch-rows"),
    ] {
        let (_, told) = directory.exits(2, &arguments);
        assert!(told.contains(part), "{told}");
    }
    for (content, what) in [("n\n1\n7\n3\n", "other rows"), ("n\n1\n", "a shorter batch"), ("n\n", "no batch")] {
        directory.write("rows.csv", content);
        let (_, told) = directory.exits(1, &[&import[..], &["--resume"]].concat());
        assert!(told.contains("is not the file"), "{what}: {told}");
    }
    directory.write("rows.csv", "n\n1\n2\n3\n");
    directory.exits(0, &[&import[..], &["--resume"]].concat());
    assert_eq!(db.value("SELECT GROUP_CONCAT(n ORDER BY id) FROM t").await, "1,2,3");
}
