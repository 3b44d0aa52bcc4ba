//! Logs faults and, unless the configuration turns this off, each answered request. Writes a data point for each
//! answered request to Workers Analytics Engine if a dataset is bound.

use crate::core::{Gateway, IncomingRequest, RequestLog, RequestOutcome};
use shared::error::{ErrorCode, Problem};
use shared::request_id::RequestId;
use std::cell::OnceCell;
use worker::js_sys::{self, Array, Date, Reflect};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::worker_sys::AnalyticsEngineDataset;
use worker::{Env, console_error, console_log};

const ANALYTICS: &str = "ANALYTICS";

thread_local! {
    /// The bound dataset of Workers Analytics Engine. Bindings don't change within an isolate's life.
    static DATASET: OnceCell<Option<AnalyticsEngineDataset>> = const { OnceCell::new() };
}

pub(crate) fn answered(
    gateway: Option<&Gateway>,
    incoming: &IncomingRequest,
    request_log: &RequestLog,
    outcome: &RequestOutcome,
) {
    let unlogged = match gateway {
        Some(gateway) if !gateway.config().logs_requests => None,
        Some(gateway) => gateway.refusal_lines().admits(outcome, Date::now() as u64),
        None => Some(0),
    };
    if let Some(unlogged) = unlogged {
        console_log!("{}", outcome.line(incoming, request_log, unlogged));
    }
    DATASET.with(|dataset| {
        if let Some(Some(dataset)) = dataset.get()
            && dataset.write_data_point(data_point(request_log, outcome)).is_err()
        {
            console_error!("a data point was not taken");
        }
    });
}

/// Logs a failure of an origin, the runtime, a binding or the configuration. `cause` adds details, without keys or
/// values, and may be empty.
pub(crate) fn fault(request_id: &RequestId, problem: &Problem, cause: &str) {
    console_error!("requestId={request_id} {problem} {cause}");
}

/// Looks up the binding of the dataset. Called when the isolate creates its gateway.
pub(crate) fn bind(env: &Env) {
    DATASET.with(|dataset| {
        dataset.get_or_init(|| {
            let bound = Reflect::get(env, &ANALYTICS.into()).ok()?;
            bound.is_object().then(|| bound.unchecked_into())
        });
    });
}

/// Builds a data point for Workers Analytics Engine. `index1` is the project, by which the platform samples; blobs are
/// labels, doubles are measures. New ones are appended, since queries depend on the order, which docs/monitoring.md
/// documents.
fn data_point(request_log: &RequestLog, outcome: &RequestOutcome) -> JsValue {
    let index = Array::of1(&request_log.project().unwrap_or("none").into());
    let blobs = Array::of3(
        &request_log.method().into(),
        &request_log.route_name().into(),
        &request_log.code().map_or("", ErrorCode::as_str).into(),
    );
    let doubles =
        Array::of3(&outcome.status.into(), &outcome.total_ms.into(), &outcome.origin_ms.unwrap_or(0.0).into());
    let point = js_sys::Object::new();
    for (name, values) in [("indexes", index), ("blobs", blobs), ("doubles", doubles)] {
        // Setting a property of a plain object can't fail.
        let _ = Reflect::set(&point, &name.into(), &values);
    }
    point.into()
}
