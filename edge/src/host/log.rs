//! Writes a line for each answered request to the worker's log, and a data point to Workers Analytics Engine where one is
//! bound. What a line holds, [`crate::core`] says.

use crate::config::Config;
use crate::core::{Outcome, RequestLog};
use shared::error::Problem;
use shared::request_id::RequestId;
use std::cell::OnceCell;
use worker::js_sys::{self, Array, Reflect};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::worker_sys::AnalyticsEngineDataset;
use worker::{Env, console_error, console_log};

/// The binding of Analytics Engine, if there is one.
const ANALYTICS: &str = "ANALYTICS";

thread_local! {
    /// One an isolate: what is bound doesn't change within its life.
    static DATASET: OnceCell<Option<AnalyticsEngineDataset>> = const { OnceCell::new() };
}

/// Logs an answered request.
pub(crate) fn answered(config: Option<&Config>, id: &RequestId, request_log: &RequestLog, outcome: &Outcome) {
    if config.is_none_or(|config| config.logs_requests) {
        console_log!("{}", outcome.line(id, request_log));
    }
    DATASET.with(|dataset| {
        if let Some(Some(dataset)) = dataset.get()
            && dataset.write_data_point(data_point(request_log, outcome)).is_err()
        {
            console_error!("a data point was not taken");
        }
    });
}

/// Logs a fault behind the edge. `cause` is the runtime's own message: it holds no key and no value.
pub(crate) fn fault(request_id: &RequestId, problem: &Problem, cause: &str) {
    console_error!("requestId={request_id} {problem} {cause}");
}

/// Finds what is bound, at an isolate's first request.
pub(crate) fn bind(env: &Env) {
    DATASET.with(|dataset| {
        dataset.get_or_init(|| {
            let bound = Reflect::get(env, &ANALYTICS.into()).ok()?;
            bound.is_object().then(|| bound.unchecked_into())
        });
    });
}

/// `index1` is the project, since samples are taken by it; blobs are labels, doubles are measures. In the
/// order that docs/monitoring.md documents, which queries depend on: new ones go to the end.
fn data_point(request_log: &RequestLog, outcome: &Outcome) -> JsValue {
    let index = Array::of1(&request_log.project().unwrap_or("none").into());
    let blobs = Array::of3(
        &request_log.method().into(),
        &request_log.route_name().into(),
        &request_log.code().unwrap_or_default().into(),
    );
    let doubles =
        Array::of3(&outcome.status.into(), &outcome.total_ms.into(), &outcome.origin_ms.unwrap_or(0.0).into());
    let point = js_sys::Object::new();
    for (name, values) in [("indexes", index), ("blobs", blobs), ("doubles", doubles)] {
        // A plain object takes any property.
        let _ = Reflect::set(&point, &name.into(), &values);
    }
    point.into()
}
