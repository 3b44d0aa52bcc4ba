//! Renders the `CREATE TABLE` that `selkie import --create` shows and sends as its user's own statement.

use std::fmt::{self, Display, Formatter, Write as _};

use shared::ident::{FieldName, TableName};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Boolean,
    Int,
    BigInt,
    BigIntUnsigned,
    Decimal { digits: usize, scale: usize },
    Double,
    Date,
    DateTime { fraction: usize },
    Time { fraction: usize },
    Json,
    VarChar,
    Text,
    MediumText,
    LongText,
}

pub const VARCHAR_CHARS: usize = 255;

impl Display for ColumnType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let fractional = |f: &mut Formatter<'_>, word, fraction: usize| match fraction {
            0 => f.write_str(word),
            digits => write!(f, "{word}({digits})"),
        };
        match *self {
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::BigIntUnsigned => f.write_str("BIGINT UNSIGNED"),
            Self::Decimal { digits, scale } => write!(f, "DECIMAL({digits},{scale})"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Date => f.write_str("DATE"),
            Self::DateTime { fraction } => fractional(f, "DATETIME", fraction),
            Self::Time { fraction } => fractional(f, "TIME", fraction),
            Self::Json => f.write_str("JSON"),
            Self::VarChar => write!(f, "VARCHAR({VARCHAR_CHARS})"),
            Self::Text => f.write_str("TEXT"),
            Self::MediumText => f.write_str("MEDIUMTEXT"),
            Self::LongText => f.write_str("LONGTEXT"),
        }
    }
}

/// Renders the statement. The key `id` is AUTO_INCREMENT: MariaDB numbers rows that give no `id`.
pub fn create_table(table: &TableName, columns: &[(FieldName, ColumnType)], key: NewKey) -> String {
    let mut lines = Vec::new();
    if key == NewKey::Added {
        lines.push(format!("{} BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", quoted("id")));
    }
    lines.extend(columns.iter().map(|(name, of_type)| {
        let is_key = key == NewKey::Column && name.as_str().eq_ignore_ascii_case("id");
        let rest = if is_key { " NOT NULL AUTO_INCREMENT PRIMARY KEY" } else { "" };
        format!("{} {of_type}{rest}", quoted(name.as_str()))
    }));
    let mut text = format!("CREATE TABLE {} (\n", quoted(table.as_str()));
    for (at, line) in lines.iter().enumerate() {
        let end = if at + 1 == lines.len() { "\n" } else { ",\n" };
        // Writing to a string never fails.
        let _ = write!(text, "  {line}{end}");
    }
    text + ") ENGINE=InnoDB"
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewKey {
    /// The key is the file's column `id`, in upper or lower case.
    Column,
    Added,
    /// No key: the file's column `id` has a value that is empty or not a whole number, or the file has no rows.
    None,
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_the_key_is_the_column_id_or_a_new_one() {
        let field = |name| FieldName::parse(name).unwrap();
        let table = TableName::parse("a`b").unwrap();
        let columns = [(field("id"), ColumnType::Int), (field("x`y"), ColumnType::Decimal { digits: 5, scale: 2 })];
        let text = create_table(&table, &columns, NewKey::Column);
        let expected = "CREATE TABLE `a``b` (\n  `id` INT NOT NULL AUTO_INCREMENT PRIMARY KEY,\n  `x``y` DECIMAL(5,2)\n\
            ) ENGINE=InnoDB";
        assert_eq!(text, expected);
        let text = create_table(&table, &columns[1..], NewKey::Added);
        assert!(text.contains("(\n  `id` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,\n  `x``y`"), "{text}");
        assert!(!create_table(&table, &columns, NewKey::None).contains("KEY"));
    }
}
