//! Cancels a request's work when its client disconnects. Without this, the runtime would just stop polling the
//! request's future, which would leak for the isolate's life.

use super::awaited::Awaited;
use super::timer::Timer;
use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Duration;
use worker::Context;
use worker::wasm_bindgen::JsCast;
use worker::web_sys::{AbortSignal, Request};

/// A future that completes when the client disconnects. Its first poll registers an event listener; a response that is
/// ready at once needs no listener, so poll the response's future before this one.
pub(crate) struct ClientAbort<'a> {
    request: &'a Request,
    context: &'a Context,
    aborted: Option<Awaited>,
}

impl<'a> ClientAbort<'a> {
    pub(crate) fn of(request: &'a Request, context: &'a Context) -> Self {
        Self { request, context, aborted: None }
    }
}

impl Future for ClientAbort<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<()> {
        let request = self.request;
        let aborted = self.aborted.get_or_insert_with(|| {
            Awaited::event(|on_abort| {
                // The property is undefined without the compatibility flag `enable_request_signal`.
                let signal = worker::js_sys::Reflect::get(request, &"signal".into()).unwrap_or_default();
                if let Ok(signal) = signal.dyn_into::<AbortSignal>() {
                    // An error is ignored: without the listener, the work just continues.
                    let _ = signal.add_event_listener_with_callback("abort", on_abort);
                }
            })
        });
        if Pin::new(aborted).poll(context).is_pending() {
            return Poll::Pending;
        }
        // Keeps the runtime's context alive for another turn of its event loop, in which the cancelled work is dropped.
        self.context.wait_until(Timer::from(Duration::ZERO));
        Poll::Ready(())
    }
}
