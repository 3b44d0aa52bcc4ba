//! The variables of access control: rate limit, edge secret, client address, full-access keys in browsers.

use super::{ConfigError, non_blank, switch};
use shared::error::{ErrorCode, Problem};
use shared::key::Grant;
use shared::rate::RateLimit;
use std::fmt;

/// Length of the secret that `selkie edge secret` prints.
const SECRET_CHARS: usize = 43;

const HEADER_NAME_MAX_BYTES: usize = 64;

/// Which API keys web pages may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PageKeys {
    #[default]
    Read,
    Any,
}

/// The secret by which the edge proves its identity to the origin. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct EdgeSecret(String);

impl EdgeSecret {
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for EdgeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EdgeSecret(…)")
    }
}

/// The settings of access control. By default there is no rate limit, no secret and no trusted header.
#[derive(Debug, Default)]
pub struct AccessConfig {
    /// The limit that Cloudflare's rate limiter enforces, for error messages; `None` if the edge does not limit rates.
    pub rate_limit: Option<RateLimit>,
    /// The secret that is sent to the origins; `None` if the origins require no secret.
    pub edge_secret: Option<EdgeSecret>,
    /// The request header, in lower case, whose value is trusted as the client's address; `None` to use the address
    /// that the runtime reports.
    pub client_address: Option<String>,
    page_keys: PageKeys,
}

impl AccessConfig {
    pub(super) fn read(variable: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let rate_limit = match non_blank(variable("RATE_LIMIT")).as_deref() {
            None | Some("off") => None,
            Some(text) => Some(RateLimit::parse(text).ok_or(ConfigError::Form("RATE_LIMIT", RateLimit::EXPECTED))?),
        };
        let edge_secret = match non_blank(variable("EDGE_SECRET")) {
            None => None,
            Some(text) if is_secret(&text) => Some(EdgeSecret(text)),
            Some(_) => {
                return Err(ConfigError::Form("EDGE_SECRET", "what `selkie edge secret` prints"));
            }
        };
        let client_address = match non_blank(variable("CLIENT_ADDRESS_HEADER")) {
            None => None,
            Some(name) if is_header(&name) => Some(name.to_ascii_lowercase()),
            Some(_) => {
                return Err(ConfigError::Form("CLIENT_ADDRESS_HEADER", "the name of a header"));
            }
        };
        let allows_full_keys = switch("ALLOW_FULL_KEYS_FROM_BROWSERS", &variable)?;
        let page_keys = match allows_full_keys {
            Some(true) => PageKeys::Any,
            Some(false) | None => PageKeys::Read,
        };
        Ok(Self { rate_limit, edge_secret, client_address, page_keys })
    }

    /// Refuses a full-access key in a request of a web page, unless the configuration allows it. A request with
    /// `Origin` counts as one of a web page: browsers send `Origin` with cross-origin requests and with all requests
    /// that may write.
    pub fn check_page(&self, origin: Option<&str>, grant: &Grant) -> Result<(), Problem> {
        if origin.is_none() || *grant != Grant::Full || self.page_keys == PageKeys::Any {
            return Ok(());
        }
        Err(Problem::new(
            ErrorCode::PermissionDenied,
            "A full key does not belong in a web page: everybody who opens the page has it.",
        )
        .with_hint(
            "Use a key with a role, or call from a server. Where all who open the page may do everything, set \
             ALLOW_FULL_KEYS_FROM_BROWSERS to on.",
        ))
    }
}

fn is_secret(text: &str) -> bool {
    text.len() == SECRET_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn is_header(name: &str) -> bool {
    name.len() <= HEADER_NAME_MAX_BYTES && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<AccessConfig, ConfigError> {
        AccessConfig::read(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn without_variables_nothing_is_limited_proved_or_believed() {
        let access = read("", "").unwrap();
        assert_eq!((access.rate_limit, access.edge_secret.clone(), access.client_address.clone()), (None, None, None));
        assert!(access.check_page(Some("https://a.example"), &Grant::Full).is_err());
        assert!(access.check_page(Some("null"), &Grant::Full).is_err());
        assert!(access.check_page(Some("https://a.example"), &Grant::Read).is_ok());
        assert!(access.check_page(None, &Grant::Full).is_ok());
    }

    #[test]
    fn pages_may_use_full_keys_where_that_is_wanted() {
        for text in ["on", "true"] {
            let access = read("ALLOW_FULL_KEYS_FROM_BROWSERS", text).unwrap();
            let checked = access.check_page(Some("https://a.example"), &Grant::Full);
            assert!(checked.is_ok(), "{text}");
        }
    }

    #[test]
    fn a_headers_name_is_read_in_lower_case() {
        let access = read("CLIENT_ADDRESS_HEADER", "CF-Connecting-IP").unwrap();
        assert_eq!(access.client_address.as_deref(), Some("cf-connecting-ip"));
    }

    #[test]
    fn the_variable_at_fault_is_named_and_its_value_is_not() {
        for (name, value) in [
            ("RATE_LIMIT", "secret"),
            ("EDGE_SECRET", "secret"),
            ("EDGE_SECRET", "secret.............................secret.."),
            ("CLIENT_ADDRESS_HEADER", "secret header"),
            ("ALLOW_FULL_KEYS_FROM_BROWSERS", "secret"),
        ] {
            let message = read(name, value).unwrap_err().to_string();
            let rest = message.replace("selkie edge secret", "");
            assert!(message.contains(name) && !rest.contains("secret"), "{message}");
        }
    }

    #[test]
    fn the_secret_shows_itself_to_nobody() {
        let text = "a".repeat(SECRET_CHARS);
        let access = read("EDGE_SECRET", &text).unwrap();
        assert!(!format!("{access:?}").contains(&text));
    }
}
