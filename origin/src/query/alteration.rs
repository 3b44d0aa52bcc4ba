//! Predicts by which algorithm MariaDB changes a table, from MariaDB 10.11 on. A prediction for people: execution tries
//! the algorithms from the cheapest on, and MariaDB refuses those that it can't use. Unsure means more costly.

mod column;

use crate::query::catalog::definition::{RowFormat, TableDefinition};
use crate::query::sql::table_change::{Lock, Method};
use column::{ColumnEffect, is_constant};
use shared::ident::FieldName;
use shared::operation::schema::{
    Algorithm, Alteration, ColumnChange, ColumnDefinition, ColumnPlace, ColumnSource, DefaultValue, IndexKind,
    PrimaryKeyChange,
};

/// Since this version, other statements may write while a table is copied.
const ONLINE_COPY_SINCE: (u32, u32) = (11, 2);

#[derive(Default)]
struct Effects {
    copies: bool,
    /// Copying is not possible while other statements write.
    numbers_rows: bool,
    rebuilds: bool,
    /// Adds, drops or moves stored columns.
    moves: bool,
    adds_stored: bool,
    /// Adds or drops virtual columns.
    virtual_columns: bool,
    creates_index: bool,
    drops_index: bool,
    full_text: usize,
    /// Only the definition changes.
    redefines: bool,
}

pub fn predict(table: &TableDefinition, change: &Alteration) -> Method {
    let is_rename = change.rename.is_some()
        && *change
            == Alteration { rename: change.rename.clone(), algorithm: change.algorithm, ..Alteration::default() };
    if is_rename {
        return Method::new(Algorithm::Instant, Lock::Exclusive);
    }
    Effects::of(table, change).method(table)
}

impl Effects {
    fn of(table: &TableDefinition, change: &Alteration) -> Self {
        let mut effects = Self::default();
        for (column, place) in &change.added_columns {
            effects.add(table, column, place.as_ref());
        }
        for changed in &change.changed_columns {
            effects.change(table, changed);
        }
        for name in &change.dropped_columns {
            effects.drop_column(table, name);
        }
        effects.rebuilds |= change.primary_key != PrimaryKeyChange::Kept;
        effects.full_text = change.added_indexes.iter().filter(|index| index.kind == IndexKind::FullText).count();
        effects.creates_index |= !change.added_indexes.is_empty();
        effects.drops_index |= !change.dropped_indexes.is_empty();
        effects.copies |= !change.added_foreign_keys.is_empty();
        effects
    }

    fn add(&mut self, table: &TableDefinition, column: &ColumnDefinition, place: Option<&ColumnPlace>) {
        let at = match place {
            None => table.columns.len(),
            Some(ColumnPlace::First) => 0,
            Some(ColumnPlace::After(name)) => table.column(name.as_str()).map_or(table.columns.len(), |(at, _)| at + 1),
        };
        match &column.source {
            ColumnSource::Generated { stored: false, .. } => self.virtual_columns = true,
            ColumnSource::Generated { stored: true, .. } => self.copies = true,
            ColumnSource::AutoIncrement => (self.copies, self.numbers_rows) = (true, true),
            ColumnSource::Default { value, .. } => {
                (self.moves, self.adds_stored) = (true, true);
                self.copies |=
                    matches!(value, Some(DefaultValue::Expression(expression)) if !is_constant(expression.as_str()));
                // A virtual column after it counts as moved.
                self.copies |= table.columns[at..].iter().any(column::is_virtual);
            }
        }
    }

    fn change(&mut self, table: &TableDefinition, changed: &ColumnChange) {
        let Some((at, old)) = table.column(changed.column.as_str()) else {
            return;
        };
        let is_moved = match &changed.place {
            None => false,
            Some(ColumnPlace::First) => at > 0,
            Some(ColumnPlace::After(name)) => table.column(name.as_str()).is_none_or(|(after, _)| after + 1 != at),
        };
        self.moves |= is_moved;
        self.copies |= is_moved && column::is_virtual(old);
        match column::effect(table, old, &changed.definition) {
            ColumnEffect::Definition => self.redefines = true,
            ColumnEffect::Reindex => {
                self.creates_index |= table
                    .indexes
                    .iter()
                    .any(|index| index.columns.iter().any(|part| part.column.eq_ignore_ascii_case(&old.name)));
            }
            ColumnEffect::Rebuild => self.rebuilds = true,
            ColumnEffect::Copy => self.copies = true,
            ColumnEffect::Number => (self.copies, self.numbers_rows) = (true, true),
        }
    }

    fn drop_column(&mut self, table: &TableDefinition, name: &FieldName) {
        let Some((_, old)) = table.column(name.as_str()) else {
            return;
        };
        match column::is_virtual(old) {
            true => self.virtual_columns = true,
            false => self.moves = true,
        }
        for index in &table.indexes {
            if index.columns.iter().any(|part| part.column.eq_ignore_ascii_case(name.as_str())) {
                self.drops_index = true;
                // The index is made anew over its other columns.
                self.creates_index |= index.columns.len() > 1;
            }
        }
        self.rebuilds |= table.primary_key.iter().any(|key| key.eq_ignore_ascii_case(name.as_str()));
    }

    fn method(self, table: &TableDefinition) -> Method {
        let has_full_text = table.has_full_text();
        let is_in_place = self.rebuilds
            || self.moves && (self.creates_index || has_full_text || table.storage.row_format == RowFormat::Compressed)
            || self.full_text > 0 && !has_full_text;
        let is_indexed = self.creates_index || self.drops_index;
        let is_combined = self.adds_stored || self.rebuilds || self.redefines || is_indexed;
        let is_stored_anew = self.moves || self.virtual_columns || self.rebuilds || is_indexed;
        let copies = self.copies
            || self.full_text > 1
            || self.virtual_columns && is_combined
            || !table.storage.innodb && is_stored_anew;
        if copies {
            let is_online = table.storage.version >= ONLINE_COPY_SINCE && !self.numbers_rows;
            return Method::new(Algorithm::Copy, if is_online { Lock::None } else { Lock::Shared });
        }
        let lock = if self.full_text > 0 || has_full_text && is_in_place { Lock::Shared } else { Lock::None };
        if is_in_place {
            return Method::new(Algorithm::InPlace, lock);
        }
        Method::new(if is_indexed { Algorithm::NoCopy } else { Algorithm::Instant }, lock)
    }
}
