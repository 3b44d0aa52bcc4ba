//! Writes the lists of the TypeScript client (`clients/typescript/src/lists.ts`) from the tables of this crate, and fails if
//! the committed file has others.

use crate::error::ErrorCode;
use crate::operation::filter::{equalities, short_operators};
use crate::operation::read::select::AGGREGATES;
use std::fmt::Write as _;
use std::path::Path;

fn lists() -> String {
    let mut text = String::from(
        "// Lists of the API, written by `ACCEPT=1 cargo test -p selkie-shared the_client_has_the_lists` from the tables in shared/src.

/** The operators of a short condition, and the kind of their operands. */
export const OPERATORS = {\n",
    );
    for (name, operand) in short_operators() {
        writeln!(text, "  {name}: \"{operand}\",").unwrap();
    }
    text.push_str("} as const;\n");
    let codes = ErrorCode::ALL.iter().map(|code| code.as_str());
    union(&mut text, "The values of `equality`.", "Equality", equalities());
    union(&mut text, "The values of `aggregate`.", "AggregateName", AGGREGATES.iter().map(|(name, _)| *name));
    union(&mut text, "The codes of errors that the API returns.", "ApiErrorCode", codes);
    text
}

fn union<'a>(text: &mut String, doc: &str, name: &str, members: impl Iterator<Item = &'a str>) {
    let members: Vec<String> = members.map(|member| format!("\"{member}\"")).collect();
    let line = format!("export type {name} = {};", members.join(" | "));
    // As biome formats it.
    let lines = format!("export type {name} =\n  | {};", members.join("\n  | "));
    writeln!(text, "\n/** {doc} */\n{}", if line.len() > 120 { lines } else { line }).unwrap();
}

#[test]
fn the_client_has_the_lists_of_this_crate() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/typescript/src/lists.ts");
    if std::env::var_os("ACCEPT").is_some() {
        std::fs::write(&path, lists()).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == lists(),
        "write the file again: ACCEPT=1 cargo test -p selkie-shared the_client_has_the_lists"
    );
}
