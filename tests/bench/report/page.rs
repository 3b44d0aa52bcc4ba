//! Writes the tables into a page of the docs, between marks.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use super::{Report, table::Table, targets};

const BEGIN: &str = "<!-- bench -->\n";
const END: &str = "<!-- /bench -->";

pub(super) fn renew(page: &Path, text: &str) -> Result<()> {
    let before = fs::read_to_string(page)?;
    let after =
        replaced(&before, text).with_context(|| format!("{} has no `{}` … `{END}`", page.display(), BEGIN.trim()))?;
    Ok(fs::write(page, after)?)
}

/// Returns the tables and targets as they are on the terminal.
pub(super) fn text(report: &Report) -> String {
    let mut text = format!("{}\n\n```\n", report.preamble());
    for target in targets::all(report) {
        text += &format!("{}\n", target.plain());
    }
    for case in report.cases() {
        text.push('\n');
        text += &Table::of(report, case).plain();
    }
    text + "```\n"
}

fn replaced(page: &str, text: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n{text}\n{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_what_is_between_the_marks_is_renewed() {
        let page = "# Speed\n<!-- bench -->\nold\n<!-- /bench -->\nmore\n";
        let renewed = "# Speed\n<!-- bench -->\n\nnew\n\n<!-- /bench -->\nmore\n";
        assert_eq!(replaced(page, "new\n").as_deref(), Some(renewed));
        assert_eq!(replaced(renewed, "new\n").as_deref(), Some(renewed));
        assert_eq!(replaced("# Speed\n<!-- bench -->\n", "new"), None);
    }
}
