//! The media types that may be uploaded: `*/*`, or a comma list such as `image/*, application/pdf`.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaTypes(Vec<Pattern>);

/// A pattern in lower case. The type may be `*` only if the subtype is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    kind: Box<str>,
    subtype: Box<str>,
}

impl MediaTypes {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let patterns: Option<Vec<_>> = text.split(',').map(|item| pattern(item.trim())).collect();
        patterns.map(Self).ok_or_else(|| "a comma list of types such as image/*, video/mp4 or */*".to_owned())
    }

    pub fn allow(&self, mime: &str) -> bool {
        let essence = mime.split(';').next().unwrap_or_default().trim();
        let (kind, subtype) = essence.split_once('/').unwrap_or((essence, ""));
        let fits = |pattern: &str, word: &str| pattern == "*" || pattern.eq_ignore_ascii_case(word);
        self.0.iter().any(|pattern| fits(&pattern.kind, kind) && fits(&pattern.subtype, subtype))
    }

    pub fn allow_some_of(&self, kind: &str) -> bool {
        self.0.iter().any(|pattern| matches!(&*pattern.kind, "*") || pattern.kind.eq_ignore_ascii_case(kind))
    }
}

impl fmt::Display for MediaTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.iter();
        let texts: Vec<String> = texts.map(|pattern| format!("{}/{}", pattern.kind, pattern.subtype)).collect();
        f.write_str(&texts.join(", "))
    }
}

fn pattern(text: &str) -> Option<Pattern> {
    let (kind, subtype) = text.split_once('/')?;
    let is_token =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b));
    let known = match (kind, subtype) {
        ("*", "*") => true,
        (kind, "*") => is_token(kind),
        (kind, subtype) => is_token(kind) && is_token(subtype),
    };
    known.then(|| Pattern { kind: kind.to_lowercase().into(), subtype: subtype.to_lowercase().into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_fit_by_name_or_by_their_family() {
        let all = MediaTypes::parse("*/*").unwrap();
        assert!(all.allow("image/png") && all.allow("application/octet-stream"));
        let some = MediaTypes::parse("image/*, application/PDF").unwrap();
        assert!(some.allow("image/svg+xml") && some.allow("application/pdf; x=y"));
        assert!(!some.allow("video/mp4") && !some.allow("imagex/png") && !some.allow(""));
        assert_eq!(some.to_string(), "image/*, application/pdf");
    }

    #[test]
    fn what_is_no_list_of_types_is_refused() {
        for text in ["", "image", "image/", "*/png", "image/*,", "a b/c", "image/p*"] {
            assert!(MediaTypes::parse(text).is_err(), "{text}");
        }
    }
}
