//! Shares the reads of logged rows between callers to whom the rows look the same: thousands of callers may follow one
//! list.

use crate::database::run::images::{self, SeenRows};
use crate::database::single_flight::SingleFlight;
use crate::database::{DbError, Lessee, Pools, ReadFrom};
use crate::query::catalog::Layout;
use crate::query::plan::Param;
use crate::query::sql::Statement;
use lru::LruCache;
use sha2::{Digest as _, Sha256};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A hash of the account, the statement, its parameters and the names of the fields. The result depends on nothing
/// else, since the statement reads only the logged rows in its parameter, and no table.
type Key = [u8; 32];

/// Maximum number of recent results in memory. With at most [`RECENT_MAX_BYTES`] of parameters each, which the logged
/// rows are, they take about 16 MB.
const RECENT_MAX_COUNT: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");
const RECENT_MAX_BYTES: usize = 64 * 1024;

pub struct SharedReads {
    running: SingleFlight<Key, Arc<SeenRows>, DbError>,
    recent: Mutex<LruCache<Key, Arc<SeenRows>>>,
}

impl Default for SharedReads {
    fn default() -> Self {
        Self { running: SingleFlight::default(), recent: Mutex::new(LruCache::new(RECENT_MAX_COUNT)) }
    }
}

impl std::fmt::Debug for SharedReads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedReads")
    }
}

impl SharedReads {
    /// Returns which of the `count` logged rows in the statement's document the statement selects.
    pub(super) async fn read(
        &self,
        pools: &Arc<Pools>,
        lessee: Lessee<'_>,
        statement: Statement,
        layout: &Arc<Layout>,
        (count, limit): (usize, Duration),
    ) -> Result<Arc<SeenRows>, DbError> {
        let key = key(&lessee, &statement, layout);
        if let Some(known) = self.recent.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        let bytes: usize = statement.params().iter().map(text_bytes).sum();
        let (pools, layout) = (Arc::clone(pools), Arc::clone(layout));
        let (project, access, caller) = (lessee.project.clone(), lessee.access, lessee.caller);
        let load = async move {
            let lessee = Lessee { project: &project, access, caller };
            let mut lease = pools.lease_for(lessee, ReadFrom::Primary, None).await?;
            images::images(&mut lease, statement, &layout, count, limit).await.map(Arc::new)
        };
        let rows = self.running.run(key, load).await?;
        if bytes <= RECENT_MAX_BYTES {
            self.recent.lock().unwrap_or_else(PoisonError::into_inner).put(key, Arc::clone(&rows));
        }
        Ok(rows)
    }
}

fn text_bytes(param: &Param) -> usize {
    match param {
        Param::Text(text) => text.len(),
        _ => 0,
    }
}

fn key(lessee: &Lessee<'_>, statement: &Statement, layout: &Layout) -> Key {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    };
    add(lessee.project.as_str().as_bytes());
    add(format!("{:?} {:?}", lessee.access, layout.kinds).as_bytes());
    add(layout.keys.layout_id());
    add(statement.text().as_bytes());
    for param in statement.params() {
        match param {
            Param::Text(text) => {
                // A text may be what another value is written as.
                add(b"text");
                add(text.as_bytes());
            }
            other => add(format!("{other:?}").as_bytes()),
        }
    }
    hash.finalize().into()
}
