//! Tokens of other issuers, which sign in a project's own users. Parses them without verifying anything: only the
//! origin knows the issuers and their keys.

use super::{ISSUER, RoleClaims, Token};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// The header of a token.
#[derive(Deserialize)]
pub struct UserTokenHeader {
    pub alg: String,
    pub kid: Option<String>,
    pub typ: Option<String>,
    /// Extensions that a verifier must understand (RFC 7515, 4.1.11).
    pub crit: Option<IgnoredAny>,
}

/// A well-formed JWT that names another issuer than Selkie. Nothing in it is verified.
pub struct UserToken<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    header: UserTokenHeader,
    issuer: String,
    claims: RoleClaims,
}

impl<'a> Token<'a> {
    /// Parses a token of another issuer; `None` for a token of Selkie's own, and for what is no signed JWT with an
    /// issuer.
    #[must_use]
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
    #[must_use]
    pub fn header(&self) -> &UserTokenHeader {
        &self.header
    }

    /// Returns the claim `iss`, which is not [`ISSUER`].
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    #[must_use]
    pub fn claims(&self) -> &RoleClaims {
        &self.claims
    }

    #[must_use]
    pub fn into_claims(self) -> RoleClaims {
        self.claims
    }

    /// Returns the bytes that are signed: header and claims as they were sent.
    #[must_use]
    pub fn signed_bytes(&self) -> &[u8] {
        self.signed.as_bytes()
    }

    #[must_use]
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }
}

/// Returns the id of an issuer's user, a UUIDv8: the same for all tokens of the user, and never the id of an API key,
/// which is a UUIDv7.
#[must_use]
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
