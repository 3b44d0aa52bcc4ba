//! Names of projects, roles, databases, tables and fields, checked by their syntax. The origin checks whether a name
//! exists, and quotes the names that it writes into SQL.

use crate::error::{ErrorCode, Problem};
use crate::limits::{IDENTIFIER_MAX_CHARS, PROJECT_NAME_MAX_CHARS, ROLE_NAME_MAX_CHARS, WEBHOOK_NAME_MAX_BYTES};

/// Checks a name by MariaDB's rules for quoted identifiers ("Identifier Names" in its documentation).
fn check(kind: &str, name: &str) -> Result<(), Problem> {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_');
    let fault = if (1..=IDENTIFIER_MAX_CHARS).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    } else if name.is_empty() {
        "is empty"
    } else if name.chars().count() > IDENTIFIER_MAX_CHARS {
        "is longer than 64 characters"
    } else if name.contains('\0') {
        "holds a NUL character"
    } else if name.chars().any(|c| u32::from(c) > 0xFFFF) {
        "holds a character that MariaDB allows in no name (such as an emoji)"
    } else if name.ends_with(' ') {
        "ends with a space"
    } else {
        return Ok(());
    };
    Err(Problem::new(ErrorCode::InvalidIdentifier, format!("The {kind} name {} {fault}.", shown(name))))
}

/// Returns the name in lower case, letter by letter, as a server with `lower_case_table_names=1` compares names.
/// [`str::to_lowercase`] differs: it makes two letters of `İ`, and another `σ` at the end of a word.
pub fn folded(name: &str) -> String {
    name.chars().filter_map(|letter| letter.to_lowercase().next()).collect()
}

/// Quotes a name for error messages and cuts it to 80 characters. Escapes characters that break or reorder the line.
pub fn shown(name: &str) -> String {
    const SHOWN_MAX_CHARS: usize = 80;
    let mut text = String::with_capacity(name.len().min(4 * SHOWN_MAX_CHARS) + 2);
    text.push('"');
    for (at, c) in name.chars().enumerate() {
        if at == SHOWN_MAX_CHARS {
            text.push('…');
            break;
        }
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' | '\r' | '\t' => text.extend(c.escape_default()),
            _ if c.is_control() || breaks_lines(c) => text.extend(c.escape_unicode()),
            _ => text.push(c),
        }
    }
    text.push('"');
    text
}

/// Escapes control characters, and characters that break or reorder a line of text.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if c.is_control() => printable.extend(c.escape_default()),
            _ if breaks_lines(c) => printable.extend(c.escape_unicode()),
            _ => printable.push(c),
        }
    }
    printable
}

/// Returns whether a character could disguise the rest of a line: a line end, bidirectional control or byte-order mark.
fn breaks_lines(c: char) -> bool {
    matches!(
        c,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}'
    )
}

/// Implements `as_str` and `Display` for a type that wraps checked text.
macro_rules! checked_text {
    ($type:ident) => {
        impl $type {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(crate) use checked_text;

macro_rules! identifier {
    ($(#[$doc:meta])* $type:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(Box<str>);

        impl $type {
            pub fn parse(name: &str) -> Result<Self, Problem> {
                check($kind, name)?;
                Ok(Self(name.into()))
            }
        }

        checked_text!($type);
    };
}

identifier!(DatabaseName, "database");
identifier!(
    /// The name of a table or view.
    TableName, "table"
);
identifier!(FieldName, "field");
identifier!(
    /// The name of an index or a foreign key.
    KeyName, "key"
);

impl TableName {
    /// A name that a statement gives to a table.
    pub fn numbered(word: &'static str, number: usize) -> Self {
        Self(format!("{word}{number}").into())
    }

    /// The table, one per database, that records inserts with an `Idempotency-Key`.
    pub const RECEIPTS: &str = "selkie_receipts";

    /// Returns whether this is a table of Selkie's own, which the API hides.
    pub fn is_system(&self) -> bool {
        // Some servers ignore the case of table names.
        self.0.eq_ignore_ascii_case(Self::RECEIPTS)
    }
}

impl DatabaseName {
    /// Returns whether this is a schema of MariaDB or of Selkie, which the API neither lists nor opens. For statements
    /// of `/sql`, only MariaDB's grants decide.
    pub fn is_system(&self) -> bool {
        const SYSTEM: [&str; 5] = ["information_schema", "mysql", "performance_schema", "sys", "selkie"];
        SYSTEM.iter().any(|name| self.0.eq_ignore_ascii_case(name))
    }
}

/// A project's name: 1 to 32 lower-case letters, digits and inner hyphens. It has no underscores, so that the grant
/// pattern `<project>\_%` of one project never matches the databases of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectName(Box<str>);

impl ProjectName {
    pub fn parse(name: &str) -> Result<Self, Problem> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let well_formed = (1..=PROJECT_NAME_MAX_CHARS).contains(&name.len())
            && name.bytes().all(allowed)
            && !name.starts_with('-')
            && !name.ends_with('-');
        if well_formed {
            return Ok(Self(name.into()));
        }
        Err(Problem::new(ErrorCode::InvalidIdentifier, format!("{} is no project name.", shown(name)))
            .with_hint("Use 1 to 32 lower-case letters, digits and inner hyphens."))
    }
}

checked_text!(ProjectName);

/// A role's name: 1 to 64 lower-case letters, digits, underscores and inner hyphens, but not `full` or `read`, which
/// name the access of keys without a role.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleName(Box<str>);

impl RoleName {
    pub fn parse(name: &str) -> Result<Self, Problem> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let well_formed = (1..=ROLE_NAME_MAX_CHARS).contains(&name.len())
            && name.bytes().all(allowed)
            && !name.starts_with('-')
            && !name.ends_with('-');
        if well_formed && !matches!(name, "full" | "read") {
            return Ok(Self(name.into()));
        }
        Err(Problem::new(ErrorCode::InvalidIdentifier, format!("{} is no name of a role.", shown(name))).with_hint(
            "Use 1 to 64 lower-case letters, digits, inner hyphens and underscores; full and read are built in.",
        ))
    }
}

checked_text!(RoleName);

/// A webhook's name: 1 to 100 bytes without control characters, not blank at its ends, and not `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookName(Box<str>);

impl WebhookName {
    pub fn parse(name: &str) -> Result<Self, Problem> {
        let is_well_formed = (1..=WEBHOOK_NAME_MAX_BYTES).contains(&name.len())
            && !name.chars().any(char::is_control)
            && name.trim() == name
            // Clients of HTTP resolve these in paths.
            && !matches!(name, "." | "..");
        if is_well_formed {
            return Ok(Self(name.into()));
        }
        Err(Problem::new(ErrorCode::InvalidIdentifier, format!("{} is no name of a webhook.", shown(name))).with_hint(
            format!("Use 1 to {WEBHOOK_NAME_MAX_BYTES} bytes without control characters, and no blank at either end; not . or .. alone."),
        ))
    }
}

checked_text!(WebhookName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_legal_mariadb_name_is_taken() {
        for name in ["posts", "my table", "a`b", "a\"b", "a.b", "naïve", "日本", "1", "-- x", " lead"] {
            assert_eq!(TableName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_of_all_scripts_are_shown_as_themselves() {
        for name in ["ชื่อ", "नाम", "e\u{301}te\u{301}", "日本", "naïve", "می\u{200C}خواهم"] {
            assert_eq!(shown(name), format!("\"{name}\""));
        }
        for (name, escaped) in [
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a\r\n\tb", r#""a\r\n\tb""#),
            ("a\u{1B}[2J\u{7F}\u{85}", r#""a\u{1b}[2J\u{7f}\u{85}""#),
            ("a\u{202E}b\u{2066}\u{2028}", r#""a\u{202e}b\u{2066}\u{2028}""#),
        ] {
            assert_eq!(shown(name), escaped);
        }
        assert_eq!(shown(&"x".repeat(81)), format!("\"{}…\"", "x".repeat(80)));
        assert_eq!(shown(&"x".repeat(80)), format!("\"{}\"", "x".repeat(80)));
    }

    #[test]
    fn impossible_names_are_refused() {
        let long = "x".repeat(65);
        for name in ["", "a\0b", "🦭", "trail ", long.as_str()] {
            assert_eq!(TableName::parse(name).unwrap_err().code(), ErrorCode::InvalidIdentifier);
        }
    }

    #[test]
    fn project_names_hold_no_underscore() {
        assert!(ProjectName::parse("shop-2").is_ok());
        for name in ["", "a_b", "A", "-a", "a-", "é", &"x".repeat(33)] {
            assert!(ProjectName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_role_has_no_name_of_a_built_in_access() {
        for name in ["author", "shop_2", "a-b", &"x".repeat(64)] {
            assert!(RoleName::parse(name).is_ok(), "{name}");
        }
        for name in ["", "full", "read", "Author", "-a", "a-", "a b", "é", &"x".repeat(65)] {
            assert!(RoleName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_webhooks_name_is_a_line_of_text() {
        for name in ["orders to the warehouse", "a/b?", "été", &"x".repeat(100)] {
            assert!(WebhookName::parse(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", " a", "a ", "a\nb", &"x".repeat(101)] {
            assert!(WebhookName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn system_schemas_are_known_in_any_case() {
        assert!(DatabaseName::parse("MySQL").unwrap().is_system());
        assert!(!DatabaseName::parse("demo").unwrap().is_system());
    }

    #[test]
    fn the_table_of_receipts_is_known_in_any_case() {
        assert!(TableName::parse("Selkie_receipts").unwrap().is_system());
        assert!(!TableName::parse("receipts").unwrap().is_system());
    }
}
