//! Evaluates the headers of conditional requests (RFC 9110, section 13) for files, at the origin and in the edge's
//! cache. [`names`], which compares entity tags, also serves records and pages.

use crate::error::{ErrorCode, Problem};
use httpdate::HttpDate;
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub struct Validators<'a> {
    pub tag: &'a str,
    pub modified: HttpDate,
}

#[derive(Clone, Debug, Default)]
pub struct Conditions<'a> {
    pub if_match: Option<Cow<'a, str>>,
    pub if_unmodified_since: Option<Cow<'a, str>>,
    pub if_none_match: Option<Cow<'a, str>>,
    pub if_modified_since: Option<Cow<'a, str>>,
    pub if_range: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Send,
    NotModified,
    /// The response is a 412: `If-Match` or `If-Unmodified-Since` does not hold.
    Failed,
}

impl Conditions<'_> {
    pub fn judge(&self, validators: &Validators<'_>) -> Verdict {
        let Validators { tag, modified } = validators;
        let holds = match (&self.if_match, &self.if_unmodified_since) {
            (Some(tags), _) => names_strongly(tags, tag),
            // An invalid date is ignored, as the RFC requires.
            (None, Some(date)) => read(date).is_none_or(|date| *modified <= date),
            (None, None) => true,
        };
        if !holds {
            return Verdict::Failed;
        }
        let has_it = match (&self.if_none_match, &self.if_modified_since) {
            (Some(tags), _) => names(tags, tag),
            (None, Some(date)) => read(date).is_some_and(|date| *modified <= date),
            (None, None) => false,
        };
        if has_it { Verdict::NotModified } else { Verdict::Send }
    }

    /// Returns whether `Range` applies: `If-Range` is missing or names the current version. A date must equal
    /// `modified`, since clients may only send a date that is a strong validator (section 8.8.2.2).
    pub fn range_holds(&self, validators: &Validators<'_>) -> bool {
        match self.if_range.as_deref().map(str::trim) {
            None => true,
            Some("*") => false,
            Some(tag) if tag.contains('"') => names_strongly(tag, validators.tag),
            Some(date) => read(date) == Some(validators.modified),
        }
    }
}

pub fn failed() -> Problem {
    Problem::new(ErrorCode::PreconditionFailed, "The file is not the one that the condition names.")
}

fn read(date: &str) -> Option<HttpDate> {
    date.trim().parse().ok()
}

/// Returns whether a list of tags contains `tag`, comparing weak tags as equal to strong ones (RFC 9110, section
/// 13.1.2). Parsing stops at the first malformed tag. For records, `If-Match` is compared in this way too.
pub fn names(if_none_match: &str, tag: &str) -> bool {
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    if_none_match.trim() == "*" || tags(if_none_match).any(|(listed, _)| listed == tag)
}

/// Like [`names`], but weak tags never match, since different bytes may have the same weak tag.
pub fn names_strongly(if_match: &str, tag: &str) -> bool {
    if_match.trim() == "*" || tags(if_match).any(|(listed, strength)| listed == tag && strength == Strength::Strong)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strength {
    Weak,
    Strong,
}

fn tags(list: &str) -> impl Iterator<Item = (&str, Strength)> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let tag = rest.trim_start_matches([' ', '\t', ',']);
        let (tag, strength) = match tag.strip_prefix("W/") {
            Some(tag) => (tag, Strength::Weak),
            None => (tag, Strength::Strong),
        };
        let end = tag.strip_prefix('"')?.find('"')? + 2;
        let (tag, behind) = tag.split_at(end);
        rest = behind;
        Some((tag, strength))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"01010101010101010101010101010101\"";
    const BEFORE: &str = "Mon, 21 Sep 2026 13:33:19 GMT";
    const AT: &str = "Mon, 21 Sep 2026 13:33:20 GMT";
    const AFTER: &str = "Mon, 21 Sep 2026 13:33:21 GMT";

    fn validators() -> Validators<'static> {
        Validators { tag: TAG, modified: AT.parse().unwrap() }
    }

    /// Evaluates If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since (in this order; `""` for none).
    fn judge(texts: [&str; 4]) -> Verdict {
        let [if_match, if_unmodified_since, if_none_match, if_modified_since] =
            texts.map(|text| (!text.is_empty()).then_some(Cow::Borrowed(text)));
        let conditions = Conditions { if_match, if_unmodified_since, if_none_match, if_modified_since, if_range: None };
        conditions.judge(&validators())
    }

    #[test]
    fn each_condition_holds_or_not() {
        let (own, weak) = (TAG, format!("W/{TAG}"));
        for (texts, verdict) in [
            (["", "", "", ""], Verdict::Send),
            ([own, "", "", ""], Verdict::Send),
            (["*", "", "", ""], Verdict::Send),
            ([&weak, "", "", ""], Verdict::Failed),
            (["\"other\"", "", "", ""], Verdict::Failed),
            (["nonsense", "", "", ""], Verdict::Failed),
            (["", BEFORE, "", ""], Verdict::Failed),
            (["", AT, "", ""], Verdict::Send),
            (["", AFTER, "", ""], Verdict::Send),
            (["", "nonsense", "", ""], Verdict::Send),
            (["", "", own, ""], Verdict::NotModified),
            (["", "", &weak, ""], Verdict::NotModified),
            (["", "", "*", ""], Verdict::NotModified),
            (["", "", "\"other\"", ""], Verdict::Send),
            (["", "", "", BEFORE], Verdict::Send),
            (["", "", "", AT], Verdict::NotModified),
            (["", "", "", AFTER], Verdict::NotModified),
            (["", "", "", "nonsense"], Verdict::Send),
        ] {
            assert_eq!(judge(texts), verdict, "{texts:?}");
        }
    }

    #[test]
    fn only_a_strong_tag_stands_for_every_byte() {
        assert!(names_strongly(&format!("W/\"a\", {TAG}"), TAG));
        assert!(names_strongly("*", TAG));
        assert!(!names_strongly(&format!("W/{TAG}, \"b\""), TAG));
    }

    #[test]
    fn tags_come_before_dates_and_refusals_before_not_modified() {
        let own = TAG;
        for (texts, verdict) in [
            ([own, BEFORE, "", ""], Verdict::Send),
            (["\"other\"", AFTER, "", ""], Verdict::Failed),
            (["", "", "\"other\"", AFTER], Verdict::Send),
            (["", "", own, BEFORE], Verdict::NotModified),
            (["\"other\"", "", own, ""], Verdict::Failed),
            (["", BEFORE, own, ""], Verdict::Failed),
            ([own, "", own, ""], Verdict::NotModified),
        ] {
            assert_eq!(judge(texts), verdict, "{texts:?}");
        }
    }

    #[test]
    fn a_range_holds_for_the_version_that_it_was_meant_for() {
        let holds = |text: &str| {
            let conditions = Conditions { if_range: Some(text.to_owned().into()), ..Conditions::default() };
            conditions.range_holds(&validators())
        };
        assert!(Conditions::default().range_holds(&validators()));
        assert!(holds(TAG));
        assert!(holds(AT));
        for text in ["", "*", "nonsense", "\"other\"", &format!("W/{TAG}"), BEFORE, AFTER] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn all_three_forms_of_dates_are_read() {
        for date in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(read(date), read("Sun, 06 Nov 1994 08:49:37 GMT"), "{date}");
        }
        assert_eq!(read("yesterday"), None);
    }

    #[test]
    fn a_tag_is_found_in_lists_weak_or_strong() {
        for (header, expected) in [
            ("*".to_owned(), true),
            (" * ".to_owned(), true),
            (TAG.to_owned(), true),
            (format!("W/{TAG}"), true),
            (format!("\"a\", {TAG}"), true),
            (format!("\"a\",W/\"b\" ,\t{TAG},\"c\""), true),
            (format!("\"a,b\", {TAG}"), true),
            (format!(", ,{TAG}"), true),
            (String::new(), false),
            ("\"a\"".to_owned(), false),
            ("\"*\"".to_owned(), false),
            ("\"".to_owned(), false),
            ("W/".to_owned(), false),
            (TAG.trim_matches('"').to_owned(), false),
            (format!("nonsense, {TAG}"), false),
            (format!("w/{TAG}"), false),
            (format!("\"x{}", &TAG[1..]), false),
        ] {
            assert_eq!(names(&header, TAG), expected, "{header}");
            assert_eq!(names(&header, &format!("W/{TAG}")), expected, "{header}");
        }
    }
}
