//! The base of file URLs in responses (setting `public_url`).

/// A URL without a path and without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(Box<str>);

impl BaseUrl {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let (scheme, host) = text.split_once("://")?;
        Self::from_parts(scheme, host)
    }

    pub fn from_parts(scheme: &str, host: &str) -> Option<Self> {
        let known = matches!(scheme, "http" | "https");
        (known && is_host(host)).then(|| Self(format!("{scheme}://{host}").into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether a text is a host. An `@` or a slash would change the meaning of the URL.
fn is_host(host: &str) -> bool {
    let plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:[]_".contains(&byte));
    plain && host.len() <= HOST_MAX_BYTES && host.starts_with(|c: char| c != ':' && c != '.' && c != '-')
}

/// The maximum length of a host with its port. A DNS name has at most 253 bytes.
const HOST_MAX_BYTES: usize = 260;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_a_scheme_a_host_and_a_port() {
        for (text, base) in [
            ("https://api.example.com", "https://api.example.com"),
            ("https://api.example.com/", "https://api.example.com"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://under_score", "http://under_score"),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().as_str(), base);
        }
        for text in [
            "",
            "api.example.com",
            "https://",
            "ftp://a",
            "HTTPS://a",
            "javascript://a",
            "https://a/b",
            "https://a//",
            "https://a?b",
            "https://a#b",
            "https://user@a",
            "https://a b",
            "https://a\r\nb",
            "https://é",
            "https://:80",
            "https://a\"onload=",
            &format!("https://{}", "a".repeat(300)),
        ] {
            assert_eq!(BaseUrl::parse(text), None, "{text}");
        }
    }
}
