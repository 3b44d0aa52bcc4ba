//! Makes identifiers of the names of databases, tables and fields, which may have any character.

use std::fmt::Write as _;

/// Writes bytes other than ASCII letters, digits and `_` as `-` and two hexadecimal digits, so that names stay
/// distinct.
pub(super) fn component(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => text.push(char::from(byte)),
            // Writing to a string can't fail.
            _ => drop(write!(text, "-{byte:02X}")),
        }
    }
    text
}

/// Whether the name is an identifier in TypeScript, Python and Rust, apart from keywords.
pub(super) fn is_plain(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_word)
}

/// Makes `OrderLines` of `order_lines`. The result may be empty or begin with a digit.
pub(super) fn pascal(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| [&word[..1].to_ascii_uppercase(), &word[1..]].concat()).collect()
}

/// Makes `order_date` of `Order-Date`. The prefix `field_` avoids an initial digit; the result may be a keyword.
pub(super) fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 1);
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_lower {
            text.push('_');
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        match c.is_ascii_alphanumeric() {
            true => text.push(c.to_ascii_lowercase()),
            // Rust's style has no two underscores in a row.
            false if text.ends_with('_') => {}
            false => text.push('_'),
        }
    }
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        text.insert_str(0, "field_");
    }
    text
}
