//! Cancels a request's work when its client disconnects. The runtime then forgets the request and runs nothing for it any
//! more: a future that waits would never be dropped, and whatever it holds would stay for the life of the isolate.

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
    /// One for the isolate: a closure for each request would cost more than all the rest of this.
    static ON_ABORT: Closure<dyn Fn(u32)> = Closure::new(|number| {
        let waker = WAITING.with_borrow_mut(|waiting| waiting.remove(number));
        if let Some(waker) = waker {
            waker.wake();
        }
    });
}

/// The requests that wait for an answer, by numbers.
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

/// Ends when the client disconnects. Costs nothing before it is first polled, so an answer that is there at once should be
/// polled before.
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
        // None without the compatibility flag enable_request_signal.
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
        // A request is one task, so its waker stays the same.
        let Some(number) = self.number else {
            let waker = context.waker().clone();
            let number = WAITING.with_borrow_mut(|waiting| waiting.add(waker));
            self.number = Some(number);
            // Without a signal nobody wakes this.
            let _ = self.listen(number);
            return Poll::Pending;
        };
        if WAITING.with_borrow(|waiting| waiting.contains(number)) {
            return Poll::Pending;
        }
        // Keeps the runtime's context for another turn of its loop: what is aborted now ends only then.
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
