//! A request to an origin in flight.

use crate::core::Silence;
use crate::host::awaited::Awaited;
use crate::host::timer::Timer;
use futures_util::future::{Either, select};
use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Duration;
use worker::js_sys::{self, Date};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::web_sys::{self, AbortController, RequestInit, Response};

/// A request in flight. If it has a `controller`, dropping it before the response arrives aborts the request.
pub(super) struct Exchange {
    answer: Awaited,
    controller: Option<AbortController>,
}

impl Exchange {
    /// Sends a request that the runtime aborts when the client's request ends.
    pub(super) fn start(url: &str, init: &RequestInit) -> Result<Self, JsValue> {
        let scope: web_sys::WorkerGlobalScope = js_sys::global().unchecked_into();
        Ok(Self { answer: Awaited::from(scope.fetch_with_str_and_init(url, init)), controller: None })
    }

    /// Sends a request that `controller` aborts if the [`Exchange`] is dropped. Costs up to a tenth more than
    /// [`Exchange::start`].
    pub(super) fn start_abortable(url: &str, init: &RequestInit, controller: AbortController) -> Result<Self, JsValue> {
        init.set_signal(Some(&controller.signal()));
        let mut exchange = Self::start(url, init)?;
        exchange.controller = Some(controller);
        Ok(exchange)
    }
}

impl Future for Exchange {
    type Output = Result<Response, JsValue>;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context);
        answer.map(|answer| {
            self.controller = None;
            answer.and_then(JsValue::dyn_into)
        })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(controller) = &self.controller {
            controller.abort();
        }
    }
}

/// Waits `silence_max` for an origin's response, and once more if the edge was busy. If no response arrives, returns
/// the exchange and whether the silence counts against the origin.
pub(super) async fn wait(
    mut exchange: Exchange,
    silence_max: Duration,
) -> Either<Result<Response, JsValue>, (bool, Exchange)> {
    let mut nth = 0;
    loop {
        nth += 1;
        let started = Date::now();
        exchange = match select(exchange, Timer::from(silence_max)).await {
            Either::Left((answer, _)) => return Either::Left(answer),
            Either::Right((_, exchange)) => exchange,
        };
        match Silence::judge(nth, silence_max.as_millis() as u64, (Date::now() - started) as u64) {
            Silence::Again => {}
            silence => return Either::Right((silence == Silence::OfOrigin, exchange)),
        }
    }
}
