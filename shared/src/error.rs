//! The errors that API callers see: [`ErrorCode`] is the stable list of codes, a [`Problem`] one occurrence.

mod details;

use crate::limits::IDENTIFIER_MAX_CHARS;
use crate::rate::Allowance;
use details::ErrorItem;
pub use details::{Details, Faults, Refusal, ShownToRoles};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// Response header by which the origin tells the edge what it can't reach, so that the edge tries another origin.
pub const UNAVAILABLE_HEADER: &str = "x-selkie-unavailable";

/// Response header with the error code, for clients and proxies that don't read the body.
pub const CODE_HEADER: &str = "x-selkie-code";

pub const UNAVAILABLE_DATABASE: &str = "database";

macro_rules! codes {
    ($($(#[doc = $cause:literal])+ $variant:ident = $code:literal, $status:literal, $retry:expr, $mend:literal;)*) => {
        /// The stable, public name of a failure. Codes are added, never renamed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[doc = $cause])+ $variant,)* }

        impl ErrorCode {
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $code,)* }
            }

            pub const fn status(self) -> u16 {
                match self { $(ErrorCode::$variant => $status,)* }
            }

            /// Returns the usual `Retry-After`; `None` if clients should not repeat the same request.
            pub const fn retry_after_seconds(self) -> Option<u32> {
                match self { $(ErrorCode::$variant => $retry,)* }
            }

            /// Returns the cause of the error and what to do, for the table of errors in docs/api.md.
            #[cfg(test)]
            pub(crate) const fn documentation(self) -> (&'static str, &'static str) {
                match self { $(ErrorCode::$variant => (concat!($($cause),+), $mend),)* }
            }
        }
    };
}

// The comment is the cause, the last text says what to do: a unit test writes both into docs/api.md.
codes! {
    /// The request is not valid HTTP or MCP, or its URL is not percent-encoded.
    InvalidRequest = "invalid_request", 400, None, "Percent-encode the URL.";
    /// The body is not JSON, or nests deeper than 32 levels.
    InvalidJson = "invalid_json", 400, None, "Correct the body where the message says.";
    /// An option or header is unknown, repeated, invalid, or not possible for this request.
    InvalidQueryOption = "invalid_query_option", 400, None, "The hint names what is possible.";
    /// A condition is malformed, too large, or does not fit the table.
    InvalidFilter = "invalid_filter", 400, None, "See [conditions](api/conditions.md).";
    /// The body is not what the operation takes, or the table can't do this, for example without a key.
    InvalidBody = "invalid_body", 400, None, "See the message and the hint.";
    /// The table has no such field, or the role hides it.
    UnknownField = "unknown_field", 400, None, "The hint has the nearest name, if one is near.";
    /// No database, table or field can have this name.
    InvalidIdentifier = "invalid_identifier", 400, None, "Correct the name.";
    /// MariaDB refused the statement.
    SqlError = "sql_error", 400, None, "See the message.";
    /// No FULLTEXT index covers exactly the searched fields.
    FulltextIndexMissing = "fulltext_index_missing", 400, None, "Create that index.";
    /// Several [relations](api/reading.md#related-records) have this name.
    AmbiguousRelation = "ambiguous_relation", 400, None, "Use one of the notations in the hint.";
    /// A file is empty, broken, too large to decode, or not of its declared type.
    InvalidMedia = "invalid_media", 400, None,
        "Mend the file, or declare its [type](api/media.md#file-types-and-images).";
    /// The request has no key.
    MissingKey = "missing_key", 401, None, "Send `Authorization: Bearer <key>`.";
    /// The key or token is malformed, not valid yet, or not signed by this installation or a trusted issuer.
    InvalidKey = "invalid_key", 401, None,
        "Use another key. If only the edge refuses it, deploy it with the current [`JWKS`](deploy.md#the-edge-on-cloudflare) or [`ISSUERS`](deploy.md#users-tokens-at-the-edge).";
    /// The key or token has expired.
    ExpiredKey = "expired_key", 401, None, "Use another key.";
    /// The key was revoked.
    RevokedKey = "revoked_key", 401, None, "Use another key.";
    /// A read key can't do this.
    FullAccessRequired = "full_access_required", 403, None, "Use a full key, or one whose role allows it.";
    /// The role does not exist or does not allow this, or the written record would break its rules.
    RoleForbids = "role_forbids", 403, None,
        "See [what a role allows](roles.md#what-the-caller-gets), and `selkie role check`.";
    /// A rule that applies to all keys forbids this, or MariaDB's account lacks a right.
    PermissionDenied = "permission_denied", 403, None,
        "See the message: [full keys in browsers](keys.md#keys-in-browsers), [access by the edge only](deploy.md#restrict-the-origin-to-its-edge), [grants](accounts.md).";
    /// There is no such path.
    RouteNotFound = "route_not_found", 404, None, "The hint names the paths of the API.";
    /// The database does not exist, or belongs to another project.
    DatabaseNotFound = "database_not_found", 404, None, "`selkie database list` names the project's.";
    /// The table does not exist, or the role hides it.
    TableNotFound = "table_not_found", 404, None, "Correct the name; check the role.";
    /// The record does not exist, or the role hides it.
    RecordNotFound = "record_not_found", 404, None, "Correct the id; check the role.";
    /// The file or upload does not exist, or is private.
    MediaNotFound = "media_not_found", 404, None, "Correct the path; send a key that may read it.";
    /// The path does not have this method.
    MethodNotAllowed = "method_not_allowed", 405, None, "Use a method of the header `Allow`.";
    /// A record with this unique value exists.
    DuplicateKey = "duplicate_key", 409, None,
        "Change that record, or use [`onConflict`](api/writing.md#upsert-and-conflicts).";
    /// The record refers to one that is missing, or others refer to it.
    ForeignKeyViolation = "foreign_key_violation", 409, None,
        "Write the record that is referred to first; delete it last.";
    /// A trigger or procedure raised SIGNAL with SQLSTATE 45000.
    RejectedByDatabase = "rejected_by_database", 409, None, "The message is the signal's. A signal with another SQLSTATE and a `MYSQL_ERRNO` counts as MariaDB's error of that number.";
    /// The write would affect more records than `maxAffected` or `maxRows` allow; nothing was written.
    TooManyAffected = "too_many_affected", 409, None, "Narrow the conditions, or raise the limit.";
    /// The folder has a file of this name.
    MediaExists = "media_exists", 409, None, "Use another name, or `update`.";
    /// MariaDB reported a deadlock, also when the request was tried again.
    Deadlock = "deadlock", 409, Some(1), "Retry.";
    /// The first request with this `Idempotency-Key` still runs.
    IdempotencyInProgress = "idempotency_in_progress", 409, Some(1), "Retry.";
    /// The [feed of changes](api/changes.md#when-the-feed-must-begin-again) can't go on from this token without a gap.
    ResyncRequired = "resync_required", 409, None, "Read again, with `snapshot=true`.";
    /// The bytes are not for the upload's current offset.
    UploadOffsetMismatch = "upload_offset_mismatch", 409, None, "Ask for the offset by HEAD.";
    /// The record or file was changed, or the version of tus is not supported.
    PreconditionFailed = "precondition_failed", 412, None, "Read it again.";
    /// The body or a file is above a [limit](limits.md#limits-of-a-request).
    BodyTooLarge = "body_too_large", 413, None, "Send less at once; send large files [resumably](api/resumable.md).";
    /// Path and query have more than 16 KiB.
    UriTooLong = "uri_too_long", 414, None, "Use the [POST form](api/reading.md#in-a-body).";
    /// The `Content-Type` or `Content-Encoding` is not accepted here.
    UnsupportedMediaType = "unsupported_media_type", 415, None, "The hint names what is.";
    /// The range lies beyond the file.
    RangeNotSatisfiable = "range_not_satisfiable", 416, None, "See `Content-Range`.";
    /// The value does not fit the column.
    InvalidValue = "invalid_value", 422, None, "See [values](api/values.md).";
    /// The `Idempotency-Key` was used for another table, option or body.
    IdempotencyMismatch = "idempotency_mismatch", 422, None, "Use a new key for each insert.";
    /// Another request writes to this upload.
    UploadLocked = "upload_locked", 423, Some(1), "Retry.";
    /// The key's [rate limit](limits.md#rate-limits) or the project's [share](limits.md#shares-of-projects) is used up.
    RateLimited = "rate_limited", 429, Some(1), "Retry after `Retry-After`.";
    /// The headers are above a [limit](limits.md#limits-of-a-request).
    HeadersTooLarge = "headers_too_large", 431, None, "Send fewer or shorter headers.";
    /// Selkie or MariaDB failed unexpectedly.
    Internal = "internal", 500, None, "The origin's log has the cause under the request id.";
    /// The response to the edge is not the origin's: a proxy between them responded, or dropped `X-Request-Id`.
    BadOriginAnswer = "bad_origin_answer", 502, Some(1), "Correct the proxy.";
    /// The connection from edge to origin failed or broke.
    OriginUnreachable = "origin_unreachable", 502, Some(2), "Check whether a write was done; retry.";
    /// No origin is healthy.
    OriginUnavailable = "origin_unavailable", 503, Some(1),
        "`GET /healthz` of the edge shows the [state of each](scale.md#when-an-origin-fails).";
    /// MariaDB can't be reached.
    DatabaseUnavailable = "database_unavailable", 503, Some(2), "Start MariaDB; the origin reconnects.";
    /// The keys of a token's issuer can't be fetched.
    IssuerUnavailable = "issuer_unavailable", 503, Some(5), "Check the issuer's `--jwks-url`; retry.";
    /// A [shared resource](limits.md#shares-of-projects) is used up.
    Overloaded = "overloaded", 503, Some(1), "Retry.";
    /// MariaDB's binary log can't serve [changes](api/changes.md#what-mariadb-needs).
    ChangesUnavailable = "changes_unavailable", 503, None, "The hint names the setting or the grant.";
    /// A row's lock or a [position](scale.md#reading-your-own-writes) was waited for too long.
    LockTimeout = "lock_timeout", 503, Some(1), "Retry.";
    /// The media store can't be used, timed out, or lacks the bytes of a known file.
    StorageUnavailable = "storage_unavailable", 503, Some(2), "The origin's log has the cause.";
    /// The statement ran longer than the setting or the role allows.
    QueryTimeout = "query_timeout", 504, None, "See [`explain=true`](api/reading.md#explain).";
    /// The origin did not answer the edge in time.
    OriginTimeout = "origin_timeout", 504, Some(1), "Check whether a write was done; retry.";
    /// The disk or the bucket is full.
    StorageFull = "storage_full", 507, None, "Delete files, or add space.";
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

/// An error of one request. The parts that callers see contain no secret, file path or SQL that Selkie generated.
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

    /// Drops the hint, which may name something that the caller must not know.
    pub fn without_hint(mut self) -> Self {
        self.inner.hint = None;
        self
    }

    /// Removes MariaDB's message, the hint, the field and the constraint, which may show what the caller's role hides.
    /// Keeps the parts that [`Problem::shown_to_roles`] names.
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

    /// Adds the index of a batch's operation to all faults, but not to the message of `rejected_by_database`.
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

    /// Sets `Retry-After`, which is not sent for codes that are not retryable.
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

    pub fn cause(&self) -> Option<&str> {
        self.inner.cause.as_deref()
    }

    pub fn details(&self) -> Option<&Details> {
        self.inner.details.as_ref()
    }

    /// Returns the response's headers: [`CODE_HEADER`], and others that depend on the code and the added values.
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

    /// Returns `{"success":false,"payload":null,"error":{…}}`, with `errors` if there are several faults.
    pub fn to_json(&self, request_id: &str) -> Vec<u8> {
        let envelope = ErrorEnvelope {
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
                others => [self].into_iter().chain(others).map(ErrorItem::from).collect(),
            },
        };
        // All map keys are strings, so serialisation to memory can't fail.
        serde_json::to_vec(&envelope).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct ErrorEnvelope<'a> {
    success: bool,
    payload: (),
    error: ErrorBody<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ErrorItem<'a>>,
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

/// Returns the most similar name; `None` if none is similar or `wanted` is longer than [`IDENTIFIER_MAX_CHARS`].
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
