//! Waits for callbacks from JavaScript: for a promise, or for an event that happens at most once. A dropped [`Awaited`]
//! frees its memory at once, while `wasm_bindgen_futures::JsFuture` keeps its closures until the promise settles: the
//! runtime never settles the promises of a request whose client has disconnected.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread::LocalKey;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::js_sys::{Function, Promise};
use worker::wasm_bindgen::{JsCast, JsValue, prelude::Closure};

type Callback = Closure<dyn Fn(f64, JsValue)>;
type PromiseResult = Result<JsValue, JsValue>;

thread_local! {
    static CALLBACKS: RefCell<Callbacks> = RefCell::default();
    /// The callback for a success, called with an [`Awaited`]'s number and value. All [`Awaited`]s share this closure
    /// and `ON_FAILURE`, since closures are expensive.
    static ON_SUCCESS: Callback = Closure::new(|number, value| complete(number as u64, Ok(value)));
    static ON_FAILURE: Callback = Closure::new(|number, error| complete(number as u64, Err(error)));
}

// Declared by hand, because js-sys wants a closure of its own for each promise.
#[wasm_bindgen]
extern "C" {
    type Thenable;

    #[wasm_bindgen(method)]
    fn then(this: &Thenable, on_success: &Function, on_failure: &Function) -> JsValue;
}

/// The state of each [`Awaited`] that is not completed or dropped, sorted by number.
#[derive(Default)]
struct Callbacks {
    last: u64,
    expected: Vec<(u64, CallbackState)>,
}

impl Callbacks {
    fn index_of(&self, number: u64) -> Option<usize> {
        self.expected.binary_search_by_key(&number, |(known, _)| *known).ok()
    }
}

enum CallbackState {
    /// The callback has not been called. The waker is set by the first poll.
    Waiting(Option<Waker>),
    Called(PromiseResult),
}

/// A future that returns the value of a promise, or `Err` if the promise is rejected; or one that waits for an event.
pub(crate) struct Awaited {
    number: u64,
}

impl Awaited {
    /// Creates a future that completes when the event calls the function that `register` gets. If `register` can't add
    /// the function to the event, the future never completes.
    pub(crate) fn event(register: impl FnOnce(&Function)) -> Self {
        let awaited = Self::new();
        register(&awaited.bound(&ON_SUCCESS));
        awaited
    }

    fn new() -> Self {
        CALLBACKS.with_borrow_mut(|callbacks| {
            callbacks.last += 1;
            callbacks.expected.push((callbacks.last, CallbackState::Waiting(None)));
            Self { number: callbacks.last }
        })
    }

    fn bound(&self, callback: &'static LocalKey<Callback>) -> Function {
        callback.with(|callback| {
            let callback: &Function = callback.as_ref().unchecked_ref();
            callback.bind1(&JsValue::UNDEFINED, &(self.number as f64).into()).unchecked_into()
        })
    }
}

impl From<Promise> for Awaited {
    fn from(promise: Promise) -> Self {
        let awaited = Self::new();
        promise.unchecked_ref::<Thenable>().then(&awaited.bound(&ON_SUCCESS), &awaited.bound(&ON_FAILURE));
        awaited
    }
}

impl Future for Awaited {
    type Output = PromiseResult;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<PromiseResult> {
        CALLBACKS.with_borrow_mut(|callbacks| {
            let Some(index) = callbacks.index_of(self.number) else {
                return Poll::Pending;
            };
            if let (_, CallbackState::Waiting(waker)) = &mut callbacks.expected[index] {
                *waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            match callbacks.expected.remove(index) {
                (_, CallbackState::Called(outcome)) => Poll::Ready(outcome),
                (_, CallbackState::Waiting(_)) => Poll::Pending,
            }
        })
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        CALLBACKS
            .with_borrow_mut(|callbacks| callbacks.index_of(self.number).map(|index| callbacks.expected.remove(index)));
    }
}

fn complete(number: u64, outcome: PromiseResult) {
    let waker = CALLBACKS.with_borrow_mut(|callbacks| {
        let index = callbacks.index_of(number)?;
        match std::mem::replace(&mut callbacks.expected[index].1, CallbackState::Called(outcome)) {
            CallbackState::Waiting(waker) => waker,
            CallbackState::Called(_) => None,
        }
    });
    if let Some(waker) = waker {
        waker.wake();
    }
}
