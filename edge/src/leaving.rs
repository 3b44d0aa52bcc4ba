//! Callers who leave before they are answered. The runtime then forgets their requests, and runs nothing for
//! them any more: a future that waits would never be dropped, and whatever it holds would stay for the life of the
//! isolate. So who answers a request waits for its caller's leaving too, and drops the rest himself.
//!
//! Knows the worker's API; must not know what is answered.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{self, Poll, Waker};
use worker::Context;
use worker::wasm_bindgen::{self, prelude::Closure, prelude::wasm_bindgen};
use worker::web_sys::Request;
use worker::worker_sys;

#[wasm_bindgen(module = "/src/leaving.js")]
extern "C" {
    fn watch(
        request: &Request,
        context: &worker_sys::Context,
        number: u32,
        left: &Closure<dyn Fn(u32)>,
    );
}

thread_local! {
    static CALLERS: RefCell<Callers> = RefCell::default();
    /// One an isolate: one for each request would cost more than all the rest of this.
    static LEFT: Closure<dyn Fn(u32)> = Closure::new(left);
}

/// Those who wait for an answer, by numbers.
#[derive(Default)]
struct Callers {
    last: u32,
    here: Vec<(u32, Waker)>,
}

impl Callers {
    fn enter(&mut self, waker: Waker) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.here.push((self.last, waker));
        self.last
    }

    fn is_here(&self, number: u32) -> bool {
        self.here.iter().any(|(here, _)| *here == number)
    }

    fn remove(&mut self, number: u32) -> Option<Waker> {
        let at = self.here.iter().position(|(here, _)| *here == number)?;
        Some(self.here.swap_remove(at).1)
    }
}

fn left(number: u32) {
    let waker = CALLERS.with_borrow_mut(|callers| callers.remove(number));
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Ends when the caller leaves. Costs nothing before it is first polled, so whoever has an answer at once should
/// be polled before.
pub(crate) struct Leaving<'a> {
    request: &'a Request,
    context: &'a Context,
    number: Option<u32>,
}

impl<'a> Leaving<'a> {
    pub(crate) fn of(request: &'a Request, context: &'a Context) -> Self {
        Self {
            request,
            context,
            number: None,
        }
    }
}

impl Future for Leaving<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<()> {
        // A request is one task, so its waker stays the same.
        let Some(number) = self.number else {
            let waker = context.waker().clone();
            let number = CALLERS.with_borrow_mut(|callers| callers.enter(waker));
            self.number = Some(number);
            LEFT.with(|left| watch(self.request, self.context.as_ref(), number, left));
            return Poll::Pending;
        };
        match CALLERS.with_borrow(|callers| callers.is_here(number)) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            CALLERS.with_borrow_mut(|callers| callers.remove(number));
        }
    }
}
