//! The rate limit of a key.

use super::request_metrics::RequestMetrics;
use crate::system::keys::Caller;
use shared::error::Problem;

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
