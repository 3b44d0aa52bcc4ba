//! The measurements of one case as a table, for the terminal and a file.

use super::{Case, Entry, Report};
use crate::{
    role::Role,
    sample::{Sample, ratio},
    workload::Workload,
};

/// Rows of cells under heads. Columns in which no row has a value are left out.
#[derive(Debug)]
pub(super) struct Table {
    title: String,
    heads: Vec<&'static str>,
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    pub(super) fn of(report: &Report, case: Case) -> Self {
        let mut heads = Vec::new();
        let mut rows = Vec::new();
        for entry in report.entries_of(case) {
            let Some(median) = Sample::median(&entry.samples) else {
                continue;
            };
            let cells = cells(report, entry, &median);
            heads = cells.iter().map(|(head, _)| *head).collect();
            let cells = cells.into_iter().map(|(_, cell)| cell.unwrap_or_default());
            rows.push((entry.contender.clone(), cells.collect()));
        }
        let table = Self { title: case.title(), heads, rows };
        table.without_empty_columns()
    }

    fn without_empty_columns(mut self) -> Self {
        let kept: Vec<bool> =
            (0..self.heads.len()).map(|column| self.rows.iter().any(|(_, cells)| !cells[column].is_empty())).collect();
        let mut columns = kept.iter();
        self.heads.retain(|_| columns.next() == Some(&true));
        for (_, cells) in &mut self.rows {
            let mut columns = kept.iter();
            cells.retain(|_| columns.next() == Some(&true));
        }
        self
    }

    pub(super) fn plain(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|(_, cells)| cells[column].as_str());
            cells.chain([self.heads[column]]).map(letters).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |name: &str, cells: &mut dyn Iterator<Item = &str>| {
            let mut line = format!("  {name:<22}");
            for (cell, width) in cells.zip(&widths) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            line + "\n"
        };
        let mut text = format!("{}\n", self.title);
        text += &line("", &mut self.heads.iter().copied());
        for (name, cells) in &self.rows {
            text += &line(name, &mut cells.iter().map(String::as_str));
        }
        text
    }
}

type Cell = (&'static str, Option<String>);

fn cells(report: &Report, entry: &Entry, median: &Sample) -> Vec<Cell> {
    let case = entry.case;
    let rate = |sample: &Sample| Some(sample.requests_per_second);
    let micros = |value: Option<f64>| value.map(|value| format!("{value:.1}"));
    let millis = |value: f64| Some(format!("{value:.2}"));
    let times = |value: Option<f64>| value.map(|value| format!("{value:.2}"));
    // At a fixed rate, all contenders have the same throughput.
    let closed = case.rate.is_none();
    let against = |other: &[Sample]| times(ratio(&entry.samples, other, rate)).filter(|_| closed);
    let is_long = matches!(case.workload, Workload::W4 | Workload::Million);
    let peak = median.peak_bytes.zip(median.grown_bytes);
    vec![
        ("req/s", Some(amount(median.requests_per_second)).filter(|_| closed)),
        ("× floor", against(report.floor(case))),
        ("× axum", against(report.rounds(case, Role::Streamed))),
        ("MB/s", is_long.then(|| amount(median.megabytes_per_second))),
        ("server µs", micros(median.server_micros)),
        ("workerd µs", micros(median.worker_micros)),
        ("MariaDB µs", micros(median.database_micros)),
        ("load µs", micros(median.load_micros)),
        ("p50 ms", millis(median.p50)),
        ("p99", millis(median.p99)),
        ("p99.9", millis(median.p999)),
        ("max", millis(median.max)),
        ("peak MB", peak.map(|(peak, grown)| format!("{:.0} (+{:.1})", megabytes(peak), megabytes(grown)))),
    ]
}

/// Formats a figure: from 100 on without decimals, and with a comma between thousands.
pub(super) fn amount(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::{Table, amount};

    #[test]
    fn amounts_are_grouped_by_thousands() {
        let cases = [(7.0, "7.0"), (812.4, "812"), (56_700.0, "56,700"), (1e6, "1,000,000")];
        for (value, text) in cases {
            assert_eq!(amount(value), text);
        }
    }

    #[test]
    fn columns_that_nobody_fills_are_left_out() {
        let row = |name: &str, cells: [&str; 3]| (name.to_owned(), cells.map(String::from).into());
        let table = Table {
            title: "W1".to_owned(),
            heads: vec!["req/s", "workerd µs", "p50 ms"],
            rows: vec![row("floor (8)", ["84,500", "", "0.09"]), row("edge", ["9", "", ""])],
        };
        let table = table.without_empty_columns();
        let lines = ["", "floor (8)", "edge"].map(|name| format!("  {name:<22}"));
        let cells = ["   req/s  p50 ms", "  84,500    0.09", "       9        "];
        let expected: String = lines.iter().zip(cells).map(|(line, cells)| format!("{line}{cells}\n")).collect();
        assert_eq!(table.plain(), format!("W1\n{expected}"));
    }
}
