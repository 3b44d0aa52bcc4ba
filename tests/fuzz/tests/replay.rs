//! Checks the invariants for known requests: the fuzzer's seeds, and requests that once broke an invariant. There is
//! only one test, since it measures memory.

#[test]
fn known_requests_are_refused_clearly_or_become_sound_sql() {
    let requests = fuzz::seeds::requests();
    assert!(requests.len() > 50, "{} seeds", requests.len());
    for request in &requests {
        fuzz::check::request(request.as_bytes());
    }
}
