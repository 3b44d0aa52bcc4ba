//! Verifies the tokens of the issuers in `ISSUERS`; the runtime checks the signatures. The origin verifies every token
//! again, since only the origin knows the issuers and roles of projects.

use shared::error::Problem;
use shared::key::{EdgeIssuers, NoKey, Token, UserIdentity, UserToken, VerificationKey, VerifiedTokens, untrusted};
use shared::request_log::UserCaller;
use std::cell::RefCell;

/// Maximum number of verified tokens in each of the cache's two generations. At some 100 bytes a token, the cache takes
/// at most 0.4 MB of an isolate's 128 MB.
const CAPACITY: usize = 2_048;

#[derive(Debug)]
pub(super) struct UserTokens {
    issuers: EdgeIssuers,
    verified: RefCell<VerifiedTokens<UserIdentity>>,
}

impl UserTokens {
    pub(super) fn new(issuers: EdgeIssuers) -> Self {
        Self { issuers, verified: RefCell::new(VerifiedTokens::new(CAPACITY)) }
    }

    /// Verifies a token of another issuer. `has_signed` returns whether a key signed the token, or `None` if that is
    /// unknown. Returns `None` for an API key and for text that is no signed JWT with an issuer. Returns
    /// [`UserCaller::Unverified`] if `ISSUERS` is empty, if an unlisted key may have signed the token, or if
    /// `has_signed` returns `None`. Fails if `ISSUERS` lists only other issuers, or if the origin would have to refuse
    /// the token too.
    pub(super) async fn verify(
        &self,
        token: Token<'_>,
        now: u64,
        has_signed: impl AsyncFnOnce(&VerificationKey, &UserToken<'_>) -> Option<bool>,
    ) -> Result<Option<UserCaller>, Problem> {
        let digest = token.digest();
        let known = self.verified.borrow_mut().get(&digest);
        if let Some(identity) = known {
            return identity.check_lifetime(now).map(|()| Some(UserCaller::Verified(identity)));
        }
        let Some(token) = token.of_user() else {
            return Ok(None);
        };
        let unverified = Ok(Some(UserCaller::Unverified(digest)));
        let Some(keys) = self.issuers.keys_for(&token)? else {
            // Tokens from log-in links to the console are signed by the installation itself.
            return match token.is_of_link() {
                true => unverified,
                false if self.issuers.is_empty() => token.check_form().and(unverified),
                false => Err(untrusted()),
            };
        };
        token.check_form()?;
        let is_signed = match keys.find(token.header()) {
            // A signature of a wrong length is not passed to the runtime, which fails on some lengths.
            Ok(key) if token.signature().len() != key.signature_bytes() => Some(false),
            Ok(key) => has_signed(key, &token).await,
            Err(NoKey::UnknownId) => None,
            Err(NoKey::Unfit) => Some(false),
        };
        match is_signed {
            Some(true) => {}
            Some(false) if token.header().kid.is_some() => return Err(untrusted()),
            // An unlisted, newer key of the issuer may have signed the token.
            Some(false) | None => return unverified,
        }
        let identity = token.identify(now)?;
        self.verified.borrow_mut().insert(digest, identity);
        Ok(Some(UserCaller::Verified(identity)))
    }
}
