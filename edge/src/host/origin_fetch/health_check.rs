//! Health checks: whether an origin is alive, and whether it can reach its database.

use super::{Asking, Exchange, OriginAnswer, discard, headers, now, wait};
use crate::core::{self, CheckResult, FailedAttempt, Form, HEALTH_PATH, Pick};
use futures_util::future::Either;
use shared::error::UNAVAILABLE_HEADER;
use shared::request_id;
use shared::security::EDGE_SECRET_HEADER;
use std::time::Duration;
use worker::web_sys::AbortController;

impl Asking<'_> {
    /// Sends a health check to an origin: a GET of `path`, to be answered by `until` (in ms since 1970) and within
    /// `origin_connect_timeout`.
    pub(super) async fn check(&self, pick: Pick, path: &str, until: u64) -> CheckResult {
        let incoming = self.forwarding.incoming;
        let url = format!("{}{path}", self.gateway.origins().url(pick));
        let secret = self.gateway.config().access.edge_secret.as_ref();
        let mut sent = vec![(request_id::HEADER, incoming.request_id.as_str())];
        sent.extend(secret.map(|secret| (EDGE_SECRET_HEADER, secret.text())));
        let exchange = headers::request_init("GET", &sent)
            .and_then(|init| Exchange::start_abortable(&url, &init, AbortController::new()?));
        let Ok(exchange) = exchange else {
            return CheckResult::Down;
        };
        let left = Duration::from_millis(until.saturating_sub(now()));
        let silence_max = left.min(self.gateway.config().origin_connect_timeout);
        let response = match wait(exchange, silence_max).await {
            Either::Left(Ok(response)) => response,
            Either::Left(Err(_)) => return CheckResult::Down,
            Either::Right((true, _)) => return CheckResult::Silent,
            Either::Right((false, _)) => return CheckResult::Unclear,
        };
        let answer = OriginAnswer::read(response);
        let health = if answer.judge(Form::Interface, incoming).is_err() {
            CheckResult::Down
        } else if says_no_database(&answer) {
            CheckResult::NoDatabase
        } else if core::passes_check(answer.status) {
            self.gateway.origins().lives(pick, now());
            CheckResult::Well
        } else {
            CheckResult::Down
        };
        discard(&answer.response);
        health
    }

    /// Sends a health check, and fails if the origin does not pass it.
    pub(super) async fn check_alive(&self, pick: Pick, until: u64) -> Result<(), FailedAttempt> {
        let health = self.check(pick, HEALTH_PATH, until).await;
        FailedAttempt::unanswered(health).map_or(Ok(()), Err)
    }
}

pub(super) fn says_no_database(answer: &OriginAnswer) -> bool {
    core::lacks_database(answer.header(UNAVAILABLE_HEADER))
}
