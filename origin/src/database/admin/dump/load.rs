//! Runs the statements of a dump, each as one statement: under the account of the project that owns the databases, so
//! that a statement can do nothing that the project could not do; under the admin account for the schema `selkie`.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::{
    AdminError, CODE_TIME, DumpRecord, ObjectFault, PROJECT_TIME, PROJECT_TIME_PER_MIB, RecordHead, RecordKind,
    Settings, StatementRefusal, WAIT,
};
use crate::config::Account;
use crate::database::admin::Admin;
use crate::database::admin::quote::ident;
use crate::database::{errno, typed_rows};
use crate::query::sql::definer::blank_definer;

/// The maximum size of all views that wait for other views.
const WAITING_MAX_BYTES: usize = 256 * 1024 * 1024;

/// Session settings beside [`Settings`]. Keys and checks held when the rows were saved.
const SESSION: &str = "SET NAMES utf8mb4, foreign_key_checks = 0, unique_checks = 0, check_constraint_checks = 0, \
     innodb_strict_mode = 0, lock_wait_timeout = 60, max_statement_time = 0, wait_timeout = 28800, autocommit = 1";

const CHANGED_TEXTS: &str =
    "they were restored, but with ? instead of bytes that are no characters of their column's character set";

#[derive(Debug, Default)]
struct Spent {
    time: Duration,
    bytes: u64,
}

impl Spent {
    /// Returns the time limit for the project's next statement; `None` if its time is used up.
    fn limit(&self, kind: RecordKind) -> Option<Duration> {
        let mib = u32::try_from(self.bytes / (1024 * 1024)).unwrap_or(u32::MAX);
        let left = (PROJECT_TIME + PROJECT_TIME_PER_MIB * mib).checked_sub(self.time)?;
        // A statement of one of these kinds runs no function of a tenant, and may have much to do.
        let is_data = matches!(kind, RecordKind::Table | RecordKind::Sequence | RecordKind::Rows);
        Some(left.min(if is_data { PROJECT_TIME } else { CODE_TIME }))
    }
}

#[derive(Debug, Default)]
pub struct Loaded {
    pub missing: Vec<ObjectFault>,
    /// Objects whose definer was no account of the project, such as `view shop.sales (root)`.
    pub redefined: Vec<String>,
}

pub struct Loader {
    admin: Admin,
    conn: Conn,
    user: String,
    /// The project's time that is used up; `None` for the admin account.
    spent: Option<Spent>,
    /// MariaDB's `max_allowed_packet`.
    packet_max_bytes: usize,
    database: String,
    settings: Settings,
    /// For each database, the present default collation and the statement that sets the proper collation.
    collations: HashMap<String, (String, Vec<u8>)>,
    lost: HashSet<(String, String)>,
    /// Views that MariaDB refused, perhaps because a view that they need comes later.
    waiting: Vec<(DumpRecord, String)>,
    loaded: Loaded,
}

impl Admin {
    /// Opens a connection to load a dump: as a project's account, or as the admin account if `account` is `None`.
    pub async fn open_loader(&self, account: Option<&Account>) -> Result<Loader, AdminError> {
        let address = self.hosts.address();
        let (user, password) = account
            .map_or((self.user(), &address.admin_password), |account| (account.user.as_str(), &account.password));
        let mut conn = self.connect_for_dump(user, password).await?;
        self.within(conn.query_drop(SESSION)).await?;
        let packet: Option<usize> =
            self.within(typed_rows::first(conn.query_iter("SELECT @@max_allowed_packet"))).await?;
        let settings = Settings { sql_mode: "unset".to_owned(), ..Settings::default() };
        Ok(Loader {
            admin: self.clone(),
            conn,
            user: user.to_owned(),
            spent: account.map(|_| Spent::default()),
            packet_max_bytes: packet.ok_or(AdminError::Corrupt("answer about the server"))?,
            database: String::new(),
            settings,
            collations: HashMap::new(),
            lost: HashSet::new(),
            waiting: Vec::new(),
            loaded: Loaded::default(),
        })
    }
}

impl Loader {
    /// Runs the statement of a record. A statement that MariaDB refuses is reported by [`Loader::finish`].
    pub async fn load(&mut self, mut record: DumpRecord) -> Result<(), AdminError> {
        let kind = record.head.kind;
        if let Some(spent) = &mut self.spent {
            spent.bytes += record.statement.len() as u64;
        }
        if kind != RecordKind::View {
            self.retry_refused_views().await?;
        }
        let key = (record.head.database.clone(), record.head.name.clone());
        if kind == RecordKind::Rows && self.lost.contains(&key) {
            return Ok(());
        }
        if record.head.settings.is_some()
            && let Some(user) = blank_definer(&mut record.statement)
            && user != self.user
        {
            self.loaded.redefined.push(format!("{} {}.{} ({user})", kind.noun(), key.0, key.1));
        }
        if kind == RecordKind::Database
            && let Some(collation) = &record.head.database_collation
        {
            self.collations.insert(key.0.clone(), (collation.clone(), record.statement.clone()));
        }
        let Err(refusal) = self.run(&record).await? else {
            return Ok(());
        };
        let held: usize = self.waiting.iter().map(|(record, _)| record.statement.len()).sum();
        if kind == RecordKind::View && refusal.may_succeed_later() && held + record.statement.len() <= WAITING_MAX_BYTES
        {
            self.waiting.push((record, refusal.reason));
            return Ok(());
        }
        if matches!(kind, RecordKind::Table | RecordKind::Sequence) {
            self.lost.insert(key);
        }
        let fault = record.head.fault(refusal.reason);
        // A table has many records of rows.
        if self.loaded.missing.last() != Some(&fault) {
            self.loaded.missing.push(fault);
        }
        Ok(())
    }

    /// Runs the views that were refused, as long as one more of them can be created.
    async fn retry_refused_views(&mut self) -> Result<(), AdminError> {
        let mut before = usize::MAX;
        while !self.waiting.is_empty() && self.waiting.len() < before {
            before = self.waiting.len();
            for (record, _) in std::mem::take(&mut self.waiting) {
                match self.run(&record).await? {
                    Ok(()) => {}
                    Err(refusal) if refusal.may_succeed_later() => self.waiting.push((record, refusal.reason)),
                    Err(refusal) => self.loaded.missing.push(record.head.fault(refusal.reason)),
                }
            }
        }
        let refused = self.waiting.drain(..).map(|(record, reason)| record.head.fault(reason));
        self.loaded.missing.extend(refused);
        Ok(())
    }

    /// Runs the views that wait for other views, and sets the databases' collations.
    pub async fn finish(mut self) -> Result<Loaded, AdminError> {
        self.retry_refused_views().await?;
        for (database, (_, statement)) in std::mem::take(&mut self.collations) {
            let head = RecordHead::new(RecordKind::Database, &database, "");
            if let Err(refusal) = self.run(&DumpRecord { head: head.clone(), statement }).await? {
                self.loaded.missing.push(head.fault(refusal.reason));
            }
        }
        // An error is ignored: nothing is in progress.
        let _ = self.admin.within(self.conn.disconnect()).await;
        Ok(self.loaded)
    }

    /// Runs a statement within the time that is left for it. The limit is part of the statement, because a tenant's
    /// function can set the session's.
    async fn ask(&mut self, kind: RecordKind, statement: &[u8]) -> Result<Result<(), StatementRefusal>, AdminError> {
        let Some(limit) = self.spent.as_ref().map_or(Some(WAIT), |spent| spent.limit(kind)) else {
            return Ok(Err(StatementRefusal::out_of_time()));
        };
        let limit = limit.as_secs().max(1);
        let mut text = format!("SET STATEMENT max_statement_time = {limit} FOR ").into_bytes();
        text.extend_from_slice(statement);
        let began = Instant::now();
        let outcome = self.admin.try_within(&self.user, self.conn.query_drop(text)).await?;
        if let Some(spent) = &mut self.spent {
            spent.time += began.elapsed();
        }
        Ok(outcome)
    }

    async fn run(&mut self, record: &DumpRecord) -> Result<Result<(), StatementRefusal>, AdminError> {
        let DumpRecord { head, statement } = record;
        // MariaDB would close the connection.
        let is_rows = head.kind == RecordKind::Rows;
        let length = if is_rows { statement.len() } else { 2 * statement.len() };
        if length + 1024 > self.packet_max_bytes {
            let reason = format!(
                "its statement has {length} bytes, more than MariaDB's max_allowed_packet of {}: raise it and restore \
                 again",
                self.packet_max_bytes
            );
            return Ok(Err(StatementRefusal { errno: 0, reason }));
        }
        if self.database != head.database {
            let switch = self.conn.query_drop(format!("USE {}", ident(&head.database)));
            if let Err(refusal) = self.admin.try_within(&self.user, switch).await? {
                return Ok(Err(refusal));
            }
            self.database.clone_from(&head.database);
        }
        let default = Settings::default();
        if let Err(refusal) = self.set(head.settings.as_ref().unwrap_or(&default)).await? {
            return Ok(Err(refusal));
        }
        if let Err(refusal) = self.set_collation(head).await? {
            return Ok(Err(refusal));
        }
        if is_rows {
            return match self.ask(head.kind, statement).await? {
                Ok(()) => self.check_texts().await,
                refused => Ok(refused),
            };
        }
        // The driver lets MariaDB run several statements of one text, but EXECUTE IMMEDIATE takes only one. The hex
        // digits mean the same in every SQL mode and character set.
        let mut execute = Vec::with_capacity(2 * statement.len() + 32);
        execute.extend_from_slice(b"EXECUTE IMMEDIATE 0x");
        for byte in statement {
            execute.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        self.ask(head.kind, &execute).await
    }

    /// Fails if MariaDB stored `?` instead of bytes that an earlier version stored as text, but this version does not.
    async fn check_texts(&mut self) -> Result<Result<(), StatementRefusal>, AdminError> {
        if self.conn.get_warnings() == 0 {
            return Ok(Ok(()));
        }
        let warnings = typed_rows::all::<(String, u16, String), _>(self.conn.query_iter("SHOW WARNINGS"));
        Ok(self.admin.try_within(&self.user, warnings).await?.and_then(|warnings| {
            match warnings.iter().any(|(_, errno, _)| *errno == errno::TRUNCATED_WRONG_VALUE_FOR_FIELD) {
                true => Err(StatementRefusal { errno: 0, reason: CHANGED_TEXTS.to_owned() }),
                false => Ok(()),
            }
        }))
    }

    async fn set(&mut self, settings: &Settings) -> Result<Result<(), StatementRefusal>, AdminError> {
        if self.settings == *settings {
            return Ok(Ok(()));
        }
        let Settings { sql_mode, character_set, collation, time_zone } = settings;
        let set = "SET sql_mode = ?, character_set_client = ?, collation_connection = ?, time_zone = ?";
        let exchange = self
            .conn
            .exec_drop(set, (sql_mode.as_str(), character_set.as_str(), collation.as_str(), time_zone.as_str()));
        let outcome = self.admin.try_within(&self.user, exchange).await?;
        if outcome.is_ok() {
            self.settings.clone_from(settings);
        }
        Ok(outcome)
    }

    /// Gives the database the default collation that it had when an object was made: the object's parameters and
    /// variables depend on it.
    async fn set_collation(&mut self, head: &RecordHead) -> Result<Result<(), StatementRefusal>, AdminError> {
        let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let Some(wanted) = head.database_collation.as_ref().filter(|name| is_word(name)) else {
            return Ok(Ok(()));
        };
        match self.collations.get(&head.database) {
            Some((current, _)) if current != wanted && head.kind != RecordKind::Database => {}
            _ => return Ok(Ok(())),
        }
        let alter = format!("ALTER DATABASE {} COLLATE = {wanted}", ident(&head.database));
        let outcome = self.ask(RecordKind::Database, alter.as_bytes()).await?;
        if outcome.is_ok()
            && let Some((current, _)) = self.collations.get_mut(&head.database)
        {
            current.clone_from(wanted);
        }
        Ok(outcome)
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_time_for_its_bytes_and_a_statement_with_code_has_little() {
        let (minute, mib) = (Duration::from_secs(60), 1024 * 1024);
        for (minutes, bytes, kind, limit) in [
            (0, 0, RecordKind::View, Some(CODE_TIME)),
            (0, 0, RecordKind::Rows, Some(PROJECT_TIME)),
            (29, 0, RecordKind::Rows, Some(minute)),
            (29, 6 * mib, RecordKind::Rows, Some(2 * minute)),
            (31, 0, RecordKind::Rows, None),
            (31, 0, RecordKind::View, None),
            (31, 600 * mib, RecordKind::Table, Some(PROJECT_TIME)),
        ] {
            assert_eq!(Spent { time: minutes * minute, bytes }.limit(kind), limit, "{minutes} {bytes} {kind:?}");
        }
    }
}
