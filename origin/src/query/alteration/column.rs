//! What a changed definition of a column means for its stored values.

use crate::query::catalog::definition::{DefinedColumn, RowFormat, TableDefinition};
use shared::operation::schema::{ColumnDefinition, ColumnSource, SqlType, TypeArgument, TypeWord};

/// By rising cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ColumnEffect {
    Definition,
    /// Values stay, but their order changes.
    Reindex,
    Rebuild,
    Copy,
    /// Existing rows may get numbers.
    Number,
}

pub(super) fn is_virtual(column: &DefinedColumn) -> bool {
    column.generated.as_ref().is_some_and(|generated| generated.stored == Some(false))
}

pub(super) fn effect(table: &TableDefinition, old: &DefinedColumn, new: &ColumnDefinition) -> ColumnEffect {
    match (&new.source, &old.generated) {
        (ColumnSource::Generated { stored: false, .. }, Some(_)) if is_virtual(old) => return ColumnEffect::Definition,
        // Even with the same expression.
        (ColumnSource::Generated { .. }, _) | (_, Some(_)) => return ColumnEffect::Copy,
        (ColumnSource::AutoIncrement, None) if !old.auto_increment => return ColumnEffect::Number,
        _ => {}
    }
    of_type(table, old, new).max(of_nullability(table, old, new))
}

fn of_nullability(table: &TableDefinition, old: &DefinedColumn, new: &ColumnDefinition) -> ColumnEffect {
    let is_nullable = match new.source {
        ColumnSource::AutoIncrement => false,
        ColumnSource::Generated { .. } => old.nullable,
        ColumnSource::Default { .. } => new.nullable,
    };
    match (old.nullable, is_nullable) {
        (false, true) if table.storage.row_format == RowFormat::Redundant => ColumnEffect::Definition,
        (old, new) if old != new => ColumnEffect::Rebuild,
        _ => ColumnEffect::Definition,
    }
}

fn of_type(table: &TableDefinition, old: &DefinedColumn, new: &ColumnDefinition) -> ColumnEffect {
    let Ok(known) = SqlType::parse(&old.data_type) else {
        return ColumnEffect::Copy;
    };
    let (known, wanted) = (plain(known), plain(new.data_type.clone()));
    let (charset, collation) = charset_and_collation(table, old, new, &wanted);
    let is_same_charset = charset == old.charset;
    let is_widened = is_same_charset
        || known.name == "varchar".into()
            && matches!((old.charset.as_deref(), charset.as_deref()), (Some("utf8mb3"), Some("utf8mb4")));
    let full_text = table.indexes.iter().filter(|index| index.kind == "fulltext").flat_map(|index| &index.columns);
    let is_searched = full_text.into_iter().any(|part| part.column.eq_ignore_ascii_case(&old.name));
    let is_kept = known == wanted && is_same_charset
        || is_widened && !is_searched && grows(table, (&known, old.charset.as_deref()), (&wanted, charset.as_deref()));
    match is_kept {
        false => ColumnEffect::Copy,
        true if collation != old.collation => ColumnEffect::Reindex,
        true => ColumnEffect::Definition,
    }
}

fn grows(table: &TableDefinition, old: (&SqlType, Option<&str>), new: (&SqlType, Option<&str>)) -> bool {
    let ((known, old_charset), (wanted, new_charset)) = (old, new);
    if known.name != wanted.name || known.words != wanted.words {
        return false;
    }
    match (&*known.name, known.arguments.as_slice(), wanted.arguments.as_slice()) {
        ("varchar" | "varbinary", [TypeArgument::Number(from)], [TypeArgument::Number(to)]) => {
            let from_bytes = from.saturating_mul(char_bytes(old_charset));
            let to_bytes = to.saturating_mul(char_bytes(new_charset));
            // The length of a value takes one byte up to 255, but in this range two would be read otherwise.
            let keeps_length = !(128..=255).contains(&from_bytes)
                || to_bytes <= 255
                || table.storage.row_format == RowFormat::Redundant;
            to >= from && keeps_length
        }
        ("enum", from, to) => to.starts_with(from) && (from.len() > 255) == (to.len() > 255),
        ("set", from, to) => to.starts_with(from) && set_bytes(from.len()) == set_bytes(to.len()),
        _ => known == wanted,
    }
}

const fn set_bytes(members: usize) -> usize {
    match members.div_ceil(8) {
        bytes @ 0..=4 => bytes,
        _ => 8,
    }
}

fn char_bytes(charset: Option<&str>) -> u64 {
    match charset {
        None | Some("latin1" | "ascii" | "binary") => 1,
        Some("ucs2") => 2,
        Some("utf8mb3") => 3,
        _ => 4,
    }
}

/// Returns the character set and collation that the new definition means. A charset alone has a default collation,
/// which is taken for the old one if the charset is the old one.
fn charset_and_collation(
    table: &TableDefinition,
    old: &DefinedColumn,
    new: &ColumnDefinition,
    wanted: &SqlType,
) -> (Option<String>, Option<String>) {
    const WITH_CHARSET: [&str; 9] =
        ["char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json"];
    let lower = |text: &str| match text.to_ascii_lowercase() {
        text if text == "utf8" => "utf8mb3".to_owned(),
        text => text,
    };
    if !WITH_CHARSET.contains(&&*wanted.name) {
        return (None, None);
    }
    if &*wanted.name == "json" {
        // Always the same ones.
        return (old.charset.clone(), old.collation.clone());
    }
    match (new.charset.as_deref().map(lower), new.collation.as_deref().map(lower)) {
        (None, None) => (Some(table.charset.clone()), Some(table.collation.clone())),
        (Some(charset), None) if charset == table.charset => (Some(charset), Some(table.collation.clone())),
        (Some(charset), None) => (Some(charset), old.collation.clone()),
        (None, Some(collation)) => {
            let of_name = collation.split('_').next().unwrap_or_default().to_owned();
            // Collations such as uca1400_ai_ci belong to no single character set.
            let charset = if of_name == "uca1400" { table.charset.clone() } else { of_name };
            (Some(charset), Some(collation))
        }
        (charset, collation) => (charset, collation),
    }
}

/// Returns the type without other names of one type, and without the display width of integers.
fn plain(mut given: SqlType) -> SqlType {
    let name = match &*given.name {
        "integer" | "int4" => "int",
        "bool" | "boolean" | "int1" => "tinyint",
        "int2" => "smallint",
        "int3" | "middleint" => "mediumint",
        "int8" => "bigint",
        "dec" | "numeric" | "fixed" => "decimal",
        "real" => "double",
        "character" => "char",
        name => name,
    };
    let number = TypeArgument::Number;
    match (name, given.arguments.as_slice()) {
        ("tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year", _) => given.arguments.clear(),
        ("datetime" | "timestamp" | "time", [TypeArgument::Number(0)]) => given.arguments.clear(),
        ("char" | "binary" | "bit", []) => given.arguments = vec![number(1)],
        ("decimal", []) => given.arguments = vec![number(10), number(0)],
        ("decimal", [digits]) => given.arguments = vec![digits.clone(), number(0)],
        _ => {}
    }
    given.name = name.into();
    given.words.sort_by_key(|word| word.as_str());
    given.words.dedup();
    if given.words.contains(&TypeWord::ZeroFill) && !given.words.contains(&TypeWord::Unsigned) {
        given.words.insert(0, TypeWord::Unsigned);
    }
    given
}

/// Whether a default is known to be the same for all rows: literals, operators and the current time.
pub(super) fn is_constant(expression: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '`' | '$');
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| is_letter(c) || matches!(c, '\'' | '"')) {
        rest = &rest[start..];
        if rest.starts_with(['\'', '"']) {
            // Words in texts would have to be told apart.
            return !expression.contains(['(', '`']) && expression.trim().starts_with(['\'', '"']);
        }
        let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        let word = rest[..end].to_ascii_lowercase();
        let is_known = word.starts_with(|c: char| c.is_ascii_digit())
            || matches!(word.as_str(), "current_timestamp" | "now" | "localtimestamp" | "null" | "true" | "false");
        if !is_known {
            return false;
        }
        rest = &rest[end..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_literals_and_the_time_are_known_to_be_constant() {
        for text in ["1 + 1", "current_timestamp(6)", "NOW()", "'a'", "-1.5e3", "(1 + 2) * 3", "null"] {
            assert!(is_constant(text), "{text}");
        }
        for text in ["uuid()", "n + 1", "`1`", "'a' + n()", "rand()", "now() + x"] {
            assert!(!is_constant(text), "{text}");
        }
    }

    #[test]
    fn one_type_has_several_names() {
        let same =
            |one: &str, other: &str| plain(SqlType::parse(one).unwrap()) == plain(SqlType::parse(other).unwrap());
        for (one, other) in [
            ("int", "int(11)"),
            ("integer unsigned", "INT(10) UNSIGNED"),
            ("bool", "tinyint(1)"),
            ("numeric", "decimal(10,0)"),
            ("datetime(0)", "datetime"),
            ("int zerofill", "int(10) unsigned zerofill"),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        assert!(!same("datetime", "datetime(6)") && !same("int", "bigint") && !same("int", "int unsigned"));
    }
}
