//! The schema as plans need it: tables, columns and their kinds. The values are read from MariaDB by
//! `database::schema_cache`; nothing here does I/O or knows the driver.

mod charset_coverage;

pub use charset_coverage::CharsetCoverage;
use shared::envelope::ColumnLabels;
use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::{DatabaseName, FieldName, TableName, shown};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A table or view.
#[derive(Debug)]
pub struct Table {
    database: DatabaseName,
    name: TableName,
    columns: Vec<Column>,
    by_name: HashMap<Box<str>, usize>,
    key: Vec<usize>,
    identity: Vec<usize>,
    number: Option<usize>,
    traits: Traits,
    whole: Arc<Layout>,
    /// The SQL list of all columns, cached because most reads select exactly that.
    list: OnceLock<Box<str>>,
}

/// The names and kinds of the columns of a result row.
#[derive(Debug)]
pub struct Layout {
    /// One per column; `None` if only the result set tells the kind.
    pub kinds: Vec<Option<Kind>>,
    /// The columns' names, encoded for the response.
    pub keys: ColumnLabels,
}

/// Facts about a table as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub view: bool,
    /// A view that MariaDB can't write through, such as one with GROUP BY.
    pub read_only: bool,
    /// Using the table may run stored code (triggers, or code behind a view), which may leave session state.
    pub stored_code: bool,
    pub inserts: InsertTraits,
}

/// Facts that decide how rows can be inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InsertTraits {
    /// The table has a unique key, so that a row can conflict with another.
    pub unique_key: bool,
    /// A trigger runs when a row is updated, even if no value changes.
    pub update_triggers: bool,
    /// The engine rolls rows back with their transaction.
    pub transactional: bool,
    /// An ordinary InnoDB table.
    pub innodb: bool,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: FieldName,
    pub kind: Kind,
    /// The characters that the column can hold, if it holds text.
    pub charset: Charset,
    pub case: Case,
    /// The type as MariaDB writes it: `varchar(200)`.
    pub type_text: String,
    pub nullable: bool,
    /// The default as MariaDB writes it, but a string without its quotes; `None` if it is NULL or missing.
    pub default: Option<String>,
    pub auto_increment: bool,
    pub generated: bool,
    /// The column is part of the primary key.
    pub primary: bool,
    /// A unique key consists of this column alone.
    pub unique: bool,
    /// The members of an ENUM or SET; empty for other types.
    pub values: Vec<String>,
    /// The target of its foreign key.
    pub references: Option<Reference>,
    pub comment: String,
    /// How many leading characters (or bytes) MariaDB certainly sorts by; `None` if it sorts by the whole value.
    pub sorted_chars: Option<u16>,
}

/// The target of a foreign key of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub table: String,
    pub field: String,
}

/// The kind of a column's values: it decides how they are read, bound and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// TINYINT to BIGINT, YEAR.
    Integer,
    Bit,
    Decimal,
    Float,
    Double,
    /// CHAR to LONGTEXT, and unknown types of later versions.
    Text,
    Enum,
    Set,
    Uuid,
    Inet4,
    Inet6,
    Date,
    /// DATETIME, TIMESTAMP.
    DateTime,
    Time,
    /// JSON: LONGTEXT that must be valid JSON.
    Json,
    /// BINARY to LONGBLOB, VECTOR.
    Bytes,
    /// GEOMETRY and its kinds.
    Geometry,
}

/// The characters that a text column can hold.
#[derive(Clone, Debug)]
pub enum Charset {
    /// All of Unicode: any text can be compared with the column.
    Unicode,
    /// A part of Unicode, as with latin1: MariaDB refuses to compare the column with text outside of it.
    Limited(Arc<CharsetCoverage>),
}

/// Whether a column's collation distinguishes upper and lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// Case-insensitive.
    Folded,
    /// Case-sensitive.
    Exact,
}

impl Table {
    #[must_use]
    pub fn new(
        database: DatabaseName,
        name: TableName,
        columns: Vec<Column>,
        primary: Vec<usize>,
        traits: Traits,
    ) -> Self {
        let by_name: HashMap<Box<str>, usize> =
            columns.iter().enumerate().map(|(at, column)| (column.name.as_str().into(), at)).collect();
        // The API's rule: `{id}` is the column `id`, or else the primary key.
        let id = by_name.get("id").map(|at| vec![*at]);
        let alone = |at: &Vec<usize>| columns[at[0]].unique && !columns[at[0]].nullable;
        let identity = if primary.is_empty() { id.clone().filter(alone).unwrap_or_default() } else { primary.clone() };
        let key = id.unwrap_or(primary);
        let number = match key.as_slice() {
            [at] if columns[*at].is_counting_number() => Some(*at),
            _ => None,
        };
        Self {
            whole: Arc::new(Layout {
                kinds: columns.iter().map(|column| Some(column.kind)).collect(),
                keys: ColumnLabels::new(columns.iter().map(|column| column.name.as_str())),
            }),
            list: OnceLock::new(),
            database,
            name,
            columns,
            by_name,
            key,
            identity,
            number,
            traits,
        }
    }

    #[must_use]
    pub fn database(&self) -> &DatabaseName {
        &self.database
    }

    #[must_use]
    pub fn name(&self) -> &TableName {
        &self.name
    }

    /// Returns the columns in their order in the table.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the indexes of the columns that `{id}` addresses; empty if the table has no key.
    #[must_use]
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// Returns whether an id addresses at most one record.
    #[must_use]
    pub fn key_is_unique(&self) -> bool {
        let primary = self.columns.iter().filter(|column| column.primary);
        match self.key.as_slice() {
            [at] if self.columns[*at].unique => true,
            key => !key.is_empty() && key.len() == primary.count() && key.iter().all(|at| self.columns[*at].primary),
        }
    }

    /// Returns the index of the column that `{id}` addresses; `None` if that is not one unique integer column, or if
    /// reading the table may run stored code.
    #[must_use]
    pub fn number(&self) -> Option<usize> {
        let plain = !self.traits.view && !self.traits.stored_code;
        self.number.filter(|_| plain && self.key_is_unique())
    }

    /// Returns whether several rows may be inserted by one statement as if each were inserted alone: InnoDB rolls back
    /// all rows of a failed statement, and no stored code sees the other rows.
    #[must_use]
    pub fn takes_rows_together(&self) -> bool {
        self.traits.inserts.innodb && !self.traits.stored_code
    }

    /// Returns the indexes of columns without NULL that identify a record; empty if there are none. If the primary key
    /// has several columns, `id` alone is not enough.
    #[must_use]
    pub fn identity(&self) -> &[usize] {
        &self.identity
    }

    #[must_use]
    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Returns the layout of rows with all columns.
    #[must_use]
    pub fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.whole)
    }

    /// Returns the SQL list of all columns; `write` is called on first use only.
    pub fn list(&self, write: impl FnOnce() -> Box<str>) -> &str {
        self.list.get_or_init(write)
    }

    /// Returns the index of the column with this name; `None` if there is none.
    #[must_use]
    pub fn find(&self, name: &FieldName) -> Option<usize> {
        self.by_name.get(name.as_str()).copied()
    }

    /// Returns the index of the column with this name.
    ///
    /// # Errors
    /// `unknown_field`, with the nearest name as its hint.
    pub fn field(&self, name: &FieldName) -> Result<usize, Problem> {
        self.find(name).ok_or_else(|| {
            let names = self.columns.iter().map(|column| column.name.as_str());
            Problem::new(
                ErrorCode::UnknownField,
                format!("The table {} has no field {}.", shown(self.name.as_str()), shown(name.as_str())),
            )
            .with_hint_if(nearest(name.as_str(), names).map(|near| format!("Did you mean {}?", shown(near))))
        })
    }
}

impl Column {
    /// Returns whether the column's integers are compared as such. Those of a YEAR are not: it reads 70 as 1970.
    fn is_counting_number(&self) -> bool {
        self.kind == Kind::Integer && !self.type_text.starts_with("year")
    }

    /// Returns whether an insert must give the column: it allows no NULL, has no default, and is neither counted nor
    /// computed by MariaDB.
    #[must_use]
    pub fn required(&self) -> bool {
        !self.nullable && self.default.is_none() && !self.auto_increment && !self.generated
    }
}
