//! The type of a column, as MariaDB writes it: a word, numbers or texts in parentheses, and the words of numeric types.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlType {
    /// ASCII letters, digits and `_`, in lower case.
    pub name: Box<str>,
    pub arguments: Vec<TypeArgument>,
    pub words: Vec<TypeWord>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeArgument {
    Number(u64),
    Member(Box<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeWord {
    Unsigned,
    ZeroFill,
    Compressed,
}

impl TypeWord {
    const ALL: [Self; 3] = [Self::Unsigned, Self::ZeroFill, Self::Compressed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::ZeroFill => "zerofill",
            Self::Compressed => "compressed",
        }
    }
}

impl SqlType {
    pub(super) const HINT: &str = "Write it as MariaDB does: varchar(200), decimal(10,2) unsigned, enum('a','b'). \
        Character set, default and the like have keys of their own.";

    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim_ascii();
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = text.find(|c| !is_letter(c)).unwrap_or(text.len());
        let (name, mut rest) = text.split_at(end);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err("must begin with a word");
        }
        let mut arguments = Vec::new();
        if let Some(list) = rest.trim_ascii_start().strip_prefix('(') {
            rest = parse_arguments(list, &mut arguments)?;
        }
        let mut words: Vec<TypeWord> = Vec::new();
        for given in rest.split_ascii_whitespace() {
            let word = TypeWord::ALL.into_iter().find(|word| word.as_str().eq_ignore_ascii_case(given));
            let word = word.filter(|word| !words.contains(word));
            words.push(word.ok_or("may only be followed by unsigned, zerofill or compressed")?);
        }
        Ok(Self { name: name.to_ascii_lowercase().into(), arguments, words })
    }
}

/// Returns the text after the closing parenthesis.
fn parse_arguments<'a>(list: &'a str, arguments: &mut Vec<TypeArgument>) -> Result<&'a str, &'static str> {
    const UNCLOSED: &str = "has no closing parenthesis";
    let mut rest = list;
    loop {
        rest = rest.trim_ascii_start();
        rest = match rest.strip_prefix('\'') {
            Some(text) => {
                let (member, after) = parse_member(text)?;
                arguments.push(TypeArgument::Member(member.into()));
                after
            }
            None => {
                let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or(UNCLOSED)?;
                let number = rest[..end].parse().map_err(|_| "has something other than numbers and 'texts' in ()")?;
                arguments.push(TypeArgument::Number(number));
                &rest[end..]
            }
        };
        rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(')') {
            return Ok(after);
        }
        rest = rest.strip_prefix(',').ok_or(if rest.is_empty() {
            UNCLOSED
        } else {
            "needs commas between the parts in ()"
        })?;
    }
}

/// Returns the text before the closing quote, and the text after it. Knows the escapes that MariaDB writes.
fn parse_member(text: &str) -> Result<(String, &str), &'static str> {
    let mut member = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' if text[at + 1..].starts_with('\'') => {
                member.push('\'');
                chars.next();
            }
            '\'' => return Ok((member, &text[at + 1..])),
            '\\' => member.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, 'r')) => '\r',
                Some((_, c @ ('\\' | '\'' | '"'))) => c,
                _ => return Err("has an unknown escape after \\ (known: \\\\, \\', \\\", \\n, \\r)"),
            }),
            c => member.push(c),
        }
    }
    Err("has a text without closing quote")
}

impl fmt::Display for TypeWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
