//! A case: an async function of a host, and how it becomes one test for each host that is open.

use crate::host::Host;
use libtest_mimic::Trial;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A case that takes longer hangs: it is failed, so that the others can report.
const CASE_MAX: Duration = Duration::from_secs(900);

/// How long a case may take: `SELKIE_TEST_CASE_SECONDS`, for those of which more rounds are asked.
fn case_max() -> Duration {
    let asked = std::env::var("SELKIE_TEST_CASE_SECONDS").ok();
    asked.and_then(|text| text.parse().ok()).map_or(CASE_MAX, Duration::from_secs)
}

type Body = Pin<Box<dyn Future<Output = ()>>>;

/// Through which hosts a case goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// Through the origin and, as a second test, through the edge.
    Both,
    /// What only the origin promises.
    Origin,
    /// What only the edge promises.
    Edge,
    /// Needs no running service, or starts its own.
    Own,
}

/// One entry of a module's list.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    module: &'static str,
    name: &'static str,
    hosts: Hosts,
    body: fn(Host) -> Body,
}

impl Case {
    pub(crate) const fn new(module: &'static str, name: &'static str, hosts: Hosts, body: fn(Host) -> Body) -> Self {
        Self { module, name, hosts, body }
    }
}

/// Lists a module's cases: `cases! { Both: [a, b], Origin: [c] }`. A case that is not listed is dead code, and warned of.
macro_rules! cases {
    ($($hosts:ident: [$($name:ident),* $(,)?]),* $(,)?) => {
        pub(crate) fn cases() -> Vec<$crate::case::Case> {
            vec![$($($crate::case::Case::new(
                module_path!(),
                stringify!($name),
                $crate::case::Hosts::$hosts,
                |host| Box::pin($name(host)),
            ),)*)*]
        }
    };
}

/// Whether `SELKIE_TEST_HOSTS` keeps the edge shut.
pub(crate) fn edge_is_open() -> bool {
    std::env::var("SELKIE_TEST_HOSTS").map_or(true, |hosts| hosts != "origin")
}

/// The tests that a case becomes: named `origin::records::read::…` and `edge::records::read::…`.
pub(crate) fn trials(case: Case) -> Vec<Trial> {
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

/// Polls `probe` until it gives a value; panics with `what` when `limit` is over.
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
