//! Tests that really start, kill and stop a private MariaDB.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::*;
use crate::config::{ChangesConfig, Sources};
use crate::database::admin::Admin;
use crate::database::hosts::{HostRole, Hosts};

/// Maximum wait for a state of health. Other waits have the limits of the tested code.
const PATIENCE: Duration = Duration::from_secs(60);

struct Fixture {
    config: Config,
    secret: InstallationSecret,
    _directory: tempfile::TempDir,
}

fn fixture_under(sub_directory: &str) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let mut sources = Sources { directory: directory.path().join(sub_directory), ..Sources::default() };
    let small = (8 << 20).to_string();
    sources.flags.insert("mariadb_buffer_pool_bytes", small);
    let config = Config::load(sources).unwrap();
    let secret = InstallationSecret::load_or_create(config.secret.as_ref(), &config.data_dir).unwrap();
    Fixture { config, secret, _directory: directory }
}

fn fixture() -> Fixture {
    fixture_under("")
}

impl Fixture {
    async fn open(&self, role: LockRole) -> Result<Embedded, EmbeddedError> {
        Embedded::attach_or_start(&self.config, &self.secret, role).await
    }

    fn pid(&self) -> Pid {
        let text = std::fs::read_to_string(DataLayout::new(&self.config.data_dir).pid()).unwrap();
        Pid::from_raw(text.trim().parse().unwrap()).unwrap()
    }
}

fn socket(embedded: &Embedded) -> PathBuf {
    match &embedded.address().endpoint {
        Endpoint::Socket(path) => path.clone(),
        Endpoint::Tcp { .. } => panic!("not a socket"),
    }
}

async fn becomes(receiver: &mut channel::Receiver<MariadbHealth>, expected: MariadbHealth) {
    let wait = receiver.wait_for(|health| *health == expected);
    tokio::time::timeout(PATIENCE, wait).await.unwrap().unwrap();
}

/// Runs an SQL statement as the administrator, with MariaDB's own client, and returns its output.
fn run(embedded: &Embedded, statement: &str) -> String {
    use secrecy::ExposeSecret;
    let output = std::process::Command::new("mariadb")
        .args(["--no-defaults", "--batch", "--skip-column-names"])
        .arg(format!("--socket={}", socket(embedded).display()))
        .arg(format!("--user={ADMIN_USER}"))
        .arg(format!("--execute={statement}"))
        .env("MYSQL_PWD", embedded.address().admin_password.expose_secret())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_empty_keeps_what_was_written_and_leaves_nothing_running() {
    let fixture = fixture();
    let first = fixture.open(LockRole::Service).await.unwrap();
    run(&first, "CREATE DATABASE kept");
    let pid = fixture.pid();
    first.stop().await;
    assert!(test_kill_process(pid).is_err());
    let second = fixture.open(LockRole::Service).await.unwrap();
    let databases = run(&second, "SHOW DATABASES");
    second.stop().await;
    assert!(databases.contains("kept") && !databases.contains("test"), "{databases}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_has_one_administrator_nobody_without_a_name_and_no_password_on_disk() {
    let fixture = fixture();
    let embedded = fixture.open(LockRole::Service).await.unwrap();
    let users = run(&embedded, "SELECT User FROM mysql.user WHERE User NOT IN ('root', 'mysql', 'mariadb.sys')");
    let session = run(&embedded, "SELECT @@time_zone, @@character_set_server, @@max_allowed_packet, @@skip_networking");
    let layout = DataLayout::new(&fixture.config.data_dir);
    let mode = std::fs::metadata(layout.root()).unwrap().permissions().mode();
    embedded.stop().await;
    assert_eq!(users, "selkie-admin\n");
    assert_eq!(session, "+00:00\tutf8mb4\t67108864\t1\n");
    assert!(!layout.init_file().exists());
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_without_a_binary_log_gets_one_whose_size_is_bounded() {
    let mut fixture = fixture();
    fixture.config.changes = ChangesConfig::Off;
    let first = fixture.open(LockRole::Service).await.unwrap();
    run(&first, "CREATE DATABASE kept");
    assert_eq!(run(&first, "SELECT @@log_bin"), "0\n");
    first.stop().await;
    fixture.config.changes = ChangesConfig::Served;
    let second = fixture.open(LockRole::Service).await.unwrap();
    let settings = run(&second, "SELECT @@log_bin, @@binlog_format, @@binlog_row_image, @@binlog_row_metadata");
    assert_eq!(settings, "1\tROW\tFULL\tFULL\n");
    run(&second, "FLUSH BINARY LOGS; DROP DATABASE kept; FLUSH BINARY LOGS");
    let files = || run(&second, "SHOW BINARY LOGS").lines().count();
    assert_eq!(files(), 3);
    let admin = Admin::new(&Hosts::new(second.address(), HostRole::Serving), &fixture.secret, PATIENCE);
    admin.bound_log(1 << 20).await.unwrap();
    assert_eq!(files(), 3);
    admin.bound_log(0).await.unwrap();
    assert_eq!(files(), 1);
    admin.close().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_started_again() {
    let fixture = fixture();
    let embedded = fixture.open(LockRole::Service).await.unwrap();
    let mut health = embedded.health().unwrap();
    let first = fixture.pid();
    kill_process(first, Signal::KILL).unwrap();
    becomes(&mut health, MariadbHealth::Down).await;
    becomes(&mut health, MariadbHealth::Up).await;
    assert_ne!(fixture.pid(), first);
    run(&embedded, "SELECT 1");
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_attaches_to_a_service_and_leaves_it_running() {
    let fixture = fixture();
    let service = fixture.open(LockRole::Service).await.unwrap();
    let command = fixture.open(LockRole::Command).await.unwrap();
    assert!(command.health().is_none());
    run(&command, "SELECT 1");
    command.stop().await;
    run(&service, "SELECT 1");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_service_is_told_who_has_the_directory() {
    let fixture = fixture();
    let service = fixture.open(LockRole::Service).await.unwrap();
    let refused = fixture.open(LockRole::Service).await.unwrap_err();
    service.stop().await;
    assert!(matches!(refused, EmbeddedError::InUse { pid, .. } if pid == std::process::id()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_waits_for_a_command_to_be_done() {
    let fixture = fixture();
    let command = fixture.open(LockRole::Command).await.unwrap();
    let stopping = async {
        sleep(Duration::from_millis(50)).await;
        command.stop().await;
    };
    let (service, ()) = tokio::join!(fixture.open(LockRole::Service), stopping);
    let service = service.unwrap();
    assert!(service.health().is_some());
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_too_long_for_a_socket_is_got_round() {
    let fixture = fixture_under(&"x".repeat(120));
    let embedded = fixture.open(LockRole::Command).await.unwrap();
    let socket = socket(&embedded);
    assert!(!socket.starts_with(&fixture.config.data_dir));
    run(&embedded, "SELECT 1");
    embedded.stop().await;
    std::fs::remove_dir_all(socket.parent().unwrap()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_start_gives_the_reason_from_its_log() {
    let fixture = fixture();
    let layout = DataLayout::new(&fixture.config.data_dir);
    private_directory(&layout.data()).unwrap();
    std::fs::write(layout.data().join("ibdata1"), "not a tablespace").unwrap();
    let message = fixture.open(LockRole::Service).await.unwrap_err().to_string();
    assert!(message.starts_with("the private MariaDB didn't start: "), "{message}");
    assert!(!message.contains("no reason"), "{message}");
}
