//! `Content-Disposition`: whether a browser shows a file or saves it, and under which name (RFC 6266, RFC 8187).

use crate::media::sniff::may_be_shown;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are percent-encoded: all except RFC 8187's `attr-char`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    Inline,
    Attachment,
}

impl Disposition {
    pub(super) fn of(mime: &str) -> Self {
        if may_be_shown(mime) { Self::Inline } else { Self::Attachment }
    }

    pub(super) fn header(self, name: &str) -> String {
        let kind = match self {
            Self::Inline => "inline",
            Self::Attachment => "attachment",
        };
        // Some old clients decode percent signs in `filename`, so a name with a percent sign is also sent as
        // `filename*`.
        let plain = |c: char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\' | '%');
        if name.chars().all(plain) {
            return format!("{kind}; filename=\"{name}\"");
        }
        let fallback: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        format!("{kind}; filename=\"{fallback}\"; filename*=UTF-8''{}", utf8_percent_encode(name, ENCODED))
    }
}

pub(super) fn essence(mime: &str) -> String {
    let essence = mime.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_looked_at_or_listened_to_is_shown() {
        for mime in [
            "image/png",
            "image/avif",
            "video/mp4",
            "audio/mpeg",
            "application/pdf",
            "application/json",
            "text/plain",
            "text/plain; charset=utf-8",
            "text/csv",
            "TEXT/Plain",
        ] {
            assert_eq!(Disposition::of(mime), Disposition::Inline, "{mime}");
        }
        for mime in [
            "image/svg+xml",
            "IMAGE/SVG+XML; a=b",
            "text/html",
            "text/html;charset=utf-8",
            "text/xml",
            "application/xml",
            "application/xhtml+xml",
            "application/rss+xml",
            "text/javascript",
            "application/javascript",
            "application/octet-stream",
            "application/zip",
            "application/x-msdownload",
            "multipart/related",
            "message/rfc822",
            "",
            "nonsense",
        ] {
            assert_eq!(Disposition::of(mime), Disposition::Attachment, "{mime}");
        }
    }

    #[test]
    fn any_name_can_be_told_in_ascii() {
        for (name, header) in [
            ("a b-c.png", r#"inline; filename="a b-c.png""#),
            ("a;b,c.txt", r#"inline; filename="a;b,c.txt""#),
            ("a\"b\\c.txt", r#"inline; filename="a_b_c.txt"; filename*=UTF-8''a%22b%5Cc.txt"#),
            ("100%.txt", r#"inline; filename="100_.txt"; filename*=UTF-8''100%25.txt"#),
            ("写真 🦭.jpg", r#"inline; filename="__ _.jpg"; filename*=UTF-8''%E5%86%99%E7%9C%9F%20%F0%9F%A6%AD.jpg"#),
            ("é'(*).txt", r#"inline; filename="_'(*).txt"; filename*=UTF-8''%C3%A9%27%28%2A%29.txt"#),
            // File names have no line breaks. One that was not encoded would end the header.
            ("a\r\nb", r#"inline; filename="a__b"; filename*=UTF-8''a%0D%0Ab"#),
        ] {
            assert_eq!(Disposition::Inline.header(name), header);
        }
        assert_eq!(Disposition::Attachment.header("a"), r#"attachment; filename="a""#);
    }
}
