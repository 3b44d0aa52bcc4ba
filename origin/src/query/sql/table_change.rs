//! Renders changes of tables: one statement each. Names are quoted, texts are literals; types and expressions are the
//! caller's, parsed so that they can't end the part that they stand in.

use super::Statement;
use super::builder::Builder;
use crate::query::catalog::definition::TableDefinition;
use shared::ident::{FieldName, KeyName};
use shared::operation::TablePath;
use shared::operation::schema::{
    Algorithm, Alteration, ColumnDefinition, ColumnPlace, ColumnSource, DefaultValue, ForeignKeyDefinition,
    IndexDefinition, IndexKind, NewTable, PrimaryKeyChange, ReferenceAction, SqlType, TypeArgument,
};

/// What other statements may do while MariaDB changes a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    None,
    /// They may read.
    Shared,
    Exclusive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    pub algorithm: Algorithm,
    pub lock: Lock,
}

impl Method {
    pub const fn new(algorithm: Algorithm, lock: Lock) -> Self {
        Self { algorithm, lock }
    }

    /// From the cheapest to the most costly. Only the change of a table's name alone needs the second one.
    pub const ALL: [Self; 8] = [
        Self::new(Algorithm::Instant, Lock::None),
        Self::new(Algorithm::Instant, Lock::Exclusive),
        Self::new(Algorithm::NoCopy, Lock::None),
        Self::new(Algorithm::NoCopy, Lock::Shared),
        Self::new(Algorithm::InPlace, Lock::None),
        Self::new(Algorithm::InPlace, Lock::Shared),
        Self::new(Algorithm::Copy, Lock::None),
        Self::new(Algorithm::Copy, Lock::Shared),
    ];
}

impl Lock {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        }
    }
}

pub fn create(table: &TablePath, new: &NewTable) -> Statement {
    let mut sql = begin("CREATE TABLE ", table);
    sql.syntax(" (").list(&new.columns, column);
    if !new.primary_key.is_empty() {
        sql.syntax(", PRIMARY KEY ");
        names(&mut sql, &new.primary_key);
    }
    for one in &new.indexes {
        index(sql.syntax(", "), one);
    }
    for key in &new.foreign_keys {
        foreign_key(sql.syntax(", "), table, key);
    }
    sql.syntax(")");
    if let Some(comment) = &new.comment {
        sql.syntax(" COMMENT ").literal(comment);
    }
    sql.finish()
}

pub fn truncate(table: &TablePath) -> Statement {
    begin("TRUNCATE TABLE ", table).finish()
}

pub fn drop(table: &TablePath) -> Statement {
    begin("DROP TABLE ", table).finish()
}

pub fn show_create(table: &TablePath) -> Statement {
    begin("SHOW CREATE TABLE ", table).finish()
}

/// `known` is the table's present definition: a new primary key replaces the old one.
pub fn alter(table: &TablePath, known: &TableDefinition, change: &Alteration, method: Method) -> Statement {
    let mut sql = begin("ALTER TABLE ", table);
    sql.syntax(" ");
    for name in &change.dropped_foreign_keys {
        dropped(&mut sql, "DROP FOREIGN KEY ", name);
    }
    for name in &change.dropped_indexes {
        dropped(&mut sql, "DROP INDEX ", name);
    }
    for name in &change.dropped_columns {
        sql.syntax("DROP COLUMN ").ident(name.as_str()).syntax(", ");
    }
    for changed in &change.changed_columns {
        sql.syntax("CHANGE COLUMN ").ident(changed.column.as_str()).syntax(" ");
        column(&mut sql, &changed.definition);
        place(&mut sql, changed.place.as_ref()).syntax(", ");
    }
    for (added, at) in &change.added_columns {
        sql.syntax("ADD COLUMN ");
        column(&mut sql, added);
        place(&mut sql, at.as_ref()).syntax(", ");
    }
    match &change.primary_key {
        PrimaryKeyChange::Kept => {}
        PrimaryKeyChange::Dropped => drop_primary_key(&mut sql),
        PrimaryKeyChange::Set(columns) => {
            if !known.primary_key.is_empty() {
                drop_primary_key(&mut sql);
            }
            sql.syntax("ADD PRIMARY KEY ");
            names(&mut sql, columns).syntax(", ");
        }
    }
    for one in &change.added_indexes {
        index(sql.syntax("ADD "), one).syntax(", ");
    }
    for key in &change.added_foreign_keys {
        foreign_key(sql.syntax("ADD "), table, key).syntax(", ");
    }
    if let Some(comment) = &change.comment {
        sql.syntax("COMMENT ").literal(comment).syntax(", ");
    }
    if let Some(name) = &change.rename {
        sql.syntax("RENAME TO ").ident(table.database.as_str()).syntax(".").ident(name.as_str()).syntax(", ");
    }
    sql.syntax("ALGORITHM=").syntax(match method.algorithm {
        Algorithm::Instant => "INSTANT",
        Algorithm::NoCopy => "NOCOPY",
        Algorithm::InPlace => "INPLACE",
        Algorithm::Copy => "COPY",
    });
    sql.syntax(", LOCK=").syntax(match method.lock {
        Lock::None => "NONE",
        Lock::Shared => "SHARED",
        Lock::Exclusive => "EXCLUSIVE",
    });
    sql.finish()
}

fn begin(verb: &'static str, table: &TablePath) -> Builder {
    let mut sql = Builder::new();
    sql.syntax(verb).ident(table.database.as_str()).syntax(".").ident(table.table.as_str());
    sql
}

fn dropped(sql: &mut Builder, verb: &'static str, name: &KeyName) {
    sql.syntax(verb).ident(name.as_str()).syntax(", ");
}

fn drop_primary_key(sql: &mut Builder) {
    sql.syntax("DROP PRIMARY KEY, ");
}

fn names<'a>(sql: &'a mut Builder, names: &[FieldName]) -> &'a mut Builder {
    sql.syntax("(");
    sql.list(names, |sql, name| {
        sql.ident(name.as_str());
    });
    sql.syntax(")")
}

fn column(sql: &mut Builder, column: &ColumnDefinition) {
    sql.ident(column.name.as_str()).syntax(" ");
    data_type(sql, &column.data_type);
    if let Some(charset) = &column.charset {
        sql.syntax(" CHARACTER SET ").word(charset);
    }
    if let Some(collation) = &column.collation {
        sql.syntax(" COLLATE ").word(collation);
    }
    match &column.source {
        // MariaDB has no NOT NULL for generated columns.
        ColumnSource::Generated { expression, stored } => {
            sql.syntax(" AS (").verbatim(expression.as_str());
            sql.syntax(if *stored { ") STORED" } else { ") VIRTUAL" });
        }
        ColumnSource::AutoIncrement => {
            sql.syntax(" NOT NULL AUTO_INCREMENT");
        }
        ColumnSource::Default { value, on_update } => {
            sql.syntax(if column.nullable { " NULL" } else { " NOT NULL" });
            match value {
                None => {}
                Some(DefaultValue::Text(text)) => {
                    sql.syntax(" DEFAULT ").literal(text);
                }
                Some(DefaultValue::Number(number)) => {
                    sql.syntax(" DEFAULT ").number(number);
                }
                Some(DefaultValue::Expression(expression)) => {
                    sql.syntax(" DEFAULT (").verbatim(expression.as_str());
                    sql.syntax(")");
                }
            }
            if let Some(digits) = on_update {
                sql.numbered(" ON UPDATE current_timestamp(", usize::from(*digits)).syntax(")");
            }
        }
    }
    if column.invisible {
        sql.syntax(" INVISIBLE");
    }
    if let Some(comment) = &column.comment {
        sql.syntax(" COMMENT ").literal(comment);
    }
    if let Some(check) = &column.check {
        sql.syntax(" CHECK (").verbatim(check.as_str());
        sql.syntax(")");
    }
}

fn data_type(sql: &mut Builder, data_type: &SqlType) {
    sql.word(&data_type.name);
    if !data_type.arguments.is_empty() {
        sql.syntax("(");
        sql.joined(",", &data_type.arguments, |sql, argument| {
            match argument {
                TypeArgument::Number(number) => sql.number(&number.to_string()),
                TypeArgument::Member(text) => sql.literal(text),
            };
        });
        sql.syntax(")");
    }
    for word in &data_type.words {
        sql.syntax(" ").syntax(word.as_str());
    }
}

fn place<'a>(sql: &'a mut Builder, place: Option<&ColumnPlace>) -> &'a mut Builder {
    match place {
        None => sql,
        Some(ColumnPlace::First) => sql.syntax(" FIRST"),
        Some(ColumnPlace::After(name)) => sql.syntax(" AFTER ").ident(name.as_str()),
    }
}

fn index<'a>(sql: &'a mut Builder, index: &IndexDefinition) -> &'a mut Builder {
    sql.syntax(match index.kind {
        IndexKind::Plain => "INDEX",
        IndexKind::Unique => "UNIQUE INDEX",
        IndexKind::FullText => "FULLTEXT INDEX",
    });
    if let Some(name) = &index.name {
        sql.syntax(" ").ident(name.as_str());
    }
    sql.syntax(" (");
    sql.list(&index.parts, |sql, part| {
        sql.ident(part.column.as_str());
        if let Some(length) = part.length {
            sql.syntax("(").number(&length.to_string()).syntax(")");
        }
        if part.descending {
            sql.syntax(" DESC");
        }
    });
    sql.syntax(")")
}

fn foreign_key<'a>(sql: &'a mut Builder, table: &TablePath, key: &ForeignKeyDefinition) -> &'a mut Builder {
    if let Some(name) = &key.name {
        sql.syntax("CONSTRAINT ").ident(name.as_str()).syntax(" ");
    }
    names(sql.syntax("FOREIGN KEY "), &key.columns);
    let database = key.target_database.as_ref().unwrap_or(&table.database);
    sql.syntax(" REFERENCES ").ident(database.as_str()).syntax(".").ident(key.target.as_str()).syntax(" ");
    names(sql, &key.target_columns);
    for (event, action) in [(" ON DELETE ", key.on_delete), (" ON UPDATE ", key.on_update)] {
        if let Some(action) = action {
            sql.syntax(event).syntax(match action {
                ReferenceAction::Restrict => "RESTRICT",
                ReferenceAction::Cascade => "CASCADE",
                ReferenceAction::SetNull => "SET NULL",
                ReferenceAction::NoAction => "NO ACTION",
            });
        }
    }
    sql
}

#[cfg(test)]
mod tests;
