//! Decides whether the edge, the cache or an origin answers a request.

use super::answer::Answer;
use super::bodies::Bodies;
use super::cache::{Cache, Cacheable};
use super::drains::{Drain, Drains};
use super::failed_attempt::Repeat;
use super::in_flight::InFlight;
use super::incoming_request::{BodyLength, IncomingRequest};
use super::origin_health::Origins;
use super::request_log::RefusalLines;
use super::user_tokens::UserTokens;
use crate::config::Config;
use shared::admission::{admit, check_body_length, unadmitted_action};
use shared::cors::is_preflight;
use shared::envelope;
use shared::error::{ErrorCode, Problem};
use shared::key::{Principal, Token, TokenCache, UserToken, VerificationKey};
use shared::limits::EDGE_CHECKED_BODY_MAX_BYTES;
use shared::media::FilePath;
use shared::operation::{BodyUse, Pending, route};
use shared::policy::Action;
use shared::request_log::{RequestLog, UserCaller};
use shared::upload::{Parser, UploadLimits, is_json_upload};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum number of verified keys in each of the token cache's two generations. At some 300 bytes a key (the claims of
/// keys with roles are dropped), the cache takes at most 1.2 MB of an isolate's 128 MB.
const TOKEN_CACHE_CAPACITY: usize = 2_048;

#[derive(Debug)]
pub enum Decision {
    Answer(Answer),
    Forward(BodyPlan),
    /// The cache or an origin answers. The request's body, if any, must be read as a whole.
    Cached(Cacheable),
    /// An origin answers a request for changes, perhaps for several callers at once. The request's body, if any, must be
    /// read as a whole.
    Changes(Arc<Principal>, Pending),
}

#[derive(Debug)]
pub enum BodyPlan {
    /// Forward the request without a body, since the operation has none or the body is empty.
    Drop,
    /// Forward the body as it arrives; the origin checks it. For long bodies, bodies of unknown length and form
    /// uploads.
    Stream,
    /// Read the body as a whole, check it with the shared parser, then forward it.
    Check(CheckedBody),
    /// Read the body as a whole, then forward it without checking it: the caller has a user's token, which the origin
    /// must verify before it examines the body. The action is `None` if the origin will refuse the path.
    Whole(Option<Action>),
}

/// A request's caller, as far as the edge knows.
#[derive(Debug)]
enum Authenticated {
    /// The caller has a key of this installation.
    Key(Arc<Principal>),
    /// The caller has a token of another issuer or of a console log-in link. Only the origin knows the caller's rights.
    User(UserCaller),
}

impl BodyPlan {
    /// Returns on which failures the request may be sent to another origin. A request with an `Idempotency-Key` is safe
    /// to repeat, because `admit`, here or at the origin, refuses the header on operations that don't support it.
    pub fn repeat(&self, request: &IncomingRequest) -> Repeat {
        let action = match self {
            Self::Drop => None,
            Self::Check(CheckedBody { pending, .. }) => Some(pending.action()),
            Self::Whole(action) => *action,
            Self::Stream => return Repeat::Never,
        };
        let is_harmless = match self {
            Self::Drop => matches!(request.method(), "GET" | "HEAD" | "OPTIONS"),
            _ => matches!(action, Some(Action::Query | Action::Follow)) || request.header("idempotency-key").is_some(),
        };
        if is_harmless { Repeat::Always } else { Repeat::IfUnsent }
    }
}

/// The state of an isolate: configuration, verified tokens, health of the origins, cache, requests in flight, bodies.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    tokens: RefCell<TokenCache>,
    users: UserTokens,
    origins: RefCell<Origins>,
    cache: Cache,
    in_flight: InFlight,
    bodies: Bodies,
    drains: Rc<RefCell<Drains>>,
    refusal_lines: RefusalLines,
}

impl Gateway {
    pub fn new(config: Config) -> Self {
        let tokens = TokenCache::new(config.keys.clone(), TOKEN_CACHE_CAPACITY);
        let silence_max = config.origin_connect_timeout.as_millis() as u64;
        let origins = Origins::new(config.origins.clone(), silence_max);
        let users = UserTokens::new(config.issuers.clone());
        let (tokens, origins) = (RefCell::new(tokens), RefCell::new(origins));
        let (in_flight, bodies) = (InFlight::default(), Bodies::default());
        let (drains, refusal_lines) = (Rc::default(), RefusalLines::default());
        let cache = Cache::new(&config);
        Self { cache, config, tokens, users, origins, in_flight, bodies, drains, refusal_lines }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    pub fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    pub fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    /// Calls [`Drain::begin`] with this isolate's drains.
    pub fn drain(&self, length: BodyLength, address: Box<str>, now: u64) -> Option<Drain> {
        Drain::begin(&self.drains, length, address, now)
    }

    pub fn refusal_lines(&self) -> &RefusalLines {
        &self.refusal_lines
    }

    /// Returns the origins and their health. The returned borrow must end before any await.
    pub fn origins(&self) -> RefMut<'_, Origins> {
        self.origins.borrow_mut()
    }

    /// Decides who answers a request, and records route, action and caller in `log`. `now` is in seconds since 1970.
    /// `has_signed` returns whether a key signed a user's token, or `None` if the runtime can't tell. Only `has_signed`
    /// is awaited.
    pub async fn decide(
        &self,
        request: &IncomingRequest,
        now: u64,
        log: &RequestLog,
        has_signed: impl AsyncFnOnce(&VerificationKey, &UserToken<'_>) -> Option<bool>,
    ) -> Result<Decision, Problem> {
        let requested_method = request.header("access-control-request-method");
        if is_preflight(request.method(), request.header("origin"), requested_method) {
            log.route("preflight");
            return Ok(Decision::Answer(Answer::preflight(&self.config.cors)));
        }
        if route::is_home(request.method(), &request.path, request.header("accept")) {
            log.route("/");
            return Ok(Decision::Forward(BodyPlan::Drop));
        }
        if let Some(page) = route::page(&request.path) {
            log.route(page);
            return only_get(request).map(|()| Decision::Forward(BodyPlan::Drop));
        }
        match request.path.as_str() {
            "/healthz" => {
                log.route("/healthz");
                only_get(request).map(|()| {
                    let payload = self.origins().describe(now * 1_000);
                    Decision::Answer(Answer::json(200, envelope::success(&payload)))
                })
            }
            "/readyz" => {
                log.route("/readyz");
                only_get(request).map(|()| Decision::Forward(BodyPlan::Drop))
            }
            path if path.starts_with(FilePath::PREFIX) => {
                log.route("/media/{path}");
                let path = route::file(request.method(), &request.path)?;
                if request.header("authorization").is_some() {
                    match self.authenticate(request, now, has_signed).await {
                        Ok(Authenticated::Key(principal)) => self.check_page(request, log.caller(principal))?,
                        Ok(Authenticated::User(caller)) => log.user(caller),
                        Err(_) => {}
                    }
                }
                // Only the origin knows whether the file exists and who may read it, so an invalid token is not refused
                // here.
                let file = self.cache.file(&path, request.query()).map(Cacheable::File);
                Ok(file.map_or(Decision::Forward(BodyPlan::Drop), Decision::Cached))
            }
            path => {
                self.config.cors.check_page(path, request.header("origin"))?;
                let caller = self.authenticate(request, now, has_signed).await;
                self.admit(request, caller, log).await
            }
        }
    }

    async fn authenticate(
        &self,
        request: &IncomingRequest,
        now: u64,
        has_signed: impl AsyncFnOnce(&VerificationKey, &UserToken<'_>) -> Option<bool>,
    ) -> Result<Authenticated, Problem> {
        let authorization = request.request_head().authorization;
        let verified = self.tokens.borrow_mut().verify(authorization, now);
        let problem = match verified {
            Ok(principal) => return Ok(Authenticated::Key(principal)),
            Err(problem) => problem,
        };
        let user = self.users.verify(Token::from_header(authorization)?, now, has_signed).await?;
        user.map(Authenticated::User).ok_or(problem)
    }

    /// Fails with `permission_denied` if a web page of another host sent the request with an API key that web pages
    /// must not use.
    fn check_page(&self, request: &IncomingRequest, principal: &Principal) -> Result<(), Problem> {
        let origin = request.header("origin").filter(|_| !request.is_of_own_page());
        self.config.access.check_page(origin, principal.grant())
    }

    async fn admit(
        &self,
        request: &IncomingRequest,
        caller: Result<Authenticated, Problem>,
        log: &RequestLog,
    ) -> Result<Decision, Problem> {
        let head = request.request_head();
        let verified = match caller {
            Ok(Authenticated::Key(principal)) => Ok(principal),
            Ok(Authenticated::User(caller)) => {
                let action = unadmitted_action(&head)?;
                log.action(action);
                log.user(caller);
                return Ok(Decision::Forward(whole_or_streamed(request, action)));
            }
            Err(problem) => Err(problem),
        };
        let (principal, pending) = admit(&head, async |action| {
            log.action(action);
            let principal = verified?;
            self.check_page(request, log.caller(Arc::clone(&principal)))?;
            Ok(principal)
        })
        .await?;
        if pending.action() == Action::Follow && matches!(request.body, BodyLength::Known(bytes) if is_short(bytes)) {
            return Ok(Decision::Changes(principal, pending));
        }
        match self.cache.accepted_age(request, &principal, &pending) {
            Some(accepted_age) => Ok(Decision::Cached(Cacheable::Read(principal, pending, accepted_age))),
            None => self.plan(request, pending).map(Decision::Forward),
        }
    }

    fn plan(&self, request: &IncomingRequest, pending: Pending) -> Result<BodyPlan, Problem> {
        // The maximum number of files is a setting of the origin.
        let upload = UploadLimits { body_bytes: self.config.upload_max_bytes, items: usize::MAX };
        let is_checked = match (pending.body(), request.body) {
            (BodyUse::None, _) => return Ok(BodyPlan::Drop),
            (BodyUse::Upload, BodyLength::Known(bytes)) if bytes > upload.body_bytes => {
                return Err(upload.body_too_large());
            }
            (BodyUse::Json, BodyLength::Known(bytes)) => {
                check_body_length(bytes)?;
                is_short(bytes)
            }
            (BodyUse::Upload, BodyLength::Known(bytes)) => {
                is_short(bytes) && is_json_upload(request.header("content-type"))
            }
            (BodyUse::Bytes, _) | (_, BodyLength::Unknown) => false,
        };
        Ok(if is_checked { BodyPlan::Check(CheckedBody { pending, upload }) } else { BodyPlan::Stream })
    }
}

/// A body that the edge checks before it forwards the request.
#[derive(Clone, Debug)]
pub struct CheckedBody {
    pending: Pending,
    upload: UploadLimits,
}

impl CheckedBody {
    /// Checks a complete body with this `Content-Type` in the same way as the origin.
    pub fn check(self, content_type: Option<&str>, bytes: &[u8]) -> Result<(), Problem> {
        if self.pending.body() != BodyUse::Upload {
            return self.pending.finish(bytes).map(drop);
        }
        let mut parser = Parser::new(content_type, self.upload)?;
        let mut feed = parser.feed(bytes);
        while feed.next_event()?.is_some() {}
        parser.finish().map(drop)
    }
}

fn is_short(bytes: u64) -> bool {
    bytes <= EDGE_CHECKED_BODY_MAX_BYTES as u64
}

/// Returns how a request with a user's token is forwarded. A short body is read as a whole, so that the request can be
/// sent to another origin if the first one can't be reached.
fn whole_or_streamed(request: &IncomingRequest, action: Option<Action>) -> BodyPlan {
    match request.body {
        // `fetch` throws for a GET or HEAD with a body, which would look like an origin's fault.
        _ if matches!(request.method(), "GET" | "HEAD") => BodyPlan::Drop,
        BodyLength::Known(0) => BodyPlan::Drop,
        BodyLength::Known(bytes) if is_short(bytes) => BodyPlan::Whole(action),
        BodyLength::Known(_) | BodyLength::Unknown => BodyPlan::Stream,
    }
}

fn only_get(request: &IncomingRequest) -> Result<(), Problem> {
    const METHODS: &str = "GET, HEAD";
    if matches!(request.method(), "GET" | "HEAD") {
        return Ok(());
    }
    Err(Problem::new(ErrorCode::MethodNotAllowed, "Only GET and HEAD are allowed here.").with_allow(METHODS))
}

#[cfg(test)]
pub(super) mod tests;
