//! Cancels a request's work when its client disconnects. Otherwise the runtime would just stop running the request, and
//! its future would never be dropped and would leak for the isolate's life.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{self, Poll, Waker};
use std::time::Duration;
use worker::js_sys::Function;
use worker::wasm_bindgen::{JsCast, JsValue, prelude::Closure};
use worker::web_sys::{AbortSignal, Request};
use worker::{Context, Delay};

thread_local! {
    static WAITING: RefCell<Waiting> = RefCell::default();
    /// Called with a request's number when its client disconnects. All requests share this closure, since closures are
    /// expensive.
    static ON_ABORT: Closure<dyn Fn(u32)> = Closure::new(|number| {
        let waker = WAITING.with_borrow_mut(|waiting| waiting.remove(number));
        if let Some(waker) = waker {
            waker.wake();
        }
    });
}

/// The wakers of requests whose clients are connected, by the requests' numbers.
#[derive(Default)]
struct Waiting {
    last: u32,
    wakers: Vec<(u32, Waker)>,
}

impl Waiting {
    fn add(&mut self, waker: Waker) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.wakers.push((self.last, waker));
        self.last
    }

    fn contains(&self, number: u32) -> bool {
        self.wakers.iter().any(|(known, _)| *known == number)
    }

    fn remove(&mut self, number: u32) -> Option<Waker> {
        let at = self.wakers.iter().position(|(known, _)| *known == number)?;
        Some(self.wakers.swap_remove(at).1)
    }
}

/// A future that completes when the client disconnects. Poll the response's future before this one, since the response
/// may be ready at once.
pub(crate) struct ClientAbort<'a> {
    request: &'a Request,
    context: &'a Context,
    number: Option<u32>,
}

impl<'a> ClientAbort<'a> {
    pub(crate) fn of(request: &'a Request, context: &'a Context) -> Self {
        Self { request, context, number: None }
    }

    fn listen(&self, number: u32) -> Option<()> {
        // The property is undefined without the compatibility flag `enable_request_signal`.
        let signal = worker::js_sys::Reflect::get(self.request, &"signal".into()).ok()?;
        let signal: AbortSignal = signal.dyn_into().ok()?;
        ON_ABORT
            .with(|on_abort| {
                let on_abort: &Function = on_abort.as_ref().unchecked_ref();
                let on_abort = on_abort.bind1(&JsValue::UNDEFINED, &number.into());
                signal.add_event_listener_with_callback("abort", on_abort.unchecked_ref())
            })
            .ok()
    }
}

impl Future for ClientAbort<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<()> {
        // A request is a single task, so its waker does not change.
        let Some(number) = self.number else {
            let waker = context.waker().clone();
            let number = WAITING.with_borrow_mut(|waiting| waiting.add(waker));
            self.number = Some(number);
            // If the request has no signal, this future never completes.
            let _ = self.listen(number);
            return Poll::Pending;
        };
        if WAITING.with_borrow(|waiting| waiting.contains(number)) {
            return Poll::Pending;
        }
        // Keeps the runtime's context alive for another iteration of its event loop, in which the cancelled work is
        // dropped.
        self.context.wait_until(Delay::from(Duration::ZERO));
        Poll::Ready(())
    }
}

impl Drop for ClientAbort<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            WAITING.with_borrow_mut(|waiting| waiting.remove(number));
        }
    }
}
