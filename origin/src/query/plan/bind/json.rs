//! Checks JSON for faults that MariaDB would report without the field's name.

/// MariaDB rejects an unpaired surrogate as invalid JSON.
pub(super) fn has_lone_surrogate(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        match (escaped(bytes, at), escaped(bytes, at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at += 12,
            (Some(0xD800..=0xDFFF), _) => return true,
            (Some(_), _) => at += 6,
            (None, _) => at += 2,
        }
        at = at.min(bytes.len());
    }
    false
}

fn escaped(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_told_from_pairs() {
        for text in [r#"["\ud83d\ude00", "\u0041", "\\ud800", "\n\\", "ü"]"#, r#"{"\uD83D\uDE00": "\\\\ud800"}"#, "[1]"]
        {
            assert!(!has_lone_surrogate(text), "{text}");
        }
        for text in [
            r#"["\ud800"]"#,
            r#"["\udc00"]"#,
            r#"{"\uD800x": 1}"#,
            r#"["\ud800\ud800"]"#,
            r#"["\\\ud800\n"]"#,
            r#"["\ude00\ud83d"]"#,
        ] {
            assert!(has_lone_surrogate(text), "{text}");
        }
    }
}
