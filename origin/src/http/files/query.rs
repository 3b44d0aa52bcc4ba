//! The query parameters of a media URL. Unknown parameters are ignored: some clients append one to bypass caches.

use shared::media::{MediaName, Rendition};
use std::borrow::Cow;
use url::form_urlencoded;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) rendition: Rendition,
    pub(super) version: Option<String>,
    pub(super) saving: Saving,
    /// The values of `expires`, in seconds since 1970, and of `signature`.
    pub(super) signature: Option<(u64, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Saving {
    AsItIs,
    Always,
    Named(MediaName),
}

impl Query {
    /// Parses the query. The first of repeated values counts; a repeated `signature` or `expires` is invalid.
    pub(super) fn parse(query: Option<&str>) -> Self {
        let [mut thumbnail, mut version, mut download, mut expires, mut signature] = [const { None }; 5];
        let mut is_signed_twice = false;
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let option: &mut Option<Cow<'_, str>> = match name.as_ref() {
                "thumbnail" => &mut thumbnail,
                "v" => &mut version,
                "download" => &mut download,
                "expires" => &mut expires,
                "signature" => &mut signature,
                _ => continue,
            };
            is_signed_twice |= option.is_some() && matches!(&*name, "expires" | "signature");
            option.get_or_insert(value);
        }
        let expires = expires.and_then(|text| seconds(&text));
        let signature = signature.filter(|_| !is_signed_twice);
        Self {
            rendition: match thumbnail.as_deref() {
                Some(word) if is_true(word) => Rendition::Thumbnail,
                _ => Rendition::Original,
            },
            version: version.map(Cow::into_owned),
            saving: match download.as_deref() {
                None => Saving::AsItIs,
                Some(word) if is_false(word) => Saving::AsItIs,
                Some(word) if is_true(word) => Saving::Always,
                Some(name) => MediaName::parse(name).map_or(Saving::Always, Saving::Named),
            },
            signature: expires.zip(signature.map(Cow::into_owned)),
        }
    }
}

fn is_true(word: &str) -> bool {
    matches!(word, "" | "true" | "True" | "1")
}

fn is_false(word: &str) -> bool {
    matches!(word, "false" | "False" | "0")
}

/// Parses a number of seconds. Returns `None` for a sign or leading zeros.
fn seconds(text: &str) -> Option<u64> {
    let seconds: u64 = text.parse().ok()?;
    (seconds.to_string() == text).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_everything_else_is_ignored() {
        let nothing = Query::parse(None);
        for query in [
            "",
            "x",
            "t=17&_=%ff",
            "thumbnail=false",
            "download=false",
            "expires=a&signature=b",
            "signature=b",
            "expires=-1&signature=",
            "expires=05&signature=s",
            "expires=%2B5&signature=s",
            "expires=+5&signature=s",
            "expires=5&signature=s&expires=6",
            "expires=5&signature=s&expires=5",
            "expires=5&signature=s&signature=s",
            "thumbnail=0&download=0",
            "thumbnail=False&download=False",
        ] {
            assert_eq!(Query::parse(Some(query)), nothing, "{query}");
        }
        let all = Query::parse(Some("thumbnail=true&v=ab&download=%C3%BC+b.png&expires=5&signature=s&v=2"));
        assert_eq!(all.rendition, Rendition::Thumbnail);
        assert_eq!(all.version.as_deref(), Some("ab"));
        assert_eq!(all.saving, Saving::Named(MediaName::parse("ü b.png").unwrap()));
        assert_eq!(all.signature, Some((5, "s".to_owned())));
    }

    #[test]
    fn truth_is_spelled_as_clients_write_it() {
        for word in ["thumbnail", "thumbnail=true", "thumbnail=True", "thumbnail=1"] {
            let query = Query::parse(Some(word));
            assert_eq!(query.rendition, Rendition::Thumbnail, "{word}");
        }
    }

    #[test]
    fn a_download_under_no_name_has_the_files_own() {
        for query in [
            "download",
            "download=true",
            "download=True",
            "download=1",
            "download=..",
            "download=a%0D%0Ab",
            "download=a/b",
        ] {
            assert_eq!(Query::parse(Some(query)).saving, Saving::Always, "{query}");
        }
    }
}
