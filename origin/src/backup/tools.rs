//! Runs MariaDB's own tools, `mariadb-dump` and `mariadb`, on the installation's MariaDB. The tools
//! read the password from a file that only this user can read, since other users could see it in
//! the tools' arguments.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::StreamExt as _;
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::{BackupError, Part, Watcher};
use crate::address::{DatabaseAddress, Endpoint, Tls, Verify};
use crate::files::{create_private, private_directory, remove_file};
use crate::media::store::{Staged, Store};
use crate::process::{LastSignal, find_program, spawn, tied};

const DUMP: &str = "mariadb-dump";
const CLIENT: &str = "mariadb";

/// The beginning of the last line of a complete dump.
const COMPLETED: &[u8] = b"-- Dump completed";

/// The beginning of the line of a dump with the position of the binary log.
const POSITION: &str = "-- CHANGE MASTER TO MASTER_LOG_FILE='";

/// Number of bytes at the beginning of a dump that are searched for [`POSITION`], and at its end
/// for [`COMPLETED`].
const SEARCHED_BYTES: usize = 16 * 1024;

/// Maximum bytes of a tool's standard error that an error message repeats.
const TOLD_MAX_BYTES: u64 = 4 * 1024;

/// The age from which an option file counts as left by a killed process. Tools read the file when they start. A restore
/// starts its tool only after it has dropped the databases that it replaces, which may take longer.
const READ_WITHIN: Duration = Duration::from_secs(60);

const READ_BYTES: usize = 128 * 1024;

/// Whether MariaDB writes a binary log, whose position a dump then records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binlog {
    On,
    Off,
}

/// A file with MariaDB's address, user and password, for the option `--defaults-file` of a tool.
/// Deleted on drop.
pub(super) struct OptionFile(PathBuf);

impl OptionFile {
    /// Writes the file into `directory`, with mode 0600. Also deletes old option files there.
    pub(super) fn write(address: &DatabaseAddress, directory: &Path) -> Result<Self, BackupError> {
        let name =
            format!(".mariadb-{:016x}.cnf", getrandom::u64().map_err(io::Error::other).map_err(BackupError::Run)?);
        let path = directory.join(name);
        remove_old(directory);
        private_directory(directory)
            .and_then(|()| create_private(&path, &options(address)))
            .map_err(BackupError::Run)?;
        Ok(Self(path))
    }

    /// Returns a command that runs `tool` with this option file as its only configuration file.
    ///
    /// # Errors
    /// The tool is not installed.
    fn command(&self, tool: &'static str) -> Result<Command, BackupError> {
        let program = find_program(&[tool]).ok_or(BackupError::NotInstalled(tool))?;
        let mut command = tied(&program, LastSignal::Kill);
        let mut defaults = std::ffi::OsString::from("--defaults-file=");
        defaults.push(&self.0);
        command.arg(defaults).arg("--default-character-set=utf8mb4").arg("--max-allowed-packet=1G");
        Ok(command)
    }
}

impl Drop for OptionFile {
    fn drop(&mut self) {
        // Drop can't return an error. A later backup or restore deletes the file; see [`remove_old`].
        let _ = remove_file(&self.0);
    }
}

/// Deletes old option files, which killed processes have left. A newer file may belong to a running backup or restore
/// whose tool has not read it yet.
fn remove_old(directory: &Path) {
    let is_old = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let age = entry.metadata().and_then(|data| data.modified()).map(|time| time.elapsed().unwrap_or_default());
        let name = name.to_string_lossy();
        name.starts_with(".mariadb-") && name.ends_with(".cnf") && age.is_ok_and(|age| age > READ_WITHIN)
    };
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten().filter(is_old) {
        // Ignores an error, since the next backup or restore tries again.
        let _ = remove_file(&entry.path());
    }
}

/// Returns the text of the option file.
fn options(address: &DatabaseAddress) -> String {
    let mut text = "[client]\n".to_owned();
    let mut set = |name: &str, value: &str| {
        let value = value.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
        text.push_str(&format!("{name}=\"{value}\"\n"));
    };
    set("user", &address.admin_user);
    set("password", address.admin_password.expose_secret());
    match &address.endpoint {
        Endpoint::Socket(path) => set("socket", &path.to_string_lossy()),
        Endpoint::Tcp { host, port, tls } => {
            set("host", host);
            set("port", &port.to_string());
            set("protocol", "tcp");
            if let Tls::Required { ca_file, verify, client } = tls {
                set("ssl", "1");
                // The tools can't check the certificate's issuer without its host name, so
                // `Verify::Issuer` checks nothing.
                set("ssl-verify-server-cert", if *verify == Verify::Identity { "1" } else { "0" });
                let files = [
                    ("ssl-ca", ca_file.as_ref()),
                    ("ssl-cert", client.as_ref().map(|client| &client.certificate)),
                    ("ssl-key", client.as_ref().map(|client| &client.key)),
                ];
                for (name, path) in files.into_iter().filter_map(|(name, path)| Some((name, path?))) {
                    set(name, &path.to_string_lossy());
                }
            }
        }
    }
    text
}

/// A dump that is staged but not published in the store, and the position of the binary log.
pub(super) struct Dumped {
    pub(super) staged: Staged,
    pub(super) binlog: Option<String>,
}

/// Dumps databases in one transaction, in the order given, compressed with zstd.
///
/// # Errors
/// The tool is missing, fails or ends early; the dump can't be staged.
pub(super) async fn dump(
    options: &OptionFile,
    databases: &[String],
    binlog: Binlog,
    store: &Store,
    watcher: &dyn Watcher,
) -> Result<Dumped, BackupError> {
    let mut command = options.command(DUMP)?;
    command.args(["--single-transaction", "--quick", "--hex-blob", "--routines", "--events", "--triggers"]);
    command.args(["--no-tablespaces", "--tz-utc"]);
    if binlog == Binlog::On {
        command.args(["--master-data=2", "--gtid"]);
    }
    command.arg("--databases").arg("--").args(databases);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command).await.map_err(BackupError::Run)?;
    let told = messages(&mut child);
    let Some(mut output) = child.stdout.take() else {
        return Err(BackupError::Incomplete(DUMP));
    };
    let mut staging = store.stage();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 0).map_err(BackupError::Run)?;
    encoder.include_checksum(true).map_err(BackupError::Run)?;
    let (mut head, mut tail, mut buffer) = (Vec::new(), Vec::new(), vec![0; READ_BYTES]);
    loop {
        let read = output.read(&mut buffer).await.map_err(BackupError::Run)?;
        if read == 0 {
            break;
        }
        let bytes = &buffer[..read];
        head.extend_from_slice(&bytes[..SEARCHED_BYTES.saturating_sub(head.len()).min(read)]);
        tail.extend_from_slice(bytes);
        tail.drain(..tail.len().saturating_sub(SEARCHED_BYTES));
        encoder.write_all(bytes).map_err(BackupError::Run)?;
        staging.write(&std::mem::take(encoder.get_mut())).await?;
        watcher.advance(read);
    }
    let status = child.wait().await.map_err(BackupError::Run)?;
    check(DUMP, status, told).await?;
    if memchr::memmem::find(&tail, COMPLETED).is_none() {
        return Err(BackupError::Incomplete(DUMP));
    }
    staging.write(&encoder.finish().map_err(BackupError::Run)?).await?;
    Ok(Dumped { staged: staging.finish().await?, binlog: position(&String::from_utf8_lossy(&head)) })
}

/// Returns the position of the binary log, as `file:position`, from the beginning of a dump; `None`
/// if the dump has no position.
fn position(head: &str) -> Option<String> {
    let line = head.lines().find_map(|line| line.strip_prefix(POSITION))?;
    let (file, rest) = line.split_once("', MASTER_LOG_POS=")?;
    Some(format!("{file}:{}", rest.trim_end_matches(';')))
}

/// Checks that a dump can be loaded: that the client `mariadb` is installed, and the dump's size and hash.
///
/// # Errors
/// The tool is missing; the dump is missing or damaged; the store fails.
pub(super) async fn check_dump(store: &Store, part: &Part, watcher: &dyn Watcher) -> Result<(), BackupError> {
    find_program(&[CLIENT]).ok_or(BackupError::NotInstalled(CLIENT))?;
    watcher.begin("checking the dump".to_owned(), Some(part.size));
    let (mut bytes, mut size, mut hash) = (store.read(part.key()?, None).await?, 0, Sha256::new());
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk?;
        size += chunk.len() as u64;
        hash.update(&chunk);
        watcher.advance(chunk.len());
    }
    match part.is(size, &hash.finalize()) {
        true => Ok(()),
        false => Err(BackupError::Damaged("the dump")),
    }
}

/// Runs the statements of a dump with the client `mariadb`.
///
/// # Errors
/// The dump or the tool is missing; the tool or the store fails. MariaDB may have run a part of the dump then.
pub(super) async fn run_dump(
    options: &OptionFile,
    store: &Store,
    part: &Part,
    watcher: &dyn Watcher,
) -> Result<(), BackupError> {
    watcher.begin("loading the databases".to_owned(), Some(part.size));
    let mut command = options.command(CLIENT)?;
    command.args(["--binary-mode", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = spawn(command).await.map_err(BackupError::Run)?;
    let told = messages(&mut child);
    let fed = feed(&mut child, store, part, watcher).await;
    let status = child.wait().await.map_err(BackupError::Run)?;
    // If the tool ended early, its own message is more helpful than the error of the broken pipe.
    check(CLIENT, status, told).await?;
    fed
}

async fn feed(child: &mut Child, store: &Store, part: &Part, watcher: &dyn Watcher) -> Result<(), BackupError> {
    let Some(mut input) = child.stdin.take() else {
        return Err(BackupError::Incomplete(CLIENT));
    };
    let mut decoder = zstd::stream::write::Decoder::new(Vec::new()).map_err(BackupError::Run)?;
    let mut bytes = store.read(part.key()?, None).await?;
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk?;
        decoder.write_all(&chunk).map_err(BackupError::Run)?;
        input.write_all(&std::mem::take(decoder.get_mut())).await.map_err(BackupError::Run)?;
        watcher.advance(chunk.len());
    }
    decoder.flush().map_err(BackupError::Run)?;
    input.write_all(decoder.get_ref()).await.map_err(BackupError::Run)?;
    input.shutdown().await.map_err(BackupError::Run)
}

/// Starts a task that reads the standard error of a tool to its end, and returns the first [`TOLD_MAX_BYTES`] of it.
fn messages(child: &mut Child) -> JoinHandle<String> {
    let stream = child.stderr.take();
    tokio::spawn(async move {
        let mut told = Vec::new();
        if let Some(mut stream) = stream {
            // A read error only truncates the message: the exit status shows whether the tool
            // failed.
            let _ = (&mut stream).take(TOLD_MAX_BYTES).read_to_end(&mut told).await;
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        }
        String::from_utf8_lossy(&told).trim().to_owned()
    })
}

async fn check(program: &'static str, status: ExitStatus, told: JoinHandle<String>) -> Result<(), BackupError> {
    let told = told.await.unwrap_or_default();
    if status.success() {
        return Ok(());
    }
    Err(BackupError::Program { program, status: status.to_string(), told })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_file_keeps_every_character_of_a_password() {
        let url =
            "mysql://boss:a%22b%5Cc%23d%27%20@db.example:3307?require_ssl=true&ssl_ca=/ca.pem&verify_identity=false";
        let text = options(&DatabaseAddress::parse(url).unwrap());
        let expected = "[client]\nuser=\"boss\"\npassword=\"a\"b\\\\c#d' \"\nhost=\"db.example\"\nport=\"3307\"\n\
             protocol=\"tcp\"\nssl=\"1\"\nssl-verify-server-cert=\"0\"\nssl-ca=\"/ca.pem\"\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_position_of_the_binary_log_is_read_from_a_dump() {
        let head = "-- comment\n-- CHANGE MASTER TO MASTER_LOG_FILE='bin.000002', MASTER_LOG_POS=342;\nSET x = 1;\n";
        assert_eq!(position(head).as_deref(), Some("bin.000002:342"));
        assert_eq!(position("SET x = 1;\n"), None);
    }
}
