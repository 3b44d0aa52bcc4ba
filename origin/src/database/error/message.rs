//! Rewrites the texts of MariaDB's error messages, before callers see them.

/// Returns the message without names of accounts, and with `…` for paths of the server.
pub(super) fn sentence(message: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut skip = 0;
    let tokens: Vec<&str> = message.split(' ').collect();
    for (at, word) in tokens.iter().enumerate() {
        if skip > 0 {
            skip -= 1;
        } else if matches!(*word, "to" | "for") && tokens.get(at + 1) == Some(&"user") {
            skip = 2;
        } else if is_path(word) {
            words.push("…");
        } else {
            words.push(word);
        }
    }
    ended(words.join(" "))
}

pub(super) fn ended(mut text: String) -> String {
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}

fn is_path(word: &str) -> bool {
    let bare = word.trim_start_matches(['\'', '"', '`', '(']);
    (bare.starts_with('/') || bare.starts_with("./")) && bare.len() > 2 && bare[1..].contains('/')
}

/// Removes the row's number: MariaDB counts the rows of one statement, and an insert may have several statements.
pub(super) fn without_row(message: &mut String) {
    if let Some((before, number)) = message.rsplit_once(" at row ")
        && number.parse::<u64>().is_ok()
    {
        message.truncate(before.len());
    }
}
