//! Descriptions of tables and columns, from which plans are built. `database::schema_reader` reads them from MariaDB;
//! this module does no I/O and does not know the driver.

mod charset_coverage;
pub mod relations;

pub use charset_coverage::CharsetCoverage;
use shared::envelope::ColumnLabels;
use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::{DatabaseName, FieldName, TableName, shown};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The description of a table or view: its columns, key and traits.
#[derive(Debug)]
pub struct Table {
    database: DatabaseName,
    name: TableName,
    /// The readable columns, with INVISIBLE columns at their end, followed by the columns that a role hides.
    /// The descriptions of a table for several roles share them.
    columns: Vec<Arc<Column>>,
    bytes: u64,
    /// The number of columns that the caller may read: all columns, unless [`Table::restricted`] hid some of them.
    readable: usize,
    /// The number of readable columns that are not invisible.
    visible: usize,
    by_name: HashMap<Box<str>, usize>,
    primary: Vec<usize>,
    key: Vec<usize>,
    row_key: Vec<usize>,
    identity: Vec<usize>,
    /// The unique keys of NOT NULL columns, other than the primary key, by whose whole values MariaDB sorts.
    unique: Vec<Vec<usize>>,
    number: Option<usize>,
    traits: Traits,
    whole: Arc<Layout>,
    /// The SQL text that lists all visible columns. Cached, because most reads select exactly these columns.
    list: OnceLock<Box<str>>,
}

/// The approximate memory of a description without its columns.
const TABLE_BYTES: usize = 1_024;

/// The approximate memory of a column's name in the lists and maps of a description.
const COLUMN_BYTES: usize = 256;

/// How a result row is encoded as a record.
#[derive(Debug)]
pub struct Layout {
    /// The kind of each column of the row, even of one that is not part of the record; `None` if only the metadata of
    /// MariaDB's result set shows it, as for a sum.
    pub kinds: Vec<Option<Kind>>,
    /// The names of the record's members, encoded for the response; those of included relations come last.
    pub keys: ColumnLabels,
}

/// Facts about a table as a whole, such as whether it is a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub view: bool,
    /// The table is a view that MariaDB can't write through, such as one with GROUP BY.
    pub read_only: bool,
    /// The table has triggers or is a view, so that a statement may run stored code, which may change session state.
    pub stored_code: bool,
    pub inserts: InsertTraits,
}

/// Facts about a table that decide how rows can be inserted into it; `transactional` also decides which updates and
/// deletes are possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InsertTraits {
    /// The table has a primary or other unique key, so an insert can fail with a duplicate key; false for views.
    pub unique_key: bool,
    /// The table has an UPDATE trigger, which MariaDB runs even if an update changes no value.
    pub update_triggers: bool,
    /// The table's storage engine supports transactions; false for views.
    pub transactional: bool,
    pub innodb: bool,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: FieldName,
    pub kind: Kind,
    /// The characters of the column's character set; [`Charset::Unicode`] for a column without a character set.
    pub charset: Charset,
    pub case: Case,
    /// The SQL type as MariaDB writes it, such as `varchar(200)`.
    pub type_text: String,
    pub nullable: bool,
    /// The default value: the text of `COLUMN_DEFAULT`, with a string literal unquoted; `None` if the column has no
    /// default, or the default is NULL.
    pub default: Option<String>,
    pub auto_increment: bool,
    /// MariaDB computes the column: it is generated, or an expression in a view.
    pub generated: bool,
    /// MariaDB sets the column when another column of the record is updated: `ON UPDATE CURRENT_TIMESTAMP`.
    pub on_update: bool,
    /// The column is INVISIBLE: a read returns it only if the read names it.
    pub invisible: bool,
    /// The column is part of the primary key.
    pub primary: bool,
    /// A unique key, or the primary key, consists of this column alone.
    pub unique: bool,
    /// The members of an ENUM or SET; empty for other types.
    pub values: Vec<String>,
    /// The column, maybe of another database, to which a foreign key of this column refers; `None` without a foreign
    /// key.
    pub references: Option<Reference>,
    pub comment: String,
    /// The number of leading characters (bytes for binary types) by which a paginated read sorts the column, because
    /// MariaDB sorts only by the start of a long value; `None` if MariaDB sorts by the whole value.
    pub sorted_chars: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub table: String,
    pub field: String,
}

/// A group of SQL types whose values are read, bound and compared alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// TINYINT, SMALLINT, MEDIUMINT, INT, BIGINT and YEAR.
    Integer,
    Bit,
    Decimal,
    Float,
    Double,
    /// CHAR, VARCHAR, all TEXT types, and SQL types that this program does not know.
    Text,
    Enum,
    Set,
    Uuid,
    Inet4,
    Inet6,
    Date,
    /// DATETIME and TIMESTAMP.
    DateTime,
    Time,
    /// JSON: a column with the check `json_valid`, which MariaDB gives to each column of its type JSON.
    Json,
    /// BINARY, VARBINARY, all BLOB types and VECTOR.
    Bytes,
    /// GEOMETRY and its subtypes, such as POINT.
    Geometry,
}

impl Kind {
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Bit | Self::Decimal | Self::Float | Self::Double)
    }
}

/// The characters that a text column can hold.
#[derive(Clone, Debug)]
pub enum Charset {
    /// All of Unicode: any text can be compared with the column.
    Unicode,
    /// A part of Unicode, as with latin1: MariaDB refuses to compare the column with text that has other characters.
    Limited(Arc<CharsetCoverage>),
}

/// Whether a column's collation distinguishes upper and lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// Case-insensitive; also for columns without a collation.
    Folded,
    /// Case-sensitive.
    Exact,
}

impl Table {
    /// Creates the description of a table. Invisible columns must come last in `columns`; `primary` has the indexes of
    /// the primary key's columns, `unique` those of the other unique keys.
    pub fn new(
        database: DatabaseName,
        name: TableName,
        columns: Vec<Column>,
        primary: Vec<usize>,
        unique: Vec<Vec<usize>>,
        traits: Traits,
    ) -> Self {
        let readable = columns.len();
        let bytes = TABLE_BYTES + columns.iter().map(|column| COLUMN_BYTES + column.bytes()).sum::<usize>();
        let columns = columns.into_iter().map(Arc::new).collect();
        let table = Self::with_hidden(database, name, columns, readable, (primary, unique), traits);
        Self { bytes: bytes as u64, ..table }
    }

    /// Returns the approximate memory. That of the columns counts in each description that shares them, because any
    /// of them may be the last.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the table's description for a role, which hides the columns for which `may_read` is false from
    /// [`Table::columns`], [`Table::find`] and results. [`Table::column`] and [`Table::find_hidden`] still return them,
    /// for rules and writes. Columns may have other indexes than in `self`.
    pub fn restricted(&self, may_read: impl Fn(&Column) -> bool) -> Self {
        let (mut columns, hidden): (Vec<_>, Vec<_>) = self.columns.iter().cloned().partition(|column| may_read(column));
        let readable = columns.len();
        columns.extend(hidden);
        let at = |name: &FieldName| columns.iter().position(|column| column.name == *name);
        let moved = |key: &Vec<usize>| key.iter().filter_map(|old| at(&self.columns[*old].name)).collect();
        let keys = (moved(&self.primary), self.unique.iter().map(moved).collect());
        let (database, name) = (self.database.clone(), self.name.clone());
        let table = Self::with_hidden(database, name, columns, readable, keys, self.traits);
        Self { bytes: self.bytes, ..table }
    }

    fn with_hidden(
        database: DatabaseName,
        name: TableName,
        columns: Vec<Arc<Column>>,
        readable: usize,
        (primary, mut unique): (Vec<usize>, Vec<Vec<usize>>),
        traits: Traits,
    ) -> Self {
        let by_name: HashMap<Box<str>, usize> =
            columns.iter().enumerate().map(|(at, column)| (column.name.as_str().into(), at)).collect();
        // In the API, `{id}` addresses the column `id`, or the primary key if there is no column `id`.
        let id = by_name.get("id").map(|at| vec![*at]);
        let alone = |at: &Vec<usize>| columns[at[0]].unique && !columns[at[0]].nullable;
        let sorts = |at: &usize| !columns[*at].nullable && columns[*at].sorted_chars.is_none();
        unique.retain(|key| key.iter().all(sorts));
        let row_key = match id.clone().filter(alone) {
            _ if !primary.is_empty() => primary.clone(),
            Some(id) => id,
            None => unique.first().cloned().unwrap_or_default(),
        };
        let is_readable = |key: &&Vec<usize>| key.iter().all(|at| *at < readable);
        let identity = [&row_key].into_iter().chain(&unique).find(is_readable).cloned().unwrap_or_default();
        let key = id.unwrap_or_else(|| primary.clone());
        let number = match key.as_slice() {
            [at] if columns[*at].is_counting_number() => Some(*at),
            _ => None,
        };
        let visible = columns[..readable].iter().take_while(|column| !column.invisible).count();
        Self {
            whole: Arc::new(Layout {
                kinds: columns[..visible].iter().map(|column| Some(column.kind)).collect(),
                keys: ColumnLabels::new(columns[..visible].iter().map(|column| column.name.as_str())),
            }),
            visible,
            bytes: 0,
            list: OnceLock::new(),
            database,
            name,
            columns,
            readable,
            by_name,
            primary,
            key,
            row_key,
            identity,
            unique,
            number,
            traits,
        }
    }

    pub fn database(&self) -> &DatabaseName {
        &self.database
    }

    pub fn name(&self) -> &TableName {
        &self.name
    }

    pub fn columns(&self) -> &[Arc<Column>] {
        &self.columns[..self.readable]
    }

    /// Returns the columns of a read that does not name its fields: all but INVISIBLE columns. They are the first
    /// columns of [`Table::columns`].
    pub fn visible_columns(&self) -> &[Arc<Column>] {
        &self.columns[..self.visible]
    }

    /// Returns a column by its index, even if a role hides the column.
    pub fn column(&self, at: usize) -> &Column {
        &self.columns[at]
    }

    /// Returns the indexes of all columns, even of columns that a role hides.
    pub fn all_columns(&self) -> std::ops::Range<usize> {
        0..self.columns.len()
    }

    /// Returns whether the caller may read all columns of [`Table::key`]; true if the table has no key.
    pub fn key_is_readable(&self) -> bool {
        self.key.iter().all(|at| *at < self.readable)
    }

    /// Returns the indexes of the columns whose values form an `{id}` of the API: the column `id`, or else the primary
    /// key, even if the caller may not read those columns. Empty if the table has neither.
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// Returns whether a unique key ensures that an `{id}` of the API addresses at most one record; false for a view,
    /// and if the table has no [`Table::key`].
    pub fn key_is_unique(&self) -> bool {
        let primary = self.columns.iter().filter(|column| column.primary);
        match self.key.as_slice() {
            [at] if self.columns[*at].unique => true,
            key => !key.is_empty() && key.len() == primary.count() && key.iter().all(|at| self.columns[*at].primary),
        }
    }

    /// Returns the index of the key's column; `None` unless the key is one unique integer column (other than YEAR) that
    /// is not INVISIBLE and that the caller may read, of a table that is not a view and has no triggers.
    pub fn number(&self) -> Option<usize> {
        let plain = !self.traits.view && !self.traits.stored_code;
        self.number.filter(|at| plain && *at < self.visible && self.key_is_unique())
    }

    /// Returns whether inserts of several requests may share a statement: the engine is InnoDB, which rolls back all
    /// rows of a failed statement, and no trigger can see the other rows.
    pub fn takes_rows_together(&self) -> bool {
        self.traits.inserts.innodb && !self.traits.stored_code
    }

    /// Returns the indexes of NOT NULL columns that identify a record and that the caller may read: [`Table::row_key`],
    /// or else another unique key. Empty if there is none.
    pub fn identity(&self) -> &[usize] {
        &self.identity
    }

    /// Returns the indexes of NOT NULL columns that identify a record, even if the caller may not read them: the primary
    /// key, or else a unique column `id`, or else a unique key. Empty if the table has none of these.
    pub fn row_key(&self) -> &[usize] {
        &self.row_key
    }

    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Returns the layout of rows with all of [`Table::visible_columns`].
    pub fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.whole)
    }

    /// Returns the SQL text that lists all visible columns, cached after `write` has created it on first use.
    pub fn list(&self, write: impl FnOnce() -> Box<str>) -> &str {
        self.list.get_or_init(write)
    }

    /// Returns whether the table is a view for which MariaDB names no column, since something that it reads is gone.
    pub fn is_broken(&self) -> bool {
        self.traits.view && self.columns.is_empty()
    }

    /// Returns the index of the column with this name; `None` if the table has no such column or a role hides it.
    pub fn find(&self, name: &FieldName) -> Option<usize> {
        self.find_hidden(name).filter(|at| *at < self.readable)
    }

    /// Returns the index of the column with this name, even if a role hides the column; `None` if the table has no such
    /// column.
    pub fn find_hidden(&self, name: &FieldName) -> Option<usize> {
        self.by_name.get(name.as_str()).copied()
    }

    /// Returns the index of the column with this name.
    pub fn field(&self, name: &FieldName) -> Result<usize, Problem> {
        self.find(name).ok_or_else(|| {
            let names = self.columns().iter().map(|column| column.name.as_str());
            Problem::new(
                ErrorCode::UnknownField,
                format!("The table {} has no field {}.", shown(self.name.as_str()), shown(name.as_str())),
            )
            .with_hint_if(nearest(name.as_str(), names).map(|near| format!("Did you mean {}?", shown(near))))
            .with_field(name.as_str())
        })
    }
}

/// Returns the problem of a view that MariaDB can't read; `view` is the subject of the message.
pub fn broken_view(view: &str) -> Problem {
    let why = "a table, field or function that it reads is gone, or its definer may not read it";
    Problem::new(ErrorCode::SqlError, format!("{view} is broken: {why}."))
        .with_hint("Restore what is gone, or write the view anew with CREATE OR REPLACE VIEW.")
}

impl Column {
    fn bytes(&self) -> usize {
        const STRING_BYTES: usize = size_of::<String>() + 16;
        let texts = self.name.as_str().len() + self.type_text.len() + self.comment.len();
        let values: usize = self.values.iter().map(|value| STRING_BYTES + value.len()).sum();
        size_of::<Self>() + texts + self.default.as_ref().map_or(0, String::len) + values
    }

    /// Returns whether the column is an integer other than YEAR, in which MariaDB reads 70 as 1970.
    fn is_counting_number(&self) -> bool {
        self.kind == Kind::Integer && !self.type_text.starts_with("year")
    }

    /// Returns whether an insert must give a value: the column is NOT NULL, has no default, and is neither
    /// AUTO_INCREMENT nor generated.
    pub fn required(&self) -> bool {
        !self.nullable && self.default.is_none() && !self.auto_increment && !self.generated
    }
}
