//! Builds a file's name from a separate name and type: `My Summer Photo` and `jpg` give `my-summer-photo.jpg`.

use super::label::Label;
use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::media::MediaName;

const EQUALS: [&[&str]; 3] = [&["jpg", "jpeg"], &["tif", "tiff"], &["htm", "html"]];

/// Returns the name in lower case, with hyphens between words, and with the type's extension unless the name has an
/// equivalent one. If the type has no usual extension, the name keeps its own or gets `bin`.
pub(super) fn compose(name: &str, label: &Label) -> Result<MediaName, Problem> {
    let lower = name.trim().to_lowercase();
    let wanted = label.extension();
    let own = lower.rsplit_once('.').filter(|(stem, own)| {
        let is_plain = !own.is_empty() && own.chars().all(char::is_alphanumeric);
        !stem.is_empty() && is_plain && wanted.is_none_or(|wanted| is_same(own, wanted))
    });
    let (stem, extension) = match (own, wanted) {
        (Some((stem, own)), _) => (stem, own),
        (None, Some(wanted)) => (strip_extension(&lower, wanted), wanted),
        (None, None) => (lower.as_str(), "bin"),
    };
    let stem = hyphenated(stem);
    if stem.is_empty() {
        return Err(Problem::new(ErrorCode::InvalidBody, format!("The name {} has no letter or digit.", shown(name))));
    }
    MediaName::parse(&format!("{stem}.{extension}"))
}

fn is_same(one: &str, other: &str) -> bool {
    one == other || EQUALS.iter().any(|equals| equals.contains(&one) && equals.contains(&other))
}

/// `extension` may have several parts, such as `tar.gz`.
fn strip_extension<'a>(name: &'a str, extension: &str) -> &'a str {
    name.strip_suffix(extension).and_then(|rest| rest.strip_suffix('.')).filter(|stem| !stem.is_empty()).unwrap_or(name)
}

fn hyphenated(stem: &str) -> String {
    let words: Vec<&str> = stem.split(separates_words).filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// Returns whether a character separates words. Signs are listed, since `std` can't tell them from the marks of
/// letters.
fn separates_words(c: char) -> bool {
    !c.is_alphanumeric()
        && (c.is_ascii()
            || c.is_whitespace()
            || c.is_control()
            || matches!(c,
                '\u{80}'..='\u{bf}' | '×' | '÷' | '\u{37e}' | '\u{387}' | '\u{589}' | '\u{5be}'
                | '\u{60c}' | '\u{61b}' | '\u{61f}' | '\u{6d4}' | '\u{964}' | '\u{965}'
                | '\u{2000}'..='\u{206f}' | '\u{2e00}'..='\u{2e7f}' | '\u{3000}'..='\u{303f}'
                | '\u{30fb}' | '\u{fe10}'..='\u{fe1f}' | '\u{fe30}'..='\u{fe6f}' | '\u{feff}'
                | '\u{ff00}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}' | '\u{ff3b}'..='\u{ff40}'
                | '\u{ff5b}'..='\u{ff65}'))
}
