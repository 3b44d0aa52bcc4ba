//! Checks the invariants of one request.

use crate::MEMORY;
use crate::outcome::{self, Outcome, Verb};
use crate::request::Request;
use crate::statement::{is_ours, is_verbatim};
use shared::error::{ErrorCode, Problem};
use shared::key::Grant;
use shared::operation::parse_head;
use shared::policy::permit;

/// Maximum bytes of a message or hint: two escaped names of 80 characters in a sentence.
const SENTENCE_MAX_BYTES: usize = 2_400;

/// Maximum bytes of memory for a request of any size, for schemas and Selkie's own texts.
const MEMORY_BASE_BYTES: usize = 64 * 1024;
/// Maximum bytes of memory for each byte of a request. An item of a list may be two bytes (`1,`), and takes 24 bytes
/// when it is parsed and 40 when it is bound (twice with a count), in vectors that may be growing.
const MEMORY_FACTOR: usize = 150;
/// Maximum bytes of memory for each cell of a batch. Each row has a cell for every field that any row names.
const MEMORY_CELL_BYTES: usize = 100;

/// Checks the invariants of a request of any bytes.
///
/// # Panics
/// An invariant does not hold.
pub fn request(bytes: &[u8]) {
    let Some(request) = Request::read(bytes) else {
        return;
    };
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let outcome = outcome::of(&request);
    let taken = MEMORY.peak_usage().saturating_sub(before);
    let bound = MEMORY_BASE_BYTES + MEMORY_FACTOR * request.size() + MEMORY_CELL_BYTES * cells(&outcome);
    assert!(taken <= bound, "{taken} bytes for a request of {}", request.size());
    assert_eq!(outcome, outcome::of(&request), "the same request again");
    holds(&outcome);
    is_judged_by_its_head(&request);
}

fn cells(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Ours(Verb::Insert { cells }, _) => *cells,
        Outcome::Together(outcomes) => outcomes.iter().map(cells).sum(),
        _ => 0,
    }
}

fn holds(outcome: &Outcome) {
    match outcome {
        Outcome::Refused(problem) => is_clear(problem),
        Outcome::Nowhere | Outcome::Described => {}
        Outcome::Together(outcomes) => outcomes.iter().for_each(holds),
        Outcome::Own(call, statement) => is_verbatim(call, statement),
        Outcome::Ours(verb, statements) => {
            assert!(!statements.is_empty(), "nothing to run");
            for statement in statements {
                fits(*verb, &is_ours(statement));
            }
        }
    }
}

/// Checks that a statement fits its verb, and that no change of a whole table lacks a condition.
fn fits(verb: Verb, text: &str) {
    let verbs: &[&str] = match verb {
        Verb::Read => &["SELECT ", "(SELECT ", "EXPLAIN FORMAT=JSON SELECT "],
        Verb::Insert { .. } => &["INSERT "],
        Verb::Change => &["UPDATE ", "DELETE "],
    };
    assert!(verbs.iter().any(|verb| text.starts_with(verb)), "{verb:?}: {text}");
    if verb == Verb::Change {
        let (_, condition) = text.split_once(" WHERE ").expect("a condition");
        assert!(!condition.starts_with("TRUE"), "{text}");
    }
}

pub(crate) fn is_clear(problem: &Problem) {
    assert!((400..500).contains(&problem.status()), "{problem}");
    for sentence in [Some(problem.message()), problem.hint()].into_iter().flatten() {
        assert!(sentence.trim().len() > 1, "{problem:?}");
        assert!(
            sentence.len() <= SENTENCE_MAX_BYTES,
            "a sentence of {} bytes: {}",
            sentence.len(),
            problem.code().as_str()
        );
        assert!(!sentence.chars().any(char::is_control), "{sentence:?}");
    }
    let envelope: serde_json::Value = serde_json::from_slice(&problem.to_json("0")).expect("valid JSON");
    assert_eq!(envelope["error"]["message"], problem.message());
    for (_, value) in problem.headers() {
        assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{value:?}");
    }
}

/// Checks that the head of a request, without its body, decides which keys may send the request.
fn is_judged_by_its_head(request: &Request<'_>) {
    if let Ok(pending) = parse_head(&request.head()) {
        assert!(permit(pending.action(), &Grant::Full).is_ok());
        if let Err(problem) = permit(pending.action(), &Grant::Read) {
            assert_eq!(problem.code(), ErrorCode::FullAccessRequired);
        }
    }
}
