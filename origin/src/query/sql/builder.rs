//! The only writer of the text of [`Statement`]s: [`Builder::syntax`] writes constant text, [`Builder::ident`] names,
//! [`Builder::param`] values, [`Builder::verbatim`] users' own statements.

use super::tokens::{Token, Tokens};
use super::{ResultColumns, Statement};
use crate::query::catalog::Table;
use crate::query::plan::scope::Scope;
use crate::query::plan::{ColumnRef, Operand, Param, SqlConversion};

#[derive(Debug, Default)]
pub(super) struct Builder {
    text: String,
    params: Vec<Param>,
    pub(super) returned: ResultColumns,
    pub(super) skips_duplicates: bool,
    pub(super) sets_variables: bool,
    pub(super) batch_offset: Option<usize>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self { text: String::with_capacity(256), ..Self::default() }
    }

    pub(super) fn syntax(&mut self, words: &'static str) -> &mut Self {
        self.text.push_str(words);
        self
    }

    pub(super) fn ident(&mut self, name: &str) -> &mut Self {
        self.text.push('`');
        if name.contains('`') {
            self.text.push_str(&name.replace('`', "``"));
        } else {
            self.text.push_str(name);
        }
        self.text.push('`');
        self
    }

    /// Appends the name of a character set or a collation. Other characters than such names have are left out.
    pub(super) fn word(&mut self, word: &str) -> &mut Self {
        self.text.extend(word.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_'));
        self
    }

    /// Appends a numeric, temporal or text type as MariaDB describes it, such as `decimal(10,2) unsigned`, without its
    /// comments and ZEROFILL.
    pub(super) fn type_name(&mut self, text: &str) -> &mut Self {
        let text = text.split("/*").next().unwrap_or_default();
        let text = text.strip_suffix(" zerofill").unwrap_or(text);
        let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '(' | ')' | ',');
        self.text.extend(text.chars().filter(is_part));
        self
    }

    /// Appends a string literal, for statements that take no parameters. No session has the SQL mode
    /// `NO_BACKSLASH_ESCAPES`.
    pub(super) fn literal(&mut self, text: &str) -> &mut Self {
        self.text.push('\'');
        for c in text.chars() {
            if matches!(c, '\'' | '\\') {
                self.text.push(c);
            }
            self.text.push(c);
        }
        self.text.push('\'');
        self
    }

    /// Appends a number as JSON writes it. Other characters than such numbers have are left out.
    pub(super) fn number(&mut self, text: &str) -> &mut Self {
        let is_part = |c: &char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        self.text.extend(text.chars().filter(is_part));
        self
    }

    pub(super) fn table(&mut self, table: &Table) -> &mut Self {
        self.ident(table.database().as_str()).syntax(".").ident(table.name().as_str())
    }

    pub(super) fn column(&mut self, table: &Table, at: usize) -> &mut Self {
        self.ident(table.column(at).name.as_str())
    }

    pub(super) fn column_ref(&mut self, scope: &Scope<'_>, column: ColumnRef) -> &mut Self {
        match scope.is_single() {
            true => self.ident(scope.column(column).name.as_str()),
            false => self.qualified(scope, column),
        }
    }

    pub(super) fn qualified(&mut self, scope: &Scope<'_>, column: ColumnRef) -> &mut Self {
        self.ident(scope.name(column.source).as_str()).syntax(".").ident(scope.column(column).name.as_str())
    }

    pub(super) fn numbered(&mut self, before: &'static str, number: usize) -> &mut Self {
        self.text.push_str(before);
        self.text.push_str(&number.to_string());
        self
    }

    pub(super) fn columns(&mut self, table: &Table, columns: &[usize]) -> &mut Self {
        self.list(columns, |builder, at| {
            builder.column(table, *at);
        })
    }

    pub(super) fn all_columns(&mut self, table: &Table) -> &mut Self {
        let list = table.list(|| {
            let all: Vec<usize> = (0..table.visible_columns().len()).collect();
            let mut list = Self::new();
            list.columns(table, &all);
            list.text.into()
        });
        self.text.push_str(list);
        self
    }

    pub(super) fn list<T>(&mut self, parts: impl IntoIterator<Item = T>, write: impl FnMut(&mut Self, T)) -> &mut Self {
        self.joined(", ", parts, write)
    }

    pub(super) fn joined<T>(
        &mut self,
        words: &'static str,
        parts: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                self.syntax(words);
            }
            write(self, part);
        }
        self
    }

    pub(super) fn param(&mut self, param: Param) -> &mut Self {
        self.params.push(param);
        self.syntax("?")
    }

    /// Appends the placeholder of a value and the value's conversion. [`SqlConversion::Unicode`] converts the compared
    /// column instead of the value; `sql::predicate` appends that column.
    pub(super) fn operand(&mut self, operand: Operand) -> &mut Self {
        match operand.form {
            SqlConversion::Plain | SqlConversion::Unicode(_) => self.param(operand.param),
            SqlConversion::GeoJson => self.syntax("ST_GeomFromGeoJSON(").param(operand.param).syntax(")"),
            SqlConversion::Json => self.syntax("JSON_COMPACT(").param(operand.param).syntax(")"),
            SqlConversion::Decimal { scale } => {
                self.syntax("CAST(").param(operand.param).syntax(" AS DECIMAL(65, ");
                self.text.push_str(&scale.to_string());
                self.syntax("))")
            }
        }
    }

    pub(super) fn bind(&mut self, param: Param) {
        self.params.push(param);
    }

    /// Appends a schema's name in a comment: prepared statements are cached by text, and keep referring to the schema
    /// in which they were prepared. The name is in hexadecimal, so that it can't end the comment.
    pub(super) fn mark(&mut self, name: &str) {
        self.syntax("/*");
        for byte in name.bytes() {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            self.text.push(char::from(HEX[usize::from(byte >> 4)]));
            self.text.push(char::from(HEX[usize::from(byte & 15)]));
        }
        self.syntax("*/ ");
    }

    /// Appends the text, with a space after each character that the driver misreads: it takes `:name` for a named
    /// parameter, and misses strings and comments directly after a `-` or `/`. MariaDB ignores the space.
    pub(super) fn verbatim(&mut self, text: &str) {
        let mut rest = text;
        for token in Tokens::new(text) {
            if let Token::Misread(at) = token {
                let consumed = text.len() - rest.len();
                self.text.push_str(&rest[..=at - consumed]);
                self.text.push(' ');
                rest = &text[at + 1..];
            }
        }
        self.text.push_str(rest);
    }

    /// Appends the columns of the key to those that the statement returns.
    pub(super) fn returned_key(&mut self, table: &Table, columns: &[usize]) -> &mut Self {
        let start = self.returned.next();
        self.returned.key = start..start + columns.len();
        self.columns(table, columns)
    }

    pub(super) fn finish(self) -> Statement {
        let Self { text, params, returned: columns, skips_duplicates, sets_variables, batch_offset } = self;
        Statement { text, params, columns, skips_duplicates, sets_variables, batch_offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quoted_name_reads_back_and_never_ends_early(name in "[^\0]{1,40}") {
            let mut builder = Builder::new();
            builder.ident(&name);
            let text = builder.finish().text;
            let inner = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap();
            prop_assert_eq!(inner.replace("``", "`"), name);
            prop_assert!(!inner.replace("``", "").contains('`'));
        }
    }

    #[test]
    fn a_literal_never_ends_early() {
        for (text, quoted) in [("it's", "'it''s'"), (r"a\", r"'a\\'"), (r"\'", r"'\\'''"), ("", "''")] {
            let mut builder = Builder::new();
            builder.literal(text);
            assert_eq!(builder.finish().text, quoted);
        }
    }

    #[test]
    fn the_driver_finds_no_parameters_of_its_own_in_verbatim_text() {
        for (text, parted) in [
            (
                "lbl:begin SET @a:=1; SELECT ':x', `:y` -- :z\n; end",
                "lbl: begin SET @a:=1; SELECT ':x', `:y` -- :z\n; end",
            ),
            ("SELECT 5-'1 :x'", "SELECT 5- '1 :x'"),
            ("SELECT 5--'1 :x'", "SELECT 5- - '1 :x'"),
            ("SELECT 5/\"1 :x\"", "SELECT 5/ \"1 :x\""),
            ("SELECT 5/-`:x`", "SELECT 5/ - `:x`"),
            ("SELECT 5-/* :x */1", "SELECT 5- /* :x */1"),
            ("SELECT 5-# :x\n1", "SELECT 5- # :x\n1"),
            ("SELECT 5--1, 6/2", "SELECT 5--1, 6/2"),
        ] {
            let mut builder = Builder::new();
            builder.verbatim(text);
            assert_eq!(builder.finish().text, parted);
        }
    }
}
