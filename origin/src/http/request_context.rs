//! An admitted request: its caller, and the connection, rate limit, time limits and maxima that apply to it.

use super::held;
use super::records::Failure;
use super::request_metrics::RequestMetrics;
use super::stream::StreamLimits;
use crate::database::run::StatementStats;
use crate::database::{DbError, Lease, Lessee, Position, ReadFrom};
use crate::metrics::StreamGuard;
use crate::query::plan::PlanLimits;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use axum::http::{HeaderMap, HeaderName};
use shared::error::Problem;
use shared::key::Access;
use shared::operation::RecordOperation;
use shared::request::AFTER_HEADER;
use shared::request_id::RequestId;
use std::sync::Arc;
use std::time::{Duration, Instant};

const AFTER: HeaderName = HeaderName::from_static(AFTER_HEADER);

pub(super) struct RequestContext {
    metrics: Arc<RequestMetrics>,
    caller: Caller,
    after: Option<Position>,
}

impl RequestContext {
    pub(super) fn new(metrics: &Arc<RequestMetrics>, caller: Caller, headers: &HeaderMap) -> Result<Self, Problem> {
        let after = headers.get(AFTER).map(|value| Position::parse(value.to_str().unwrap_or_default())).transpose()?;
        Ok(Self { metrics: Arc::clone(metrics), caller, after })
    }

    pub(super) fn app(&self) -> &Arc<ServiceState> {
        self.metrics.app()
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) fn id(&self) -> &str {
        self.metrics.id()
    }

    /// A time before the caller was verified.
    pub(super) fn started(&self) -> Instant {
        self.metrics.started()
    }

    pub(super) fn request_id(&self) -> &RequestId {
        self.metrics.request_id()
    }

    pub(super) fn progress(&self) -> &Arc<StatementStats> {
        self.metrics.progress()
    }

    pub(super) fn waits_for_position(&self) -> bool {
        self.after.is_some()
    }

    /// Leases a connection, and waits until its host has reached the position that the request names.
    pub(super) async fn lease(&self, from: ReadFrom) -> Result<Lease, DbError> {
        self.app().pools.lease_for(self.caller.lessee(), from, self.after.as_ref()).await
    }

    /// Leases a connection for a write, whose response can't be refused after the commit. Checks the memory of
    /// responses after the wait: then at most one response per connection of the project goes beyond the limit.
    pub(super) async fn lease_to_write(&self) -> Result<Lease, Failure> {
        self.lease_as(self.caller.account()).await
    }

    /// Leases a connection of the account as [`RequestContext::lease_to_write`] does.
    pub(super) async fn lease_as(&self, access: Access) -> Result<Lease, Failure> {
        let lessee = Lessee { access, ..self.caller.lessee() };
        let lease = self.app().pools.lease_for(lessee, ReadFrom::Primary, self.after.as_ref()).await?;
        held::check_held_bytes(self.app(), &self.caller)?;
        Ok(lease)
    }

    /// The time limit of one statement.
    pub(super) fn limit(&self) -> Duration {
        self.caller.statement_timeout(self.app().pools.query_timeout())
    }

    pub(super) fn plan_limits(&self) -> PlanLimits {
        let bounds = &self.app().bounds;
        PlanLimits { batch_max_rows: bounds.batch_max_rows, read_max_rows: self.caller.max_rows(bounds.read_max_rows) }
    }

    pub(super) fn stream(&self) -> Result<(StreamLimits, StreamGuard), Problem> {
        let (app, metrics) = (self.app(), &self.metrics);
        let limits = StreamLimits::of_records(app, &self.caller, metrics.started(), metrics.request_id().clone())?;
        Ok((limits, app.metrics.stream()))
    }

    pub(super) fn stream_file(&self) -> (StreamLimits, StreamGuard) {
        self.metrics.stream_file()
    }

    pub(super) fn begin_statements(&self, operation: &RecordOperation) {
        let name = match operation {
            RecordOperation::Read(_) | RecordOperation::ReadOne(_) => "SELECT",
            RecordOperation::Insert(_) => "INSERT",
            RecordOperation::Update(_) => "UPDATE",
            RecordOperation::Delete(_) => "DELETE",
        };
        self.progress().begin(name, Some(operation.table()));
    }
}

/// Counts the operations of a batch against the rate limit of the caller; [`admit_caller`] has counted one.
pub(super) fn count_operations(metrics: &RequestMetrics, caller: &Caller, count: usize) {
    let more = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
    let rated = (caller.project().clone(), caller.key_id());
    metrics.app().rates.count_more(&rated, caller.rate_limit(), more);
}

/// Counts the request against the caller's rate limit, unless it is counted already.
pub(super) fn admit_caller(metrics: &RequestMetrics, caller: &Caller) -> Result<(), Problem> {
    metrics.caller(caller);
    if metrics.is_counted() {
        return Ok(());
    }
    let app = metrics.app();
    let counted = app.rates.count(&(caller.project().clone(), caller.key_id()), caller.rate_limit());
    if counted.is_err() {
        app.metrics.rate_limited();
    }
    if let Some(allowance) = counted? {
        metrics.allowance(allowance);
    }
    Ok(())
}
