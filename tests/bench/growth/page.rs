//! Writes the tables of the curves into a page, each between its markers.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use super::curve::Curve;

const PAGE: &str = "growth.md";

/// Replaces the tables in `growth.md` in `directory`; a curve that was not measured keeps its table.
pub(super) fn save(curves: &[Curve], directory: &Path) -> Result<()> {
    let path = directory.join(PAGE);
    let mut page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    for curve in curves {
        page = replaced(&page, curve.name, &format!("```\n{}```\n", curve.plain()))
            .with_context(|| format!("no markers of {} in {}", curve.name, path.display()))?;
    }
    Ok(fs::write(&path, page)?)
}

/// Returns the page with `text` between `<!-- growth:name -->` and `<!-- end -->`; `None` without these markers.
fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- growth:{name} -->\n");
    let from = page.find(&begin)? + begin.len();
    let until = from + page[from..].find("<!-- end -->")?;
    Some(format!("{}\n{text}\n{}", &page[..from], &page[until..]))
}
