//! The followed tables, whose rows a reader of the log decodes, and their ancestors: tables from which a delete or an
//! update reaches a followed table by foreign keys. MariaDB does not log the rows that foreign keys change.

use super::statement;
use binlog::RowsKind;
use shared::ident::{DatabaseName, TableName};
use shared::operation::TablePath;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

#[derive(Debug, Default)]
pub struct FollowedTables {
    sets: RwLock<Sets>,
    generation: AtomicU64,
}

#[derive(Debug, Default)]
struct Sets {
    followed: HashMap<TablePath, Ancestors>,
    /// By ancestor: the followed tables that the ancestor reaches.
    reached: HashMap<TablePath, HashSet<TablePath>>,
    /// All of these tables by their names, in lower case as far as they are ASCII.
    by_name: HashMap<Box<[u8]>, HashSet<TablePath>>,
}

/// The tables whose deletes and updates change rows of a table by foreign keys with `CASCADE` or `SET NULL`, directly
/// or through other tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ancestors {
    by_delete: HashSet<TablePath>,
    by_update: HashSet<TablePath>,
}

/// A foreign key that changes the rows of `child` when a row of `parent` is deleted or its key is updated.
#[derive(Clone, Debug)]
pub struct CascadingKey {
    pub child: TablePath,
    pub parent: TablePath,
    pub on_delete: bool,
    pub on_update: bool,
}

/// Foreign keys by their child.
#[derive(Debug, Default)]
pub struct CascadingKeys(HashMap<TablePath, Vec<CascadingKey>>);

impl CascadingKeys {
    pub(super) fn insert(&mut self, key: CascadingKey) {
        self.0.entry(key.child.clone()).or_default().push(key);
    }
}

impl Ancestors {
    pub fn of(table: &TablePath, keys: &CascadingKeys) -> Self {
        let mut ancestors = Self::default();
        let mut reached = vec![table.clone()];
        let mut next = 0;
        while let Some(child) = reached.get(next).cloned() {
            next += 1;
            for key in keys.0.get(&child).into_iter().flatten() {
                if key.on_delete {
                    ancestors.by_delete.insert(key.parent.clone());
                }
                if key.on_update {
                    ancestors.by_update.insert(key.parent.clone());
                }
                if !reached.contains(&key.parent) {
                    reached.push(key.parent.clone());
                }
            }
        }
        ancestors
    }

    fn all(&self) -> impl Iterator<Item = &TablePath> {
        self.by_delete.iter().chain(&self.by_update)
    }

    fn include(&self, table: &TablePath, kind: RowsKind) -> bool {
        match kind {
            RowsKind::Insert => false,
            RowsKind::Update => self.by_update.contains(table),
            RowsKind::Delete => self.by_delete.contains(table),
        }
    }
}

impl FollowedTables {
    /// Adds a table, or replaces its ancestors. Returns the new generation: transactions that begin in it, or in a
    /// later one, have all rows of the table.
    pub fn insert(&self, table: TablePath, ancestors: Ancestors) -> u64 {
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        sets.remove(&table);
        for ancestor in ancestors.all() {
            sets.reached.entry(ancestor.clone()).or_default().insert(table.clone());
        }
        for path in ancestors.all().chain([&table]) {
            sets.by_name.entry(folded(path).into()).or_default().insert(path.clone());
        }
        sets.followed.insert(table, ancestors);
        self.generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn remove(&self, table: &TablePath) {
        self.sets.write().unwrap_or_else(PoisonError::into_inner).remove(table);
    }

    /// The number of calls of [`Self::insert`] so far.
    pub(super) fn generation(&self) -> u64 {
        self.read(|_| self.generation.load(Ordering::Relaxed))
    }

    pub(super) fn contains(&self, table: &TablePath) -> bool {
        self.read(|sets| sets.followed.contains_key(table))
    }

    /// Whether the table is followed, or is an ancestor of a followed table.
    pub(super) fn concerns(&self, table: &TablePath) -> bool {
        self.read(|sets| sets.followed.contains_key(table) || sets.reached.contains_key(table))
    }

    /// The followed tables whose rows a foreign key may change when rows of `table` change. The log does not have these
    /// changes.
    pub(super) fn reached_from(&self, table: &TablePath, kind: RowsKind) -> Vec<TablePath> {
        self.read(|sets| {
            let reached = sets.reached.get(table).into_iter().flatten();
            let is_changed = |reached: &&TablePath| {
                sets.followed.get(*reached).is_some_and(|ancestors| ancestors.include(table, kind))
            };
            reached.filter(is_changed).cloned().collect()
        })
    }

    /// The followed tables that a statement names, by its own or the session's database, and those of which it names an
    /// ancestor, whose foreign keys it may change.
    pub(super) fn named_in(&self, statement: &[u8], sql_mode: u64, default_database: &[u8]) -> HashSet<TablePath> {
        let is_utf8 = std::str::from_utf8(statement).is_ok();
        // The tables that are named outside of parentheses, and in them.
        let mut named = [HashSet::new(), HashSet::new()];
        let (mut qualifiers, mut has_foreign_qualifier, mut is_balanced) = (HashSet::new(), false, true);
        let mut names = statement::names(statement, sql_mode);
        self.read(|sets| {
            let mut folded = Vec::new();
            for name in names.by_ref() {
                is_balanced &= name.depth >= 0;
                folded.clear();
                folded.extend(name.name.iter().map(u8::to_ascii_lowercase));
                let database = name.qualifier.as_deref().unwrap_or(default_database);
                let of_name = sets.by_name.get(&*folded).into_iter().flatten();
                for path in of_name.filter(|path| path.database.as_str().as_bytes().eq_ignore_ascii_case(database)) {
                    let named = &mut named[usize::from(name.depth > 0)];
                    named.extend(sets.followed.get_key_value(path).map(|(path, _)| path.clone()));
                    named.extend(sets.reached.get(path).into_iter().flatten().cloned());
                }
                if let Some(qualifier) = name.qualifier.filter(|_| !is_utf8) {
                    has_foreign_qualifier |= !qualifier.is_ascii();
                    qualifiers.insert(qualifier);
                }
            }
        });
        let [mut named, in_parentheses] = named;
        if !is_balanced || names.depth != 0 {
            named.extend(in_parentheses);
        }
        if !is_utf8 {
            // Its names are in a character set that is not decoded here.
            let is_ascii = |table: &TablePath| table.database.as_str().is_ascii() && table.table.as_str().is_ascii();
            let is_of = |table: &TablePath| {
                let database = table.database.as_str().as_bytes();
                has_foreign_qualifier || database == default_database || qualifiers.contains(database)
            };
            named.extend(self.filter(|table, ancestors| {
                is_of(table) && ancestors.all().chain([table]).any(|table| !is_ascii(table))
            }));
        }
        named
    }

    /// The followed tables of the databases that a statement names.
    pub(super) fn in_databases(&self, statement: &[u8], sql_mode: u64) -> Vec<TablePath> {
        let names: HashSet<Cow<'_, [u8]>> = statement::names(statement, sql_mode).map(|name| name.name).collect();
        self.filter(|table, _| names.contains(table.database.as_str().as_bytes()))
    }

    /// The followed tables of the databases in which a statement may change rows, and of the session's database.
    pub(super) fn changed_by(&self, statement: &[u8], sql_mode: u64, default_database: &[u8]) -> Vec<TablePath> {
        let mut databases = statement::databases(statement, sql_mode);
        databases.insert(default_database.to_ascii_lowercase());
        self.filter(|table, _| databases.contains(&table.database.as_str().as_bytes().to_ascii_lowercase()))
    }

    /// The followed tables whose rows a change in the databases may change.
    pub(super) fn reached_from_databases(&self, databases: &HashSet<Box<str>>) -> Vec<TablePath> {
        let is_in = |table: &TablePath| databases.contains(table.database.as_str());
        self.filter(|table, ancestors| ancestors.all().chain([table]).any(is_in))
    }

    fn filter(&self, is_meant: impl Fn(&TablePath, &Ancestors) -> bool) -> Vec<TablePath> {
        self.read(|sets| {
            let meant = sets.followed.iter().filter(|(table, ancestors)| is_meant(table, ancestors));
            meant.map(|(table, _)| table.clone()).collect()
        })
    }

    fn read<T>(&self, look: impl FnOnce(&Sets) -> T) -> T {
        look(&self.sets.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sets {
    fn remove(&mut self, table: &TablePath) {
        for ancestor in self.followed.remove(table).iter().flat_map(Ancestors::all) {
            if let Some(reached) = self.reached.get_mut(ancestor) {
                reached.remove(table);
                if reached.is_empty() {
                    self.reached.remove(ancestor);
                    self.forget_name(ancestor);
                }
            }
        }
        self.forget_name(table);
    }

    fn forget_name(&mut self, table: &TablePath) {
        if self.followed.contains_key(table) || self.reached.contains_key(table) {
            return;
        }
        let name = folded(table);
        if let Some(paths) = self.by_name.get_mut(&*name) {
            paths.remove(table);
            if paths.is_empty() {
                self.by_name.remove(&*name);
            }
        }
    }
}

fn folded(table: &TablePath) -> Vec<u8> {
    table.table.as_str().as_bytes().to_ascii_lowercase()
}

/// The path of a logged table; `None` for a name that no table of the API can have.
pub(super) fn path(database: &str, table: &str) -> Option<TablePath> {
    Some(TablePath { database: DatabaseName::parse(database).ok()?, table: TableName::parse(table).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> TablePath {
        path("shop", name).unwrap()
    }

    fn key(child: &str, parent: &str, on_delete: bool, on_update: bool) -> CascadingKey {
        CascadingKey { child: table(child), parent: table(parent), on_delete, on_update }
    }

    fn keyed<const N: usize>(keys: [CascadingKey; N]) -> CascadingKeys {
        let mut by_child = CascadingKeys::default();
        keys.into_iter().for_each(|key| by_child.insert(key));
        by_child
    }

    #[test]
    fn deletes_reach_a_table_through_others() {
        let keys = [key("lines", "orders", true, false), key("orders", "users", true, true), key("x", "y", true, true)];
        let keys = keyed(keys);
        let followed = FollowedTables::default();
        followed.insert(table("lines"), Ancestors::of(&table("lines"), &keys));
        followed.insert(table("tree"), Ancestors::of(&table("tree"), &keyed([key("tree", "tree", true, false)])));
        for (changed, kind, reached) in [
            ("orders", RowsKind::Delete, vec![table("lines")]),
            ("orders", RowsKind::Update, vec![]),
            ("users", RowsKind::Delete, vec![table("lines")]),
            ("users", RowsKind::Update, vec![table("lines")]),
            ("users", RowsKind::Insert, vec![]),
            ("tree", RowsKind::Delete, vec![table("tree")]),
            ("y", RowsKind::Delete, vec![]),
        ] {
            assert_eq!(followed.reached_from(&table(changed), kind), reached, "{changed} {kind:?}");
        }
        assert!(followed.concerns(&table("users")) && !followed.concerns(&table("y")));
        followed.insert(path("other", "copies").unwrap(), Ancestors::of(&table("lines"), &keys));
        for (database, count) in [("shop", 3), ("other", 1), ("x", 0)] {
            let reached = followed.reached_from_databases(&HashSet::from([database.into()]));
            assert_eq!(reached.len(), count, "{database}");
        }
    }

    #[test]
    fn a_statement_names_tables_of_its_databases() {
        let followed = FollowedTables::default();
        followed.insert(table("lines"), Ancestors::of(&table("lines"), &keyed([key("lines", "orders", true, false)])));
        followed.insert(table("naïve"), Ancestors::default());
        let lines = || HashSet::from([table("lines")]);
        for (statement, database, expected) in [
            (&b"ALTER TABLE lines ADD a int"[..], "shop", lines()),
            (b"ALTER TABLE Lines ADD a int", "other", HashSet::new()),
            (b"ALTER TABLE shop . `lines` ADD a int", "other", lines()),
            (b"DROP TABLE orders", "shop", lines()),
            (b"ALTER TABLE mine ADD shop int, ADD `lines` int, COMMENT \"shop.lines\"", "other", HashSet::new()),
            (b"DROP TABLE na\xefve", "shop", HashSet::from([table("naïve")])),
            (b"DROP TABLE shop.na\xefve", "", HashSet::from([table("naïve")])),
            (b"DROP TABLE na\xefve", "other", HashSet::new()),
            (b"CREATE TABLE shop (lines int, x int AS (shop.lines + 1))", "other", HashSet::new()),
            (b"ALTER TABLE x ADD CHECK (shop.lines > 1), RENAME shop.lines", "other", lines()),
            (b"CREATE TABLE x (/*! ( */ a int, b int AS (shop.lines))", "other", lines()),
        ] {
            let shown = String::from_utf8_lossy(statement);
            assert_eq!(followed.named_in(statement, 0, database.as_bytes()), expected, "{shown}");
        }
        followed.remove(&table("lines"));
        followed.remove(&table("naïve"));
        assert!(followed.read(|sets| sets.by_name.is_empty() && sets.reached.is_empty()));
    }
}
