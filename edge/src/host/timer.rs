//! A timer. Unlike `worker::Delay`, it needs no closure of its own.

use super::awaited::Awaited;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use worker::js_sys;
use worker::wasm_bindgen::JsCast;
use worker::web_sys::WorkerGlobalScope;

/// A future that completes after a time. Dropping it stops the timer.
pub(crate) struct Timer {
    elapsed: Awaited,
    id: i32,
}

impl From<Duration> for Timer {
    fn from(time: Duration) -> Self {
        let mut id = 0;
        let elapsed = Awaited::event(|callback| {
            let ms = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
            // The runtime refuses no timer.
            id = scope().set_timeout_with_callback_and_timeout_and_arguments_0(callback, ms).unwrap_or_default();
        });
        Self { elapsed, id }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.elapsed).poll(context).map(drop)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        scope().clear_timeout_with_handle(self.id);
    }
}

fn scope() -> WorkerGlobalScope {
    js_sys::global().unchecked_into()
}
