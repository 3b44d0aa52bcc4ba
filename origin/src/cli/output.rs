//! The output of commands: text or tables, or JSON with `--json`.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;
use shared::ident::printable;

use super::CliError;

const GUTTER: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Text,
    Json,
}

impl OutputFormat {
    pub(super) fn new(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    /// Prints a command's result. Called at most once, so that the output is one JSON value.
    pub fn answer<T: Serialize>(self, value: &T, text: impl FnOnce(&T) -> String) -> Result<(), CliError> {
        let text = match self {
            Self::Text => text(value),
            Self::Json => serde_json::to_string_pretty(value).map_err(|error| CliError::Output(error.into()))?,
        };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let mut stdout = io::stdout().lock();
        write!(stdout, "{text}{end}").and_then(|()| stdout.flush()).map_err(CliError::Output)
    }
}

#[derive(Debug, Clone)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self { rows: vec![headings.map(str::to_uppercase).to_vec()] }
    }

    /// Adds a row. A project chooses the names of its objects, so cells are made printable.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(Vec::from(cells.map(|cell| printable(&cell))));
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let cell_width = |row: &Vec<String>, at: usize| row.get(at).map_or(0, |cell| cell.chars().count());
        (0..columns).map(|at| self.rows.iter().map(|row| cell_width(row, at)).max().unwrap_or(0)).collect()
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let cells = row.iter().zip(&widths);
            let line: String = cells.map(|(cell, width)| format!("{cell:<width$}", width = width + GUTTER)).collect();
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = TextTable::new(["id", "name"]);
        table.row(["1".to_owned(), "größer".to_owned()]);
        table.row(["1000".to_owned(), String::new()]);
        assert_eq!(table.to_string(), "ID    NAME\n1     größer\n1000\n");
    }

    #[test]
    fn a_cell_commands_no_terminal_and_forges_no_line() {
        let mut table = TextTable::new(["name"]);
        table.row(["a\u{1b}[31m\n2\u{202e}".to_owned()]);
        assert_eq!(table.to_string(), "NAME\na\\u{1b}[31m\\n2\\u{202e}\n");
    }
}
