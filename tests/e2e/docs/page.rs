//! A page of Markdown, parsed into its calls and their answers.
//!
//! - A block ```` ```sh ````, ```` ```js ```` or ```` ```python ```` is run; the block right under it, in any other
//!   language, is its answer. A block whose interpreter is not installed is left out.
//! - `<!-- no answer: why -->` right above a block: the block is run and must print nothing.
//! - `<!-- not run: why -->` right above a block: the block is not run.
//!
//! Any other block is a fault, so that no call can be on a page without being run. Must not know how a call is run.

use super::pattern::Kind;
use crate::service::workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) struct Page {
    pub(super) path: PathBuf,
    pub(super) lines: Vec<String>,
    pub(super) examples: Vec<Example>,
    /// Blocks that are neither run nor marked as not run.
    pub(super) faults: Vec<String>,
}

pub(super) struct Example {
    /// Line number of the block's fence, counted from 1.
    pub(super) line: usize,
    pub(super) language: Language,
    pub(super) script: String,
    /// The answer below the call; `None` if the call prints nothing.
    pub(super) answer: Option<Answer>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Shell,
    JavaScript,
    Python,
}

impl Language {
    fn of(fence: &Fence) -> Option<Self> {
        match fence.language.as_str() {
            "sh" => Some(Self::Shell),
            "js" => Some(Self::JavaScript),
            "python" => Some(Self::Python),
            _ => None,
        }
    }

    pub(super) fn command(self) -> (&'static str, &'static str) {
        match self {
            Self::Shell => (".", "sh"),
            Self::JavaScript => ("node", "mjs"),
            Self::Python => ("python3", "py"),
        }
    }

    fn is_installed(self) -> bool {
        let version = || Command::new(self.command().0).arg("--version").output();
        self == Self::Shell || version().is_ok_and(|output| output.status.success())
    }
}

/// The output that a call must print.
pub(super) struct Answer {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) first: usize,
    pub(super) end: usize,
}

struct Fence {
    language: String,
    open: usize,
    close: usize,
    text: String,
}

pub(super) fn all() -> Vec<Page> {
    let root = workspace();
    let mut paths = ["README.md", "docs/api.md", "docs/changes.md", "docs/client.md"].map(PathBuf::from).to_vec();
    let folder = fs::read_dir(root.join("docs/api")).into_iter().flatten();
    let mut parts: Vec<PathBuf> = folder.flatten().map(|entry| Path::new("docs/api").join(entry.file_name())).collect();
    parts.sort();
    paths.append(&mut parts);
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(root.join(&path)).expect("a readable page");
            let mut page = Page::parse(path, &text);
            page.examples.retain(|example| example.language.is_installed());
            page
        })
        .collect()
}

impl Page {
    pub(super) fn parse(path: PathBuf, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let fences = fences(&lines);
        let (mut examples, mut faults) = (Vec::new(), Vec::new());
        for (at, fence) in fences.iter().enumerate() {
            let Some(language) = Language::of(fence) else {
                continue;
            };
            let under = fences.get(at + 1).filter(|next| {
                Language::of(next).is_none()
                    && lines[fence.close + 1..next.open].iter().all(|line| line.trim().is_empty())
            });
            let mark = fence.open.checked_sub(1).and_then(|at| mark(&lines[at]));
            let answer = match (mark, under) {
                (Some(Mark::NotRun), _) => continue,
                (Some(Mark::NoAnswer), None) => None,
                (None, Some(under)) => Some(Answer {
                    kind: Kind::of(&under.language),
                    text: under.text.clone(),
                    first: under.open + 1,
                    end: under.close,
                }),
                (Some(Mark::NoAnswer), Some(_)) => {
                    faults.push(fault(&path, fence, "has an answer, and says that it has none"));
                    continue;
                }
                (None, None) => {
                    faults.push(fault(
                        &path,
                        fence,
                        "has no answer under it; give one, or say why above it: \
                         <!-- not run: … --> or <!-- no answer: … -->",
                    ));
                    continue;
                }
            };
            examples.push(Example { line: fence.open + 1, language, script: fence.text.clone(), answer });
        }
        Self { path, lines, examples, faults }
    }
}

impl Page {
    /// Returns whether a call on the page may change data, which only calls with the full key can.
    pub(super) fn may_write(&self) -> bool {
        let is_full = |script: &str| script.contains("$full") || script.contains("SELKIE_FULL_KEY");
        self.examples.iter().any(|e| is_full(&e.script))
    }
}

fn fault(path: &Path, fence: &Fence, what: &str) -> String {
    format!("{}:{}: the block {what}", path.display(), fence.open + 1)
}

enum Mark {
    NotRun,
    NoAnswer,
}

/// Parses a mark in an HTML comment; `None` for other lines and for a mark without a reason.
fn mark(line: &str) -> Option<Mark> {
    let comment = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
    let (word, reason) = comment.split_once(':')?;
    match (word.trim(), reason.trim()) {
        (_, "") => None,
        ("not run", _) => Some(Mark::NotRun),
        ("no answer", _) => Some(Mark::NoAnswer),
        _ => None,
    }
}

fn fences(lines: &[String]) -> Vec<Fence> {
    let (mut found, mut open) = (Vec::new(), None);
    for (at, line) in lines.iter().enumerate() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        match open.take() {
            None => open = Some((at, language.trim().to_owned())),
            Some((first, language)) => {
                let indent = lines[first].len() - lines[first].trim_start().len();
                let inner: Vec<&str> =
                    lines[first + 1..at].iter().map(|line| line.get(indent..).unwrap_or_default()).collect();
                found.push(Fence { language, open: first, close: at, text: inner.join("\n") });
            }
        }
    }
    found
}

/// Tests this file; called by the case `a_page_is_read_as_its_fences_and_marks_say`.
pub(super) fn tests() {
    let page = |text: &str| Page::parse(PathBuf::from("p.md"), &text.replace('~', "```"));
    let read = page("~sh\nset x\n~\n\n~json\n{}\n~\n\n- a list\n\n  ~sh\n  two\n  ~\n  ~\n  2\n  ~\n");
    assert_eq!(read.faults, [""; 0]);
    let calls: Vec<(usize, &str, &str)> =
        read.examples.iter().map(|e| (e.line, e.script.as_str(), e.answer.as_ref().map_or("", |a| &a.text))).collect();
    assert_eq!(calls, [(1, "set x", "{}"), (11, "two", "2")]);

    for (text, calls, faults) in [
        ("~json\n{}\n~\n", 0, 0),
        ("~sh\nls\n~\n", 0, 1),
        ("~js\n1\n~\n~\n1\n~\n~python\n2\n~\n", 1, 1),
        ("~sh\nls\n~\nIt answers:\n~\nx\n~\n", 0, 1),
        ("~sh\nls\n~\n\n~sh\nls\n~\n~\nx\n~\n", 1, 1),
        ("<!-- not run: it takes an hour -->\n~sh\nls\n~\n", 0, 0),
        ("<!-- not run: -->\n~sh\nls\n~\n", 0, 1),
        ("<!-- no answer: it sets variables -->\n~sh\na=1\n~\n", 1, 0),
        ("<!-- no answer: it sets variables -->\n~sh\na=1\n~\n~\nx\n~\n", 0, 1),
    ] {
        let read = page(text);
        assert_eq!((read.examples.len(), read.faults.len()), (calls, faults), "{text}");
    }
}
