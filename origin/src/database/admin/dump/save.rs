//! Reads databases for a dump, over one connection and in one transaction. To describe a view, MariaDB runs functions
//! that the view calls with constants, so the databases of a project are read as the project's own account.

mod literals;

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};

use self::literals::{Literal, write_row, write_text};
use super::{
    CODE_TIME, ObjectFault, PROJECT_TIME, ROWS_TIME_PER_MIB, RecordHead, RecordKind, Settings, StatementRefusal,
};
use crate::config::Account;
use crate::database::admin::quote::ident;
use crate::database::admin::{Admin, AdminError};
use crate::database::{errno, typed_rows};

/// Size in bytes from which an INSERT gets no further row.
const INSERT_BYTES: usize = 1024 * 1024;

/// Session settings. Metadata locks are awaited for `lock_wait_timeout` seconds, and statements that describe an object
/// may run for `max_statement_time` seconds, so that a tenant can't stop the dump of others for long. Rows may wait an
/// hour until they are stored.
const SESSION: &str = "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = '', sql_quote_show_create = 1, \
     lock_wait_timeout = 20, max_statement_time = 5, net_write_timeout = 3600, wait_timeout = 28800";

const SNAPSHOT: [&str; 3] = [
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    // Not READ ONLY: MariaDB would not show views whose functions write, though it does not run them.
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    // Returning to the savepoint frees the metadata locks of a table.
    "SAVEPOINT selkie_dump",
];

const FREE_LOCKS: &str = "ROLLBACK TO SAVEPOINT selkie_dump";

/// The engines of tables whose rows belong to another table or server.
const WITHOUT_ROWS: [&str; 9] =
    ["MRG_MYISAM", "MRG_ISAM", "CONNECT", "OQGRAPH", "SPIDER", "VP", "FEDERATED", "BLACKHOLE", "SPHINX"];

/// Errors which mean that an object was dropped since it was listed: a table, routine, trigger or event.
const GONE: [u16; 4] =
    [errno::NO_SUCH_TABLE, errno::SP_DOES_NOT_EXIST, errno::TRG_DOES_NOT_EXIST, errno::EVENT_DOES_NOT_EXIST];

/// Selects tables. `information_schema` compares names without case and accents, so conditions are repeated on bytes.
const TABLES: &str = "SELECT TABLE_NAME, TABLE_TYPE, COALESCE(ENGINE, '') FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND BINARY TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME";
/// Selects the columns of a table, and the type to which a column's values are cast, because MariaDB's text of them is not
/// what it stores: it prints a FLOAT with six digits, and converts other character sets to utf8mb4, which lacks some of
/// their characters. A member of an ENUM or SET may have another name in the restored table.
const COLUMNS: &str = "SELECT COLUMN_NAME, CASE WHEN DATA_TYPE = 'float' THEN 'DOUBLE'
    WHEN DATA_TYPE IN ('enum', 'set') THEN 'UNSIGNED' WHEN CHARACTER_SET_NAME <> 'utf8mb4' THEN 'BINARY' END
    FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND BINARY TABLE_SCHEMA = DATABASE()
    AND TABLE_NAME = ? AND BINARY TABLE_NAME = ? AND IS_GENERATED = 'NEVER' ORDER BY ORDINAL_POSITION";
const MEBIBYTES: &str = "SELECT DATA_LENGTH DIV 1048576 FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND BINARY TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND BINARY TABLE_NAME = ?";
const ROUTINES: &str = "SELECT ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES
    WHERE ROUTINE_SCHEMA = DATABASE() AND BINARY ROUTINE_SCHEMA = DATABASE() ORDER BY ROUTINE_TYPE, ROUTINE_NAME";
const TRIGGERS: &str = "SELECT TRIGGER_NAME, '' FROM information_schema.TRIGGERS
    WHERE TRIGGER_SCHEMA = DATABASE() AND BINARY TRIGGER_SCHEMA = DATABASE()
    ORDER BY EVENT_OBJECT_TABLE, EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER";
const EVENTS: &str = "SELECT EVENT_NAME, '' FROM information_schema.EVENTS
    WHERE EVENT_SCHEMA = DATABASE() AND BINARY EVENT_SCHEMA = DATABASE() ORDER BY EVENT_NAME";
const DATABASE: &str = "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME, SCHEMA_COMMENT
    FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = DATABASE() AND BINARY SCHEMA_NAME = DATABASE()";

/// An open snapshot of the databases that an account may read. It ends when this value is dropped.
pub struct Dump {
    admin: Admin,
    conn: Conn,
    user: String,
    /// Position of the binary log at the snapshot, `file:position`; `None` without a binary log.
    pub binlog: Option<String>,
}

#[derive(Default)]
pub struct Incomplete {
    /// Objects that are not in the dump, or not whole.
    pub missing: Vec<ObjectFault>,
    /// Objects that are in the dump, but that MariaDB can't use, such as a view of a table that was dropped.
    pub broken: Vec<ObjectFault>,
    /// The time spent on objects that are not tables, and on tables that MariaDB refused.
    spent: Duration,
    /// The time left for the rows of the tables. Each table adds [`ROWS_TIME_PER_MIB`] for each of its MiB.
    rows_left: Option<Duration>,
}

impl Admin {
    /// Opens a connection of an account, or of the admin account if there is none, and a snapshot of all InnoDB tables.
    pub async fn open_dump(&self, account: Option<&Account>) -> Result<Dump, AdminError> {
        let address = self.hosts.address();
        let (user, password) = account
            .map_or((self.user(), &address.admin_password), |account| (account.user.as_str(), &account.password));
        let mut conn = self.connect_for_dump(user, password).await?;
        for statement in [SESSION].iter().chain(&SNAPSHOT) {
            self.within(conn.query_drop(*statement)).await?;
        }
        let status: Vec<(String, String)> =
            self.within(typed_rows::all(conn.query_iter("SHOW STATUS LIKE 'binlog\\_snapshot\\_%'"))).await?;
        let value = |wanted: &str| {
            let found = status.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        };
        let binlog = value("binlog_snapshot_file").zip(value("binlog_snapshot_position"));
        let binlog = binlog.map(|(file, position)| format!("{file}:{position}"));
        Ok(Dump { admin: self.clone(), conn, user: user.to_owned(), binlog })
    }
}

impl Dump {
    /// Reads databases and writes their records to `sink`, without objects that MariaDB can't read. `routines` reads
    /// the routines instead: MariaDB shows those of other definers to the admin account only, and runs nothing for it.
    pub async fn save<E: From<AdminError>>(
        &mut self,
        databases: &[String],
        mut routines: Option<&mut Self>,
        incomplete: &mut Incomplete,
        sink: &mut impl AsyncFnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        use RecordKind::{Database, Event, Routine, Sequence, Table, Trigger, View};
        for kind in [Database, Sequence, Table, Routine, View, Trigger, Event] {
            for database in databases {
                let reader = match routines.as_deref_mut() {
                    Some(routines) if kind == Routine => routines,
                    _ => &mut *self,
                };
                match reader.ask(self_use(database)).await? {
                    Ok(()) => reader.save_kind(kind, database, incomplete, sink).await?,
                    // MariaDB's refusal is reported once for the database.
                    Err(refusal) if kind == Database => {
                        let head = RecordHead::new(kind, database, "");
                        incomplete.missing.push(head.fault(refusal.reason));
                    }
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    async fn save_kind<E: From<AdminError>>(
        &mut self,
        kind: RecordKind,
        database: &str,
        incomplete: &mut Incomplete,
        sink: &mut impl AsyncFnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let objects = match self.objects(kind).await? {
            Ok(objects) => objects,
            Err(refusal) => {
                let fault = RecordHead::new(kind, database, "*").fault(refusal.reason);
                incomplete.missing.push(fault);
                return Ok(());
            }
        };
        for (name, detail) in objects {
            let head = RecordHead::new(kind, database, &name);
            if incomplete.spent > PROJECT_TIME {
                incomplete.missing.push(head.fault(StatementRefusal::out_of_time().reason));
                continue;
            }
            let began = Instant::now();
            let saved = match kind {
                RecordKind::Database => self.save_database(head.clone(), sink).await?,
                RecordKind::Sequence | RecordKind::Table => {
                    let rows_left = incomplete.rows_left.get_or_insert(PROJECT_TIME);
                    self.save_table(head.clone(), &detail, rows_left, sink).await?
                }
                _ => self.save_code(head.clone(), &detail, sink).await?,
            };
            let is_data = matches!(kind, RecordKind::Sequence | RecordKind::Table) && saved.is_ok();
            if let Err(refusal) = saved
                && !GONE.contains(&refusal.errno)
            {
                incomplete.missing.push(head.fault(refusal.reason));
            } else if kind == RecordKind::View
                && let Err(refusal) = self.ask(within_code_time(&format!("SHOW COLUMNS FROM {}", ident(&name)))).await?
                && !GONE.contains(&refusal.errno)
            {
                incomplete.broken.push(head.fault(refusal.reason));
            }
            if !is_data {
                incomplete.spent += began.elapsed();
            }
            self.admin.within(self.conn.query_drop(FREE_LOCKS)).await?;
        }
        Ok(())
    }

    async fn ask(&mut self, statement: String) -> Result<Result<(), StatementRefusal>, AdminError> {
        self.admin.try_within(&self.user, self.conn.query_drop(statement)).await
    }

    /// Lists the objects of a kind in the current database, each with a detail: the engine of a table, the type of a
    /// routine.
    async fn objects(
        &mut self,
        kind: RecordKind,
    ) -> Result<Result<Vec<(String, String)>, StatementRefusal>, AdminError> {
        let Self { admin, conn, user, .. } = self;
        let list = match kind {
            RecordKind::Database => return Ok(Ok(vec![(String::new(), String::new())])),
            RecordKind::Sequence | RecordKind::Table | RecordKind::Rows | RecordKind::View => {
                let tables = typed_rows::all::<(String, String, String), _>(conn.query_iter(TABLES));
                let is_wanted = |table_type: &str| match kind {
                    RecordKind::View => table_type == "VIEW",
                    RecordKind::Sequence => table_type == "SEQUENCE",
                    _ => matches!(table_type, "BASE TABLE" | "SYSTEM VERSIONED"),
                };
                let tables = admin.try_within(user, tables).await?;
                return Ok(tables.map(|mut tables| {
                    tables.retain(|(_, table_type, _)| is_wanted(table_type));
                    let detail = |engine: String| if kind == RecordKind::View { "VIEW".to_owned() } else { engine };
                    tables.into_iter().map(|(name, _, engine)| (name, detail(engine))).collect()
                }));
            }
            RecordKind::Routine => ROUTINES,
            RecordKind::Trigger => TRIGGERS,
            RecordKind::Event => EVENTS,
        };
        let mut objects = admin.try_within(user, typed_rows::all::<(String, String), _>(conn.query_iter(list))).await?;
        for (_, detail) in objects.iter_mut().flatten().filter(|(_, detail)| detail.is_empty()) {
            *detail = kind.noun().to_ascii_uppercase();
        }
        Ok(objects)
    }

    async fn save_database<E: From<AdminError>>(
        &mut self,
        mut head: RecordHead,
        sink: &mut impl AsyncFnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<Result<(), StatementRefusal>, E> {
        let Self { admin, conn, user, .. } = self;
        let found = typed_rows::first::<(String, String, String), _>(conn.query_iter(DATABASE));
        let (character_set, collation, comment) = match admin.try_within(user, found).await? {
            Ok(found) => found.ok_or(AdminError::Corrupt("database"))?,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut statement = format!(
            "ALTER DATABASE {} CHARACTER SET = {character_set} COLLATE = {collation} COMMENT = ",
            ident(&head.database)
        )
        .into_bytes();
        write_text(&mut statement, comment.as_bytes());
        head.database_collation = Some(collation);
        sink(head.with_statement(&statement)?).await?;
        Ok(Ok(()))
    }

    /// Saves a table with its rows, or a sequence with its next number. `detail` is the engine.
    async fn save_table<E: From<AdminError>>(
        &mut self,
        head: RecordHead,
        detail: &str,
        rows_left: &mut Duration,
        sink: &mut impl AsyncFnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<Result<(), StatementRefusal>, E> {
        let table = ident(&head.name);
        let Self { admin, conn, user, .. } = self;
        let is_sequence = head.kind == RecordKind::Sequence;
        let has_rows = !WITHOUT_ROWS.iter().any(|engine| engine.eq_ignore_ascii_case(detail));
        if has_rows {
            // Takes a metadata lock, so that what is described is also what is read.
            let lock = conn.query_drop(format!("SELECT 1 FROM {table} LIMIT 0"));
            if let Err(refusal) = admin.try_within(user, lock).await? {
                return Ok(Err(refusal));
            }
        }
        let noun = if is_sequence { "SEQUENCE" } else { "TABLE" };
        let shown = typed_rows::first::<Row, _>(conn.query_iter(format!("SHOW CREATE {noun} {table}")));
        let shown = match admin.try_within(user, shown).await? {
            Ok(row) => row.ok_or(AdminError::Corrupt("table"))?,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if shown.columns_ref().first().is_some_and(|column| column.name_str() == "View") {
            return Ok(Err(StatementRefusal { errno: 0, reason: "it became a view while it was read".to_owned() }));
        }
        let statement = text(&shown, 1).ok_or(AdminError::Corrupt("table"))?;
        let rows = RecordHead::new(RecordKind::Rows, &head.database, &head.name);
        sink(head.with_statement(&statement)?).await?;
        if is_sequence {
            let select = format!("SELECT next_not_cached_value, cycle_count FROM {table}");
            let next = typed_rows::first::<(i64, u64), _>(conn.query_iter(select));
            return match admin.try_within(user, next).await? {
                Ok(next) => {
                    let (next, cycle) = next.ok_or(AdminError::Corrupt("sequence"))?;
                    let set = format!("DO SETVAL({table}, {next}, 0, {cycle})");
                    sink(rows.with_statement(set.as_bytes())?).await?;
                    Ok(Ok(()))
                }
                Err(refusal) => Ok(Err(refusal)),
            };
        }
        if !has_rows {
            return Ok(Ok(()));
        }
        let began = Instant::now();
        let saved = self.save_rows(&rows, rows_left, sink).await?;
        *rows_left = rows_left.saturating_sub(began.elapsed());
        Ok(saved.map_err(|refusal| match refusal.errno {
            errno::STATEMENT_TIMEOUT => StatementRefusal::out_of_time(),
            _ => refusal,
        }))
    }

    async fn save_rows<E: From<AdminError>>(
        &mut self,
        head: &RecordHead,
        left: &mut Duration,
        sink: &mut impl AsyncFnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<Result<(), StatementRefusal>, E> {
        let Self { admin, conn, user, .. } = self;
        let table = ident(&head.name);
        let size = typed_rows::first::<u64, _>(conn.exec_iter(MEBIBYTES, (&head.name, &head.name)));
        let mebibytes = match admin.try_within(user, size).await? {
            Ok(mebibytes) => mebibytes.unwrap_or_default(),
            Err(refusal) => return Ok(Err(refusal)),
        };
        *left += ROWS_TIME_PER_MIB * u32::try_from(mebibytes).unwrap_or(u32::MAX);
        // MariaDB has no time limit of 0.
        let seconds = left.as_secs_f64().max(0.001);
        let columns = typed_rows::all::<(String, Option<String>), _>(conn.exec_iter(COLUMNS, (&head.name, &head.name)));
        let columns: Vec<_> = match admin.try_within(user, columns).await? {
            Ok(columns) => columns.into_iter().map(|(name, cast)| (ident(&name), cast)).collect(),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let read = columns.iter().map(|(name, cast)| match cast {
            Some(cast) => format!("CAST({name} AS {cast})"),
            None => name.clone(),
        });
        let mut selected = read.collect::<Vec<_>>().join(", ");
        let columns = columns.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        // A table may have generated columns only.
        if selected.is_empty() {
            selected.push_str("NULL");
        }
        let select = format!("SET STATEMENT max_statement_time = {seconds:.3} FOR SELECT {selected} FROM {table}");
        let insert = format!("INSERT INTO {table} ({columns}) VALUES ");
        let mut answer = match admin.try_within(user, conn.query_iter(select)).await? {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let kinds: Vec<Literal> = answer.columns().unwrap_or_default().iter().map(Literal::of).collect();
        let kinds = if columns.is_empty() { &[] } else { kinds.as_slice() };
        let mut statement = Vec::new();
        loop {
            let row: Option<Row> = match admin.try_within(user, answer.next()).await? {
                Ok(row) => row,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let is_full = statement.len() >= INSERT_BYTES;
            if (row.is_none() || is_full) && !statement.is_empty() {
                sink(head.clone().with_statement(&statement)?).await?;
                statement.clear();
            }
            let Some(row) = row else {
                return Ok(Ok(()));
            };
            let before: &[u8] = if statement.is_empty() { insert.as_bytes() } else { b"," };
            statement.extend_from_slice(before);
            write_row(&mut statement, &row, kinds);
        }
    }

    /// Saves an object that contains code. `detail` is the object's kind in SQL.
    async fn save_code<E: From<AdminError>>(
        &mut self,
        mut head: RecordHead,
        detail: &str,
        sink: &mut impl AsyncFnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<Result<(), StatementRefusal>, E> {
        let Self { admin, conn, user, .. } = self;
        // The text comes in the character set in which it was written, of which MariaDB stores the bytes.
        admin.within(conn.query_drop("SET character_set_results = binary")).await?;
        let show = within_code_time(&format!("SHOW CREATE {detail} {}", ident(&head.name)));
        let shown = admin.try_within(user, typed_rows::first::<Row, _>(conn.query_iter(show))).await?;
        admin.within(conn.query_drop("SET character_set_results = utf8mb4")).await?;
        let row = match shown {
            Ok(row) => row.ok_or(AdminError::Corrupt("object"))?,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let column = |names: &[&str]| {
            let columns = row.columns_ref();
            let at = columns.iter().position(|column| names.contains(&column.name_str().as_ref()))?;
            text(&row, at)
        };
        let words = |names: &[&str]| column(names).map(|text| String::from_utf8_lossy(&text).into_owned());
        let default = Settings { sql_mode: String::new(), ..Settings::default() };
        head.settings = Some(Settings {
            sql_mode: words(&["sql_mode"]).unwrap_or(default.sql_mode),
            character_set: words(&["character_set_client"]).unwrap_or(default.character_set),
            collation: words(&["collation_connection"]).unwrap_or(default.collation),
            time_zone: words(&["time_zone"]).unwrap_or(default.time_zone),
        });
        head.database_collation = words(&["Database Collation"]);
        let Some(statement) = column(&[
            "Create Procedure",
            "Create Function",
            "Create Package",
            "Create Package Body",
            "Create View",
            "Create Event",
            "SQL Original Statement",
        ]) else {
            let reason = "MariaDB does not show its definition to the admin account".to_owned();
            return Ok(Err(StatementRefusal { errno: 0, reason }));
        };
        sink(head.with_statement(&statement)?).await?;
        Ok(Ok(()))
    }
}

/// Adds a time limit to a statement that may run a tenant's function, which could change a limit of the session.
fn within_code_time(statement: &str) -> String {
    format!("SET STATEMENT max_statement_time = {} FOR {statement}", CODE_TIME.as_secs())
}

fn self_use(database: &str) -> String {
    format!("USE {}", ident(database))
}

fn text(row: &Row, at: usize) -> Option<Vec<u8>> {
    match row.as_ref(at)? {
        Value::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    }
}
