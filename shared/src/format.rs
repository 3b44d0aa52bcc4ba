//! The format of rows: in a response, where the `Accept` header chooses it, or in an insert's body. Errors are always
//! JSON.

use crate::operation::headers::other_than_json;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    #[default]
    Envelope,
    /// RFC 4180, with a header row.
    Csv,
    NdJson,
}

impl Format {
    /// Chooses the format by `Accept` (RFC 9110, section 12.5.1). Chooses CSV or NDJSON only if its weight is greater
    /// than that of `application/json` or, if that is not listed, at least that of `*/*` and `application/*`. Never
    /// refuses.
    pub fn from_accept(accept: Option<&str>) -> Self {
        let mut json = Wish::default();
        let mut best = (Self::Envelope, 0);
        for range in accept.unwrap_or_default().split(',').filter_map(Range::parse) {
            match range.wanted {
                Wanted::Json => json.exact = json.exact.max(Some(range.weight)),
                Wanted::Wildcard => json.wildcard = json.wildcard.max(range.weight),
                // At equal weights, the first format in the header counts.
                Wanted::Bare(format) if range.weight > best.1 => best = (format, range.weight),
                Wanted::Bare(_) => {}
            }
        }
        if json.is_preferred_to(best.1) { Self::Envelope } else { best.0 }
    }

    /// Returns the format of a body; `None` if type, charset or variant are not supported. A missing type means JSON.
    pub fn of_body(content_type: Option<&str>) -> Option<Self> {
        if other_than_json(content_type).is_none() {
            return Some(Self::Envelope);
        }
        match Range::parse(content_type?)?.wanted {
            Wanted::Bare(format) => Some(format),
            Wanted::Json | Wanted::Wildcard => None,
        }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Envelope => "application/json",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::NdJson => "application/x-ndjson",
        }
    }

    /// Returns the text that ends a broken-off response: a JSON text or CSV cell that is never closed. Needed because
    /// proxies, such as workerd, end a broken response like a complete one. Empty for the envelope, which stays
    /// unclosed.
    pub const fn cut_mark(self) -> &'static str {
        match self {
            Self::Envelope => "",
            Self::Csv => "\"The answer broke off here.",
            Self::NdJson => "{\"error\":\"The answer broke off here.",
        }
    }

    pub const fn has_trailer(self) -> bool {
        matches!(self, Self::Envelope)
    }
}

/// The largest weight, `q=1`, in thousandths.
const WEIGHT_MAX: u16 = 1000;

struct Range {
    wanted: Wanted,
    weight: u16,
}

#[derive(Clone, Copy)]
enum Wanted {
    Json,
    Bare(Format),
    /// `*/*` or `application/*`, which include JSON.
    Wildcard,
}

const NAMES: [(&str, Wanted); 7] = [
    ("application/json", Wanted::Json),
    ("*/*", Wanted::Wildcard),
    ("application/*", Wanted::Wildcard),
    ("text/csv", Wanted::Bare(Format::Csv)),
    ("application/x-ndjson", Wanted::Bare(Format::NdJson)),
    ("application/ndjson", Wanted::Bare(Format::NdJson)),
    ("application/jsonl", Wanted::Bare(Format::NdJson)),
];

impl Range {
    /// Parses one item of `Accept`; `None` if the type or variant is not supported, such as CSV without a header row.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next()?;
        let (_, wanted) = NAMES.into_iter().find(|(name, _)| media_type.eq_ignore_ascii_case(name))?;
        let mut weight = WEIGHT_MAX;
        for parameter in parts {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = value.trim_matches('"');
            if name.eq_ignore_ascii_case("q") {
                weight = parse_weight(value);
            }
            let is_never_sent = (name.eq_ignore_ascii_case("charset") && !value.eq_ignore_ascii_case("utf-8"))
                || (name.eq_ignore_ascii_case("header") && !value.eq_ignore_ascii_case("present"));
            if is_never_sent {
                return None;
            }
        }
        Some(Self { wanted, weight })
    }
}

/// The weights of JSON in `Accept`, in thousandths. `exact`, of `application/json`, takes precedence over wildcards.
#[derive(Default)]
struct Wish {
    exact: Option<u16>,
    wildcard: u16,
}

impl Wish {
    fn is_preferred_to(&self, other: u16) -> bool {
        match self.exact {
            Some(weight) => weight >= other,
            None => self.wildcard > other,
        }
    }
}

/// Parses a weight into thousandths. An invalid weight counts as one thousandth, the smallest above 0.
fn parse_weight(text: &str) -> u16 {
    let thousandths = |text: &str| -> Option<u16> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let fraction = format!("{fraction:0<3}").parse::<u16>().ok()?;
        match whole {
            "0" => Some(fraction),
            "1" if fraction == 0 => Some(WEIGHT_MAX),
            _ => None,
        }
    };
    thousandths(text).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::Format::{Csv, Envelope, NdJson};
    use super::*;

    #[test]
    fn a_bare_form_is_chosen_only_by_name_and_preferred_to_json() {
        for (accept, expected) in [
            ("", Envelope),
            ("*/*", Envelope),
            ("application/json", Envelope),
            ("text/*", Envelope),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Envelope),
            ("image/png", Envelope),
            ("text/csv", Csv),
            ("Text/CSV", Csv),
            ("text/csv; charset=UTF-8; header=present", Csv),
            ("text/csv;charset=\"utf-8\"", Csv),
            ("text/csv; header=absent", Envelope),
            ("text/csv; charset=latin1", Envelope),
            ("text/csv, */*", Csv),
            ("text/csv, */*;q=0.1", Csv),
            ("text/csv;q=0.5, */*", Envelope),
            ("text/csv, application/json", Envelope),
            ("application/json, text/csv", Envelope),
            ("text/csv, application/json;q=0.9", Csv),
            ("text/csv;q=0.3, application/json;q=0.2, */*", Csv),
            ("text/csv;q=0", Envelope),
            ("text/csv;q=0.001", Csv),
            ("text/csv;q=nonsense", Csv),
            ("text/csv;q=1.5, application/json;q=0.1", Envelope),
            ("text/plain, text/csv ; Q=0.7 , application/json;q=0.699", Csv),
            ("application/x-ndjson", NdJson),
            ("application/ndjson", NdJson),
            ("application/jsonl", NdJson),
            ("text/csv, application/x-ndjson", Csv),
            ("application/x-ndjson, text/csv", NdJson),
            ("text/csv;q=0.8, application/x-ndjson;q=0.9", NdJson),
            ("application/x-ndjson;q=0.9, application/*;q=0.95", Envelope),
            (",,;;q,=;q=", Envelope),
        ] {
            assert_eq!(Format::from_accept(Some(accept)), expected, "{accept}");
        }
        assert_eq!(Format::from_accept(None), Envelope);
        let types = ["application/json", "text/csv; charset=utf-8; header=present", "application/x-ndjson"];
        assert_eq!([Envelope, Csv, NdJson].map(Format::content_type), types);
    }
}
