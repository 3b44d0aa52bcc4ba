//! Runs a page's examples in a shell, in a directory that looks like a clone of the repository with
//! a running service. Restores the service's demo database for each page. Knows bash, curl and the
//! service, but no page.

use super::page::Example;
use crate::host::Host;
use crate::service::{Service, clear_settings};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Options of every curl: no proxies, no progress meter, and a timeout.
const CURLRC: &str = "silent\nshow-error\nmax-time = 20\nnoproxy = *\n";

/// Name of the unchanged copy of the demo database. No API key can access it.
const KEPT: &str = "demo_as_filled";

pub(super) struct Checkout<'a> {
    pub(super) host: Host,
    service: &'a Service,
    dir: TempDir,
    tables: Vec<String>,
}

/// The outputs of an example, and whether it succeeded.
pub(super) struct Ran {
    pub(super) output: String,
    pub(super) errors: String,
    pub(super) ended_well: bool,
}

impl<'a> Checkout<'a> {
    pub(super) fn new(service: &'a Service, host: Host) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let url = match host {
            Host::Origin => &service.origin,
            Host::Edge => service.edge.as_ref().expect("an edge"),
        };
        let settings = dir.path().join(".selkie");
        fs::create_dir(&settings).expect("a directory");
        // The variables of both hosts have the URL of this host, so that all examples of a page use
        // the same host.
        let lines = [
            ("SELKIE_ORIGIN_URL", url),
            ("SELKIE_EDGE_URL", url),
            ("SELKIE_FULL_KEY", &service.full_key),
            ("SELKIE_READ_KEY", &service.read_key),
            ("SELKIE_DATABASE", &service.database),
            ("SELKIE_PROJECT", &service.project),
        ]
        .map(|(name, value)| format!("{name}={value}\n"));
        put(&settings.join("dev.env"), &lines.concat());
        put(&dir.path().join(".curlrc"), CURLRC);
        // Installs the client as `npm install` of its folder does: by a link.
        let packages = dir.path().join("node_modules/@selkie");
        fs::create_dir_all(&packages).expect("a directory");
        symlink(crate::typescript::client(), packages.join("client")).expect("a link");
        let mut checkout = Self { host, service, dir, tables: Vec::new() };
        checkout.keep();
        checkout
    }

    fn keep(&mut self) {
        self.tables = self.tables_of_the_demo();
        let copies = self.tables.iter().map(|table| {
            format!(
                "CREATE TABLE {KEPT}.{table} LIKE demo.{table}; \
                 INSERT INTO {KEPT}.{table} SELECT * FROM demo.{table};"
            )
        });
        self.root(&format!("CREATE DATABASE {KEPT}; {}", copies.collect::<String>()));
    }

    /// Restores the demo database, including the ids that it assigns next.
    pub(super) fn refill(&self) {
        let mut statements = String::from("SET foreign_key_checks = 0;");
        for table in self.tables_of_the_demo() {
            statements += &if self.tables.contains(&table) {
                format!("TRUNCATE demo.{table}; INSERT INTO demo.{table} SELECT * FROM {KEPT}.{table};")
            } else {
                format!("DROP TABLE demo.{table};")
            };
        }
        self.root(&statements);
    }

    fn tables_of_the_demo(&self) -> Vec<String> {
        let names = self.root(
            "SELECT table_name FROM information_schema.tables \
             WHERE table_schema = 'demo' AND table_type = 'BASE TABLE'",
        );
        names.lines().map(str::to_owned).collect()
    }

    fn root(&self, statements: &str) -> String {
        let done = self.service.root_sql(statements);
        done.unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// Runs the examples in one shell, so that later examples can use variables of earlier ones.
    pub(super) fn run(&self, examples: &[Example]) -> Vec<Ran> {
        let dir = self.dir.path();
        let mut driver = String::new();
        for (at, example) in examples.iter().enumerate() {
            let (command, ending) = example.language.command();
            put(&dir.join(format!("{at}.{ending}")), &example.script);
            let _ = fs::remove_file(dir.join(format!("{at}.status")));
            driver += &format!("{command} ./{at}.{ending} >{at}.out 2>{at}.err </dev/null; echo $? >{at}.status\n");
        }
        put(&dir.join("driver.sh"), &driver);
        let mut bash = Command::new("bash");
        clear_settings(&mut bash);
        bash.args(["--noprofile", "--norc", "driver.sh"])
            .env("CURL_HOME", dir)
            .env("no_proxy", "*")
            .current_dir(dir)
            .stdin(Stdio::null());
        let status = bash.status().expect("bash runs");
        assert!(status.success(), "bash ended with {status}");
        let read = |at: usize, what: &str| {
            let bytes = fs::read(dir.join(format!("{at}.{what}"))).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        (0..examples.len())
            .map(|at| Ran {
                output: read(at, "out"),
                errors: read(at, "err"),
                ended_well: read(at, "status").trim() == "0",
            })
            .collect()
    }
}

fn put(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
