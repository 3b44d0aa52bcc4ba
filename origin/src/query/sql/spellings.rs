//! Checks that all notations of a read that client libraries write (`spellings.txt`) become the same SQL.

use super::golden::rendered;

const SPELLINGS: &str = include_str!("spellings.txt");

/// The title begins with `Refused: ` if the read must fail. Spellings are pairs of a library and its query.
struct Block {
    title: &'static str,
    spellings: Vec<(&'static str, &'static str)>,
}

fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in SPELLINGS.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix("# "), blocks.last_mut()) {
            (Some(title), _) => blocks.push(Block { title, spellings: Vec::new() }),
            (None, Some(block)) => block.spellings.extend(line.split_once(' ')),
            (None, None) => {}
        }
    }
    // The text above the first read explains the file.
    blocks.retain(|block| !block.spellings.is_empty());
    blocks
}

fn sql(writer: &str, spelling: &str) -> String {
    match writer {
        "twin" => rendered(&format!("POST /query {spelling}")),
        _ => rendered(&format!("GET ?{spelling}")),
    }
}

#[test]
fn every_spelling_of_a_read_becomes_the_same_sql() {
    for block in blocks() {
        let mut expected = None;
        for (writer, spelling) in &block.spellings {
            let sql = sql(writer, spelling);
            let at = format!("{}, as {writer} spells it: {spelling}", block.title);
            if block.title.starts_with("Refused: ") {
                assert!(sql.starts_with("  invalid_query_option"), "{at}\n{sql}");
                continue;
            }
            assert!(sql.starts_with("  SELECT"), "{at}\n{sql}");
            let expected = expected.get_or_insert_with(|| sql.clone());
            assert_eq!(sql, *expected, "{at}");
        }
    }
}

#[test]
fn the_table_of_spellings_is_read_whole() {
    let blocks = blocks();
    let lines = SPELLINGS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let spellings: usize = blocks.iter().map(|block| block.spellings.len()).sum();
    assert_eq!(spellings, lines.count());
    assert!(blocks.len() > 25, "{}", blocks.len());
}
