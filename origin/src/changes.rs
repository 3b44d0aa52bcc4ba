//! The feed of changes: reads MariaDB's binary log, and returns the changes of records that a caller's subscriptions
//! show. Knows nothing of HTTP.
//!
//! ```text
//! Feed: one reader of the log for all subscriptions, and the recent transactions of followed tables
//! CatchUp: a reader of the log for one caller, whose place is older than the transactions in the feed
//! Pager: rows of transactions, from either → the SELECT of a list over these rows → a page of changes
//! Token: the place after a page, and hashes of what the page shows
//! ```

mod catch_up;
mod feed;
mod message;
mod page;
mod shared_reads;
mod subscription;
mod table_lookups;
mod token;

pub use catch_up::{CatchUps, catch_up_readers};
pub use feed::{Feed, FeedGauge, RECENT_MAX_BYTES, TABLES_MAX_COUNT, TABLES_PER_PROJECT_MAX_COUNT, Waiter};
pub use message::Change;
pub use page::{PAGE_BYTES, Page, PageLimits, Pager};
pub use shared_reads::SharedReads;
pub use subscription::{Followed, Subscriptions};
pub use table_lookups::table_lookups;
pub use token::{Meaning, Place, Token, TokenFault};

use crate::config::ChangesConfig;
use crate::database::log_reader::{LogError, LogSource, ResyncReason};
use crate::database::{DbError, Hosts};
use crate::project_quota::{ProjectQuota, QuotaGuard};
use crate::system::keys::Caller;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::operation::TablePath;
use shared::operation::changes::Subscription;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of requests and streams that follow changes. Each takes some 20 KB while it waits.
const FOLLOWERS_MAX_COUNT: u64 = 20_000;
const FOLLOWERS_PER_PROJECT_MAX_COUNT: u64 = FOLLOWERS_MAX_COUNT / 2;
/// Bytes of subscriptions, written out, for which a request counts once more: conditions may be long lists.
const FOLLOWER_BYTES: usize = 4 * 1024;

/// Columns of tables, and selected fields, for which a request counts once more. A field takes about 100 bytes while the
/// request waits.
const FOLLOWER_FIELDS: usize = 128;

/// The feed of changes of this origin.
#[derive(Debug)]
pub struct Changes {
    pub feed: Feed,
    pub catch_ups: CatchUps,
    pub reads: SharedReads,
    followers: ProjectQuota,
    config: ChangesConfig,
    pages: AtomicU64,
    sent: AtomicU64,
    resyncs: [AtomicU64; ResyncReason::ALL.len()],
}

/// The shares of requests and streams that follow changes.
pub fn followers() -> ProjectQuota {
    ProjectQuota::with_callers(FOLLOWERS_MAX_COUNT, FOLLOWERS_PER_PROJECT_MAX_COUNT)
}

/// What the feed has done so far, for metrics.
#[derive(Clone, Debug, Default)]
pub struct ChangesGauge {
    pub feed: FeedGauge,
    pub pages: u64,
    pub sent: u64,
    pub resyncs: Vec<(ResyncReason, u64)>,
}

impl Changes {
    pub fn new(hosts: &Hosts, config: ChangesConfig) -> Self {
        let source = LogSource::new(hosts);
        Self {
            feed: Feed::new(source.clone()),
            catch_ups: CatchUps::new(source),
            reads: SharedReads::default(),
            followers: followers(),
            config,
            pages: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            resyncs: [const { AtomicU64::new(0) }; ResyncReason::ALL.len()],
        }
    }

    pub fn gauge(&self) -> ChangesGauge {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ChangesGauge {
            feed: self.feed.gauge(),
            pages: count(&self.pages),
            sent: count(&self.sent),
            resyncs: ResyncReason::ALL.into_iter().zip(self.resyncs.iter().map(count)).collect(),
        }
    }

    /// Counts a page that is sent.
    pub fn sent(&self, page: &Page) {
        self.pages.fetch_add(1, Ordering::Relaxed);
        self.sent.fetch_add(page.changes.len() as u64, Ordering::Relaxed);
    }

    /// Counts an error that is sent.
    pub fn failed(&self, error: &ChangesError) {
        if let Some(count) = error.resync_reason().and_then(|reason| self.resyncs.get(reason as usize)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn is_on(&self) -> bool {
        self.config == ChangesConfig::Served
    }

    pub fn slot(&self, caller: &Caller, subscriptions: &[Subscription]) -> Result<QuotaGuard, Problem> {
        let weight = 1 + format!("{subscriptions:?}").len() / FOLLOWER_BYTES;
        let slot = self.followers.try_take_as(caller.project(), caller.key_id(), weight as u64);
        slot.map_err(|refused| refused.into_problem("requests for changes"))
    }

    /// Adds to a request's slot what its planned subscriptions weigh.
    pub fn weigh(&self, slot: &mut QuotaGuard, subscriptions: &Subscriptions) -> Result<(), Problem> {
        let tables: HashMap<_, _> = subscriptions.all.iter().map(|one| (one.path(), one.table())).collect();
        let columns: usize = tables.values().map(|table| table.all_columns().len()).sum();
        let fields: usize = subscriptions.all.iter().map(|one| one.plan().own_fields()).sum();
        let grown = slot.grow(((columns + fields) / FOLLOWER_FIELDS) as u64);
        grown.map_err(|refused| refused.into_problem("requests for changes"))
    }
}

/// Why a page of changes can't be made.
#[derive(Debug)]
pub enum ChangesError {
    Resync(ResyncReason),
    Log(LogError),
    Database(DbError),
    Problem(Problem),
}

impl From<DbError> for ChangesError {
    fn from(error: DbError) -> Self {
        Self::Database(error)
    }
}

impl From<Problem> for ChangesError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<LogError> for ChangesError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Gone(reason) => Self::Resync(reason),
            LogError::TooLong => Self::Resync(ResyncReason::TooSlow),
            error => Self::Log(error),
        }
    }
}

impl ChangesError {
    pub fn resync_reason(&self) -> Option<ResyncReason> {
        match self {
            Self::Resync(reason) | Self::Log(LogError::Gone(reason)) => Some(*reason),
            _ => None,
        }
    }

    pub fn into_problem(self) -> Problem {
        match self {
            Self::Resync(reason) => resync(reason),
            Self::Log(LogError::Gone(reason)) => resync(reason),
            Self::Log(LogError::TooLong) => resync(ResyncReason::TooSlow),
            Self::Log(LogError::Unavailable(hint)) => {
                Problem::new(ErrorCode::ChangesUnavailable, "MariaDB's binary log can't serve changes.").with_hint(hint)
            }
            Self::Log(LogError::Lost(cause)) => {
                tracing::warn!(%cause, "the binary log can't be read");
                Problem::new(ErrorCode::DatabaseUnavailable, "MariaDB's binary log can't be read now.")
            }
            Self::Log(LogError::Undecodable(cause)) => {
                Problem::internal("MariaDB's binary log can't be decoded.", cause)
            }
            Self::Database(error) => error.into_problem(),
            Self::Problem(problem) => problem,
        }
    }
}

fn resync(reason: ResyncReason) -> Problem {
    let why = match reason {
        ResyncReason::LogPurged => "MariaDB has deleted the part of its binary log after the token.",
        ResyncReason::UnknownPosition => "MariaDB's binary log does not have the token's position.",
        ResyncReason::Failover => "Another database host took over, whose binary log has other positions.",
        ResyncReason::SchemaChanged => "The table was changed, made anew or dropped.",
        ResyncReason::Truncated => "The table was emptied by TRUNCATE.",
        ResyncReason::RoleChanged => "The caller's role or claims have changed.",
        ResyncReason::StatementLogged => "A session logged a statement instead of the rows that it changed.",
        ResyncReason::Cascade => "A foreign key changed rows, which MariaDB does not log.",
        ResyncReason::TooSlow => "The changes could not be kept until they were read.",
    };
    Problem::new(ErrorCode::ResyncRequired, why)
        .with_reason(reason.as_str())
        .with_hint("Read the records again, with snapshot=true, and go on from the token at the end.")
}

fn unlogged(table: &TablePath, gap: &'static str) -> Problem {
    let why = format!("The log lacks changes of the table {}.", shown(table.table.as_str()));
    Problem::new(ErrorCode::InvalidQueryOption, why).with_hint(gap)
}
