//! An endpoint for webhooks, which answers as a test wants.

use super::DELIVERY_MAX;
use crate::case::eventually;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use machines::signature::sign;
use serde_json::Value;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio::task::AbortHandle;

pub(super) struct Receiver {
    pub(super) url: String,
    state: Arc<Mutex<Received>>,
    task: AbortHandle,
}

#[derive(Default)]
struct Received {
    deliveries: Vec<Delivery>,
    /// The next answers; 204 after them.
    answers: VecDeque<(u16, Option<(&'static str, String)>)>,
    /// Whether the bodies of answers never end.
    is_endless: bool,
    /// Whether answers wait for [`Receiver::release`].
    held: Option<watch::Sender<()>>,
}

#[derive(Clone)]
pub(super) struct Delivery {
    pub(super) headers: HeaderMap,
    pub(super) text: String,
    pub(super) answered: u16,
}

impl Delivery {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(super) fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub(super) fn body(&self) -> Value {
        serde_json::from_str(&self.text).expect("JSON")
    }

    pub(super) fn changes(&self) -> Vec<Value> {
        self.body()["changes"].as_array().expect("changes").clone()
    }

    /// Returns how many of the signatures are made with the secret.
    pub(super) fn signatures_of(&self, secret: &str) -> usize {
        let expected = sign(secret, self.id(), self.header("webhook-timestamp"), self.text.as_bytes());
        self.header("webhook-signature").split(' ').filter(|signature| Some(*signature) == expected.as_deref()).count()
    }
}

impl Receiver {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let state = Arc::<Mutex<Received>>::default();
        let router = Router::new().fallback(receive).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, state, task: task.abort_handle() }
    }

    /// Answers the next deliveries with these statuses.
    pub(super) fn answer(&self, statuses: &[u16]) {
        self.state.lock().unwrap().answers.extend(statuses.iter().map(|status| (*status, None)));
    }

    pub(super) fn answer_with(&self, status: u16, header: &'static str, value: String) {
        self.state.lock().unwrap().answers.push_back((status, Some((header, value))));
    }

    pub(super) fn answer_without_end(&self) {
        self.state.lock().unwrap().is_endless = true;
    }

    /// Holds all answers back.
    pub(super) fn hold(&self) {
        self.state.lock().unwrap().held = Some(watch::Sender::new(()));
    }

    pub(super) fn release(&self) {
        self.state.lock().unwrap().held = None;
    }

    pub(super) fn received(&self) -> Vec<Delivery> {
        self.state.lock().unwrap().deliveries.clone()
    }

    /// Waits until so many deliveries have come, and returns all.
    pub(super) async fn wait(&self, count: usize) -> Vec<Delivery> {
        let what = format!("{count} deliveries");
        eventually(&what, DELIVERY_MAX, || async { Some(self.received()).filter(|found| found.len() >= count) }).await
    }

    /// Waits until so many changes were delivered, and returns all that were acknowledged.
    pub(super) async fn wait_for_changes(&self, count: usize) -> Vec<Value> {
        let changes = || -> Vec<Value> {
            let accepted = self.received().into_iter().filter(|delivery| delivery.answered < 300);
            accepted.flat_map(|delivery| delivery.changes()).collect()
        };
        let what = format!("{count} changes");
        eventually(&what, DELIVERY_MAX, || async { Some(changes()).filter(|found| found.len() >= count) }).await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(State(state): State<Arc<Mutex<Received>>>, headers: HeaderMap, body: Bytes) -> Response {
    let (status, header, is_endless, held) = {
        let mut state = state.lock().unwrap();
        let (status, header) = state.answers.pop_front().unwrap_or((204, None));
        let text = String::from_utf8(body.to_vec()).expect("UTF-8");
        state.deliveries.push(Delivery { headers, text, answered: status });
        (status, header, state.is_endless, state.held.as_ref().map(watch::Sender::subscribe))
    };
    if let Some(mut held) = held {
        // Ends with the sender.
        let _ = held.changed().await;
    }
    let status = StatusCode::from_u16(status).expect("a status");
    if is_endless {
        let parts = stream::iter([Ok::<_, Infallible>("noted")]).chain(stream::pending());
        return (StatusCode::OK, Body::from_stream(parts)).into_response();
    }
    let mut response = (status, "noted").into_response();
    if let Some((name, value)) = header {
        let value = HeaderValue::try_from(value).expect("a value");
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
    response
}
