//! Tests of the binary as a process: what it leaves behind however it ends, and its messages when it can't start. The
//! edge is not started; in the tests of `selkie guard`, a shell that starts programs replaces Miniflare.

#![expect(clippy::unwrap_used, reason = "these are tests, their helpers too")]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

fn selkie(data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selkie"));
    let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SELKIE_"));
    for (name, _) in ours {
        command.env_remove(name);
    }
    command.current_dir(data_dir).arg("--data-dir").arg(data_dir.join("data")).args([
        "--listen",
        "127.0.0.1:0",
        "--mariadb-buffer-pool-bytes",
        "8388608",
    ]);
    command
}

/// Starts `selkie dev` without an edge, and waits until it reports that all services answer.
fn start(data_dir: &Path) -> Child {
    let mut child =
        selkie(data_dir).args(["dev", "--no-edge"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.any(|line| line.unwrap().starts_with("Selkie runs"));
    assert!(ready, "it ended with {:?}", child.wait());
    child
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

fn mariadb_pid(data_dir: &Path) -> Pid {
    let text = std::fs::read_to_string(data_dir.join("data/mariadb/mariadbd.pid")).unwrap();
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

/// Returns whether a process runs; `false` for a zombie.
fn runs(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let zombie = stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')));
    test_kill_process(pid).is_ok() && !zombie
}

fn goes(pid: Pid) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while runs(pid) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    !runs(pid)
}

fn environment(data_dir: &Path) -> String {
    std::fs::read_to_string(data_dir.join("data/dev.env")).unwrap()
}

fn keys(environment: &str) -> Vec<&str> {
    environment.lines().filter(|line| line.contains("_KEY=")).collect()
}

#[test]
fn every_signal_to_stop_ends_it_cleanly_and_keys_outlive_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut environments = Vec::new();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut child = start(directory.path());
        let mariadb = mariadb_pid(directory.path());
        environments.push(environment(directory.path()));
        kill_process(pid(&child), signal).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(!runs(mariadb));
    }
    let first = keys(&environments[0]);
    assert_eq!(first.len(), 2);
    assert!(environments.iter().all(|environment| keys(environment) == first));
}

#[test]
fn killed_it_takes_its_mariadb_along_and_can_be_started_again() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut child = start(directory.path());
        let mariadb = mariadb_pid(directory.path());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(goes(mariadb));
    }
}

#[test]
fn it_ends_with_the_program_that_started_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut selkie = selkie(directory.path());
    selkie.args(["dev", "--no-edge"]);
    let mut shell = Command::new("sh");
    // `true` follows, because the shell would replace itself by the program if that were its last command.
    shell.args(["-c", "\"$@\"; true", "sh"]).arg(selkie.get_program()).args(selkie.get_args());
    let mut shell = shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("Selkie runs")));
    let mariadb = mariadb_pid(directory.path());
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(goes(mariadb));
}

#[test]
fn two_run_side_by_side() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut children = directories.each_ref().map(|directory| start(directory.path()));
    let [one, two] = directories.each_ref().map(|directory| environment(directory.path()));
    for child in &mut children {
        kill_process(pid(child), Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success());
    }
    assert_ne!(keys(&one), keys(&two));
}

#[test]
fn a_taken_port_is_one_line_that_names_it_and_the_setting_and_nothing_is_started() {
    let directory = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let cases = [
        (vec!["serve", "--listen", &address], "--listen, SELKIE_LISTEN"),
        (vec!["dev", "--edge-listen", &address], "--edge-listen, SELKIE_EDGE_LISTEN"),
    ];
    for (arguments, setting) in cases {
        let output = run(selkie(directory.path()).args(&arguments));
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        let first = error.lines().next().unwrap();
        assert_eq!(first, format!("selkie: {address} can't be listened on: its port is in use"));
        assert!(error.contains(setting), "{error}");
    }
    assert!(!directory.path().join("data").exists());
}

#[test]
fn wrong_usage_and_configuration_exit_with_2() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        vec!["nonsense"],
        vec!["serve", "--pool-size", "0"],
        vec!["serve", "--secret", "x"],
        vec!["serve", "--database-url", "mysql://u:x@h"],
    ] {
        let output = run(selkie(directory.path()).args(&arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_configuration_is_shown_without_its_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(selkie(directory.path())
        .args(["config", "--json"])
        .env("SELKIE_DATABASE_URL", "mysql://u:hunter2@h")
        .env("SELKIE_SECRET", "hunter2".repeat(10) + "ab"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.contains("(hidden)") && !text.contains("hunter2"), "{text}");
}

#[test]
fn without_an_edge_to_run_it_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(selkie(directory.path()).args(["dev", "--edge-listen", "127.0.0.1:0"]));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("there is no wrangler.toml in"), "{error}");
    assert!(error.contains("--no-edge"), "{error}");
}

/// A shell script that starts `sleep`, prints its own process id and that of `sleep`, and ignores SIGTERM.
const STUBBORN: &str = "trap '' TERM; sleep 600 & echo $$ $!; wait";

fn guarded() -> (Child, Vec<Pid>) {
    let mut guard = Command::new(env!("CARGO_BIN_EXE_selkie"))
        .args(["guard", "--", "sh", "-c", STUBBORN])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(guard.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let number = |word: &str| Pid::from_raw(word.parse().unwrap()).unwrap();
    let pids = line.split_whitespace().map(number).collect();
    (guard, pids)
}

#[test]
fn a_guard_ends_a_whole_tree_when_its_input_closes() {
    let (mut guard, pids) = guarded();
    assert_eq!(pids.len(), 2);
    drop(guard.stdin.take());
    guard.wait().unwrap();
    assert!(!pids.into_iter().any(runs));
}

#[test]
fn a_guard_ends_a_whole_tree_on_sigterm() {
    let (mut guard, pids) = guarded();
    kill_process(pid(&guard), Signal::TERM).unwrap();
    guard.wait().unwrap();
    assert!(!pids.into_iter().any(runs));
}

#[test]
fn a_guard_ends_what_a_program_that_ended_left_and_passes_its_failure_on() {
    let mut guard = Command::new(env!("CARGO_BIN_EXE_selkie"))
        .args(["guard", "--", "sh", "-c", "sleep 600 >&2 & echo $!; exit 3"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut text = String::new();
    guard.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let status = guard.wait().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(!runs(Pid::from_raw(text.trim().parse().unwrap()).unwrap()));
}
