//! Tests of the choice of the host for a new connection, and of leaving a host.

use super::probe::Lost;
use super::*;

const WELL: Option<Health> = Some(Health::Well);
const BEHIND: Option<Health> = Some(Health::Behind);
const LOST: Option<Health> = Some(Health::Lost(Lost::NoAnswer));
const DUE: Option<Health> = None;

fn state(serving: Option<usize>, hosts: &[Option<Health>]) -> HostsState {
    let hosts = hosts.iter().map(|health| HostState { health: *health, left: CancellationToken::new() });
    HostsState { hosts: hosts.collect(), serving, failovers: 0, last_read: 0, is_probing: true }
}

#[test]
fn the_first_host_that_is_well_serves_until_it_is_lost() {
    let cases = [
        (None, [DUE, WELL, WELL], None),
        (None, [LOST, WELL, DUE], Some(1)),
        (None, [WELL, WELL, DUE], Some(0)),
        (None, [LOST, DUE, LOST], None),
        (None, [LOST, BEHIND, LOST], Some(1)),
        (None, [LOST, LOST, LOST], Some(0)),
        (Some(2), [WELL, WELL, WELL], Some(2)),
        (Some(2), [WELL, WELL, DUE], Some(2)),
        (Some(2), [LOST, WELL, LOST], Some(1)),
        (Some(2), [DUE, WELL, LOST], Some(1)),
        (Some(2), [BEHIND, LOST, LOST], Some(0)),
        (Some(2), [WELL, LOST, BEHIND], Some(0)),
        (Some(2), [BEHIND, LOST, BEHIND], Some(2)),
        (Some(2), [LOST, LOST, LOST], Some(2)),
    ];
    for (serving, hosts, expected) in cases {
        assert_eq!(state(serving, &hosts).next(), expected, "{serving:?} {hosts:?}");
    }
}

#[test]
fn reads_take_turns_among_the_replicas_that_are_well() {
    let mut state = state(None, &[WELL, LOST, WELL]);
    let mut picked = Vec::new();
    for _ in 0..4 {
        let Pick::Host(index) = state.pick(HostRole::Reading) else {
            panic!("a replica is well");
        };
        state.last_read = index;
        picked.push(index);
    }
    assert_eq!(picked, [2, 0, 2, 0]);
}

#[tokio::test]
async fn a_single_host_serves_without_a_probe() {
    let address = DatabaseAddress::parse("mysql://u:p@127.0.0.1:1/").unwrap();
    let hosts = Hosts::new(&address, HostRole::Serving);
    let host = hosts.pick().await.unwrap();
    assert!(host.left.is_none());
    assert!(!hosts.suspect(&host));
    assert!(!hosts.0.state().is_probing);
}

#[tokio::test]
async fn statements_on_a_host_that_is_left_end() {
    let address = DatabaseAddress::parse("mysql://u:p@127.0.0.1:1,127.0.0.1:2/").unwrap();
    let hosts = Hosts::new(&address, HostRole::Serving);
    hosts.0.state().is_probing = true;
    hosts.0.report(1, Health::Well);
    hosts.0.report(0, Health::Well);
    let host = hosts.pick().await.unwrap();
    assert_eq!(host.index, 0);
    let work = hosts.on::<()>(&host, std::future::pending());
    let (outcome, ()) = tokio::join!(work, async { hosts.0.report(0, Health::Lost(Lost::NoAnswer)) });
    assert!(matches!(outcome, Err(mysql_async::Error::Other(error)) if error.is::<HostLost>()));
    assert!(!hosts.may_use(&host));
    assert_eq!(hosts.pick().await.unwrap().index, 1);
    assert_eq!(hosts.gauge().failovers, 1);
}
