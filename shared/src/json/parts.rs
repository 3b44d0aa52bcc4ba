//! Splits JSON that serde_json has validated, so that the rows of a batch are not parsed twice. For text that is not
//! JSON, the parts are meaningless, but splitting ends and does not panic.

use super::string_end;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawParts<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> RawParts<'a> {
    /// Iterates over the parts of a list or object. `text` begins with its opening bracket.
    pub(crate) fn inside(text: &'a str) -> Self {
        Self { text, at: 1 }
    }

    pub(crate) fn first_byte(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b']' | b'}' => return None,
                byte if is_between_parts(*byte) => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    /// Enters the list or object that comes next, or leaves the current one after its last part.
    pub(crate) fn pass_bracket(&mut self) {
        self.at += 1;
    }
}

impl<'a> Iterator for RawParts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.first_byte()?;
        let (bytes, start) = (self.text.as_bytes(), self.at);
        self.at = match first {
            b'"' => string_end(bytes, start + 1),
            b'[' | b'{' => bracket_end(bytes, start),
            // A number, `true`, `false` or `null` ends before the next separator.
            _ => start + bytes[start..].iter().take_while(|byte| !is_between_parts(**byte)).count(),
        };
        self.text.get(start..self.at)
    }
}

fn is_between_parts(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b']' | b'}')
}

fn bracket_end(text: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(text, at),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_told_apart_by_what_stands_between_them() {
        let text = r#"[ 1.5e+3 ,"a\",]\\", {"b" : [ {}, "}" ], "c":null},[],true ]"#;
        let parts: Vec<_> = RawParts::inside(text).collect();
        assert_eq!(parts, ["1.5e+3", r#""a\",]\\""#, r#"{"b" : [ {}, "}" ], "c":null}"#, "[]", "true"]);
        assert_eq!(RawParts::inside(parts[2]).collect::<Vec<_>>(), [r#""b""#, r#"[ {}, "}" ]"#, r#""c""#, "null"]);
        assert_eq!(RawParts::inside("[ ]").next(), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"[\[{][\[\]{}",:\\ a1é]{0,40}"#) {
            prop_assert!(RawParts::inside(&text).count() <= text.len());
        }
    }
}
