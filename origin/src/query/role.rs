//! Roles: the rights of callers whose key or token has neither full nor read access. Parses role files and finds the
//! rule for a table; `plan::access` applies the rule to operations. Does no I/O.

mod claims;
mod parse;

pub use claims::{Claims, Template};
pub use parse::RoleFault;
use shared::ident::{DatabaseName, FieldName, TableName, folded};
use shared::operation::filter::Related;
use shared::policy::Action;
use shared::rate::RateLimit;
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Role {
    tables: Vec<(Pattern, TableRule)>,
    media: MediaRule,
    sql: SqlRule,
    max_rows: Option<u64>,
    timeout: Option<Duration>,
    rate_limit: Option<RateLimit>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SqlRule {
    #[default]
    None,
    /// Statements that only read, by the project's read-only account.
    Read,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    All,
    Database(DatabaseName),
    Table(DatabaseName, TableName),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableRule {
    /// True if the pattern names one table. Omitted fields ([`Fields::Except`]) must then exist, or the action is
    /// denied: a renamed field would not be omitted any more.
    pub of_table: bool,
    pub read: Option<ReadRule>,
    pub insert: Option<WriteRule>,
    pub update: Option<WriteRule>,
    pub delete: Option<DeleteRule>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadRule {
    pub fields: Fields,
    pub rows: Option<Template>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteRule {
    pub fields: Fields,
    /// The values that the role sets, in fields that the caller may not give.
    pub set: Vec<(FieldName, Template)>,
    /// Foreign keys that may point to records that the caller may not read.
    pub unchecked: Vec<FieldName>,
    /// The condition on the new record, and for updates also on the old one; `None` if all records are allowed.
    pub rows: Option<Template>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteRule {
    pub rows: Option<Template>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fields {
    #[default]
    All,
    Only(Vec<FieldName>),
    /// All fields but these. Case is ignored, as in MariaDB: `Password` also omits `password`.
    Except(Vec<FieldName>),
}

impl Fields {
    pub fn has(&self, name: &FieldName) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
            Self::Except(names) => !names.iter().any(|omitted| folded(omitted.as_str()) == folded(name.as_str())),
        }
    }

    pub fn names(&self) -> &[FieldName] {
        match self {
            Self::All => &[],
            Self::Only(names) | Self::Except(names) => names,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediaRule {
    pub read: MediaReading,
    pub upload: Option<UploadRule>,
    pub delete: MediaDeletion,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MediaReading {
    All,
    /// The caller's own uploads, if `own`, and files below these folders, in which `{name}` stands for the claim
    /// `name`.
    Some {
        own: bool,
        folders: Vec<Box<str>>,
    },
}

impl Default for MediaReading {
    fn default() -> Self {
        Self::Some { own: false, folders: Vec::new() }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct UploadRule {
    /// `{name}` stands for the claim `name`; `None` for any folder.
    pub folder: Option<Box<str>>,
    /// Media types such as `image/*` or `application/pdf`; empty for all that the service accepts.
    pub types: Vec<Box<str>>,
    pub max_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaDeletion {
    #[default]
    None,
    Own,
    All,
}

impl Role {
    /// Returns the most specific rule; `None` if that rule allows nothing. Ignores case, since names that differ only
    /// in case may be the same table, as on a server with `lower_case_table_names`. Exactly the same names come first,
    /// otherwise the file's last rule.
    pub fn rule(&self, database: &DatabaseName, table: &TableName) -> Option<&TableRule> {
        let in_database = |of: &DatabaseName| same_but_case(of.as_str(), database.as_str());
        let precision = |pattern: &Pattern| match pattern {
            Pattern::All => Some(1),
            Pattern::Database(of) if of == database => Some(3),
            Pattern::Database(of) => in_database(of).then_some(2),
            Pattern::Table(of, name) if of == database && name == table => Some(5),
            Pattern::Table(of, name) => (in_database(of) && same_but_case(name.as_str(), table.as_str())).then_some(4),
        };
        let fitting = self.tables.iter().filter_map(|(pattern, rule)| Some((precision(pattern)?, rule)));
        let (_, rule) = fitting.max_by_key(|(precision, _)| *precision)?;
        (!rule.is_empty()).then_some(rule)
    }

    /// Whether the rules of the database's tables, its own or, without that, the rule of all databases allow anything.
    pub fn knows_database(&self, database: &DatabaseName) -> bool {
        let in_database = |of: &DatabaseName| same_but_case(of.as_str(), database.as_str());
        let allows = |fits: &dyn Fn(&Pattern) -> bool| {
            self.tables.iter().filter(|(pattern, _)| fits(pattern)).map(|(_, rule)| !rule.is_empty()).max()
        };
        allows(&|pattern| matches!(pattern, Pattern::Table(of, _) if in_database(of))) == Some(true)
            || allows(&|pattern| matches!(pattern, Pattern::Database(of) if in_database(of)))
                .or_else(|| allows(&|pattern| matches!(pattern, Pattern::All)))
                .unwrap_or_default()
    }

    /// Whether some records of a table can be read, but not all.
    pub fn hides_rows(&self) -> bool {
        self.tables.iter().any(|(_, rule)| rule.hides_rows())
    }

    pub fn tables(&self) -> &[(Pattern, TableRule)] {
        &self.tables
    }

    pub fn claims(&self) -> BTreeSet<&str> {
        let templates = self.tables.iter().flat_map(|(_, rule)| rule.templates());
        let of_tables = templates.flat_map(Template::claims).map(String::as_str);
        let upload = self.media.upload.iter().filter_map(|rule| rule.folder.as_deref());
        let read = match &self.media.read {
            MediaReading::Some { folders, .. } => folders.as_slice(),
            MediaReading::All => &[],
        };
        let folders = upload.chain(read.iter().map(|folder| &**folder));
        // `a/{sub}/b` is split to `a/`, `sub}/b`.
        let of_folders = folders.flat_map(|folder| folder.split('{').skip(1).filter_map(|part| part.split('}').next()));
        of_tables.chain(of_folders).collect()
    }

    /// Whether the role writes no records, so that the project's read-only account is enough. Ignores media files.
    pub fn only_reads(&self) -> bool {
        let writes = |rule: &TableRule| rule.insert.is_some() || rule.update.is_some() || rule.delete.is_some();
        !self.tables.iter().any(|(_, rule)| writes(rule))
    }

    pub fn media(&self) -> &MediaRule {
        &self.media
    }

    pub fn sql(&self) -> SqlRule {
        self.sql
    }

    pub fn max_rows(&self) -> Option<u64> {
        self.max_rows
    }

    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub fn rate_limit(&self) -> Option<RateLimit> {
        self.rate_limit
    }
}

fn same_but_case(one: &str, other: &str) -> bool {
    let is_ascii = one.is_ascii() && other.is_ascii();
    one.eq_ignore_ascii_case(other) || (!is_ascii && folded(one) == folded(other))
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Database(database) => write!(f, "{database}.*"),
            Self::Table(database, table) => write!(f, "{database}.{table}"),
        }
    }
}

impl TableRule {
    fn templates(&self) -> impl Iterator<Item = &Template> {
        let writes = [&self.insert, &self.update].into_iter().flatten();
        let set = writes.flat_map(|rule| rule.set.iter().map(|(_, value)| value));
        set.chain(self.rows().map(|(_, rows)| rows))
    }

    pub fn hides_rows(&self) -> bool {
        self.read.as_ref().is_some_and(|read| read.rows.is_some())
    }

    /// The conditions on records, with the actions that they are of.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, &Template)> {
        let rows = [
            ("read", self.read.as_ref().and_then(|rule| rule.rows.as_ref())),
            ("insert", self.insert.as_ref().and_then(|rule| rule.rows.as_ref())),
            ("update", self.update.as_ref().and_then(|rule| rule.rows.as_ref())),
            ("delete", self.delete.as_ref().and_then(|rule| rule.rows.as_ref())),
        ];
        rows.into_iter().filter_map(|(action, rows)| Some((action, rows?)))
    }

    /// The conditions on related records in the conditions on records.
    pub fn related(&self) -> impl Iterator<Item = &Related> {
        self.rows().flat_map(|(_, rows)| rows.related())
    }

    /// Whether the rule allows the action. Actions other than inserts, updates and deletes count as reads.
    pub fn allows(&self, action: Action) -> bool {
        match action {
            Action::Insert => self.insert.is_some(),
            Action::Update => self.update.is_some(),
            Action::Delete => self.delete.is_some(),
            _ => self.read.is_some(),
        }
    }

    fn is_empty(&self) -> bool {
        self.read.is_none() && self.insert.is_none() && self.update.is_none() && self.delete.is_none()
    }
}
