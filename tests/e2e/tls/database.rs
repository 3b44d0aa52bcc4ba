//! A private MariaDB with TLS on a TCP port.

use crate::scratch;
use crate::service::free_port;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const START_MAX: Duration = Duration::from_secs(60);

pub(super) struct Mariadb {
    directory: TempDir,
    child: Child,
    pub(super) port: u16,
}

impl Mariadb {
    /// Starts MariaDB with the files `ca.pem`, `cert.pem` and `key.pem` of this directory, and
    /// waits until it answers.
    pub(super) fn start(certificates: &Path) -> Self {
        let directory = scratch::service_directory().expect("a directory");
        let template = scratch::template().expect("a template").join("data");
        let copied = Command::new("cp").arg("--archive").args([&template, directory.path()]).status();
        assert!(copied.expect("cp").success());
        let port = free_port();
        let file = |name: &str| certificates.join(name).display().to_string();
        let mut command = Command::new(machines::server::mariadbd().expect("mariadbd"));
        command.args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-name-resolve"]);
        command.arg(format!("--datadir={}", directory.path().join("data/mariadb/data").display()));
        command.arg(format!("--socket={}", socket(&directory).display())).arg(format!("--port={port}"));
        command.arg(format!("--ssl-ca={}", file("ca.pem"))).arg(format!("--ssl-cert={}", file("cert.pem")));
        command.arg(format!("--ssl-key={}", file("key.pem")));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("mariadbd");
        let mariadb = Self { directory, child, port };
        let deadline = Instant::now() + START_MAX;
        while mariadb.root_output("SELECT 1").is_err() {
            assert!(Instant::now() < deadline, "MariaDB does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        mariadb
    }

    pub(super) fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Runs statements as MariaDB's root.
    pub(super) fn root_sql(&self, statements: &str) {
        self.root_output(statements).expect("the statements run");
    }

    fn root_output(&self, statements: &str) -> Result<(), String> {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--user=root"]).arg(format!("--socket={}", socket(&self.directory).display()));
        let output = command.arg(format!("--execute={statements}")).stdin(Stdio::null()).output().expect("mariadb");
        output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(directory: &TempDir) -> PathBuf {
    directory.path().join("tls.sock")
}
