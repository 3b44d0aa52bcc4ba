//! Dumps of databases: a sequence of records, each of which is a line of JSON ([`RecordHead`]) and one SQL statement.
//! Nothing is ever split by looking for delimiters: a tenant writes the text of routines, views, triggers, events,
//! comments and defaults, and could write it so that a client and MariaDB see different statements.

mod load;
mod save;

use std::time::Duration;

use mysql_async::{Conn, OptsBuilder};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

pub use self::load::{Loaded, Loader};
pub use self::save::{Dump, Incomplete};
use super::AdminError;
use crate::database::errno;

/// The time limit for one statement or one row of a dump, and for one statement of a script.
const WAIT: Duration = Duration::from_secs(3600);

/// The time limit for a statement that describes or creates an object with code of a tenant, since MariaDB runs
/// functions to describe or create a view.
const CODE_TIME: Duration = Duration::from_secs(5);

/// The time for one project: in a restore for everything, in a backup for its rows, and again for all but tables.
const PROJECT_TIME: Duration = Duration::from_secs(30 * 60);

/// The time that a backup adds to [`PROJECT_TIME`] for each MiB of a project's tables, for their rows. A compressed
/// column may have a thousand times as many bytes as its table.
const ROWS_TIME_PER_MIB: Duration = Duration::from_secs(1);

/// The time that a restore adds to [`PROJECT_TIME`] for each MiB of statements.
const PROJECT_TIME_PER_MIB: Duration = Duration::from_secs(10);

/// The largest packet that the driver allows.
const PACKET_MAX_BYTES: usize = 1024 * 1024 * 1024;

/// What a record's statement creates, in the order of the records in a dump: an object comes after all that it needs,
/// except that a view may need a later view. Rows come before triggers and events, which must not change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum RecordKind {
    /// Sets the character set, collation and comment of a database, which exists.
    Database,
    Sequence,
    Table,
    Rows,
    Routine,
    View,
    Trigger,
    Event,
}

impl RecordKind {
    const fn noun(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Sequence => "sequence",
            Self::Table => "table",
            Self::Rows => "rows of table",
            Self::Routine => "routine",
            Self::View => "view",
            Self::Trigger => "trigger",
            Self::Event => "event",
        }
    }
}

/// The session settings under which a statement was first run, since its meaning depends on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    sql_mode: String,
    character_set: String,
    collation: String,
    time_zone: String,
}

impl Default for Settings {
    /// Returns the settings for tables and rows: those in which MariaDB stores every value as it was read.
    fn default() -> Self {
        Self {
            sql_mode: "NO_AUTO_VALUE_ON_ZERO".to_owned(),
            character_set: "utf8mb4".to_owned(),
            collation: "utf8mb4_general_ci".to_owned(),
            time_zone: "+00:00".to_owned(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordHead {
    kind: RecordKind,
    database: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<Settings>,
    /// The database's default collation when the object was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    database_collation: Option<String>,
    /// Length of the statement, which follows the line.
    bytes: usize,
}

impl RecordHead {
    fn new(kind: RecordKind, database: &str, name: &str) -> Self {
        let (database, name) = (database.to_owned(), name.to_owned());
        Self { kind, database, name, settings: None, database_collation: None, bytes: 0 }
    }

    fn fault(&self, reason: String) -> ObjectFault {
        let object = match self.kind {
            RecordKind::Database => format!("database {}", self.database),
            kind => format!("{} {}.{}", kind.noun(), self.database, self.name),
        };
        ObjectFault { object, reason }
    }

    fn with_statement(mut self, statement: &[u8]) -> Result<Vec<u8>, AdminError> {
        self.bytes = statement.len();
        let mut record = serde_json::to_vec(&self).map_err(|_| AdminError::Corrupt("name"))?;
        record.push(b'\n');
        record.extend_from_slice(statement);
        record.push(b'\n');
        Ok(record)
    }
}

/// An object that could not be saved or restored, such as `view shop.sales`, and MariaDB's reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectFault {
    pub object: String,
    pub reason: String,
}

#[derive(Debug)]
pub struct DumpRecord {
    head: RecordHead,
    statement: Vec<u8>,
}

/// A dump is not a sequence of records.
#[derive(Debug)]
pub struct Malformed;

#[derive(Default)]
pub struct RecordReader {
    buffer: Vec<u8>,
    /// Number of bytes at the beginning of `buffer` that were read.
    at: usize,
    head: Option<RecordHead>,
}

impl RecordReader {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.at));
        self.buffer.extend_from_slice(bytes);
    }

    pub fn next_record(&mut self) -> Result<Option<DumpRecord>, Malformed> {
        let head = match self.head.take() {
            Some(head) => head,
            None => {
                let rest = &self.buffer[self.at..];
                let Some(end) = memchr::memchr(b'\n', rest) else {
                    return Ok(None);
                };
                let head = serde_json::from_slice(&rest[..end]).map_err(|_| Malformed)?;
                self.at += end + 1;
                head
            }
        };
        let rest = &self.buffer[self.at..];
        if rest.len() <= head.bytes {
            self.head = Some(head);
            return Ok(None);
        }
        if rest[head.bytes] != b'\n' {
            return Err(Malformed);
        }
        let statement = rest[..head.bytes].to_vec();
        self.at += head.bytes + 1;
        Ok(Some(DumpRecord { head, statement }))
    }

    pub fn is_empty(&self) -> bool {
        self.head.is_none() && self.at == self.buffer.len()
    }
}

/// Separates MariaDB's refusals of one statement, after which the session can go on, from errors that end the session.
fn refusal(error: mysql_async::Error, user: &str) -> Result<StatementRefusal, AdminError> {
    let of = match &error {
        mysql_async::Error::Server(server) => {
            Some(StatementRefusal { errno: server.code, reason: format!("{} ({})", server.message, server.code) })
        }
        _ => None,
    };
    match (AdminError::of(error, user), of) {
        // InnoDB's bulk insert reports a duplicate key when it commits.
        (_, Some(refusal)) if refusal.errno == errno::ERROR_DURING_COMMIT => Ok(refusal),
        (error @ AdminError::Unreachable(_), _) | (error, None) => Err(error),
        (_, Some(refusal)) => Ok(refusal),
    }
}

#[derive(Debug)]
pub struct StatementRefusal {
    pub errno: u16,
    pub reason: String,
}

impl StatementRefusal {
    fn may_succeed_later(&self) -> bool {
        !matches!(self.errno, 0 | errno::STATEMENT_TIMEOUT)
    }

    fn out_of_time() -> Self {
        let reason = "its project took too long: see docs/backup.md, \"Time limits\"".to_owned();
        Self { errno: 0, reason }
    }
}

impl super::Admin {
    /// Opens a connection whose rows and statements may be as large as the protocol allows, and which has no session
    /// settings of its own.
    pub(super) async fn connect_for_dump(&self, user: &str, password: &SecretString) -> Result<Conn, AdminError> {
        let finish = |options: OptsBuilder| options.max_allowed_packet(Some(PACKET_MAX_BYTES)).stmt_cache_size(0);
        let opened = self.connect_with(user, password, finish).await?;
        opened.map_err(|error| AdminError::of(error, user))
    }

    /// Awaits a statement of a dump for at most [`WAIT`], and returns MariaDB's refusal of the statement as the inner
    /// error.
    pub(super) async fn try_within<T>(
        &self,
        user: &str,
        exchange: impl Future<Output = mysql_async::Result<T>>,
    ) -> Result<Result<T, StatementRefusal>, AdminError> {
        match tokio::time::timeout(WAIT, self.pool.on(exchange)).await {
            Ok(Ok(value)) => Ok(Ok(value)),
            Ok(Err(error)) => refusal(error, user).map(Err),
            Err(_) => Err(AdminError::TimedOut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_however_their_bytes_arrive() {
        let statements: [&[u8]; 3] = [b"SELECT 1 --\x01 ;;\n{\"kind\":\"table\"}\n", b"", b"\xff\n\n"];
        let mut dump = Vec::new();
        for statement in statements {
            let head = RecordHead::new(RecordKind::View, "a\nb", "c\"`");
            dump.extend(head.with_statement(statement).unwrap());
        }
        for size in [1, 7, 1_000] {
            let (mut reader, mut found) = (RecordReader::default(), Vec::new());
            for bytes in dump.chunks(size) {
                reader.push(bytes);
                while let Some(record) = reader.next_record().unwrap() {
                    assert_eq!((record.head.database.as_str(), record.head.name.as_str()), ("a\nb", "c\"`"));
                    found.push(record.statement);
                }
            }
            assert_eq!(found, statements);
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_malformed_or_cut_dump_is_noticed() {
        let head = RecordHead::new(RecordKind::View, "a", "b");
        let dump = head.with_statement(b"SELECT 1").unwrap();
        let mut reader = RecordReader::default();
        reader.push(&dump[..dump.len() - 1]);
        assert!(reader.next_record().unwrap().is_none() && !reader.is_empty());
        reader.push(b"x");
        assert!(reader.next_record().is_err());
    }
}
