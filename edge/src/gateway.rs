//! What the edge decides: answer by itself, or forward; and what of the origin it believes.
//!
//! Pure, and tested natively. Knows neither the worker's API nor a clock; bodies by their length, and by the
//! bytes that it is shown.

mod answer;
mod attempt;
mod call;
mod head;
mod headers;
pub mod media_cache;
mod origin;
mod origins;
mod read_cache;
mod record;
#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use attempt::{Blame, Miss, Repeat};
pub use call::{BodyLength, Call, scheme_and_host, split_url};
pub use head::{Changes, Head};
pub use headers::{
    NOT_ANSWERED, NOT_FORWARDED, forwarded_changes, lists, may_be_of_connection, origin_changes,
    own_changes, server_timing, without_port,
};
pub use origin::{Fault, Form, OriginHead, judge, lacks_database};
pub use origins::{LIFE_PATH, Origins, Pick, Place, READINESS_PATH, Tried};
pub use read_cache::{
    ASKED_AT, KEPT_MAX_BYTES, Lead, Lookup, Moment, Question, ReadCache, Suits, Turn, Wish, age_ms,
    is_kept, pauses,
};
pub use record::{Ending, RequestRecord};

use crate::config::Config;
use futures_util::FutureExt as _;
use media_cache::KeptFile;
use shared::admission::{admit, check_body_length};
use shared::cors::is_preflight;
use shared::envelope;
use shared::error::{ErrorCode, Problem};
use shared::key::{Principal, TokenCache};
use shared::limits::EDGE_CHECKED_BODY_MAX_BYTES;
use shared::media::FilePath;
use shared::operation::{BodyUse, Pending, route};
use shared::policy::Action;
use shared::upload::UploadLimits;
use std::cell::{OnceCell, RefCell, RefMut};
use std::rc::Rc;
use uuid::Uuid;

/// Verified tokens of one generation of the cache (two live): about 150 bytes each, so 0.6 MB at most
/// of an isolate's 128.
const TOKEN_CACHE_CAPACITY: usize = 2_048;

/// What becomes of a request.
#[derive(Debug)]
pub enum Decision {
    /// The edge answers.
    Answer(Answer),
    /// The origin answers.
    Forward(BodyPlan),
    /// What is kept of a file answers, else the origin.
    File(KeptFile),
    /// The cache answers, or the origin. A body is read whole; the question then says what is looked for.
    Read(Question),
}

/// What of a request's body is forwarded.
#[derive(Debug)]
pub enum BodyPlan {
    /// Nothing: the operation has none.
    Drop,
    /// Everything, as it arrives and unchecked: uploads, long JSON, and JSON of unknown length. The origin checks it.
    Stream,
    /// Everything, after [`check_body`] found no fault in it.
    Check(Pending),
}

impl BodyPlan {
    /// When the request may be sent to another origin, if its body is there as a whole: one that passes as it
    /// arrives is there once. An `Idempotency-Key` was let through only where it is heeded.
    #[must_use]
    pub fn repeat(&self, call: &Call) -> Repeat {
        let is_harmless = match self {
            Self::Drop => matches!(call.method.as_str(), "GET" | "HEAD" | "OPTIONS"),
            Self::Check(pending) => {
                pending.action() == Action::Query || call.idempotency_key.is_some()
            }
            Self::Stream => return Repeat::Never,
        };
        if is_harmless {
            Repeat::Always
        } else {
            Repeat::IfUntaken
        }
    }
}

/// An isolate's gateway: its configuration, the keys that it verified lately, and what it knows of the origins.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    tokens: RefCell<TokenCache>,
    origins: RefCell<Origins>,
    /// Shared with the reads that are under way.
    reads: Option<Rc<ReadCache>>,
    installation: OnceCell<String>,
}

impl Gateway {
    /// A gateway with nothing verified and nothing known yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let tokens = TokenCache::new(config.keys.clone(), TOKEN_CACHE_CAPACITY);
        let silence_max = config.origin_connect_timeout.as_millis() as u64;
        let origins = Origins::new(config.origins.clone(), silence_max);
        Self {
            reads: ReadCache::new(&config).map(Rc::new),
            config,
            tokens: RefCell::new(tokens),
            origins: RefCell::new(origins),
            installation: OnceCell::new(),
        }
    }

    /// What tells its installation from others whose workers share the platform's cache.
    #[must_use]
    pub fn installation(&self) -> &str {
        self.installation
            .get_or_init(|| self.config.keys.fingerprint().to_hex())
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the configuration allows reads to be kept.
    #[must_use]
    pub fn keeps_reads(&self) -> bool {
        self.reads.is_some()
    }

    /// The origin takes a key no more: nor is it given what is kept.
    pub fn revoked(&self, key_id: Uuid, now_ms: u64) {
        if let Some(reads) = &self.reads {
            reads.learn(key_id, 401, now_ms);
        }
    }

    /// Whether a request is only passed on, once: nothing is kept of its answer, or forgotten because of it, and there is
    /// one origin to go to.
    #[must_use]
    pub fn only_passes_on(&self, call: &Call, decision: &Decision) -> bool {
        matches!(decision, Decision::Forward(BodyPlan::Drop))
            && !call.may_change_media()
            && self.origins().is_one()
    }

    /// An origin answered as it should.
    pub fn answered(&self, pick: Pick, record: &RequestRecord, status: u16, now_ms: u64) {
        self.origins().answered(pick, now_ms);
        if status == 401
            && let Some(key_id) = record.key()
        {
            self.revoked(key_id, now_ms);
        }
    }

    /// What is known of the origins. To be let go before anything is waited for.
    #[must_use]
    pub fn origins(&self) -> RefMut<'_, Origins> {
        self.origins.borrow_mut()
    }

    /// Decides about a request; `now` is in seconds since 1970. What it learns goes to `record`.
    ///
    /// # Errors
    /// Whatever the shared parsers, the key and the policy refuse, and `body_too_large`.
    pub fn decide(
        &self,
        call: &Call,
        now: u64,
        record: &mut RequestRecord,
    ) -> Result<Decision, Problem> {
        let requested_method = call.access_control_request_method.as_deref();
        if is_preflight(&call.method, call.origin.as_deref(), requested_method) {
            record.route("preflight");
            return Ok(Decision::Answer(Answer::preflight(&self.config.cors)));
        }
        match call.path.as_str() {
            "/healthz" => {
                record.route("/healthz");
                only_get(call).map(|()| {
                    let payload = self.origins().describe(now * 1_000);
                    Decision::Answer(Answer::json(200, envelope::success(&payload)))
                })
            }
            "/readyz" => {
                record.route("/readyz");
                only_get(call).map(|()| Decision::Forward(BodyPlan::Drop))
            }
            path if path.starts_with(FilePath::PREFIX) => {
                record.route("/media/{path}");
                let path = route::file(&call.head())?;
                if call.authorization.is_some()
                    && let Ok(principal) = self.verify(call, now)
                {
                    self.greet(call, record.caller(principal))?;
                }
                // Whether there is such a file, and who may have it, the origin knows.
                let kept = KeptFile::asked(&path, call.query.as_deref(), self.installation());
                Ok(kept.map_or(Decision::Forward(BodyPlan::Drop), Decision::File))
            }
            _ => self.admit(call, now, record),
        }
    }

    fn verify(&self, call: &Call, now: u64) -> Result<Principal, Problem> {
        let authorization = call.authorization.as_deref();
        self.tokens.borrow_mut().verify(authorization, now)
    }

    /// Whether a key that holds may be used from where it is used.
    fn greet(&self, call: &Call, principal: &Principal) -> Result<(), Problem> {
        let origin = call.origin.as_deref();
        self.config.door.check_page(origin, principal.access())
    }

    fn admit(
        &self,
        call: &Call,
        now: u64,
        record: &mut RequestRecord,
    ) -> Result<Decision, Problem> {
        let head = call.head();
        let admitted = admit(&head, async |action| {
            record.action(action);
            let principal = record.caller(self.verify(call, now)?);
            self.greet(call, principal)?;
            Ok(principal.clone())
        });
        // Authentication does not wait here, so that the answer is there at once.
        let admitted = admitted.now_or_never().ok_or_else(|| {
            Problem::internal("The request could not be judged.", "admission waits")
        })?;
        let (principal, pending) = admitted?;
        if let Some(reads) = &self.reads
            && let Some(wish) = reads.wish(call, &principal, &pending)
        {
            let question = Question::new(reads, &principal, pending, wish);
            return Ok(Decision::Read(question));
        }
        self.plan(call, pending).map(Decision::Forward)
    }

    fn plan(&self, call: &Call, pending: Pending) -> Result<BodyPlan, Problem> {
        match (pending.body(), call.body) {
            (BodyUse::None, _) => Ok(BodyPlan::Drop),
            (BodyUse::Upload, BodyLength::Known(bytes)) if bytes > self.config.upload_max_bytes => {
                let limits = UploadLimits {
                    body_bytes: self.config.upload_max_bytes,
                    ..UploadLimits::default()
                };
                Err(limits.body_too_large())
            }
            (BodyUse::Json, BodyLength::Known(bytes)) => {
                check_body_length(bytes)?;
                let is_small = bytes <= EDGE_CHECKED_BODY_MAX_BYTES as u64;
                Ok(if is_small {
                    BodyPlan::Check(pending)
                } else {
                    BodyPlan::Stream
                })
            }
            (BodyUse::Upload | BodyUse::Bytes, _) | (BodyUse::Json, BodyLength::Unknown) => {
                Ok(BodyPlan::Stream)
            }
        }
    }
}

/// Checks a body that was read whole.
///
/// # Errors
/// Whatever the shared parsers refuse.
pub fn check_body(pending: Pending, body: &[u8]) -> Result<(), Problem> {
    pending.finish(body).map(drop)
}

fn only_get(call: &Call) -> Result<(), Problem> {
    const METHODS: &str = "GET, HEAD";
    if matches!(call.method.as_str(), "GET" | "HEAD") {
        return Ok(());
    }
    Err(Problem::new(
        ErrorCode::MethodNotAllowed,
        "Only GET and HEAD are allowed here.",
    )
    .with_allow(METHODS))
}
