//! The definition of a table in the form of `POST /api/v1/schema`, so that a caller can change a part and send it back.

use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TableDefinition {
    pub kind: &'static str,
    /// The statement that MariaDB shows, which creates the table or view.
    pub create: String,
    pub columns: Vec<DefinedColumn>,
    pub primary_key: Vec<String>,
    pub indexes: Vec<DefinedIndex>,
    pub foreign_keys: Vec<DefinedForeignKey>,
    pub triggers: Vec<DefinedTrigger>,
    pub comment: String,
    pub charset: String,
    pub collation: String,
    /// Approximate.
    pub rows: u64,
    /// Data and indexes.
    pub bytes: u64,
    #[serde(skip)]
    pub storage: Storage,
}

/// What decides how MariaDB can change the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    pub innodb: bool,
    pub row_format: RowFormat,
    /// MariaDB's version, such as `(11, 8)`.
    pub version: (u32, u32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowFormat {
    #[default]
    Other,
    Redundant,
    Compressed,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinedColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub data_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collation: Option<String>,
    pub nullable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<DefinedDefault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_update: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub auto_increment: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generated: Option<DefinedExpression>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<DefinedExpression>,
    #[serde(skip_serializing_if = "is_false")]
    pub invisible: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DefinedDefault {
    Text(String),
    Number(serde_json::Number),
    Expression(DefinedExpression),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DefinedExpression {
    pub expression: String,
    /// Only of generated columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
pub struct DefinedIndex {
    pub name: String,
    /// `index`, `unique`, `fulltext`, or MariaDB's word for another kind, such as `spatial`.
    pub kind: String,
    pub columns: Vec<DefinedIndexPart>,
}

#[derive(Clone, Debug, Serialize)]
pub struct DefinedIndexPart {
    pub column: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    pub descending: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinedForeignKey {
    pub name: String,
    pub columns: Vec<String>,
    pub references: DefinedReference,
    pub on_delete: String,
    pub on_update: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct DefinedReference {
    /// `None` for the table's own database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    pub table: String,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct DefinedTrigger {
    pub name: String,
    pub timing: String,
    pub event: String,
    pub statement: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl TableDefinition {
    pub fn column(&self, name: &str) -> Option<(usize, &DefinedColumn)> {
        self.columns.iter().enumerate().find(|(_, column)| column.name.eq_ignore_ascii_case(name))
    }

    pub fn has_full_text(&self) -> bool {
        self.indexes.iter().any(|index| index.kind == "fulltext")
    }
}

impl DefinedDefault {
    /// Parses `COLUMN_DEFAULT`: a quoted text, a number, or an expression; `None` for NULL.
    pub fn parse(text: &str) -> Option<Self> {
        let unquoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        Some(match unquoted {
            Some(inner) if is_one_literal(inner) => Self::Text(unescaped(inner)),
            _ if text.eq_ignore_ascii_case("NULL") => return None,
            _ => match text.parse::<i64>() {
                // Clients would round larger numbers.
                Ok(number @ -9_007_199_254_740_991..=9_007_199_254_740_991) => Self::Number(number.into()),
                _ if is_decimal(text) => Self::Text(text.to_owned()),
                _ => Self::Expression(DefinedExpression { expression: text.to_owned(), stored: None }),
            },
        })
    }
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit()) && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Whether the text between two quotes has no quote that ends it.
fn is_one_literal(inner: &str) -> bool {
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\'' if chars.next_if_eq(&'\'').is_none() => return false,
            _ => {}
        }
    }
    true
}

fn unescaped(inner: &str) -> String {
    let (mut text, mut chars) = (String::with_capacity(inner.len()), inner.chars());
    while let Some(c) = chars.next() {
        match c {
            '\'' => text.extend(chars.next()),
            '\\' => text.extend(chars.next().map(|c| match c {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '0' => '\0',
                'Z' => '\u{1a}',
                c => c,
            })),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_reads_as_it_is_written() {
        let expression =
            |text: &str| DefinedDefault::Expression(DefinedExpression { expression: text.to_owned(), stored: None });
        let text = |text: &str| DefinedDefault::Text(text.to_owned());
        for (written, read) in [
            ("'a''b\\\\n'", text("a'b\\n")),
            ("'a' + 'b'", expression("'a' + 'b'")),
            ("5", DefinedDefault::Number(5.into())),
            ("-5", DefinedDefault::Number((-5).into())),
            ("1.50", text("1.50")),
            ("18446744073709551615", text("18446744073709551615")),
            ("current_timestamp()", expression("current_timestamp()")),
            ("b'1'", expression("b'1'")),
        ] {
            assert_eq!(DefinedDefault::parse(written), Some(read), "{written}");
        }
        assert_eq!(DefinedDefault::parse("NULL"), None);
    }
}
