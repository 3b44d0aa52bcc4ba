//! A case: an async function that gets a host. A case becomes one test for each host.

use crate::host::Host;
use libtest_mimic::Trial;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Maximum time of a case. A case that hangs fails, so that the other cases can report.
const CASE_MAX: Duration = Duration::from_secs(900);

/// Returns the maximum time of a case: the seconds in `SELKIE_TEST_CASE_SECONDS`, for runs with more rounds, or else
/// [`CASE_MAX`].
fn case_max() -> Duration {
    let asked = std::env::var("SELKIE_TEST_CASE_SECONDS").ok();
    asked.and_then(|text| text.parse().ok()).map_or(CASE_MAX, Duration::from_secs)
}

type Body = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// Runs through the origin and, as a second test, through the edge.
    Both,
    /// Runs through the origin only, because the edge doesn't promise this behaviour.
    Origin,
    /// Runs through the edge only, because the origin doesn't promise this behaviour.
    Edge,
    /// Runs once: the case needs no running service, or starts its own.
    Own,
}

pub(crate) struct Case {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    pub(crate) hosts: Hosts,
    pub(crate) body: fn(Host) -> Body,
}

inventory::collect!(Case);

/// Registers a module's cases: `cases! { Both: [a, b], Origin: [c] }`. The compiler reports unlisted cases as dead code.
macro_rules! cases {
    ($($hosts:ident: [$($name:ident),* $(,)?]),* $(,)?) => {
        $($(inventory::submit! {
            $crate::case::Case {
                module: module_path!(),
                name: stringify!($name),
                hosts: $crate::case::Hosts::$hosts,
                body: |host| Box::pin($name(host)),
            }
        })*)*
    };
}

/// Returns whether cases run through the edge. `SELKIE_TEST_HOSTS` can exclude the edge.
pub(crate) fn edge_is_open() -> bool {
    std::env::var("SELKIE_TEST_HOSTS").map_or(true, |hosts| hosts != "origin")
}

pub(crate) fn trials(case: &'static Case) -> Vec<Trial> {
    let hosts: &[(&str, Host)] = match case.hosts {
        Hosts::Both => &[("origin", Host::Origin), ("edge", Host::Edge)],
        Hosts::Origin => &[("origin", Host::Origin)],
        Hosts::Edge => &[("edge", Host::Edge)],
        Hosts::Own => &[("own", Host::Origin)],
    };
    let module = case.module.trim_start_matches("e2e::");
    hosts
        .iter()
        .map(|&(prefix, host)| {
            let shut = host == Host::Edge && !edge_is_open();
            let name = format!("{prefix}::{module}::{}", case.name);
            Trial::test(name, move || {
                runtime().block_on(async {
                    let most = case_max();
                    let body = tokio::time::timeout(most, (case.body)(host));
                    body.await.map_err(|_| format!("still running after {most:?}").into())
                })
            })
            .with_ignored_flag(shut)
        })
        .collect()
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("a runtime"))
}

/// Polls `probe` until it returns a value. Panics with `what` if it doesn't within `limit`.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> F,
) -> T {
    const PAUSE: Duration = Duration::from_millis(50);
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(tokio::time::Instant::now() < deadline, "not within {limit:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
