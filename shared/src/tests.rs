//! Writes the lists of the TypeScript client (`clients/typescript/src/lists.ts`) and the table of errors in docs/api.md from
//! the tables of this crate, and fails if the committed files have others.

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

/// Replaces the table of errors in `page`.
fn with_table_of_errors(page: &str) -> String {
    const HEAD: &str = "| status | code | cause | what to do |\n| --- | --- | --- | --- |\n";
    let (before, rest) = page.split_once(HEAD).unwrap();
    let after: String = rest.split_inclusive('\n').skip_while(|line| line.starts_with('|')).collect();
    let mut text = format!("{before}{HEAD}");
    let mut codes = ErrorCode::ALL.to_vec();
    codes.sort_by_key(|code| code.status());
    for code in codes {
        let (cause, mend) = code.documentation();
        writeln!(text, "| {} | `{}` |{cause} | {mend} |", code.status(), code.as_str()).unwrap();
    }
    text + &after
}

/// Compares a file with what `written` makes of it, or writes it if the variable `ACCEPT` is set.
fn check(file: &str, test: &str, written: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let committed = std::fs::read_to_string(&path).unwrap();
    let wanted = written(&committed);
    if std::env::var_os("ACCEPT").is_some() {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert!(committed == wanted, "write {file} again: ACCEPT=1 cargo test -p selkie-shared {test}");
    }
}

#[test]
fn the_client_has_the_lists_of_this_crate() {
    check("clients/typescript/src/lists.ts", "the_client_has_the_lists", |_| lists());
}

#[test]
fn the_api_reference_has_the_table_of_errors() {
    check("docs/api.md", "the_api_reference_has", with_table_of_errors);
}
