//! Tests which long polls share an answer, and who asks the origin.

use super::*;
use crate::core::Decision;
use crate::core::gateway::tests::{NOW, call, decide_logged, gateway_with, key_of};
use shared::ident::ProjectName;
use shared::key::{Access, Grant};
use shared::request_log::RequestLog;
use uuid::Uuid;

const NOW_MS: u64 = NOW * 1_000;
const ONE: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);
const POLL: &str = "/api/v1/changes/shop/orders?since=abc&wait=20s";

fn operation(path: &str, accept: &str) -> Operation {
    let request = call("GET", path, Some(key_of("default", Access::Read))).with("accept", accept);
    match decide_logged(&gateway_with(|_| {}), &request, NOW, &RequestLog::begin("GET")) {
        Ok(Decision::Changes(_, pending)) => pending.finish(b"").unwrap(),
        other => panic!("{other:?}"),
    }
}

fn principal(project: &str, key: Uuid) -> Principal {
    Principal::of_webhook(ProjectName::parse(project).unwrap(), key)
}

fn key(principal: &Principal, path: &str) -> Option<PollKey> {
    PollKey::of(principal, &operation(path, "*/*"))
}

#[test]
fn only_long_polls_are_shared() {
    let reader = principal("shop", ONE);
    assert!(key(&reader, POLL).is_some());
    for path in ["", "?since=abc", "?since=abc&wait=0", "?wait=20s"] {
        assert!(key(&reader, &format!("/api/v1/changes/shop/orders{path}")).is_none(), "{path}");
    }
    assert!(PollKey::of(&reader, &operation(POLL, "text/event-stream")).is_none());
    assert!(PollKey::of(&reader, &operation(POLL, "application/x-ndjson")) != key(&reader, POLL));
}

#[test]
fn long_polls_of_other_rights_or_options_are_others() {
    let callers = [principal("shop", ONE), principal("shop", OTHER), principal("blog", ONE)];
    let mut keys: Vec<_> = callers.iter().map(|one| key(one, POLL)).collect();
    let user = Principal::of_user(
        ProjectName::parse("shop").unwrap(),
        shared::key::subject_id("issuer", "7"),
        Grant::Read,
        NOW,
    );
    assert!(key(&user, POLL).is_none());
    let reader = principal("shop", ONE);
    keys.extend(
        ["&limit=5", "&query={\"id\":1}", "&selectFields=id"].map(|more| key(&reader, &format!("{POLL}{more}"))),
    );
    for path in ["shop/orders?since=abc&wait=10s", "shop/orders?since=abd&wait=20s", "shop/order?since=abc&wait=20s"] {
        keys.push(key(&reader, &format!("/api/v1/changes/{path}")));
    }
    for (at, one) in keys.iter().enumerate() {
        assert!(one.is_some() && !keys[..at].contains(one), "{at}");
    }
    let spelled = "/api/v1/changes/shop/orders?wait=20000ms&limit=1000&since=abc";
    assert_eq!(key(&reader, spelled), keys[0]);
}

/// Long polls for one page, with a count of those that were woken.
struct World {
    polls: Rc<Polls<&'static str>>,
    woken: Rc<Cell<usize>>,
}

impl World {
    fn new() -> Self {
        Self { polls: Rc::default(), woken: Rc::default() }
    }

    fn join(&self, now_ms: u64) -> Turn<&'static str> {
        Polls::join(&self.polls, key(&principal("shop", ONE), POLL).unwrap(), now_ms)
    }

    fn lead(&self) -> Lead<&'static str> {
        match self.join(NOW_MS) {
            Turn::Lead(lead) => lead,
            _ => panic!("another one leads"),
        }
    }

    fn wait(&self) -> Waiting<&'static str> {
        let Turn::Wait(waiting) = self.join(NOW_MS) else {
            panic!("nobody leads");
        };
        let woken = Rc::clone(&self.woken);
        waiting.wake_by(Box::new(move || woken.set(woken.get() + 1)));
        waiting
    }
}

#[test]
fn one_asks_and_all_get_its_answer() {
    let world = World::new();
    let lead = world.lead();
    let waiting = [world.wait(), world.wait()];
    drop(world.wait());
    assert!(waiting.iter().all(|one| one.ended(NOW_MS).is_none()));
    lead.answered("page", 9);
    assert_eq!(world.woken.get(), 2);
    assert!(waiting.iter().all(|one| one.ended(NOW_MS) == Some(Ended::Answered("page"))));
    let lead = world.lead();
    let waiting = world.wait();
    lead.unshared();
    assert_eq!(waiting.ended(NOW_MS), Some(Ended::Unshared));
}

#[test]
fn a_long_answer_is_copied_for_some_and_the_others_ask_again() {
    let world = World::new();
    let lead = world.lead();
    let waiting: Vec<_> = (0..40).map(|_| world.wait()).collect();
    lead.answered("page", SHARED_MAX_BYTES);
    let answered = waiting.iter().filter(|one| one.ended(NOW_MS) == Some(Ended::Answered("page"))).count();
    let again = waiting.iter().filter(|one| one.ended(NOW_MS) == Some(Ended::Abandoned)).count();
    assert_eq!((answered, again, world.woken.get()), (32, 8, 40));
}

#[test]
fn another_one_leads_if_the_lead_leaves_or_is_silent() {
    let world = World::new();
    let lead = world.lead();
    let waiting = world.wait();
    drop(lead);
    assert_eq!((waiting.ended(NOW_MS), world.woken.get()), (Some(Ended::Abandoned), 1));
    let silent = world.lead();
    let waiting = world.wait();
    assert_eq!(waiting.ended(NOW_MS + LEAD_MAX_MS - 1), None);
    assert_eq!(waiting.ended(NOW_MS + LEAD_MAX_MS), Some(Ended::Abandoned));
    let Turn::Lead(next) = world.join(NOW_MS + LEAD_MAX_MS) else {
        panic!("the silent one leads");
    };
    // The end of the silent lead does not end the next one.
    silent.answered("late", 9);
    assert!(matches!(world.join(NOW_MS + LEAD_MAX_MS), Turn::Wait(_)));
    drop(next);
}

#[test]
fn only_short_and_plain_successes_are_shared() {
    for (status, headers, expected) in [
        (200, "content-length,1048576", true),
        (200, "content-length,1048577", false),
        (200, "content-type,application/json", false),
        (200, "content-length,5\ncontent-encoding,gzip", false),
        (409, "content-length,5", false),
        (503, "content-length,5", false),
    ] {
        let bytes = shareable_bytes(status, &Headers::parse(headers.to_owned()));
        assert_eq!(bytes.is_some(), expected, "{status} {headers}");
    }
}
