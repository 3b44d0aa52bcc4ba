//! Requests to begin with: those of the golden file, and those of `seeds.txt`, each a line
//! `METHOD target body`.

use std::path::Path;

const GOLDEN: &str = include_str!("../../../origin/src/sql/golden.txt");
const SEEDS: &str = include_str!("../seeds.txt");

/// Where the golden file's targets stand; one that begins with `@` names its table.
const GOLDEN_DATABASE: &str = "/api/v1/crud/demo/";
const GOLDEN_TABLE: &str = "posts";

/// All of them, as [`crate::request::Request`] reads them.
#[must_use]
pub fn requests() -> Vec<String> {
    let golden = lines(GOLDEN).filter_map(|line| {
        request(line, |target| match target.strip_prefix('@') {
            Some(named) => format!("{GOLDEN_DATABASE}{named}"),
            None => format!("{GOLDEN_DATABASE}{GOLDEN_TABLE}{target}"),
        })
    });
    let own = lines(SEEDS).filter_map(|line| request(line, str::to_owned));
    golden.chain(own).collect()
}

/// Names a folder to which the fuzzer writes its seeds before it begins.
const FOLDER_VARIABLE: &str = "SELKIE_FUZZ_SEEDS";

/// Writes them to the folder that the environment names, a file each; without one, nowhere.
///
/// # Panics
/// If they can't be written.
pub fn lay_out_where_asked() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else {
        return;
    };
    for (at, request) in requests().iter().enumerate() {
        let file = Path::new(&folder).join(format!("seed-{at:03}"));
        std::fs::write(file, request).expect("a folder that can be written to");
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
}

fn request(line: &str, place: impl Fn(&str) -> String) -> Option<String> {
    let (method, rest) = line.split_once(' ')?;
    let (target, body) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(format!("{method} {}\n\n{body}", place(target)))
}
