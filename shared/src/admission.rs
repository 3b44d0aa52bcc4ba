//! Who gets in, and in which order a request is refused: the same at both doors.
//!
//! Knows neither bodies nor how a key is verified (the edge asks its public keys, the origin also
//! its list of revoked ones): that is a parameter.

use crate::error::{ErrorCode, Problem};
use crate::key::Principal;
use crate::limits::JSON_BODY_MAX_BYTES;
use crate::operation::{Pending, RequestHead, parse_head};
use crate::policy::{Action, permit};

/// A request that may proceed to its body: who calls, and what for.
#[derive(Clone, Debug)]
pub struct Admitted {
    principal: Principal,
    pending: Pending,
}

impl Admitted {
    /// Who calls.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The caller and the operation that awaits its body.
    #[must_use]
    pub fn into_parts(self) -> (Principal, Pending) {
        (self.principal, self.pending)
    }
}

/// A request whose route is known to exist, before its key is looked at.
#[derive(Debug)]
pub struct Knock(Result<Pending, Problem>);

/// Looks at a request's head: a path that leads nowhere, or a method that it does not have, is told to
/// anybody; every other fault only to who has a key.
///
/// # Errors
/// `route_not_found`, `method_not_allowed`, `uri_too_long`.
pub fn knock(head: &RequestHead<'_>) -> Result<Knock, Problem> {
    match parse_head(head) {
        Err(problem) if is_public(problem.code()) => Err(problem),
        parsed => Ok(Knock(parsed)),
    }
}

impl Knock {
    /// What is asked for, if the head is right.
    #[must_use]
    pub fn action(&self) -> Option<Action> {
        self.0.as_ref().ok().map(Pending::action)
    }

    /// Lets a caller in whose key is verified: the rest of the head, then the policy.
    ///
    /// # Errors
    /// Those of [`parse_head`] and of [`permit`], in that order; then `unsupported_media_type`.
    pub fn admit(self, principal: &Principal) -> Result<Pending, Problem> {
        let pending = self.0?;
        permit(pending.action(), principal.access())?;
        pending.check_body_type()?;
        Ok(pending)
    }
}

/// Admits a request where verifying needs no waiting: [`knock`], then `verify`, then
/// [`Knock::admit`].
///
/// # Errors
/// Those of the three, the first in that order.
pub fn admit(
    head: &RequestHead<'_>,
    verify: impl FnOnce() -> Result<Principal, Problem>,
) -> Result<Admitted, Problem> {
    let knock = knock(head)?;
    let principal = verify()?;
    let pending = knock.admit(&principal)?;
    Ok(Admitted { principal, pending })
}

/// Refuses a body by its announced length, before a byte of it is read.
///
/// # Errors
/// `body_too_large`.
pub fn check_body_length(bytes: u64) -> Result<(), Problem> {
    match usize::try_from(bytes) {
        Ok(0..=JSON_BODY_MAX_BYTES) => Ok(()),
        _ => Err(body_too_large(JSON_BODY_MAX_BYTES)),
    }
}

/// The answer to a body of more than so many bytes.
#[must_use]
pub fn body_too_large(most: usize) -> Problem {
    Problem::new(
        ErrorCode::BodyTooLarge,
        format!("The body is larger than {most} bytes."),
    )
    .with_hint("Send the records in several requests.")
}

/// Faults of the route itself, which need no key to be told.
const fn is_public(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::RouteNotFound | ErrorCode::MethodNotAllowed | ErrorCode::UriTooLong
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ident::ProjectName;
    use crate::key::{Access, Claims, KeySet, SigningKey, verify};
    use crate::operation::BodyUse;

    const NOW: u64 = 1_790_000_000;

    fn principal(access: Access) -> Principal {
        let signing = SigningKey::from_seed("k1", &[7; 32]);
        let claims = Claims::new(
            uuid::Builder::from_unix_timestamp_millis(NOW * 1000, &[1; 10]).into_uuid(),
            &ProjectName::parse("default").unwrap(),
            access,
            NOW,
            None,
        );
        let keys = KeySet::new(vec![signing.public()]).unwrap();
        verify(Some(&signing.sign(&claims).unwrap()), &keys, NOW).unwrap()
    }

    fn head<'a>(method: &'a str, path: &'a str, query: Option<&'a str>) -> RequestHead<'a> {
        RequestHead {
            method,
            path,
            query,
            ..RequestHead::default()
        }
    }

    fn no_key() -> Result<Principal, Problem> {
        Err(Problem::new(ErrorCode::MissingKey, "none"))
    }

    #[test]
    fn a_path_that_leads_nowhere_says_so_without_a_key() {
        for (method, path, code) in [
            ("GET", "/api/v1/nothing", ErrorCode::RouteNotFound),
            ("GET", "/metrics", ErrorCode::RouteNotFound),
            ("GET", "/api/v1/sql", ErrorCode::MethodNotAllowed),
        ] {
            assert_eq!(
                admit(&head(method, path, None), no_key).unwrap_err().code(),
                code
            );
        }
    }

    #[test]
    fn the_key_is_asked_before_the_options_are_judged() {
        let odd = head("GET", "/api/v1/crud/a/b", Some("nonsense=1"));
        assert_eq!(
            admit(&odd, no_key).unwrap_err().code(),
            ErrorCode::MissingKey
        );
        let read = || Ok(principal(Access::Read));
        assert_eq!(
            admit(&odd, read).unwrap_err().code(),
            ErrorCode::InvalidQueryOption
        );
    }

    #[test]
    fn a_read_key_is_stopped_before_its_body_is_read() {
        let insert = head("POST", "/api/v1/crud/a/b", None);
        let refused = admit(&insert, || Ok(principal(Access::Read))).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::FullAccessRequired);
        let (_, pending) = admit(&insert, || Ok(principal(Access::Full)))
            .unwrap()
            .into_parts();
        assert_eq!(pending.body(), BodyUse::Json);
    }

    #[test]
    fn a_body_over_the_limit_is_refused_by_its_announcement() {
        assert!(check_body_length(JSON_BODY_MAX_BYTES as u64).is_ok());
        for bytes in [JSON_BODY_MAX_BYTES as u64 + 1, u64::MAX] {
            assert_eq!(
                check_body_length(bytes).unwrap_err().code(),
                ErrorCode::BodyTooLarge
            );
        }
    }
}
