//! The only writer of SQL text. Its verbs: [`Builder::syntax`] for our own words, [`Builder::ident`] for
//! names, [`Builder::param`] for values, [`Builder::verbatim`] for users' own statements.

use super::tokens::{Token, Tokens};
use super::{DuplicateReport, Statement};
use crate::query::catalog::Table;
use crate::query::plan::scope::Scope;
use crate::query::plan::{ColumnRef, Form, Operand, Param};

/// Grows a statement.
#[derive(Debug, Default)]
pub(super) struct Builder {
    text: String,
    params: Vec<Param>,
    taken: DuplicateReport,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self { text: String::with_capacity(256), params: Vec::new(), taken: DuplicateReport::Untold }
    }

    /// Our own words: never anything that came from a caller.
    pub(super) fn syntax(&mut self, words: &'static str) -> &mut Self {
        self.text.push_str(words);
        self
    }

    /// A name, quoted; a backtick in it is doubled.
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

    /// A table's full name.
    pub(super) fn table(&mut self, table: &Table) -> &mut Self {
        self.ident(table.database().as_str()).syntax(".").ident(table.name().as_str())
    }

    /// A column of a table.
    pub(super) fn column(&mut self, table: &Table, at: usize) -> &mut Self {
        self.ident(table.columns()[at].name.as_str())
    }

    /// A column of one of a statement's tables; bare, where there is only one.
    pub(super) fn column_ref(&mut self, scope: &Scope<'_>, column: ColumnRef) -> &mut Self {
        if !scope.is_single() {
            self.ident(scope.name(column.source).as_str()).syntax(".");
        }
        self.ident(scope.column(column).name.as_str())
    }

    /// A number of our own behind a letter, as a name, or behind a comma.
    pub(super) fn numbered(&mut self, before: &'static str, number: usize) -> &mut Self {
        self.text.push_str(before);
        self.text.push_str(&number.to_string());
        self
    }

    /// Columns, separated by commas.
    pub(super) fn columns(&mut self, table: &Table, columns: &[usize]) -> &mut Self {
        self.list(columns, |builder, at| {
            builder.column(table, *at);
        })
    }

    /// All columns, separated by commas; written once for each table.
    pub(super) fn all_columns(&mut self, table: &Table) -> &mut Self {
        let list = table.list(|| {
            let all: Vec<usize> = (0..table.columns().len()).collect();
            let mut list = Self::new();
            list.columns(table, &all);
            list.text.into()
        });
        self.text.push_str(list);
        self
    }

    /// Parts, separated by commas.
    pub(super) fn list<T>(&mut self, parts: impl IntoIterator<Item = T>, write: impl FnMut(&mut Self, T)) -> &mut Self {
        self.joined(", ", parts, write)
    }

    /// Parts, separated by some words.
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

    /// A bound value.
    pub(super) fn param(&mut self, param: Param) -> &mut Self {
        self.params.push(param);
        self.syntax("?")
    }

    /// A bound value in the form that its column needs.
    pub(super) fn operand(&mut self, operand: Operand) -> &mut Self {
        match operand.form {
            Form::Plain | Form::Unicode(_) => self.param(operand.param),
            Form::GeoJson => self.syntax("ST_GeomFromGeoJSON(").param(operand.param).syntax(")"),
            Form::Json => self.syntax("JSON_COMPACT(").param(operand.param).syntax(")"),
            Form::Decimal { scale } => {
                self.syntax("CAST(").param(operand.param).syntax(" AS DECIMAL(65, ");
                self.text.push_str(&scale.to_string());
                self.syntax("))")
            }
        }
    }

    /// A value for a `?` of verbatim text.
    pub(super) fn bind(&mut self, param: Param) {
        self.params.push(param);
    }

    /// A comment that makes equal texts for different default schemas different: a prepared statement
    /// keeps the tables that its names meant when it was prepared, and connections keep them by text.
    /// The name is written in hexadecimal, so that it can't end the comment.
    pub(super) fn mark(&mut self, name: &str) {
        self.syntax("/*");
        for byte in name.bytes() {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            self.text.push(char::from(HEX[usize::from(byte >> 4)]));
            self.text.push(char::from(HEX[usize::from(byte & 15)]));
        }
        self.syntax("*/ ");
    }

    /// A user's own statement. The driver takes `:name` for a parameter of its own, and loses count of
    /// strings and comments that follow a `-` or `/` at once; a space after such a character keeps its
    /// reading and MariaDB's the same, and means nothing to MariaDB.
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

    /// What the statement says of rows whose key is taken.
    pub(super) fn taken(&mut self, taken: DuplicateReport) {
        self.taken = taken;
    }

    pub(super) fn finish(self) -> Statement {
        Statement { text: self.text, params: self.params, taken: self.taken }
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
