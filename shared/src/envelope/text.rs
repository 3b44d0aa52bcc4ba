//! Writes text as JSON strings and CSV cells.

pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(reserved_length(text) + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = find_escaped(rest) {
        let (clean, behind) = rest.split_at(at);
        out.extend_from_slice(clean);
        // Near an escape there are often more: a search for each would cost ten times as much.
        let (near, behind) = behind.split_at_checked(NEAR_BYTES).unwrap_or((behind, &[]));
        for byte in near {
            write_byte(out, *byte);
        }
        rest = behind;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// The edge writes short texts only.
#[cfg(target_arch = "wasm32")]
fn reserved_length(text: &str) -> usize {
    text.len()
}

/// For a long text, the exact length of the JSON: a buffer that grows may take twice the memory.
#[cfg(not(target_arch = "wasm32"))]
fn reserved_length(text: &str) -> usize {
    const LONG_TEXT_BYTES: usize = 256 * 1024;
    if text.len() < LONG_TEXT_BYTES {
        return text.len();
    }
    let length = |byte: &u8| match ESCAPES[usize::from(*byte)] {
        0 => 1,
        b'u' => 6,
        _ => 2,
    };
    text.as_bytes().iter().map(length).sum()
}

/// The bytes from an escape on that are written one by one.
const NEAR_BYTES: usize = 16;

fn write_byte(out: &mut Vec<u8>, byte: u8) {
    match ESCAPES[usize::from(byte)] {
        0 => out.push(byte),
        b'u' => {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
        letter => out.extend_from_slice(&[b'\\', letter]),
    }
}

#[inline]
fn find_escaped(bytes: &[u8]) -> Option<usize> {
    // The edge's wasm is optimised for size, and blocks are then slower than words.
    #[cfg(not(target_arch = "wasm32"))]
    let clean = {
        let (blocks, _) = bytes.as_chunks::<16>();
        let marked = blocks.iter().position(has_escaped);
        marked.unwrap_or(blocks.len()) * 16
    };
    #[cfg(target_arch = "wasm32")]
    let clean = 0;
    let is_one = |byte| ESCAPES[usize::from(byte)] != 0;
    find(&bytes[clean..], escaped_in_json, is_one).map(|at| clean + at)
}

/// Returns whether any byte must be escaped. The loop has no branches, so that the compiler vectorises it.
#[cfg(not(target_arch = "wasm32"))]
#[inline]
fn has_escaped(block: &[u8; 16]) -> bool {
    let escaped = |byte: u8| u8::from((byte < 0x20) | (byte == b'"') | (byte == b'\\'));
    block.iter().fold(0, |any, byte| any | escaped(*byte)) != 0
}

/// Returns the index of the first match. `marks` sets the high bit of each matching byte of a word, and may also set it
/// in bytes above the lowest match. `is_one` tests a single byte.
#[inline]
fn find(bytes: &[u8], marks: impl Fn(u64) -> u64, is_one: impl Fn(u8) -> bool) -> Option<usize> {
    let (words, tail) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let marked = marks(u64::from_le_bytes(*word));
        if marked != 0 {
            return Some(at * 8 + marked.trailing_zeros() as usize / 8);
        }
    }
    if let Some(last) = bytes.last_chunk::<8>() {
        // The last 8 bytes may overlap the word before, which has no match.
        let marked = marks(u64::from_le_bytes(*last));
        return (marked != 0).then(|| bytes.len() - 8 + marked.trailing_zeros() as usize / 8);
    }
    tail.iter().position(|byte| is_one(*byte))
}

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH_BITS: u64 = ONES << 7;

/// Sets the high bit of each byte that equals `byte`, and perhaps of some bytes above the lowest match. Bytes from 0x80
/// on may be marked wrongly, so callers must mask them out.
#[inline]
const fn equal(word: u64, byte: u8) -> u64 {
    (word ^ (ONES * byte as u64)).wrapping_sub(ONES)
}

#[inline]
const fn escaped_in_json(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20);
    (control | equal(word, b'"') | equal(word, b'\\')) & !word & HIGH_BITS
}

#[inline]
const fn quoted_in_csv(word: u64) -> u64 {
    let line = equal(word, b'\r') | equal(word, b'\n');
    (line | equal(word, b'"') | equal(word, b',')) & !word & HIGH_BITS
}

/// How each byte is escaped. 0: not at all; `u`: as `\u00xx`; otherwise by this letter after `\`.
const ESCAPES: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut at = 0;
    while at < 0x20 {
        table[at] = b'u';
        at += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0A] = b'n';
    table[0x0C] = b'f';
    table[0x0D] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

/// Writes a CSV cell (RFC 4180). Empty text becomes `""`, since an empty cell means NULL.
pub fn write_csv(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let blank = |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, b' ' | b'\t'));
    let special = |byte| matches!(byte, b',' | b'"' | b'\r' | b'\n');
    // Some CSV readers trim cells without quotes, so a cell with white space at an end gets quotes.
    if !blank(bytes.first()) && !blank(bytes.last()) && find(bytes, quoted_in_csv, special).is_none() {
        out.extend_from_slice(bytes);
        return;
    }
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut rest = bytes;
    let quote = |word: u64| equal(word, b'"') & !word & HIGH_BITS;
    while let Some(at) = find(rest, quote, |byte| byte == b'"') {
        let (clean, behind) = rest.split_at(at);
        out.extend_from_slice(clean);
        out.extend_from_slice(b"\"\"");
        rest = &behind[1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn csv(text: &str) -> String {
        let mut out = Vec::new();
        write_csv(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_cell_is_quoted_only_where_it_must_be() {
        for (text, cell) in [
            ("plain", "plain"),
            ("-1", "-1"),
            ("=1+1", "=1+1"),
            ("", "\"\""),
            (" ", "\" \""),
            ("a b", "a b"),
            ("a ", "\"a \""),
            ("\ta", "\"\ta\""),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("\"", "\"\"\"\""),
            ("a\nb", "\"a\nb\""),
            ("a\rb", "\"a\rb\""),
        ] {
            assert_eq!(csv(text), cell, "{text:?}");
        }
    }

    #[test]
    fn every_character_is_found_at_every_place() {
        for length in 1..=20 {
            for at in 0..length {
                for byte in 0..=127u8 {
                    for filler in ["a", "~", "\u{80}", "!", "]"] {
                        let mut text: String = filler.repeat(length);
                        let at = text.char_indices().nth(at).map_or(0, |(at, _)| at);
                        text.insert(at, char::from(byte));
                        let mut out = Vec::new();
                        write_string(&mut out, &text);
                        assert_eq!(out, serde_json::to_vec(&text).unwrap(), "{text:?}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn strings_read_back_equal(string in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &string);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), string);
        }

        #[test]
        fn a_cell_is_its_text_in_doubled_quotes_or_bare(text in "[a-cé, \"\\r\\n\\t]{0,40}") {
            let cell = csv(&text);
            let quoted = cell
                .strip_prefix('"')
                .and_then(|cell| cell.strip_suffix('"'))
                .map(|inner| inner.replace("\"\"", "\""));
            prop_assert_eq!(quoted.unwrap_or(cell), text);
        }

        #[test]
        fn strings_with_escapes_anywhere_read_back_equal(string in "[a-cé\"\\\\\\n\\u{1}]{0,40}") {
            let mut out = Vec::new();
            write_string(&mut out, &string);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), string);
        }
    }
}
