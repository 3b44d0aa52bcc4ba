//! What an origin tells of itself beside the answer to a request: that it lives, and that it can reach its database.
//!
//! Knows the worker's API; must not decide what follows from a sign, which is [`gateway`](mod@crate::gateway)'s.

use super::question::{self, Question};
use super::{Turn, judge, now};
use crate::gateway::{self, Form, LIFE_PATH, Pick, Repeat};
use crate::{discard, get};
use futures_util::future::{Either, select};
use shared::error::UNAVAILABLE_HEADER;
use worker::Delay;
use worker::js_sys::Date;
use worker::web_sys::Response;

/// What an origin's answer to a simple question says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// It lives, and has what it was asked about.
    Well,
    /// It lives, but can't reach its database.
    NoDatabase,
    /// There was none.
    None,
}

impl Turn<'_> {
    /// What can't be repeated is sent only to an origin that is known to live, if there is a choice; and one that
    /// failed is not asked for more than a sign of life before it gave one.
    pub(super) fn wants_sign(&self, pick: Pick) -> bool {
        let origins = self.gateway.origins();
        let is_risky = pick.is_trial() || self.repeat != Repeat::Always;
        is_risky && !origins.is_one() && !origins.is_seen(pick, now())
    }

    /// Whether an answer says that its origin can't reach its database, where another origin may be asked.
    pub(super) fn lacks_database(&self, response: &Response) -> bool {
        let is_one = self.gateway.origins().is_one();
        !is_one && says_no_database(response)
    }

    /// Asks the origin the simplest of questions.
    pub(super) async fn sign(&self, pick: Pick, path: &str, until: f64) -> Sign {
        let call = self.forwarding.call;
        let url = format!("{}{path}", self.gateway.origins().url(pick));
        let door = &self.gateway.config().door;
        let question =
            question::sign_of_life(call, door).and_then(|init| Question::ask(&url, &init));
        let Ok(question) = question else {
            return Sign::None;
        };
        let Either::Left((Ok(response), _)) =
            select(question, Delay::from(self.patience(until, Date::now()))).await
        else {
            return Sign::None;
        };
        let sign = if judge(&response, Form::Interface, call).is_err() {
            Sign::None
        } else if says_no_database(&response) {
            Sign::NoDatabase
        } else {
            self.gateway.origins().lives(pick, now());
            Sign::Well
        };
        discard(&response);
        sign
    }

    /// Whether the origin lives.
    pub(super) async fn gives_sign(&self, pick: Pick, until: f64) -> bool {
        self.sign(pick, LIFE_PATH, until).await == Sign::Well
    }
}

fn says_no_database(response: &Response) -> bool {
    let unavailable = get(&response.headers(), UNAVAILABLE_HEADER);
    gateway::lacks_database(unavailable.as_deref())
}
