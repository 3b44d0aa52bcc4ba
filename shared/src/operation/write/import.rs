//! The format and line numbers of an insert's rows from CSV or NDJSON, not from `batchData`.

use crate::error::Problem;
use crate::format::Format;

#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    format: Format,
    /// The line at which each row begins, from 1.
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

    pub fn name_line(&self, row: usize, problem: &Problem) -> Problem {
        in_line(self.lines.get(row).copied().unwrap_or_default(), problem)
    }
}

pub(super) fn in_line(line: usize, problem: &Problem) -> Problem {
    problem.clone().in_line(line)
}
