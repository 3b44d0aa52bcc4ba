//! Descriptions of tables and columns, from which plans are built. Does no I/O and does not know the driver.

mod charset_coverage;
pub mod definition;
mod members;
pub mod relations;

pub use charset_coverage::CharsetCoverage;
use foldhash::fast::RandomState;
pub use members::{Likeness, Members};
use shared::envelope::ColumnLabels;
use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::{DatabaseName, FieldName, TableName, shown};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub struct Table {
    database: DatabaseName,
    name: TableName,
    /// The readable columns, INVISIBLE ones last, then the columns that a role hides.
    columns: Vec<Arc<Column>>,
    bytes: u64,
    readable: usize,
    visible: usize,
    by_name: HashMap<Box<str>, usize, RandomState>,
    primary: Vec<usize>,
    key: Vec<usize>,
    row_key: Vec<usize>,
    identity: Vec<usize>,
    /// The unique keys except the primary key, if all their columns are NOT NULL and sorted by their whole values.
    unique: Vec<Vec<usize>>,
    number: Option<usize>,
    traits: Traits,
    whole: Arc<Layout>,
    /// SQL text of all visible columns. Cached, because most reads select exactly these columns.
    list: OnceLock<Box<str>>,
}

const TABLE_BYTES: usize = 1_024;

const COLUMN_BYTES: usize = 256;

#[derive(Debug)]
pub struct Layout {
    /// The kind of each cell of a row, even outside of the record; `None` if only the result set tells, as for a sum.
    pub kinds: Vec<Option<Kind>>,
    pub keys: ColumnLabels,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub view: bool,
    /// True for a view that MariaDB can't write through, such as one with GROUP BY.
    pub read_only: bool,
    /// True for views and tables with triggers. A statement may then change session state.
    pub stored_code: bool,
    pub inserts: InsertTraits,
}

/// The traits that decide how records are inserted. `transactional` also matters for updates and deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InsertTraits {
    /// Whether an insert can fail with a duplicate key; false for views.
    pub unique_key: bool,
    /// True for a table with an UPDATE trigger, which MariaDB runs even for an update that changes no value.
    pub update_triggers: bool,
    pub transactional: bool,
    pub innodb: bool,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: FieldName,
    pub kind: Kind,
    pub charset: Charset,
    pub case_sensitivity: CaseSensitivity,
    /// The type as MariaDB writes it, such as `varchar(200)`. Columns of one type share this text and their `values`.
    pub type_text: Arc<str>,
    pub nullable: bool,
    /// The default as `COLUMN_DEFAULT` has it, with a string literal unquoted; `None` for no default and for NULL.
    pub default: Option<String>,
    pub auto_increment: bool,
    pub generated: bool,
    pub on_update: bool,
    /// A read returns the column only if the read names it.
    pub invisible: bool,
    pub primary: bool,
    /// The names of the unique keys, or of the primary key, that consist of this column alone.
    pub unique: Vec<String>,
    /// The names of the table's CHECK constraints over this column alone.
    pub checks: Vec<String>,
    /// The names of the full-text indexes that have this column.
    pub full_text: Vec<String>,
    /// Whether an index other than a full-text one contains the column. Foreign keys can refer only to such columns.
    pub indexed: bool,
    pub values: Arc<Members>,
    /// The referenced table may be in another database.
    pub references: Option<Reference>,
    pub comment: String,
    /// The number of leading characters (bytes for binary types) by which pages are sorted; `None` for the whole value.
    pub sorted_chars: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub table: String,
    pub field: String,
}

/// SQL types whose values are read, bound and compared alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// YEAR is an integer too.
    Integer,
    Bit,
    Decimal,
    Float,
    Double,
    /// SQL types that this program does not know are read as text.
    Text,
    Enum,
    Set,
    Uuid,
    Inet4,
    Inet6,
    Date,
    DateTime,
    Time,
    /// A column with the check `json_valid`, which MariaDB gives to each column of its type JSON.
    Json,
    /// VECTOR is read as bytes.
    Bytes,
    Geometry,
}

impl Kind {
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Bit | Self::Decimal | Self::Float | Self::Double)
    }
}

#[derive(Clone, Debug)]
pub enum Charset {
    /// Any text can be compared with the column.
    Unicode,
    /// MariaDB refuses to compare the column with text that has characters outside of this coverage.
    Limited(Arc<CharsetCoverage>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaseSensitivity {
    /// Also the value of columns without a collation.
    Insensitive,
    Sensitive,
}

impl Table {
    /// Invisible columns must come last in `columns`. `primary` and `unique` hold indexes into `columns`.
    pub fn new(
        database: DatabaseName,
        name: TableName,
        columns: Vec<Column>,
        primary: Vec<usize>,
        unique: Vec<Vec<usize>>,
        traits: Traits,
    ) -> Self {
        let readable = columns.len();
        let mut types = HashSet::new();
        let mut is_first = |column: &Column| types.insert(Arc::as_ptr(&column.type_text).cast::<u8>());
        let of_types = columns.iter().filter(|column| is_first(column)).map(Column::type_bytes).sum::<usize>();
        let of_columns = columns.iter().map(|column| COLUMN_BYTES + column.memory_bytes()).sum::<usize>();
        let bytes = TABLE_BYTES + of_types + of_columns;
        let columns = columns.into_iter().map(Arc::new).collect();
        let table = Self::with_hidden(database, name, columns, readable, (primary, unique), traits);
        Self { bytes: bytes as u64, ..table }
    }

    /// The approximate memory. A column that several descriptions share counts in each, since any may be dropped last.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes
    }

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
        let by_name: HashMap<Box<str>, usize, RandomState> =
            columns.iter().enumerate().map(|(at, column)| (column.name.as_str().into(), at)).collect();
        // In the API, `{id}` addresses the column `id`, or the primary key if there is no column `id`.
        let id = by_name.get("id").map(|at| vec![*at]);
        let alone = |at: &Vec<usize>| !columns[at[0]].unique.is_empty() && !columns[at[0]].nullable;
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

    pub fn visible_columns(&self) -> &[Arc<Column>] {
        &self.columns[..self.visible]
    }

    pub fn column(&self, at: usize) -> &Column {
        &self.columns[at]
    }

    pub fn all_columns(&self) -> std::ops::Range<usize> {
        0..self.columns.len()
    }

    /// Whether an expression, as MariaDB prints it, names a column that the role hides.
    pub fn names_hidden(&self, expression: &str) -> bool {
        let quoted = |column: &Arc<Column>| format!("`{}`", column.name.as_str().replace('`', "``"));
        self.columns[self.readable..].iter().any(|column| expression.contains(&quoted(column)))
    }

    pub fn key_is_readable(&self) -> bool {
        self.key.iter().all(|at| *at < self.readable)
    }

    /// The columns that form an `{id}` of the API: the column `id`, or else the primary key, even if not readable.
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// Whether an `{id}` of the API addresses at most one record. False for a view.
    pub fn key_is_unique(&self) -> bool {
        let primary = self.columns.iter().filter(|column| column.primary);
        match self.key.as_slice() {
            [at] if !self.columns[*at].unique.is_empty() => true,
            key => !key.is_empty() && key.len() == primary.count() && key.iter().all(|at| self.columns[*at].primary),
        }
    }

    /// Returns the key's column if the key is one readable, visible, unique integer (other than YEAR), and the table is
    /// no view and has no triggers.
    pub fn number(&self) -> Option<usize> {
        let plain = !self.traits.view && !self.traits.stored_code;
        self.number.filter(|at| plain && *at < self.visible && self.key_is_unique())
    }

    /// Whether several requests may share an INSERT: InnoDB undoes a failed INSERT, and no trigger sees the rows.
    pub fn takes_rows_together(&self) -> bool {
        self.traits.inserts.innodb && !self.traits.stored_code
    }

    /// Readable NOT NULL columns that identify a record: [`Table::row_key`], or else another unique key.
    pub fn identity(&self) -> &[usize] {
        &self.identity
    }

    /// NOT NULL columns, even unreadable ones, that identify a record: the primary key, else a unique `id`, else a
    /// unique key.
    pub fn row_key(&self) -> &[usize] {
        &self.row_key
    }

    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// The columns of each full-text index whose columns are all readable.
    pub fn full_text(&self) -> Vec<Vec<usize>> {
        let mut indexes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, column) in self.columns.iter().enumerate() {
            for index in &column.full_text {
                indexes.entry(index).or_default().push(at);
            }
        }
        indexes.into_values().filter(|index| index.iter().all(|at| *at < self.readable)).collect()
    }

    pub fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.whole)
    }

    pub fn list(&self, write: impl FnOnce() -> Box<str>) -> &str {
        self.list.get_or_init(write)
    }

    /// Whether the view reads something that is gone: MariaDB then lists no columns of the view.
    pub fn is_broken(&self) -> bool {
        self.traits.view && self.columns.is_empty()
    }

    pub fn find(&self, name: &FieldName) -> Option<usize> {
        self.find_hidden(name).filter(|at| *at < self.readable)
    }

    pub fn find_hidden(&self, name: &FieldName) -> Option<usize> {
        self.by_name.get(name.as_str()).copied()
    }

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

pub fn broken_view(view: &str) -> Problem {
    let why = "a table, field or function that it reads is gone, or its definer may not read it";
    Problem::new(ErrorCode::SqlError, format!("{view} is broken: {why}."))
        .with_hint("Restore what is gone, or write the view anew with CREATE OR REPLACE VIEW.")
}

impl Column {
    fn memory_bytes(&self) -> usize {
        const STRING_BYTES: usize = size_of::<String>() + 16;
        let texts = self.name.as_str().len() + self.comment.len();
        let names = self.checks.iter().chain(&self.full_text);
        let names: usize = names.map(|name| STRING_BYTES + name.len()).sum();
        size_of::<Self>() + texts + self.default.as_ref().map_or(0, String::len) + names
    }

    fn type_bytes(&self) -> usize {
        self.type_text.len() + self.values.memory_bytes()
    }

    /// Whether this is an integer column other than YEAR, in which MariaDB reads 70 as 1970.
    fn is_counting_number(&self) -> bool {
        self.kind == Kind::Integer && !self.type_text.starts_with("year")
    }

    pub fn required(&self) -> bool {
        !self.nullable && self.default.is_none() && !self.auto_increment && !self.generated
    }
}
