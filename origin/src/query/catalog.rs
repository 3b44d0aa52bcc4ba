//! What the database holds, as far as plans need it: tables, columns and their kinds.
//!
//! Values of these types are facts read from MariaDB by `database::schema_cache`; nothing here does I/O or knows
//! the driver.

mod charset_coverage;

pub use charset_coverage::CharsetCoverage;
use shared::envelope::Keys;
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
    /// The list of all columns, as the `sql` module writes it: most reads need just that.
    list: OnceLock<Box<str>>,
}

/// The columns of an answer's rows: what they hold, and how they are called.
#[derive(Debug)]
pub struct Layout {
    /// What each holds; `None` if only MariaDB knows.
    pub kinds: Vec<Option<Kind>>,
    /// Their names, ready to be written.
    pub keys: Keys,
}

/// Facts about a table as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Whether it is a view.
    pub view: bool,
    /// Whether it is a view that MariaDB can't write through, such as one that groups.
    pub read_only: bool,
    /// Whether using it may run stored code (triggers, or whatever is behind a view), which can leave
    /// something in the session.
    pub stored_code: bool,
    /// What inserts of special kinds must know.
    pub inserts: InsertTraits,
}

/// Facts about a table that decide how rows get into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InsertTraits {
    /// Whether it has a unique key, so that a row can be in conflict with another.
    pub unique_key: bool,
    /// Whether a trigger runs when one of its rows is updated, even if nothing of it changes.
    pub update_triggers: bool,
    /// Whether its engine takes a row back when its transaction is rolled back.
    pub transactional: bool,
    /// Whether it is an ordinary table of InnoDB.
    pub innodb: bool,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: FieldName,
    /// What it holds, as far as values must know.
    pub kind: Kind,
    /// What characters it can hold, if it holds text.
    pub charset: Charset,
    /// Whether its collation tells upper from lower case.
    pub case: Case,
    /// Its type as MariaDB writes it: `varchar(200)`.
    pub type_text: String,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Its default, as MariaDB writes it.
    pub default: Option<String>,
    /// Whether it counts by itself.
    pub auto_increment: bool,
    /// Whether MariaDB computes it.
    pub generated: bool,
    /// Whether it belongs to the primary key.
    pub primary: bool,
    /// Whether a unique key holds it alone.
    pub unique: bool,
    /// The values of an ENUM or SET.
    pub values: Vec<String>,
    /// What its foreign key points at.
    pub references: Option<Reference>,
    /// Its comment.
    pub comment: String,
    /// How many of its first characters (or bytes) MariaDB surely sorts by, if it may not sort by all.
    pub sorted_chars: Option<u16>,
}

/// The target of a foreign key of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The table.
    pub table: String,
    /// The field.
    pub field: String,
}

/// What a column holds: decides how values are read, bound and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// TINYINT to BIGINT, YEAR.
    Integer,
    /// BIT.
    Bit,
    /// DECIMAL.
    Decimal,
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// CHAR to LONGTEXT, and what later versions bring.
    Text,
    /// ENUM.
    Enum,
    /// SET.
    Set,
    /// UUID.
    Uuid,
    /// INET4.
    Inet4,
    /// INET6.
    Inet6,
    /// DATE.
    Date,
    /// DATETIME, TIMESTAMP.
    DateTime,
    /// TIME.
    Time,
    /// JSON: LONGTEXT that must be valid JSON.
    Json,
    /// BINARY to LONGBLOB, VECTOR.
    Bytes,
    /// GEOMETRY and its kinds.
    Geometry,
}

/// What characters a column of text can hold.
#[derive(Clone, Debug)]
pub enum Charset {
    /// All of Unicode: any text can be compared with it.
    Unicode,
    /// Fewer, as latin1 does: MariaDB refuses to compare it with text that it can't hold.
    Limited(Arc<CharsetCoverage>),
}

/// Whether a column's collation tells upper from lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// It does not.
    Folded,
    /// It does.
    Exact,
}

impl Table {
    /// Puts a table together.
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
        // The interface: `{id}` is the column `id`, else the primary key.
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
                keys: Keys::new(columns.iter().map(|column| column.name.as_str())),
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

    /// The database it is in.
    #[must_use]
    pub fn database(&self) -> &DatabaseName {
        &self.database
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &TableName {
        &self.name
    }

    /// Its columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the indexes of the columns that `{id}` addresses; empty if the table has no key.
    #[must_use]
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// Whether at most one record has an id.
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

    /// Whether rows of one statement come to be as each alone would, or none of them: MariaDB takes back
    /// all of a statement that fails, and no stored code sees what is beside its row.
    #[must_use]
    pub fn takes_rows_together(&self) -> bool {
        self.traits.inserts.innodb && !self.traits.stored_code
    }

    /// Returns the indexes of the columns that tell all records apart, none of them NULL; empty if there are no
    /// such. Of a key of several columns, `id` alone is not enough.
    #[must_use]
    pub fn identity(&self) -> &[usize] {
        &self.identity
    }

    /// Facts about the whole.
    #[must_use]
    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// How rows of all columns look.
    #[must_use]
    pub fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.whole)
    }

    /// The list of all columns, written once by `write`.
    pub fn list(&self, write: impl FnOnce() -> Box<str>) -> &str {
        self.list.get_or_init(write)
    }

    /// Returns the index of the column of this name, if there is one.
    #[must_use]
    pub fn find(&self, name: &FieldName) -> Option<usize> {
        self.by_name.get(name.as_str()).copied()
    }

    /// Returns the index of the column of this name.
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
    /// Whether it holds integers that are compared as such: a YEAR reads 70 as 1970.
    fn is_counting_number(&self) -> bool {
        self.kind == Kind::Integer && !self.type_text.starts_with("year")
    }

    /// Whether an insert must name it: no NULL, no default, not counted or computed.
    #[must_use]
    pub fn required(&self) -> bool {
        !self.nullable && self.default.is_none() && !self.auto_increment && !self.generated
    }
}
