//! Text as a JSON string and as a cell of CSV.

/// Appends a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[usize::from(*byte)];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&bytes[start..at]);
        start = at + 1;
        if escape == b'u' {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(&[
                b'\\',
                b'u',
                b'0',
                b'0',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

/// For each byte: 0 if it stands for itself, `u` if it is written `\u00xx`, else the letter after `\`.
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

/// Appends a cell of CSV (RFC 4180) that is not NULL: in quotes if it could be taken for something else
/// without them. An empty text is `""`, because nothing at all is NULL.
pub fn write_csv(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let blank = |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, b' ' | b'\t'));
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\r' | b'\n');
    // Some readers drop blanks at the ends of what is not quoted.
    if !blank(bytes.first()) && !blank(bytes.last()) && !bytes.iter().any(special) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'"' {
            out.extend_from_slice(&bytes[start..=at]);
            start = at;
        }
    }
    out.extend_from_slice(&bytes[start..]);
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

    proptest! {
        #[test]
        fn strings_read_back_equal(string in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &string);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), string);
        }

        #[test]
        fn strings_with_escapes_anywhere_read_back_equal(string in "[a-cé\"\\\\\\n\\u{1}]{0,40}") {
            let mut out = Vec::new();
            write_string(&mut out, &string);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), string);
        }
    }
}
