//! Waits for callbacks from JavaScript: for a promise, or for an event that happens at most once. Unlike
//! `wasm_bindgen_futures::JsFuture`, which keeps its closures until the promise settles, a dropped [`Awaited`] leaves
//! nothing behind. That matters because the runtime never settles the promises of a request whose client has left.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::js_sys::{Function, Promise};
use worker::wasm_bindgen::{JsCast, JsValue, prelude::Closure};

type Outcome = Result<JsValue, JsValue>;

thread_local! {
    static CALLBACKS: RefCell<Callbacks> = RefCell::default();
    /// Called with the number of an [`Awaited`] and its value. All share these two closures, since closures are
    /// expensive.
    static ON_SUCCESS: Closure<dyn Fn(u32, JsValue)> = Closure::new(|number, value| complete(number, Ok(value)));
    static ON_FAILURE: Closure<dyn Fn(u32, JsValue)> = Closure::new(|number, error| complete(number, Err(error)));
}

// Declared by hand, because js-sys wants a closure of its own for each promise.
#[wasm_bindgen]
extern "C" {
    type Thenable;

    #[wasm_bindgen(method)]
    fn then(this: &Thenable, on_success: &Function, on_failure: &Function) -> JsValue;
}

#[derive(Default)]
struct Callbacks {
    last: u32,
    expected: HashMap<u32, State>,
}

enum State {
    /// The callback has not been called. The waker is set by the first poll.
    Waiting(Option<Waker>),
    Called(Outcome),
}

/// The value of a promise, or of an event.
pub(crate) struct Awaited {
    number: u32,
}

impl Awaited {
    /// Registers a callback of an event with `register`. If the callback can't be registered, the future never
    /// completes.
    pub(crate) fn event(register: impl FnOnce(&Function)) -> Self {
        let awaited = Self::new();
        ON_SUCCESS.with(|callback| register(&awaited.bound(callback)));
        awaited
    }

    fn new() -> Self {
        CALLBACKS.with_borrow_mut(|callbacks| {
            callbacks.last = callbacks.last.wrapping_add(1);
            callbacks.expected.insert(callbacks.last, State::Waiting(None));
            Self { number: callbacks.last }
        })
    }

    fn bound(&self, callback: &Closure<dyn Fn(u32, JsValue)>) -> Function {
        let callback: &Function = callback.as_ref().unchecked_ref();
        callback.bind1(&JsValue::UNDEFINED, &self.number.into()).unchecked_into()
    }
}

impl From<Promise> for Awaited {
    fn from(promise: Promise) -> Self {
        let awaited = Self::new();
        let [on_success, on_failure] =
            [&ON_SUCCESS, &ON_FAILURE].map(|key| key.with(|callback| awaited.bound(callback)));
        promise.unchecked_ref::<Thenable>().then(&on_success, &on_failure);
        awaited
    }
}

impl Future for Awaited {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        CALLBACKS.with_borrow_mut(|callbacks| match callbacks.expected.remove(&self.number) {
            Some(State::Called(outcome)) => Poll::Ready(outcome),
            _ => {
                let waker = Some(context.waker().clone());
                callbacks.expected.insert(self.number, State::Waiting(waker));
                Poll::Pending
            }
        })
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        CALLBACKS.with_borrow_mut(|callbacks| callbacks.expected.remove(&self.number));
    }
}

fn complete(number: u32, outcome: Outcome) {
    let waker = CALLBACKS.with_borrow_mut(|callbacks| {
        let state = callbacks.expected.get_mut(&number)?;
        match std::mem::replace(state, State::Called(outcome)) {
            State::Waiting(waker) => waker,
            State::Called(_) => None,
        }
    });
    if let Some(waker) = waker {
        waker.wake();
    }
}
