//! Progress bars of large files and of transfers, on a terminal only.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// The size from which a file has a bar. Smaller files are copied before anybody could read the bar.
const SHOWN_FROM_BYTES: u64 = 4 * 1024 * 1024;

const WITH_SIZE: &str = "{msg:30!} {bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}";
const WITHOUT_SIZE: &str = "{msg:30!} {spinner} {binary_bytes} {binary_bytes_per_sec}";

pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new(name: &str, size: Option<u64>) -> Self {
        let is_large = size.is_none_or(|size| size >= SHOWN_FROM_BYTES);
        if !is_large || !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let (bar, template) = match size {
            Some(size) => (ProgressBar::new(size), WITH_SIZE),
            None => (ProgressBar::new_spinner(), WITHOUT_SIZE),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(bar.with_style(style).with_message(name.to_owned()))
    }

    pub(super) fn advance(&self, bytes: usize) {
        self.0.inc(bytes as u64);
    }

    pub(super) fn set(&self, bytes: u64, text: String) {
        self.0.set_message(text);
        self.0.set_position(bytes);
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
        for template in [WITH_SIZE, WITHOUT_SIZE] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
