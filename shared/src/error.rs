//! The errors that API callers see: [`ErrorCode`] is the stable list of codes, a [`Problem`] one occurrence.

mod details;

use crate::limits::IDENTIFIER_MAX_CHARS;
use crate::rate::Allowance;
use details::Fault;
pub use details::{Details, Faults, Refusal, ShownToRoles};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// Tells the edge what the origin can't reach, so that the edge tries another origin.
pub const UNAVAILABLE_HEADER: &str = "x-selkie-unavailable";

/// The header serves clients and proxies that don't read the body.
pub const CODE_HEADER: &str = "x-selkie-code";

pub const UNAVAILABLE_DATABASE: &str = "database";

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $status:literal, $retry:expr;)*) => {
        /// The stable, public name of a failure. Codes are added, never renamed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $code,)* }
            }

            pub const fn status(self) -> u16 {
                match self { $(ErrorCode::$variant => $status,)* }
            }

            /// `None` if clients should not repeat the same request.
            pub const fn retry_after_seconds(self) -> Option<u32> {
                match self { $(ErrorCode::$variant => $retry,)* }
            }
        }
    };
}

codes! {
    /// The request breaks the rules of HTTP or MCP, for example by a URL that can't be parsed.
    InvalidRequest = "invalid_request", 400, None;
    /// The body is not JSON, or nests too deep.
    InvalidJson = "invalid_json", 400, None;
    /// An option is unknown, repeated or invalid, or a header is invalid or not supported for this request.
    InvalidQueryOption = "invalid_query_option", 400, None;
    /// A condition (`query`, `updateKeyValues`, `deleteKeyValues`) is malformed, exceeds a limit or does not fit the
    /// table.
    InvalidFilter = "invalid_filter", 400, None;
    /// The body is not what the operation expects, or the operation is not possible, for example on a table without a
    /// key.
    InvalidBody = "invalid_body", 400, None;
    UnknownField = "unknown_field", 400, None;
    InvalidIdentifier = "invalid_identifier", 400, None;
    SqlError = "sql_error", 400, None;
    FulltextIndexMissing = "fulltext_index_missing", 400, None;
    /// Several relations have the name in `include` or `query`.
    AmbiguousRelation = "ambiguous_relation", 400, None;
    /// An uploaded file is invalid: for example empty, not valid base64, not of the declared type, or a broken image.
    InvalidMedia = "invalid_media", 400, None;
    MissingKey = "missing_key", 401, None;
    /// The API key or user's token is not accepted: for example malformed, not valid yet, or not signed by this
    /// installation or a trusted issuer.
    InvalidKey = "invalid_key", 401, None;
    ExpiredKey = "expired_key", 401, None;
    RevokedKey = "revoked_key", 401, None;
    /// The action needs full access or a role, but the key or user's token is read-only.
    FullAccessRequired = "full_access_required", 403, None;
    /// The caller's role does not allow the operation or does not exist, or a user's token gives no role.
    RoleForbids = "role_forbids", 403, None;
    /// MariaDB's grants forbid the statement, or a rule that does not depend on the key's role forbids the request,
    /// such as the allowed origins of web pages.
    PermissionDenied = "permission_denied", 403, None;
    RouteNotFound = "route_not_found", 404, None;
    /// The database does not exist, or is hidden from the caller, for example because it belongs to another project.
    DatabaseNotFound = "database_not_found", 404, None;
    TableNotFound = "table_not_found", 404, None;
    RecordNotFound = "record_not_found", 404, None;
    MediaNotFound = "media_not_found", 404, None;
    MethodNotAllowed = "method_not_allowed", 405, None;
    DuplicateKey = "duplicate_key", 409, None;
    ForeignKeyViolation = "foreign_key_violation", 409, None;
    /// A trigger, a stored procedure or a caller's own SQL raised an error with SIGNAL.
    RejectedByDatabase = "rejected_by_database", 409, None;
    /// A write would affect more records than its `maxAffected`.
    TooManyAffected = "too_many_affected", 409, None;
    /// The folder already has a file of that name.
    MediaExists = "media_exists", 409, None;
    /// MariaDB reported a deadlock, and an automatic retry failed too or was not possible.
    Deadlock = "deadlock", 409, Some(1);
    /// An earlier request with this `Idempotency-Key` is still running.
    IdempotencyInProgress = "idempotency_in_progress", 409, Some(1);
    /// The `Upload-Offset` of a chunk is not the resumable upload's current offset.
    UploadOffsetMismatch = "upload_offset_mismatch", 409, None;
    /// A record or file does not satisfy `If-Match` or another condition, or the client's tus version is not supported.
    PreconditionFailed = "precondition_failed", 412, None;
    BodyTooLarge = "body_too_large", 413, None;
    UriTooLong = "uri_too_long", 414, None;
    UnsupportedMediaType = "unsupported_media_type", 415, None;
    RangeNotSatisfiable = "range_not_satisfiable", 416, None;
    InvalidValue = "invalid_value", 422, None;
    /// The `Idempotency-Key` was used before for a request with another table, option or body.
    IdempotencyMismatch = "idempotency_mismatch", 422, None;
    /// Another request is writing to the resumable upload.
    UploadLocked = "upload_locked", 423, Some(1);
    RateLimited = "rate_limited", 429, Some(1);
    HeadersTooLarge = "headers_too_large", 431, None;
    /// An unexpected fault of Selkie or MariaDB; the log has its cause under the request id.
    Internal = "internal", 500, None;
    /// The response from the origin's address does not come from Selkie.
    BadOriginAnswer = "bad_origin_answer", 502, Some(1);
    OriginUnreachable = "origin_unreachable", 502, Some(2);
    /// All origins failed, for this request or shortly before.
    OriginUnavailable = "origin_unavailable", 503, Some(1);
    DatabaseUnavailable = "database_unavailable", 503, Some(2);
    /// The keys of a token's issuer can't be fetched.
    IssuerUnavailable = "issuer_unavailable", 503, Some(5);
    /// A queue is full, or a limit of concurrent work other than the project's share is reached.
    Overloaded = "overloaded", 503, Some(1);
    /// A lock in MariaDB or the position in `X-Selkie-After` was waited for too long, or other requests changed the
    /// same data.
    LockTimeout = "lock_timeout", 503, Some(1);
    /// The media store can't be used, timed out, or lacks the bytes of a known file.
    StorageUnavailable = "storage_unavailable", 503, Some(2);
    QueryTimeout = "query_timeout", 504, None;
    OriginTimeout = "origin_timeout", 504, Some(1);
    StorageFull = "storage_full", 507, None;
}

impl ErrorCode {
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    pub const fn retryable(self) -> bool {
        self.retry_after_seconds().is_some()
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What callers see has no secret, file path or SQL that Selkie generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    inner: Box<Inner>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    code: ErrorCode,
    message: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
    details: Option<Details>,
    others: Vec<Problem>,
    allow: Option<&'static str>,
    allowance: Option<Allowance>,
    retry_after_seconds: Option<u32>,
    cause: Option<Cow<'static, str>>,
}

impl Problem {
    /// `message` is one plain sentence that names the thing at fault.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            inner: Box::new(Inner {
                code,
                message: message.into(),
                hint: None,
                details: None,
                others: Vec::new(),
                allow: None,
                allowance: None,
                retry_after_seconds: None,
                cause: None,
            }),
        }
    }

    /// `message` is for the caller, `cause` for the log only.
    pub fn internal(message: impl Into<Cow<'static, str>>, cause: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Internal, message).with_cause(cause)
    }

    /// The cause is only logged. It may name hosts and paths, but must contain no key and no value of a record.
    pub fn with_cause(mut self, cause: impl Into<Cow<'static, str>>) -> Self {
        self.inner.cause = Some(cause.into());
        self
    }

    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.inner.hint = Some(hint.into());
        self
    }

    /// The hint may name something that the caller must not know.
    pub fn without_hint(mut self) -> Self {
        self.inner.hint = None;
        self
    }

    /// MariaDB's message, the hint, the field and the constraint may show what the caller's role hides. Keeps what is
    /// [`Problem::shown_to_roles`].
    pub fn without_database_message(mut self) -> Self {
        match &mut self.inner.details {
            Some(details) if details.refusal.is_some() && details.shown != ShownToRoles::Everything => {
                details.constraint = None;
                details.field.take_if(|_| details.shown == ShownToRoles::Code);
            }
            _ => return self,
        }
        self.inner.message = Cow::Borrowed(match self.code() {
            ErrorCode::DuplicateKey => "Another record has the same value of a unique key.",
            ErrorCode::ForeignKeyViolation => {
                "A record refers to another one that is missing, or is still referred to."
            }
            ErrorCode::PermissionDenied => "The database denies this to the project's account.",
            ErrorCode::FulltextIndexMissing => "No FULLTEXT index covers exactly the searched fields.",
            _ => "The database refused this.",
        });
        self.without_hint()
    }

    pub fn with_hint_if(self, hint: Option<impl Into<Cow<'static, str>>>) -> Self {
        match hint {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    pub fn with_details(mut self, errno: u16, sql_state: impl Into<String>) -> Self {
        let details = self.inner.details.get_or_insert_default();
        details.refusal = Some(Refusal { errno, sql_state: sql_state.into() });
        self
    }

    /// Changes the further faults too. The message of `rejected_by_database` stays unchanged.
    pub fn in_operation(mut self, at: usize) -> Self {
        if self.inner.code != ErrorCode::RejectedByDatabase {
            self.inner.message = format!("Operation {at}: {}", self.inner.message).into();
        }
        self.inner.details.get_or_insert_default().operation = Some(at);
        self.inner.others = self.inner.others.into_iter().map(|other| other.in_operation(at)).collect();
        self
    }

    pub fn in_line(mut self, line: usize) -> Self {
        self.inner.message = format!("Line {line}: {}", self.inner.message).into();
        self
    }

    pub fn with_allow(mut self, methods: &'static str) -> Self {
        self.inner.allow = Some(methods);
        self
    }

    pub fn with_allowance(mut self, allowance: Allowance) -> Self {
        self.inner.allowance = Some(allowance);
        self.with_retry_after(allowance.seconds())
    }

    /// Ignored for codes that are not retryable.
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.inner.retry_after_seconds = Some(seconds);
        self
    }

    pub fn code(&self) -> ErrorCode {
        self.inner.code
    }

    pub fn status(&self) -> u16 {
        self.inner.code.status()
    }

    pub fn message(&self) -> &str {
        &self.inner.message
    }

    pub fn hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// Logged, but never sent to callers.
    pub fn cause(&self) -> Option<&str> {
        self.inner.cause.as_deref()
    }

    pub fn details(&self) -> Option<&Details> {
        self.inner.details.as_ref()
    }

    /// Always [`CODE_HEADER`]; others depend on the code and on the values that were added.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> + '_ {
        let allow = self.inner.allow.map(|methods| ("allow", Cow::Borrowed(methods)));
        let allowance = self.inner.allowance.as_ref();
        let retry = self
            .code()
            .retry_after_seconds()
            .map(|usual| self.inner.retry_after_seconds.unwrap_or(usual))
            .map(|seconds| ("retry-after", Cow::Owned(seconds.to_string())));
        let challenge = (self.status() == 401).then_some(("www-authenticate", Cow::Borrowed("Bearer")));
        // Caches would keep the 404 for minutes, although the file may be uploaded in the next moment.
        let no_store =
            (self.code() == ErrorCode::MediaNotFound).then_some(("cache-control", Cow::Borrowed("no-store")));
        let unavailable = (self.code() == ErrorCode::DatabaseUnavailable)
            .then_some((UNAVAILABLE_HEADER, Cow::Borrowed(UNAVAILABLE_DATABASE)));
        let allowance = allowance.into_iter().flat_map(Allowance::headers);
        let code = Some((CODE_HEADER, Cow::Borrowed(self.code().as_str())));
        [allow, retry, challenge, no_store, unavailable, code]
            .into_iter()
            .flatten()
            .chain(allowance.map(|(name, value)| (name, Cow::Owned(value))))
    }

    /// `{"success":false,"payload":null,"error":{…}}`, with `errors` if there are several faults.
    pub fn to_json(&self, request_id: &str) -> Vec<u8> {
        let envelope = Envelope {
            success: false,
            payload: (),
            error: ErrorBody {
                code: self.code(),
                message: self.message(),
                hint: self.hint(),
                details: self.details(),
                retryable: self.code().retryable(),
                request_id,
            },
            errors: match self.inner.others.as_slice() {
                [] => Vec::new(),
                others => [self].into_iter().chain(others).map(Fault::from).collect(),
            },
        };
        // All map keys are strings, so serialisation to memory can't fail.
        serde_json::to_vec(&envelope).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    success: bool,
    payload: (),
    error: ErrorBody<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Fault<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorBody<'a> {
    code: ErrorCode,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    retryable: bool,
    request_id: &'a str,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code().as_str(), self.message())
    }
}

impl std::error::Error for Problem {}

/// `None` if no name is similar, or `wanted` is longer than [`IDENTIFIER_MAX_CHARS`].
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The time grows with the product of both lengths. A longer text is hardly a misspelt name.
    if wanted.chars().nth(IDENTIFIER_MAX_CHARS).is_some() {
        return None;
    }
    let lower = wanted.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name))
        .min()
        .filter(|(distance, name)| {
            let (one, other) = (name.chars().count(), wanted.chars().count());
            *distance <= 1 + one.min(other) / 3 && *distance < one.max(other)
        })
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests;
