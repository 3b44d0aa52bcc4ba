//! The format and line numbers of an insert's rows that come from CSV or lines of JSON, not from `batchData`.

use crate::error::Problem;
use crate::format::Format;

/// The format of an insert's rows, and the line of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    format: Format,
    /// The number of the line at which each row begins, from 1.
    lines: Vec<usize>,
}

impl Import {
    pub(super) fn new(format: Format) -> Self {
        Self { format, lines: Vec::new() }
    }

    pub(super) fn begin_row(&mut self, line: usize) {
        self.lines.push(line);
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns a copy of `problem` whose message begins with the line number of the row with index `row`, from 0.
    pub fn name_line(&self, row: usize, problem: &Problem) -> Problem {
        in_line(self.lines.get(row).copied().unwrap_or_default(), problem)
    }
}

pub(super) fn in_line(line: usize, problem: &Problem) -> Problem {
    problem.clone().in_line(line)
}
