//! Caches the descriptions of tables as roles see them.

use crate::query::catalog::Table;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use shared::limits::DESCRIPTIONS_CACHE_MAX_BYTES;
use shared::operation::TablePath;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Initial capacity, which gives two shards. A view that is larger than a shard is never cached.
const VIEWS_EXPECTED_COUNT: usize = 100;

#[derive(Debug)]
pub struct Views {
    cached: Cache<(u64, TablePath), View, Bytes>,
    roles: AtomicU64,
}

#[derive(Clone, Debug)]
struct View {
    of: Weak<Table>,
    table: Arc<Table>,
}

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<(u64, TablePath), View> for Bytes {
    fn weight(&self, _: &(u64, TablePath), view: &View) -> u64 {
        view.table.memory_bytes()
    }
}

impl Default for Views {
    fn default() -> Self {
        let cached = Cache::with_weighter(VIEWS_EXPECTED_COUNT, DESCRIPTIONS_CACHE_MAX_BYTES, Bytes);
        Self { cached, roles: AtomicU64::new(0) }
    }
}

impl Views {
    pub(super) fn number(&self) -> u64 {
        self.roles.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn get(&self, role: u64, of: &Arc<Table>, make: impl FnOnce() -> Table) -> Arc<Table> {
        let key = (role, TablePath { database: of.database().clone(), table: of.name().clone() });
        if let Some(view) = self.cached.get(&key).filter(|view| view.of.as_ptr() == Arc::as_ptr(of)) {
            return view.table;
        }
        let table = Arc::new(make());
        self.cached.insert(key, View { of: Arc::downgrade(of), table: Arc::clone(&table) });
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::catalog::{Column, Traits};
    use crate::query::sql::golden::posts;

    fn described(comment: String) -> Arc<Table> {
        let posts = posts();
        let column = Column { comment, ..Column::clone(&posts.columns()[0]) };
        let (database, name) = (posts.database().clone(), posts.name().clone());
        Arc::new(Table::new(database, name, vec![column], Vec::new(), Vec::new(), Traits::default()))
    }

    #[test]
    fn views_are_limited_by_their_bytes() {
        let (views, of) = (Views::default(), described("x".repeat(1024 * 1024)));
        for role in 0..100 {
            views.get(role, &of, || of.restricted(|_| true));
        }
        assert!((1..=DESCRIPTIONS_CACHE_MAX_BYTES / 1024 / 1024).contains(&(views.cached.len() as u64)));
    }

    #[test]
    fn the_largest_view_is_cached() {
        let (views, of) = (Views::default(), described("x".repeat(12 * 1024 * 1024)));
        for role in 0..10 {
            let view = views.get(role, &of, || of.restricted(|_| true));
            let again = views.get(role, &of, || unreachable!("the view is cached"));
            assert!(Arc::ptr_eq(&view, &again));
        }
    }

    #[test]
    fn a_view_of_a_former_description_is_made_anew() {
        let views = Views::default();
        for comment in ["former", "new"] {
            let of = described(comment.to_owned());
            let view = views.get(0, &of, || of.restricted(|_| true));
            assert_eq!(view.columns()[0].comment, comment);
            let again = views.get(0, &of, || unreachable!("the view is cached"));
            assert!(Arc::ptr_eq(&view, &again));
        }
    }
}
