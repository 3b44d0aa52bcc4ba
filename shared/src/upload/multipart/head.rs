//! The header lines of one part of a multipart body.

use crate::error::Problem;
use crate::ident::shown;
use crate::upload::draft::invalid;
use crate::upload::label::{Label, is_token};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

pub(super) enum PartHead {
    File {
        /// The file's name without directories.
        name: String,
        label: Option<Label>,
    },
    /// The user chose no file: the file name is empty, and the content must be empty too.
    NoFile,
    Field(String),
}

impl PartHead {
    /// Parses the lines before the empty line. `Content-Transfer-Encoding` must be `binary`, `8bit` or `7bit`.
    pub(super) fn parse(lines: &str) -> Result<Self, Problem> {
        let (mut disposition, mut label) = (None, None);
        for line in lines.split("\r\n").filter(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_token(name)) else {
                return Err(invalid(format!("The header line {} of a part is malformed.", shown(line))));
            };
            let value = value.trim_ascii();
            match name.to_ascii_lowercase().as_str() {
                "content-disposition" if disposition.is_some() => {
                    return Err(invalid("A part has two lines Content-Disposition."));
                }
                "content-disposition" => disposition = Some(value),
                "content-type" => label = Label::mime(value),
                "content-transfer-encoding"
                    if !["binary", "8bit", "7bit"].iter().any(|plain| value.eq_ignore_ascii_case(plain)) =>
                {
                    return Err(invalid(format!(
                        "The Content-Transfer-Encoding {} of a part is not read here.",
                        shown(value)
                    ))
                    .with_hint("Send the bytes as they are."));
                }
                _ => {}
            }
        }
        let disposition = disposition.and_then(|value| {
            let (kind, parameters) = value.split_once(';').unwrap_or((value, ""));
            let is_form_data = kind.trim_ascii().eq_ignore_ascii_case("form-data");
            Parameters::parse(parameters).filter(|_| is_form_data)
        });
        let Some(parameters) = disposition else {
            return Err(invalid("A part has no sound line Content-Disposition.")
                .with_hint("Write Content-Disposition: form-data; name=\"files\"; filename=\"photo.jpg\"."));
        };
        match parameters.file_name()? {
            Some(name) if name.is_empty() => return Ok(Self::NoFile),
            Some(name) => return Ok(Self::File { name, label }),
            None => {}
        }
        match parameters.get("name") {
            Some(name) => Ok(Self::Field(name.to_owned())),
            None => Err(invalid("A part has neither a name nor a filename.")),
        }
    }
}

/// The parameters of a header, such as `name="value"; other=token`, with names in lower case.
pub(super) struct Parameters<'a>(Vec<(String, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    /// Parses `text`, which begins after the first `;`. `None` if it is malformed or repeats a name.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parameters: Vec<(String, Cow<'a, str>)> = Vec::new();
        let mut rest = text.trim_ascii();
        while !rest.is_empty() {
            let (name, behind) = rest.split_once('=')?;
            let name = name.trim_ascii().to_ascii_lowercase();
            let (value, behind) = match behind.trim_ascii_start().strip_prefix('"') {
                Some(quoted) => unquoted(quoted)?,
                None => {
                    let end = behind.find(';').unwrap_or(behind.len());
                    (behind[..end].trim_ascii().into(), &behind[end..])
                }
            };
            if !is_token(&name) || parameters.iter().any(|(known, _)| *known == name) {
                return None;
            }
            parameters.push((name, value));
            rest = behind.trim_ascii_start();
            if !rest.is_empty() {
                rest = rest.strip_prefix(';')?.trim_ascii_start();
            }
        }
        Some(Self(parameters))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    /// Returns the file's name, which may be empty, without the directories that old browsers send.
    fn file_name(&self) -> Result<Option<String>, Problem> {
        let whole = match (self.get("filename*"), self.get("filename")) {
            (Some(extended), _) => extended_value(extended).ok_or_else(|| {
                invalid(format!("The filename* {} is malformed.", shown(extended)))
                    .with_hint("Write it as RFC 8187 says: filename*=UTF-8''na%C3%AFve.txt.")
            })?,
            // Browsers percent-encode only quotes and line ends. Line ends stay encoded.
            (None, Some(plain)) => plain.replace("%22", "\""),
            (None, None) => return Ok(None),
        };
        let last = whole.rsplit(['/', '\\']).find(|part| !part.is_empty());
        match last {
            Some(last) => Ok(Some(last.to_owned())),
            None if whole.is_empty() => Ok(Some(String::new())),
            None => Err(nameless()),
        }
    }
}

pub(super) fn nameless() -> Problem {
    invalid("A file has no name.").with_hint("Give its part a filename, or leave the part out if no file was chosen.")
}

/// Returns a quoted string and the text after it. `text` begins after the opening quote. A backslash escapes only a
/// quote or a backslash, since browsers write a backslash unescaped and a quote as `%22`. A backslash before the last
/// quote is literal, as in `C:\"`, since no other quote could close the string.
fn unquoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value.into(), &text[at + 1..])),
            '\\' => {
                let is_last = |at: usize| !text[at + 1..].contains('"');
                let escaped = |(at, next): &(usize, char)| match next {
                    '"' => !is_last(*at),
                    next => *next == '\\',
                };
                match characters.next_if(escaped) {
                    Some((_, escaped)) => value.push(escaped),
                    None => value.push('\\'),
                }
            }
            other => value.push(other),
        }
    }
    None
}

/// Decodes an extended value (RFC 8187), such as `UTF-8''na%C3%AFve.txt`, in UTF-8 or ISO-8859-1.
fn extended_value(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '\'');
    let (charset, _language, value) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes: Vec<u8> = percent_decode_str(value).collect();
    if charset.eq_ignore_ascii_case("utf-8") {
        String::from_utf8(bytes).ok()
    } else if charset.eq_ignore_ascii_case("iso-8859-1") {
        Some(bytes.into_iter().map(char::from).collect())
    } else {
        None
    }
}
