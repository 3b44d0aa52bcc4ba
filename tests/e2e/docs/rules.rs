//! Checks the text of the pages: their links and paths name existing files, folders and headings.

use crate::service::workspace;
use std::fs;
use std::path::{Path, PathBuf};

fn pages() -> Vec<PathBuf> {
    let root = workspace();
    let folders = ["", "docs", "docs/api", "docs/decisions", "docs/performance"];
    let entries = folders.map(|folder| fs::read_dir(root.join(folder)));
    let files = entries.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|ext| ext == "md")).collect()
}

/// Checks that links lead from the README to every page.
pub(super) fn pages_are_reached() {
    let mut reached = vec![workspace().join("README.md").canonicalize().expect("a README")];
    let mut next = 0;
    while let Some(page) = reached.get(next).cloned() {
        next += 1;
        for link in links(&fs::read_to_string(&page).unwrap_or_default()) {
            let file = link.split('#').next().unwrap_or_default();
            let target = page.with_file_name(file).canonicalize();
            reached.extend(target.ok().filter(|target| !reached.contains(target)));
        }
    }
    let lost: Vec<PathBuf> = pages().into_iter().filter(|page| !reached.contains(page)).collect();
    assert!(lost.is_empty(), "no link leads to {lost:?}");
}

/// Checks that every relative link of every page names an existing file and heading.
pub(super) fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a readable page");
        for link in links(&text) {
            if !leads_somewhere(&page, &link) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

/// Checks that each path in the pages for contributors exists: in the root, in `origin/src`, or in a folder that is named
/// before on the same line. A path without an ending may be a module's, and `{a,b}` stands for several.
pub(super) fn named_paths_exist() {
    let root = workspace();
    let mut missing = Vec::new();
    for page in ["CONTRIBUTING.md", "docs/architecture.md"] {
        let text = fs::read_to_string(root.join(page)).expect("a readable page");
        for line in text.lines() {
            let mut folders = vec![root.clone(), root.join("origin/src")];
            for path in line.split('`').skip(1).step_by(2).filter(|code| is_path(code)).flat_map(alternatives) {
                let is_there =
                    |path: &PathBuf| path.exists() || path.extension().is_none() && path.with_extension("rs").exists();
                match folders.iter().map(|folder| folder.join(&path)).find(is_there) {
                    Some(found) => folders.push(found),
                    None => missing.push(format!("{page}: {path}")),
                }
            }
        }
    }
    assert!(missing.is_empty(), "paths that don't exist:\n{}", missing.join("\n"));
}

/// Files that are built are not in a clone of the repository.
fn is_path(code: &str) -> bool {
    let endings = [".rs", ".ts", ".tsx", ".mjs", ".json", ".toml", ".txt", ".dict", ".md"];
    code.chars().all(|c| c.is_ascii_alphanumeric() || "._-/{},".contains(c))
        && (code.contains('/') || endings.iter().any(|ending| code.ends_with(ending)))
        && !code.starts_with('/')
        && !code.starts_with("target/")
}

fn alternatives(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (names, after))) => names.split(',').map(|name| format!("{before}{name}{after}")).collect(),
        None => vec![path.to_owned()],
    }
}

fn links(text: &str) -> Vec<String> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link.to_owned())
        .filter(|link| !link.contains("://"))
        .collect()
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { page.with_file_name(file) };
    if heading.is_empty() {
        return target.exists();
    }
    let text = fs::read_to_string(target).unwrap_or_default();
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    headings.any(|line| anchor(line) == heading)
}

fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
