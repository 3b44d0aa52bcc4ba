//! How far a large file has come, shown on a terminal and nowhere else.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// From which size on a file gets a bar: smaller ones are done before one could read it.
const SHOWN_FROM_BYTES: u64 = 4 * 1024 * 1024;

const OF_SO_MANY: &str = "{msg:30!} {bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}";
const OF_UNKNOWN: &str = "{msg:30!} {spinner} {binary_bytes} {binary_bytes_per_sec}";

/// The bar of one file. It goes away with it.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// A bar for so many bytes; without a number, one that only counts.
    pub(super) fn new(name: &str, size: Option<u64>) -> Self {
        let is_large = size.is_none_or(|size| size >= SHOWN_FROM_BYTES);
        if !is_large || !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let (bar, template) = match size {
            Some(size) => (ProgressBar::new(size), OF_SO_MANY),
            None => (ProgressBar::new_spinner(), OF_UNKNOWN),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(bar.with_style(style).with_message(name.to_owned()))
    }

    /// So many bytes more.
    pub(super) fn advance(&self, bytes: usize) {
        self.0.inc(bytes as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_well_formed() {
        for template in [OF_SO_MANY, OF_UNKNOWN] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
