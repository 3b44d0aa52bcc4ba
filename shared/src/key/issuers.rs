//! The issuers whose tokens the edge verifies: the worker's variable `ISSUERS`, from `selkie issuer keys`.

use super::user_token::untrusted;
use super::{JwkSetFault, KeyFault, UserToken, VerificationKeys};
use crate::error::Problem;
use crate::limits::EDGE_ISSUERS_MAX_COUNT;
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeIssuer {
    pub issuer: String,
    pub audience: String,
    pub keys: VerificationKeys,
}

/// At most [`EDGE_ISSUERS_MAX_COUNT`] issuers, each with a key. No two have both the same `iss` and the same audience.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeIssuers(Vec<EdgeIssuer>);

/// Why `ISSUERS` is refused. Entries are numbered from 1; no message shows a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EdgeIssuersFault {
    #[error("it is no JSON list of objects with \"issuer\", \"audience\" and \"jwks\"")]
    Form,
    #[error("it lists {0} issuers, and at most {EDGE_ISSUERS_MAX_COUNT} are allowed")]
    TooMany(usize),
    #[error("the JWK set of entry {0} is wrong: {1}")]
    Set(usize, JwkSetFault),
    #[error("entry {0} has a key that is private or symmetric: whoever has it can sign tokens")]
    Secret(usize),
    #[error("entry {0} has no key that can verify tokens (RS256, ES256 or EdDSA)")]
    NoKey(usize),
    #[error("entry {0} has the issuer and the audience of an entry before it")]
    Repeated(usize),
}

impl EdgeIssuers {
    pub fn new(issuers: Vec<EdgeIssuer>) -> Result<Self, EdgeIssuersFault> {
        if issuers.len() > EDGE_ISSUERS_MAX_COUNT {
            return Err(EdgeIssuersFault::TooMany(issuers.len()));
        }
        for (at, issuer) in issuers.iter().enumerate() {
            let is_same = |other: &EdgeIssuer| other.issuer == issuer.issuer && other.audience == issuer.audience;
            if issuer.keys.is_empty() {
                return Err(EdgeIssuersFault::NoKey(at + 1));
            }
            if issuers[..at].iter().any(is_same) {
                return Err(EdgeIssuersFault::Repeated(at + 1));
            }
        }
        Ok(Self(issuers))
    }

    /// Parses `[{"issuer": "https://id.example", "audience": "app", "jwks": {"keys": […]}}]`. Ignores keys that can't
    /// verify tokens, but refuses secret keys.
    pub fn parse(text: &str) -> Result<Self, EdgeIssuersFault> {
        let Ok(Value::Array(entries)) = serde_json::from_str(text) else {
            return Err(EdgeIssuersFault::Form);
        };
        let mut issuers = Vec::new();
        for (number, entry) in (1..).zip(&entries) {
            let text = |name| entry.get(name).and_then(Value::as_str).map(str::to_owned);
            let (Some(issuer), Some(audience), Some(set)) = (text("issuer"), text("audience"), entry.get("jwks"))
            else {
                return Err(EdgeIssuersFault::Form);
            };
            let (keys, unusable) = VerificationKeys::of(set).map_err(|fault| EdgeIssuersFault::Set(number, fault))?;
            if unusable.iter().any(|key| key.fault == KeyFault::Secret) {
                return Err(EdgeIssuersFault::Secret(number));
            }
            issuers.push(EdgeIssuer { issuer, audience, keys });
        }
        Self::new(issuers)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn to_json(&self) -> Value {
        let entry = |EdgeIssuer { issuer, audience, keys }: &EdgeIssuer| json!({"issuer": issuer, "audience": audience, "jwks": keys.to_jwks()});
        self.0.iter().map(entry).collect()
    }

    /// Returns the keys of the token's issuer; `None` if the issuer is not listed. Fails with `invalid_key` if the
    /// issuer is listed, but not for exactly one of the token's audiences.
    pub fn keys_for(&self, token: &UserToken<'_>) -> Result<Option<&VerificationKeys>, Problem> {
        let listed = || self.0.iter().filter(|entry| entry.issuer == token.issuer());
        let mut meant = listed().filter(|entry| token.has_audience(&entry.audience));
        match (meant.next(), meant.next()) {
            (Some(entry), None) => Ok(Some(&entry.keys)),
            _ if listed().next().is_none() => Ok(None),
            _ => Err(untrusted()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Token;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    fn key() -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    }

    fn entry(issuer: &str, audience: &str, keys: &[Value]) -> Value {
        json!({"issuer": issuer, "audience": audience, "jwks": {"keys": keys}})
    }

    fn parse(entries: &[Value]) -> Result<EdgeIssuers, EdgeIssuersFault> {
        EdgeIssuers::parse(&Value::from(entries).to_string())
    }

    #[test]
    fn a_list_is_printed_as_it_is_parsed() {
        let list = [entry("https://a", "x", &[key()]), entry("https://a", "y", &[key()])];
        assert_eq!(parse(&list).unwrap().to_json(), Value::from(&list[..]));
        assert_eq!(parse(&[]).unwrap(), EdgeIssuers::default());
        // Neither the unusable keys nor the members of a key beside its public part are printed.
        let mut used = key();
        used["use"] = "sig".into();
        used["x5c"] = json!(["A"]);
        let other = json!({"kty": "EC", "crv": "P-384", "kid": "b"});
        assert_eq!(parse(&[entry("https://a", "x", &[used, other])]).unwrap().to_json(), Value::from(&list[..1]));
    }

    #[test]
    fn a_fault_names_the_entry_and_never_a_value() {
        let good = || entry("https://a", "x", &[key()]);
        let mut private = key();
        private["d"] = "secret".into();
        let without = |name: &str| {
            let mut entry = good();
            entry[name] = Value::Null;
            entry
        };
        for (entries, expected) in [
            (vec![without("issuer")], EdgeIssuersFault::Form),
            (vec![without("audience")], EdgeIssuersFault::Form),
            (vec![json!("secret")], EdgeIssuersFault::Form),
            (vec![without("jwks")], EdgeIssuersFault::Set(1, JwkSetFault::NotAJwkSet)),
            (vec![good(), entry("https://b", "x", &[key(), private])], EdgeIssuersFault::Secret(2)),
            (vec![good(), entry("https://b", "x", &[])], EdgeIssuersFault::NoKey(2)),
            (vec![good(), entry("https://b", "x", &[key()]), good()], EdgeIssuersFault::Repeated(3)),
            (
                (0..=EDGE_ISSUERS_MAX_COUNT).map(|n| entry("https://a", &n.to_string(), &[key()])).collect(),
                EdgeIssuersFault::TooMany(EDGE_ISSUERS_MAX_COUNT + 1),
            ),
        ] {
            let fault = parse(&entries).unwrap_err();
            assert_eq!(fault, expected);
            assert!(!fault.to_string().contains("secret"), "{fault}");
        }
        for text in ["", "secret", "{}", "[1", "null"] {
            assert_eq!(EdgeIssuers::parse(text), Err(EdgeIssuersFault::Form), "{text}");
        }
    }

    #[test]
    fn keys_are_those_of_the_only_entry_that_is_meant() {
        let issuers = ["x", "y"].map(|audience| entry("https://a", audience, &[key()]));
        let issuers = parse(&issuers).unwrap();
        for (issuer, audience, expected) in [
            ("https://a", json!("x"), Ok(true)),
            ("https://a", json!(["z", "y"]), Ok(true)),
            ("https://a", json!(["x", "y"]), Err(())),
            ("https://a", json!("z"), Err(())),
            ("https://a", json!([]), Err(())),
            ("https://a", json!({"x": "x"}), Err(())),
            ("https://a/", json!("x"), Ok(false)),
        ] {
            let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
            let claims = json!({"iss": issuer, "aud": audience});
            let text = format!("{}.{}.AQ", part(&json!({"alg": "EdDSA"})), part(&claims));
            let token = Token::from_header(Some(&text)).unwrap().of_user().unwrap();
            let found = issuers.keys_for(&token).map(|keys| keys.is_some()).map_err(drop);
            assert_eq!(found, expected, "{claims}");
        }
    }
}
