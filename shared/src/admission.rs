//! Admits a request, at the edge and again at the origin: checks the route, the API key or user's token, the options,
//! the access and the body's type, in this order. Options are not parsed before, so that a request without a key costs
//! little. Doesn't read bodies or verify keys: the caller passes a function that authenticates, since only the origin
//! knows which keys are revoked.

use crate::error::{ErrorCode, Problem};
use crate::key::Principal;
use crate::limits::JSON_BODY_MAX_BYTES;
use crate::operation::Pending;
use crate::operation::route::{self, Resource};
use crate::policy::Action;
use crate::request::RequestHead;
use std::borrow::Borrow;

/// Returns the caller and the request, whose body is not parsed yet. `authenticate` gets the route's action, or `None`
/// for an invalid name or id in the path. `route_not_found`, `method_not_allowed` and `uri_too_long` are returned
/// before it is called, all other errors after that.
pub async fn admit<P: Borrow<Principal>>(
    head: &RequestHead<'_>,
    authenticate: impl AsyncFnOnce(Option<Action>) -> Result<P, Problem>,
) -> Result<(P, Pending), Problem> {
    let resource = resolve(head)?;
    let action = resource.as_ref().ok().map(|resource| resource.action(head));
    let principal = authenticate(action).await?;
    let pending = Pending::parse(head, resource?)?.permit(principal.borrow().grant())?;
    Ok((principal, pending))
}

/// Returns the action of a request that only the origin can authenticate. Fails with the errors that [`admit`] returns
/// before it authenticates; `None` for other errors, which only an authenticated caller may see.
pub fn unadmitted_action(head: &RequestHead<'_>) -> Result<Option<Action>, Problem> {
    Ok(resolve(head)?.ok().map(|resource| resource.action(head)))
}

/// Returns the route's resource. Any caller may see the outer error, only an authenticated caller the inner one.
fn resolve(head: &RequestHead<'_>) -> Result<Result<Resource, Problem>, Problem> {
    match route::resolve(head) {
        Err(problem) if is_public(problem.code()) => Err(problem),
        resolved => Ok(resolved),
    }
}

/// Fails with `body_too_large` for more than [`JSON_BODY_MAX_BYTES`].
pub fn check_body_length(bytes: u64) -> Result<(), Problem> {
    match usize::try_from(bytes) {
        Ok(0..=JSON_BODY_MAX_BYTES) => Ok(()),
        _ => Err(body_too_large(JSON_BODY_MAX_BYTES)),
    }
}

pub fn body_too_large(most: usize) -> Problem {
    Problem::new(ErrorCode::BodyTooLarge, format!("The body is larger than {most} bytes."))
        .with_hint("Send the records in several requests.")
}

const fn is_public(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::RouteNotFound | ErrorCode::MethodNotAllowed | ErrorCode::UriTooLong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ident::ProjectName;
    use crate::key::{Access, KeyClaims, KeySet, SigningKey, verify};
    use crate::operation::BodyUse;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const NOW: u64 = 1_790_000_000;

    fn principal(access: Access) -> Principal {
        let signing = SigningKey::from_seed("k1", &[7; 32]);
        let claims = KeyClaims::new(
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
        RequestHead { method, path, query, ..RequestHead::default() }
    }

    fn admit_now(
        head: &RequestHead<'_>,
        authenticate: impl AsyncFnOnce(Option<Action>) -> Result<Principal, Problem>,
    ) -> Result<Pending, Problem> {
        let admitted = pin!(admit(head, authenticate));
        match admitted.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(admitted) => admitted.map(|(_, pending)| pending),
            Poll::Pending => panic!("admission waits for nothing but authentication"),
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
            let refused = admit_now(&head(method, path, None), async |_| no_key()).unwrap_err();
            assert_eq!(refused.code(), code, "{method} {path}");
        }
    }

    #[test]
    fn the_key_is_asked_before_the_options_are_judged() {
        let odd = head("GET", "/api/v1/crud/a/b", Some("nonsense=1"));
        let code = |authenticated| admit_now(&odd, async |_| authenticated).unwrap_err().code();
        assert_eq!(code(no_key()), ErrorCode::MissingKey);
        let read = principal(Access::Read);
        assert_eq!(code(Ok(read)), ErrorCode::InvalidQueryOption);
    }

    #[test]
    fn a_read_key_is_stopped_before_its_body_is_read() {
        let insert = head("POST", "/api/v1/crud/a/b", None);
        let refused = admit_now(&insert, async |_| Ok(principal(Access::Read))).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::FullAccessRequired);
        let pending = admit_now(&insert, async |_| Ok(principal(Access::Full))).unwrap();
        assert_eq!(pending.body(), BodyUse::Json);
    }

    #[test]
    fn a_read_key_is_stopped_by_what_only_its_body_asks_for() {
        let query = head("POST", "/api/v1/crud/a/b/query", None);
        let code = |access, body: &[u8]| {
            let pending = admit_now(&query, async |_| Ok(principal(access))).unwrap();
            pending.finish(body).err().map(|problem| problem.code())
        };
        let explain = br#"{"explain":true}"#;
        assert_eq!(code(Access::Read, b"{}"), None);
        assert_eq!(code(Access::Full, explain), None);
        let expected = Some(ErrorCode::FullAccessRequired);
        assert_eq!(code(Access::Read, explain), expected);
    }

    #[test]
    fn authentication_is_told_the_action_of_the_route_before_options_are_parsed() {
        for (method, path, query, expected) in [
            ("GET", "/api/v1/crud/a/b", None, Some(Action::Read)),
            ("GET", "/api/v1/crud/a/b", Some("nonsense=1"), Some(Action::Read)),
            ("GET", "/api/v1/crud/a/b/1", Some("explain=true"), Some(Action::ReadOne)),
            ("DELETE", "/api/v1/crud/a/b", Some("limit=%"), Some(Action::Delete)),
            ("POST", "/api/v1/media/tus", None, Some(Action::BeginUpload)),
            ("GET", "/api/v1/crud/a%00/b", None, None),
        ] {
            let mut told = None;
            let refused = admit_now(&head(method, path, query), async |action| {
                told = Some(action);
                no_key()
            });
            assert!(refused.is_err());
            assert_eq!(told, Some(expected), "{method} {path} {query:?}");
        }
    }

    #[test]
    fn a_body_over_the_limit_is_refused_by_its_announcement() {
        assert!(check_body_length(JSON_BODY_MAX_BYTES as u64).is_ok());
        for bytes in [JSON_BODY_MAX_BYTES as u64 + 1, u64::MAX] {
            assert_eq!(check_body_length(bytes).unwrap_err().code(), ErrorCode::BodyTooLarge);
        }
    }
}
