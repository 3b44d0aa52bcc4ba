//! The parts of an installation other than its databases: origins, edges, the S3 service, and their
//! common settings.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, Result, bail};
use machines::{process::Started, server::Site};
use tokio::process::Command;

use crate::{
    program::{Program, Ready},
    s3::{ACCESS_KEY, BUCKET, SECRET_KEY},
};

const ORIGIN_PORT: u16 = 8080;
const EDGE_PORT: u16 = 8787;
const S3_PORT: u16 = 9000;

#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) binary: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) secret: String,
    pub(crate) store: String,
    /// The address of the S3 service, to which webhooks may be delivered.
    home: Ipv4Addr,
}

impl Common {
    pub(crate) fn new(binary: Option<&Path>, directory: &Path, home: Ipv4Addr) -> Result<Self> {
        let binary = match binary {
            Some(path) => path.canonicalize().with_context(|| path.display().to_string())?,
            None => beside()?,
        };
        let secret = uuid::Uuid::new_v4().simple().to_string().repeat(2);
        Ok(Self { binary, directory: directory.to_owned(), secret, store: format!("http://{home}:{S3_PORT}"), home })
    }

    fn environment(&self, name: &str, database: &str) -> Vec<(&'static str, String)> {
        vec![
            ("SELKIE_DATABASE_URL", database.to_owned()),
            ("SELKIE_SECRET", self.secret.clone()),
            ("SELKIE_DATA_DIR", self.directory.join(name).display().to_string()),
            ("SELKIE_LOG_FORMAT", "json".to_owned()),
            ("SELKIE_WEBHOOK_ALLOW", format!("{}/32", self.home)),
            ("SELKIE_MEDIA_STORE", format!("s3://{BUCKET}")),
            ("SELKIE_MEDIA_S3_ENDPOINT", self.store.clone()),
            ("SELKIE_MEDIA_S3_ACCESS_KEY", ACCESS_KEY.to_owned()),
            ("SELKIE_MEDIA_S3_SECRET_KEY", SECRET_KEY.to_owned()),
        ]
    }

    fn log(&self, name: &str) -> Result<File> {
        Ok(File::options().append(true).create(true).open(self.directory.join(format!("{name}.log")))?)
    }

    /// Returns an origin at this site. Does not start it. `more` are additional settings.
    pub(crate) fn origin(&self, name: &str, site: Site, database: &str, more: &[(&'static str, String)]) -> Program {
        let (common, title) = (self.clone(), name.to_owned());
        let mut environment = self.environment(name, database);
        environment.push(("SELKIE_LISTEN", format!("{}:{ORIGIN_PORT}", site.address)));
        environment.extend(more.iter().cloned());
        let start = move || {
            let log = common.log(&title)?;
            let other = log.try_clone()?;
            Started::within(site.namespace, &common.binary, |command| {
                clear(command);
                command.arg("serve").envs(environment.clone()).current_dir(&common.directory).stdout(other).stderr(log);
            })
        };
        Program::new(name.to_owned(), format!("{}/readyz", origin_url(site)), Ready::Success, Box::new(start))
    }

    /// Returns an edge in workerd that forwards to these origins. Does not start it. Returns an
    /// error if workerd is not installed.
    pub(crate) fn edge(&self, name: &str, address: Ipv4Addr, origins: &str, jwks: &str) -> Result<Program> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workerd = workerd(&root)?;
        let config = traced(&root)?;
        let (common, title) = (self.clone(), name.to_owned());
        let (origins, jwks) = (origins.to_owned(), jwks.trim().to_owned());
        let start = move || {
            let log = common.log(&title)?;
            let other = log.try_clone()?;
            Started::new(&workerd, |command| {
                command
                    .env_clear()
                    .arg("serve")
                    .arg(&config)
                    .arg(format!("--socket-addr=http={address}:{EDGE_PORT}"))
                    .env("ORIGINS", &origins)
                    .env("ORIGIN_CONNECT_TIMEOUT_MS", "1000")
                    .env("JWKS", &jwks)
                    .env("LOG_REQUESTS", "off")
                    .current_dir(&root)
                    .stdout(other)
                    .stderr(log);
                if let Some(path) = std::env::var_os("PATH") {
                    command.env("PATH", path);
                }
            })
        };
        Ok(Program::new(name.to_owned(), format!("{}/healthz", edge_url(address)), Ready::Success, Box::new(start)))
    }

    /// Returns the S3 service. Does not start it.
    pub(crate) fn s3(&self, address: Ipv4Addr) -> Result<Program> {
        let program = std::env::current_exe()?;
        let common = self.clone();
        let listen = SocketAddr::from((address, S3_PORT)).to_string();
        let start = move || {
            let log = common.log("s3")?;
            Started::new(&program, |command| {
                command.args(["serve-s3", "--listen", &listen, "--directory"]).arg(common.directory.join("s3"));
                command.stdout(Stdio::null()).stderr(log);
            })
        };
        Ok(Program::new("the S3 service".to_owned(), self.store.clone(), Ready::Answer, Box::new(start)))
    }

    /// Runs a `selkie` command of the installation and returns its standard output. Returns an
    /// error if it fails.
    pub(crate) async fn printed(&self, database: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        clear(&mut command);
        command.args(arguments).envs(self.environment("commands", database)).current_dir(&self.directory);
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
        if !output.status.success() {
            bail!("selkie {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(crate) async fn full_key(&self, database: &str) -> Result<String> {
        let text = self.printed(database, &["key", "create", "--access", "full"]).await?;
        let key = text.split(|c: char| c.is_whitespace() || c == '"').find(|word| word.starts_with("eyJ"));
        Ok(key.context("no key was printed")?.to_owned())
    }

    pub(crate) fn log_tail(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.directory.join(format!("{name}.log"))).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

pub(crate) fn origin_url(site: Site) -> String {
    format!("http://{}:{ORIGIN_PORT}", site.address)
}

pub(crate) fn edge_url(address: Ipv4Addr) -> String {
    format!("http://{address}:{EDGE_PORT}")
}

/// Removes all `SELKIE_…` variables from a program's environment.
fn clear(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SELKIE_") {
            command.env_remove(name);
        }
    }
}

fn beside() -> Result<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("selkie");
    if !beside.is_file() {
        bail!("there is no {}: run `make build`, or give --selkie", beside.display());
    }
    Ok(beside)
}

/// Writes a copy of `edge/workerd.capnp` with which V8 prints a line for each garbage collection, and returns its path.
fn traced(root: &Path) -> Result<PathBuf> {
    let build = root.join("edge/build");
    let config = std::fs::read_to_string(root.join("edge/workerd.capnp"))?;
    // Embedded files are relative to the configuration's directory.
    let config = config.replace("\"build/", "\"").replacen(V8_FLAGS, &format!("{V8_FLAGS}\"--trace-gc\", "), 1);
    let path = build.join("traced.capnp");
    // Renamed, so that no program that starts at the same time reads half of it.
    let written = build.join(format!("traced-{}.capnp", std::process::id()));
    std::fs::write(&written, config)?;
    std::fs::rename(written, &path)?;
    Ok(path)
}

/// The beginning of V8's flags in `edge/workerd.capnp`.
const V8_FLAGS: &str = "v8Flags = [";

fn workerd(root: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(root.join("node_modules/@cloudflare")).context("node_modules: run `make setup`")?;
    entries
        .flatten()
        .map(|entry| entry.path().join("bin/workerd"))
        .find(|program| program.is_file())
        .context("workerd, which `make setup` installs")
}

/// Copies the logs of all programs and databases.
pub(crate) fn keep_logs(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            std::fs::copy(&path, to.join(entry.file_name()))?;
        }
        // A database's log is in the database's directory, below the directory of its cluster.
        for server in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let log = server.path().join("log");
            if log.is_file() {
                let name = format!("{}.log", server.file_name().to_string_lossy());
                std::fs::copy(log, to.join(name))?;
            }
        }
    }
    Ok(())
}
