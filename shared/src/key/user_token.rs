//! Tokens of other issuers, by which a project's own users are authenticated: their parts, and checks of their header
//! and claims. Origin and edge verify the signature. Does not know which issuers are trusted.

use super::{ISSUER, LINK_ISSUER, RoleClaims, Token, UserTokenAlgorithm, invalid};
use crate::error::{ErrorCode, Problem};
use crate::limits::USER_TOKEN_LEEWAY_SECONDS;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// The accepted values of `typ` in lower case (RFC 7519, RFC 9068). Issuers also sign others, such as `logout+jwt`.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// The unverified header of a token.
#[derive(Deserialize)]
pub struct UserTokenHeader {
    pub alg: String,
    pub kid: Option<String>,
    pub typ: Option<String>,
    /// Extensions that a verifier must understand (RFC 7515, 4.1.11).
    pub crit: Option<IgnoredAny>,
}

/// A well-formed JWT whose `iss` is not `selkie`, unverified.
pub struct UserToken<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    header: UserTokenHeader,
    issuer: String,
    claims: RoleClaims,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserIdentity {
    pub subject: Uuid,
    /// An id made from the issuer, which no user has.
    pub issuer: Uuid,
    /// The time in seconds since 1970, with a tolerance for clock differences.
    pub expires_at: u64,
}

impl UserIdentity {
    /// Fails with `expired_key` if `now` (seconds since 1970) is at or after `expires_at`.
    pub fn check_lifetime(&self, now: u64) -> Result<(), Problem> {
        check_lifetime(self.expires_at, now)
    }
}

fn check_lifetime(expires_at: u64, now: u64) -> Result<(), Problem> {
    if now < expires_at {
        return Ok(());
    }
    Err(Problem::new(ErrorCode::ExpiredKey, "The token's lifetime is over.").with_hint("Ask its issuer for a new one."))
}

impl<'a> Token<'a> {
    /// Parses the token without verifying it. Returns `None` for API keys (`iss` is `selkie`) and for text that is no
    /// signed JWT with an issuer. The tokens of links to the console are parsed too: see [`UserToken::is_of_link`].
    pub fn of_user(self) -> Option<UserToken<'a>> {
        let (signed, signature) = self.0.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let claims: RoleClaims = serde_json::from_slice(&decode(claims)?).ok()?;
        let issuer = match claims.get("iss")? {
            Value::String(issuer) if issuer != ISSUER => issuer.clone(),
            _ => return None,
        };
        let header = serde_json::from_slice(&decode(header)?).ok()?;
        let signature = decode(signature).filter(|bytes| !bytes.is_empty())?;
        Some(UserToken { signed, signature, header, issuer, claims })
    }
}

impl UserToken<'_> {
    pub fn header(&self) -> &UserTokenHeader {
        &self.header
    }

    /// Returns whether the token claims to be a log-in link to the console, which the installation itself signs.
    pub fn is_of_link(&self) -> bool {
        self.issuer == LINK_ISSUER
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    pub fn claims(&self) -> &RoleClaims {
        &self.claims
    }

    pub fn into_claims(self) -> RoleClaims {
        self.claims
    }

    /// Returns header and claims as they were sent.
    pub fn signed_bytes(&self) -> &[u8] {
        self.signed.as_bytes()
    }

    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    pub fn has_audience(&self, audience: &str) -> bool {
        match self.claims.get("aud") {
            Some(Value::Array(several)) => several.iter().any(|one| one == audience),
            Some(one) => one == audience,
            None => false,
        }
    }

    /// Fails with `invalid_key` if the token's `typ` or `alg` is not accepted, if the signature's length does not fit
    /// `alg`, or if the token has extensions (`crit`).
    pub fn check_form(&self) -> Result<(), Problem> {
        let UserTokenHeader { alg, typ, crit, .. } = &self.header;
        let is_access = typ.as_ref().is_none_or(|typ| TYPES.contains(&&*typ.to_ascii_lowercase()));
        let is_possible = UserTokenAlgorithm::allows(alg, self.signature.len());
        if crit.is_none() && is_access && is_possible { Ok(()) } else { Err(untrusted()) }
    }

    /// Checks the claims of a token with a verified signature. `now` is in seconds since 1970. Fails with `expired_key`
    /// from `exp` on; with `invalid_key` before `nbf`, or if a claim is missing or malformed. Times have a tolerance of
    /// [`USER_TOKEN_LEEWAY_SECONDS`].
    pub fn identify(&self, now: u64) -> Result<UserIdentity, Problem> {
        let expiry = self
            .seconds("exp")?
            .ok_or_else(|| invalid("The token has no exp, the second since 1970 at which it expires."))?;
        let expires_at = expiry.saturating_add(USER_TOKEN_LEEWAY_SECONDS);
        check_lifetime(expires_at, now)?;
        if self.seconds("nbf")?.is_some_and(|start| start > now.saturating_add(USER_TOKEN_LEEWAY_SECONDS)) {
            return Err(invalid("The token is not valid yet: its nbf is in the future.")
                .with_hint("Compare the clocks of the issuer and of this server."));
        }
        let subject = match self.claims.get("sub") {
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(invalid("The token has no sub, which names its user.")),
        };
        let [issuer, subject] = ["", &*subject].map(|subject| subject_id(&self.issuer, subject));
        Ok(UserIdentity { subject, issuer, expires_at })
    }

    /// Returns the seconds since 1970 of a claim; `None` if missing. Fails with `invalid_key` if it is no number ≥ 0.
    fn seconds(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(value) = self.claims.get(name) else {
            return Ok(None);
        };
        // Fractions are allowed (RFC 7519, 2) and are rounded down. The cast saturates.
        let whole = value.as_u64().or_else(|| value.as_f64().filter(|time| *time >= 0.0).map(|time| time as u64));
        match whole {
            Some(whole) => Ok(Some(whole)),
            None => Err(invalid(format!("The token's {name} is no number of seconds since 1970."))),
        }
    }
}

/// Returns the same `invalid_key` for an unknown issuer and a refused header, so that a forger learns nothing.
pub fn untrusted() -> Problem {
    invalid("The token was not signed by an issuer that this installation trusts for its audience.")
        .with_hint("Compare iss, aud, kid and alg of the token with selkie issuer list and the issuer's keys.")
}

/// Returns a user's id, the same for all the user's tokens. As a UUIDv8, it never equals an API key's id, a UUIDv7.
pub fn subject_id(issuer: &str, subject: &str) -> Uuid {
    let hash = Sha256::new().chain_update(issuer).chain_update([0]).chain_update(subject).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn token(header: &Value, claims: &Value, signature: &[u8]) -> String {
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let [header, claims] = [header, claims].map(|json| part(json.to_string().as_bytes()));
        format!("{header}.{claims}.{}", part(signature))
    }

    fn is_of_user(text: &str) -> bool {
        Token::from_header(Some(text)).is_ok_and(|token| token.of_user().is_some())
    }

    #[test]
    fn a_token_of_another_issuer_is_parsed() {
        let text = token(
            &json!({"alg": "RS256", "kid": "k", "typ": "JWT"}),
            &json!({"iss": "https://id.example", "sub": "7"}),
            &[1, 2],
        );
        let header = format!("Bearer {text}");
        let parsed = Token::from_header(Some(&header)).unwrap().of_user().unwrap();
        assert_eq!((parsed.issuer(), parsed.signature()), ("https://id.example", &[1, 2][..]));
        assert_eq!((&*parsed.header().alg, parsed.header().kid.as_deref()), ("RS256", Some("k")));
        assert_eq!(parsed.signed_bytes(), text.rsplit_once('.').unwrap().0.as_bytes());
        assert_eq!(parsed.into_claims()["sub"], "7");
    }

    #[test]
    fn a_token_of_selkie_or_without_an_issuer_is_no_users_token() {
        let header = json!({"alg": "EdDSA"});
        assert!(is_of_user(&token(&header, &json!({"iss": "Selkie"}), &[1])));
        for claims in [json!({"iss": "selkie"}), json!({"iss": ["x"]}), json!({"iss": null}), json!({}), json!("x")] {
            assert!(!is_of_user(&token(&header, &claims, &[1])), "{claims}");
        }
    }

    #[test]
    fn what_is_no_signed_jwt_is_no_users_token() {
        let (header, claims) = (json!({"alg": "none"}), json!({"iss": "x"}));
        let good = token(&header, &claims, &[1]);
        let (message, _) = good.rsplit_once('.').unwrap();
        for text in [
            token(&header, &claims, &[]),
            token(&json!({}), &claims, &[1]),
            token(&json!({"alg": 1}), &claims, &[1]),
            message.to_owned(),
            format!("{good}.AA"),
            format!("{good}="),
            "a.b.c".to_owned(),
            "..".to_owned(),
        ] {
            assert!(!is_of_user(&text), "{text}");
        }
    }

    #[test]
    fn subjects_have_ids_that_no_key_has() {
        let id = subject_id("https://a.example", "7");
        assert_eq!(id, subject_id("https://a.example", "7"));
        assert_eq!(id.get_version_num(), 8);
        for (issuer, subject) in [("https://b.example", "7"), ("https://a.example", "8"), ("https://a.example7", "")] {
            assert_ne!(subject_id(issuer, subject), id);
        }
    }
}
