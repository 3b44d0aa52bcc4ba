//! Parses `ORIGINS`: the servers to which requests are forwarded, and the regions near each.

use super::ConfigError;
use shared::limits::ORIGINS_MAX_COUNT;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    url: String,
    near: Vec<Region>,
}

impl Origin {
    /// Returns the origin's scheme, host and port, without a path or a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the regions whose clients prefer this origin; empty if `ORIGINS` names none.
    pub fn near(&self) -> &[Region] {
        &self.near
    }
}

/// A continent or country as its code of two characters, in upper case: `EU`, `DE`, `T1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region([u8; 2]);

impl Region {
    /// Parses a code in upper or lower case; `None` if it is not two ASCII letters or digits.
    pub fn parse(code: &str) -> Option<Self> {
        let code: [u8; 2] = code.as_bytes().try_into().ok()?;
        let code = code.map(|byte| byte.to_ascii_uppercase());
        code.iter().all(u8::is_ascii_alphanumeric).then_some(Self(code))
    }

    pub fn code(self) -> [char; 2] {
        self.0.map(char::from)
    }
}

/// Parses the variable `ORIGINS`: `https://host[:port][;near=EU|AF],…` (or `http://`). Fails if an entry is malformed
/// or listed twice, or if there are more than [`ORIGINS_MAX_COUNT`].
pub(super) fn parse(text: &str) -> Result<Vec<Origin>, ConfigError> {
    let mut origins: Vec<Origin> = Vec::new();
    for (index, entry) in text.split(',').enumerate() {
        let number = index + 1;
        if number > ORIGINS_MAX_COUNT {
            return Err(ConfigError::TooManyOrigins);
        }
        let origin = parse_one(entry.trim()).ok_or(ConfigError::Origin(number))?;
        // An origin that is listed twice would be tried again after it failed.
        let is_there = |other: &Origin| other.url.eq_ignore_ascii_case(&origin.url);
        if origins.iter().any(is_there) {
            return Err(ConfigError::OriginTwice(number));
        }
        origins.push(origin);
    }
    Ok(origins)
}

fn parse_one(entry: &str) -> Option<Origin> {
    let (url, near) = match entry.split_once(';') {
        Some((url, option)) => (url.trim_end(), Some(option.trim().strip_prefix("near=")?)),
        None => (entry, None),
    };
    let url = url.strip_suffix('/').unwrap_or(url);
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    // Clients' paths are appended to this URL. If it had an `@`, requests with their keys would go to another host.
    let is_host = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b));
    if !is_host {
        return None;
    }
    let near = match near {
        Some(codes) => codes.split('|').map(|code| Region::parse(code.trim())).collect::<Option<_>>()?,
        None => Vec::new(),
    };
    Some(Origin { url: url.to_owned(), near })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_stand_in_their_order_with_the_regions_they_are_near_to() {
        let text = "https://a.example;near=eu|AF, http://[::1]:8080/ ,https://b.example ; near=DE";
        let origins = parse(text).unwrap();
        let seen: Vec<(&str, String)> = origins
            .iter()
            .map(|origin| {
                let codes = origin.near().iter().flat_map(|region| region.code());
                (origin.url(), codes.collect())
            })
            .collect();
        let expected = [("https://a.example", "EUAF"), ("http://[::1]:8080", ""), ("https://b.example", "DE")];
        assert_eq!(seen, expected.map(|(url, codes)| (url, codes.to_owned())));
    }

    #[test]
    fn sixteen_origins_are_listed_and_not_one_more() {
        let list = |count: usize| {
            let urls = (0..count).map(|n| format!("https://o{n}.example"));
            parse(&urls.collect::<Vec<_>>().join(","))
        };
        assert_eq!(list(ORIGINS_MAX_COUNT).unwrap().len(), ORIGINS_MAX_COUNT);
        let refused = list(ORIGINS_MAX_COUNT + 1);
        assert!(matches!(refused, Err(ConfigError::TooManyOrigins)));
    }
}
