//! The options that inserts, updates and deletes share, and the headers with the same effect: `Prefer` and `If-Match`.

use crate::error::{ErrorCode, Problem};
use crate::json::Value;
use crate::operation::options::{self, flag, whole_number};
use crate::operation::read::Selection;
use crate::operation::read::select::{Selected, What};
use crate::request::RequestHead;

/// The options of writes. Inserts have all of them but the last.
pub(super) const WRITE_OPTIONS: [&str; 3] = [RETURNING, DRY_RUN, "maxAffected"];
pub(super) const RETURNING: &str = "returning";
pub(super) const DRY_RUN: &str = "dryRun";

/// A value of the preference `return` (RFC 7240, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    Representation,
    Minimal,
}

impl Preference {
    pub fn applied(self) -> &'static str {
        match self {
            Self::Representation => "return=representation",
            Self::Minimal => "return=minimal",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The fields of the records to return; `None` if the response is an id or a number.
    pub returning: Option<Selection>,
    /// The preference of the header `Prefer`; `None` if the option `returning` or `dryRun` is set.
    pub preference: Option<Preference>,
    pub is_dry_run: bool,
    /// Maximum number of records. A write that would affect more fails.
    pub max_affected: Option<u64>,
    /// `If-Match`: the record must have one of these entity tags.
    pub if_match: Option<Box<str>>,
}

impl WriteOptions {
    pub(super) fn take(&mut self, name: &str, value: &Value) -> Result<bool, Problem> {
        match name {
            RETURNING => self.returning = Some(returning(value)?),
            DRY_RUN => self.is_dry_run = flag(name, value)?,
            "maxAffected" => self.max_affected = Some(whole_number(name, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the headers. Must be called after all options were taken. Refuses an empty `If-Match`: a proxy may drop an
    /// empty header, and the write would then run without the condition.
    pub(super) fn finish(&mut self, head: &RequestHead<'_>) -> Result<(), Problem> {
        self.if_match = head.if_match.map(Box::from);
        if head.if_match.is_some_and(|tags| tags.trim().is_empty()) {
            return Err(Problem::new(ErrorCode::InvalidQueryOption, "The header If-Match is empty.")
                .with_hint("Send the ETag of the record with its quotes; nothing was done."));
        }
        if self.is_dry_run && self.returning.is_some() {
            return Err(Problem::new(
                ErrorCode::InvalidQueryOption,
                "The options returning and dryRun exclude each other: dryRun answers a number.",
            ));
        }
        // A preference that can't be met is ignored (RFC 7240, section 2).
        if !self.is_dry_run && self.returning.is_none() {
            self.preference = head.prefer.and_then(preference);
        }
        if self.preference == Some(Preference::Representation) {
            self.returning = Some(Selection::All);
        }
        Ok(())
    }

    /// Returns whether the response is an id or a number: no option is set, except perhaps a preference.
    pub fn is_plain(&self) -> bool {
        *self == Self { preference: self.preference, ..Self::default() }
    }

    /// Returns the option or header that requires a storage engine that can roll back.
    pub fn needs_transaction(&self) -> Option<&'static str> {
        match self {
            Self { is_dry_run: true, .. } => Some("The option dryRun"),
            Self { max_affected: Some(_), .. } => Some("The option maxAffected"),
            Self { if_match: Some(_), .. } => Some("The header If-Match"),
            // The write is rolled back if its response would be too large.
            Self { returning: Some(_), .. } => Some("The option returning"),
            _ => None,
        }
    }
}

fn returning(value: &Value) -> Result<Selection, Problem> {
    if matches!(value, Value::Text(text) if text.trim() == "*") {
        return Ok(Selection::All);
    }
    let fields = options::fields(RETURNING, value)?;
    Ok(Selection::Only(fields.into_iter().map(|field| Selected { what: What::Field(field), alias: None }).collect()))
}

fn preference(prefer: &str) -> Option<Preference> {
    let mut preferences = prefer.split(',').map(|preference| preference.split(';').next().unwrap_or_default());
    let wanted = preferences.find_map(|preference| {
        let (name, value) = preference.split_once('=')?;
        name.trim().eq_ignore_ascii_case("return").then(|| value.trim().trim_matches('"'))
    })?;
    let known = [("representation", Preference::Representation), ("minimal", Preference::Minimal)];
    known.into_iter().find_map(|(name, preference)| wanted.eq_ignore_ascii_case(name).then_some(preference))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_preference_for_the_answer_counts() {
        let (representation, minimal) = (Some(Preference::Representation), Some(Preference::Minimal));
        for (prefer, expected) in [
            ("return=representation", representation),
            ("Return = \"representation\"", representation),
            ("respond-async, return=representation; a=b", representation),
            ("return=minimal", minimal),
            ("return=minimal, return=representation", minimal),
            ("return=everything, return=representation", None),
            ("representation", None),
            ("x-return=representation", None),
            ("", None),
        ] {
            assert_eq!(preference(prefer), expected, "{prefer}");
        }
    }

    #[test]
    fn a_star_returns_all_fields() {
        let text = |text: &str| returning(&Value::Text(text.into()));
        assert_eq!(text(" * ").unwrap(), Selection::All);
        assert!(matches!(text("id,title").unwrap(), Selection::Only(fields) if fields.len() == 2));
        for wrong in ["", "id,id", "*,id,*"] {
            assert_eq!(text(wrong).unwrap_err().code(), ErrorCode::InvalidQueryOption, "{wrong}");
        }
    }
}
