//! Tests which commands create an installation, and the errors in a wrong environment. Each case has a directory of its
//! own, and no running service.

use crate::host::Host;
use crate::service::{binary, clear_settings, shared};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

cases! {
    Own: [
        a_command_makes_no_installation,
        a_command_without_the_secret_makes_none,
        init_makes_an_installation_once,
        a_misspelt_variable_is_refused_and_another_is_named,
        no_flag_takes_a_secret,
        the_programs_of_mariadb_have_the_version_that_was_asked_for,
    ],
}

/// Commands that need only the installation.
const COMMANDS: &[&[&str]] = &[
    &["key", "create", "--access", "full"],
    &["key", "list"],
    &["key", "revoke", "0192d3c4-0000-7000-8000-000000000000"],
    &["key", "rotate", "--yes"],
    &["key", "jwks"],
    &["project", "create", "shop"],
    &["project", "list"],
    &["database", "create", "shop"],
    &["database", "adopt", "shop"],
    &["database", "drop", "shop", "--yes"],
    &["database", "list"],
    &["media", "ls"],
    &["media", "sweep"],
    &["doctor"],
    &["role", "list"],
    &["issuer", "list"],
    &["types", "--lang", "ts"],
    &["export", "demo.posts"],
    &["changes", "demo.posts"],
    &["import", "demo.posts", "posts.csv"],
];

struct WorkingDirectory(TempDir);

impl WorkingDirectory {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn run(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
        let mut command = Command::new(binary().expect("the binary"));
        clear_settings(&mut command);
        command.args(arguments).envs(settings.iter().copied()).current_dir(self.0.path()).stdin(Stdio::null());
        command.output().expect("it runs")
    }

    /// Runs a command that must succeed; returns its standard output.
    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments, &[]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command that must fail because of wrong configuration; returns its standard error.
    #[track_caller]
    fn misconfigured(&self, arguments: &[&str], settings: &[(&str, &str)]) -> String {
        let output = self.run(arguments, settings);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(output.stdout.is_empty(), "{arguments:?} answers");
        told
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(self.0.path()).expect("a directory").count() == 0
    }
}

#[track_caller]
fn tells(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "{part:?} is missing: {told}");
    }
}

async fn a_command_makes_no_installation(_: Host) {
    let directory = WorkingDirectory::new();
    let data_dir = directory.0.path().join(".selkie").display().to_string();
    for command in COMMANDS {
        let told = directory.misconfigured(command, &[]);
        let parts = ["SELKIE_DATABASE_URL", &data_dir, "selkie.toml", "selkie init"];
        tells(&told, &parts);
        assert!(directory.is_empty(), "{command:?} made something");
    }
    let told = directory.misconfigured(&["edge", "secret"], &[]);
    tells(&told, &["SELKIE_SECRET", &data_dir, "selkie init"]);
    assert!(directory.is_empty(), "`edge secret` made something");
}

async fn a_command_without_the_secret_makes_none(_: Host) {
    let directory = WorkingDirectory::new();
    let url = [("SELKIE_DATABASE_URL", "mysql://admin:hush-hush-7@127.0.0.1:1")];
    for command in COMMANDS {
        let told = directory.misconfigured(command, &url);
        tells(&told, &["SELKIE_SECRET", ".selkie/secret", "SELKIE_DATA_DIR"]);
        assert!(!told.contains("hush-hush-7"), "{told}");
        assert!(directory.is_empty(), "{command:?} made something");
    }
}

async fn init_makes_an_installation_once(_: Host) {
    let directory = WorkingDirectory::new();
    let init = || -> Value { serde_json::from_str(&directory.ok(&["init", "--json"])).expect("JSON") };
    assert_eq!(init()["created"], true);
    let key_sets = directory.ok(&["key", "jwks"]);
    assert_eq!(init()["created"], false);
    assert_eq!(directory.ok(&["key", "jwks"]), key_sets, "a second init changed the keys");
    assert!(directory.ok(&["key", "create", "--access", "read"]).starts_with("ey"));
    // No command creates a second secret for an installation.
    let secret = directory.0.path().join(".selkie/secret");
    let kept = fs::read(&secret).expect("a secret");
    fs::remove_file(&secret).expect("a secret");
    let listen = "127.0.0.1:0";
    let makers: [&[&str]; 3] = [&["init"], &["serve", "--listen", listen], &["dev", "--no-edge", "--listen", listen]];
    for command in makers {
        let output = directory.run(command, &[]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {told}");
        tells(&told, &["holds an installation already", ".selkie/secret"]);
        assert!(!secret.exists(), "{command:?} made another secret");
    }
    let told = directory.misconfigured(&["key", "list"], &[]);
    tells(&told, &["SELKIE_SECRET", ".selkie/secret"]);
    fs::write(&secret, kept).expect("the secret");
    assert_eq!(directory.ok(&["key", "jwks"]), key_sets);
}

async fn a_misspelt_variable_is_refused_and_another_is_named(_: Host) {
    let directory = WorkingDirectory::new();
    let listen = "127.0.0.1:0";
    let commands: [&[&str]; 4] = [&["serve", "--listen", listen], &["init"], &["key", "list"], &["config"]];
    for command in commands {
        let told = directory.misconfigured(command, &[("SELKIE_DATABSE_URL", "mysql://a:hush-7@h")]);
        tells(&told, &["SELKIE_DATABSE_URL", "SELKIE_DATABASE_URL"]);
        assert!(!told.contains("hush-7"), "{told}");
        assert!(directory.is_empty(), "{command:?} made something");
    }
    let output = directory.run(&["config"], &[("SELKIE_IMAGE", "1.2")]);
    assert!(output.status.success());
    tells(&String::from_utf8_lossy(&output.stderr), &["warning", "SELKIE_IMAGE is no setting"]);
    // The variables that `selkie dev` writes for a shell must not be taken for misspelt settings.
    let output = directory.run(&["config"], &[("SELKIE_FULL_KEY", "x")]);
    assert!(output.stderr.is_empty());
}

async fn no_flag_takes_a_secret(_: Host) {
    let directory = WorkingDirectory::new();
    for setting in ["database_url", "secret", "media_s3_access_key", "media_s3_secret_key"] {
        let flag = format!("--{}", setting.replace('_', "-"));
        let variable = format!("SELKIE_{}", setting.to_uppercase());
        let told = directory.misconfigured(&["key", "list", &flag, "hush-hush-7"], &[]);
        tells(&told, &[&flag, &variable, "in the file"]);
        assert!(!told.contains("hush-hush-7"), "{told}");
        let help = directory.ok(&["serve", "--help"]);
        assert!(!help.contains(&flag), "{help}");
    }
}

/// `make test MARIADB=11.8` must not run with this machine's MariaDB.
async fn the_programs_of_mariadb_have_the_version_that_was_asked_for(_: Host) {
    let asked = std::env::var("MARIADB").unwrap_or_default();
    let server = shared().root_sql("SELECT VERSION()").expect("a version");
    assert!(server.starts_with(&asked), "{server}");
    let output = Command::new("mariadb").arg("--version").output().expect("it runs");
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(version.contains(&format!(" {asked}")), "{version}");
}
