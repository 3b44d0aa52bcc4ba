//! Detects text that a browser would run. Like WHATWG MIME Sniffing, section 7.1, but finds the root element behind
//! comments, processing instructions and DOCTYPEs, since undetected markup would be served as harmless text.

use super::Sniffed;
use shared::media::MediaKind;

const HTML_TAGS: [&str; 18] = [
    "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "body", "br", "p",
    "meta", "img", "link",
];

pub(super) fn sniff(head: &[u8]) -> Option<Sniffed> {
    let text = decode(head)?;
    let mut rest = text.trim_start_matches(is_blank);
    let mut xml = false;
    loop {
        rest = rest.trim_start_matches(is_blank);
        if let Some(comment) = rest.strip_prefix("<!--") {
            let Some((_, behind)) = comment.split_once("-->") else {
                // The comment does not end within `head`, so HTML may follow it.
                return Some(html());
            };
            rest = behind;
        } else if let Some(instruction) = rest.strip_prefix("<?") {
            if instruction.len() >= 3 && instruction.is_char_boundary(3) && instruction[..3].eq_ignore_ascii_case("xml")
            {
                xml = true;
            } else if !xml {
                return None;
            }
            let Some((_, behind)) = instruction.split_once("?>") else {
                break;
            };
            rest = behind;
        } else if let Some(doctype) = strip_prefix_any_case(rest, "<!doctype") {
            let name = doctype.trim_start_matches(is_blank);
            if strip_prefix_any_case(name, "html").is_some() {
                return Some(if xml { xhtml() } else { html() });
            }
            if strip_prefix_any_case(name, "svg").is_some() {
                return Some(svg());
            }
            xml = true;
            // A DOCTYPE with an internal subset (`[…]`) contains further `>`, so it ends at `]>`.
            let end = match (doctype.find('['), doctype.find('>')) {
                (Some(subset), Some(close)) if subset < close => doctype.find("]>").map(|at| at + 2),
                (_, close) => close.map(|at| at + 1),
            };
            let Some(behind) = end.and_then(|end| doctype.get(end..)) else {
                break;
            };
            rest = behind;
        } else {
            break;
        }
    }
    if let Some(found) = rest.strip_prefix('<').and_then(|tag| element(tag, xml)) {
        return Some(found);
    }
    xml.then(|| Sniffed::of("text/xml", MediaKind::File))
}

/// Detects the type by the root element. `tag` is the text after the `<` of that element.
fn element(tag: &str, xml: bool) -> Option<Sniffed> {
    let name = tag.split(|c: char| is_blank(c) || c == '>' || c == '/').next().unwrap_or_default();
    let local = name.rsplit(':').next().unwrap_or_default();
    if local.eq_ignore_ascii_case("svg") {
        return Some(svg());
    }
    if HTML_TAGS.iter().any(|tag| local.eq_ignore_ascii_case(tag)) {
        return Some(if xml { xhtml() } else { html() });
    }
    None
}

const fn html() -> Sniffed {
    Sniffed::of("text/html", MediaKind::File)
}

const fn xhtml() -> Sniffed {
    Sniffed::of("application/xhtml+xml", MediaKind::File)
}

const fn svg() -> Sniffed {
    Sniffed::of("image/svg+xml", MediaKind::File)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0C' | '\u{FEFF}' | '\0')
}

fn strip_prefix_any_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let start = text.get(..prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Decodes UTF-16 if `head` begins with a byte order mark of UTF-16, or with `<` and a NUL in either order.
fn decode(head: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match head {
        [0xFF, 0xFE, rest @ ..] => Some(wide(rest, u16::from_le_bytes)),
        [0xFE, 0xFF, rest @ ..] => Some(wide(rest, u16::from_be_bytes)),
        [b'<', 0, ..] => Some(wide(head, u16::from_le_bytes)),
        [0, b'<', ..] => Some(wide(head, u16::from_be_bytes)),
        _ => {
            let body = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
            let first = body.iter().find(|byte| !byte.is_ascii_whitespace())?;
            (*first == b'<').then(|| String::from_utf8_lossy(body).into_owned())
        }
    }
}

/// Returns whether `head` has a UTF-16 byte order mark, or no control characters except white space and ESC.
pub(super) fn is_text(head: &[u8]) -> bool {
    if head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF") {
        return true;
    }
    !head.iter().any(|byte| matches!(byte, 0..=8 | 0x0E..=0x1A | 0x1C..=0x1F | 0x7F))
}
