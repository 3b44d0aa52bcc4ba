//! A curve: the measurements at each point, as a table and as JSON. Knows nothing of
//! how they were made.

use std::{fs::File, io::Write, path::Path};

use anyhow::Result;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) along: &'static str,
    pub(super) figures: Vec<Figure>,
    pub(super) points: Vec<Point>,
}

/// A column of the table: its name, its unit (may be empty), its number of decimals.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Figure {
    name: &'static str,
    unit: &'static str,
    #[serde(skip)]
    decimals: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) at: u64,
    pub(super) values: Vec<Option<f64>>,
}

impl Figure {
    fn head(&self) -> String {
        match self.unit {
            "" => self.name.to_owned(),
            unit => format!("{}, {unit}", self.name),
        }
    }

    fn text(&self, value: Option<f64>) -> String {
        value.map_or_else(|| "-".to_owned(), |value| grouped(&format!("{value:.*}", self.decimals)))
    }
}

impl Curve {
    pub(super) fn new(
        name: &'static str,
        title: &'static str,
        along: &'static str,
        figures: &[(&'static str, &'static str, usize)],
    ) -> Self {
        Self {
            name,
            title,
            along,
            figures: figures.iter().map(|&(name, unit, decimals)| Figure { name, unit, decimals }).collect(),
            points: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, at: u64, values: Vec<Option<f64>>) {
        self.points.push(Point { at, values });
    }

    pub(super) fn print(&self, out: &mut impl Write) -> Result<()> {
        Ok(write!(out, "\n{}", self.plain())?)
    }

    /// Returns the title, and the table with aligned columns.
    pub(super) fn plain(&self) -> String {
        let mut text = format!("{}\n", self.title);
        let table = self.cells();
        let widths: Vec<usize> = (0..=self.figures.len())
            .map(|column| {
                let lengths = table.iter().map(|row| row[column].chars().count());
                lengths.max().unwrap_or(0)
            })
            .collect();
        for row in &table {
            for (cell, width) in row.iter().zip(&widths) {
                text += &format!("  {cell:>width$}");
            }
            text.push('\n');
        }
        text
    }

    /// Returns the table's heads, a row for each point, and a row with the slopes of the figures.
    fn cells(&self) -> Vec<Vec<String>> {
        let head = std::iter::once(self.along.to_owned()).chain(self.figures.iter().map(Figure::head)).collect();
        let mut table: Vec<Vec<String>> = vec![head];
        for point in &self.points {
            let figures = self.figures.iter().zip(&point.values);
            table.push(
                std::iter::once(grouped(&point.at.to_string()))
                    .chain(figures.map(|(figure, value)| figure.text(*value)))
                    .collect(),
            );
        }
        if let Some(slopes) = self.slopes() {
            table.push(slopes);
        }
        table
    }

    /// Returns the growth exponent of each figure, between the last point and the latest point that is at most a fifth
    /// of it: 1 is linear growth, 0 is none. `None` if there is no such point.
    fn slopes(&self) -> Option<Vec<String>> {
        let last = self.points.last()?;
        let before = self.points.iter().rev().find(|point| point.at * 5 <= last.at)?;
        let span = (last.at as f64 / before.at as f64).ln();
        let slope = |(from, to): (&Option<f64>, &Option<f64>)| match (from, to) {
            (Some(from), Some(to)) if *from > 0.0 && *to > 0.0 => {
                format!("^{:.2}", (to / from).ln() / span)
            }
            _ => "-".to_owned(),
        };
        let slopes = before.values.iter().zip(&last.values).map(slope);
        Some(std::iter::once("grows as".to_owned()).chain(slopes).collect())
    }
}

/// Separates thousands by commas, such as 1,000,000.
fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits: Vec<char> = whole.chars().collect();
    let mut text = String::new();
    for (index, digit) in digits.iter().enumerate() {
        let left = digits.len() - index;
        if index > 0 && left.is_multiple_of(3) && digits[index - 1] != '-' {
            text.push(',');
        }
        text.push(*digit);
    }
    text + fraction
}

pub(super) fn write_json(curves: &[Curve], path: &Path) -> Result<()> {
    let mut file = File::create(path)?;
    serde_json::to_writer_pretty(&mut file, curves)?;
    writeln!(file)?;
    Ok(())
}
