//! Whether a request's conditions hold for a file as it is, in the order that RFC 9110 gives them (section 13.2.2).
//!
//! Knows headers' texts, a tag and a time; neither the file nor its bytes.

use super::super::etag::ETag;
use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What tells one version of a file from another.
#[derive(Clone, Debug)]
pub(super) struct Validators {
    pub(super) tag: ETag,
    /// Seconds since 1970.
    pub(super) modified: u64,
}

/// The headers that make a request conditional.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions<'a> {
    pub(super) if_match: Option<Cow<'a, str>>,
    pub(super) if_unmodified_since: Option<Cow<'a, str>>,
    pub(super) if_none_match: Option<Cow<'a, str>>,
    pub(super) if_modified_since: Option<Cow<'a, str>>,
    pub(super) if_range: Option<Cow<'a, str>>,
}

/// What follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The file is sent.
    Send,
    /// The caller has it already.
    NotModified,
    /// It is not the one that the caller means.
    Failed,
}

impl Conditions<'_> {
    /// Judges all of them but `If-Range`.
    pub(super) fn judge(&self, validators: &Validators) -> Verdict {
        let Validators { tag, modified } = validators;
        let holds = match (&self.if_match, &self.if_unmodified_since) {
            (Some(tags), _) => tag.is_named_strongly_by(tags),
            // A date that is none is ignored.
            (None, Some(date)) => seconds(date).is_none_or(|date| *modified <= date),
            (None, None) => true,
        };
        if !holds {
            return Verdict::Failed;
        }
        let has_it = match (&self.if_none_match, &self.if_modified_since) {
            (Some(tags), _) => tag.is_named_by(tags),
            (None, Some(date)) => seconds(date).is_some_and(|date| *modified <= date),
            (None, None) => false,
        };
        if has_it {
            Verdict::NotModified
        } else {
            Verdict::Send
        }
    }

    /// Whether a `Range` holds for this version. A date must be that of the version: a caller may use one only if a
    /// second had passed since (section 8.8.2.2), so that it stands for one version.
    pub(super) fn range_holds(&self, validators: &Validators) -> bool {
        match self.if_range.as_deref().map(str::trim) {
            None => true,
            Some("*") => false,
            Some(tag) if tag.contains('"') => validators.tag.is_named_strongly_by(tag),
            Some(date) => seconds(date) == Some(validators.modified),
        }
    }
}

/// A date of HTTP, in any of its three forms; one before 1970 is older than any file.
fn seconds(date: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(date.trim()).ok()?;
    let age = time.duration_since(UNIX_EPOCH);
    Some(age.map_or(0, |age| age.as_secs()))
}

/// A time as HTTP writes it.
pub(super) fn http_date(seconds: u64) -> String {
    /// The last second of the year 9999: beyond, HTTP has no dates.
    const LAST: u64 = 253_402_300_799;
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(LAST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODIFIED: u64 = 1_790_000_000;

    fn validators() -> Validators {
        Validators {
            tag: ETag::of_sha256(&[1; 32]),
            modified: MODIFIED,
        }
    }

    fn own() -> String {
        let tag = validators().tag.into_header().unwrap();
        tag.to_str().unwrap().to_owned()
    }

    /// Headers: if-match, if-unmodified-since, if-none-match, if-modified-since.
    fn judge(texts: [&str; 4]) -> Verdict {
        let [
            if_match,
            if_unmodified_since,
            if_none_match,
            if_modified_since,
        ] = texts.map(|text| (!text.is_empty()).then_some(Cow::Borrowed(text)));
        let conditions = Conditions {
            if_match,
            if_unmodified_since,
            if_none_match,
            if_modified_since,
            if_range: None,
        };
        conditions.judge(&validators())
    }

    #[test]
    fn each_condition_holds_or_not() {
        let (own, weak) = (own(), format!("W/{}", own()));
        let (before, at, after) = (
            http_date(MODIFIED - 1),
            http_date(MODIFIED),
            http_date(MODIFIED + 1),
        );
        for (texts, verdict) in [
            (["", "", "", ""], Verdict::Send),
            ([&own, "", "", ""], Verdict::Send),
            (["*", "", "", ""], Verdict::Send),
            ([&weak, "", "", ""], Verdict::Failed),
            (["\"other\"", "", "", ""], Verdict::Failed),
            (["nonsense", "", "", ""], Verdict::Failed),
            (["", &before, "", ""], Verdict::Failed),
            (["", &at, "", ""], Verdict::Send),
            (["", &after, "", ""], Verdict::Send),
            (["", "nonsense", "", ""], Verdict::Send),
            (["", "", &own, ""], Verdict::NotModified),
            (["", "", &weak, ""], Verdict::NotModified),
            (["", "", "*", ""], Verdict::NotModified),
            (["", "", "\"other\"", ""], Verdict::Send),
            (["", "", "", &before], Verdict::Send),
            (["", "", "", &at], Verdict::NotModified),
            (["", "", "", &after], Verdict::NotModified),
            (["", "", "", "nonsense"], Verdict::Send),
        ] {
            assert_eq!(judge(texts), verdict, "{texts:?}");
        }
    }

    #[test]
    fn tags_come_before_dates_and_refusals_before_not_modified() {
        let own = own();
        let (before, after) = (http_date(MODIFIED - 1), http_date(MODIFIED + 1));
        for (texts, verdict) in [
            ([own.as_str(), before.as_str(), "", ""], Verdict::Send),
            (["\"other\"", &after, "", ""], Verdict::Failed),
            (["", "", "\"other\"", &after], Verdict::Send),
            (["", "", &own, &before], Verdict::NotModified),
            (["\"other\"", "", &own, ""], Verdict::Failed),
            (["", &before, &own, ""], Verdict::Failed),
            ([&own, "", &own, ""], Verdict::NotModified),
        ] {
            assert_eq!(judge(texts), verdict, "{texts:?}");
        }
    }

    #[test]
    fn a_range_holds_for_the_version_that_it_was_meant_for() {
        let holds = |text: &str| {
            let conditions = Conditions {
                if_range: Some(text.to_owned().into()),
                ..Conditions::default()
            };
            conditions.range_holds(&validators())
        };
        assert!(Conditions::default().range_holds(&validators()));
        assert!(holds(&own()));
        assert!(holds(&http_date(MODIFIED)));
        for text in [
            "",
            "*",
            "nonsense",
            "\"other\"",
            &format!("W/{}", own()),
            &http_date(MODIFIED - 1),
            &http_date(MODIFIED + 1),
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn all_three_forms_of_dates_are_read() {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(seconds(date), Some(784_111_777), "{date}");
        }
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(http_date(u64::MAX).ends_with("9999 23:59:59 GMT"));
    }
}
