//! The kinds of MariaDB's types. A test writes them for the console (`console/src/kinds.ts`).

use crate::query::catalog::Kind;

/// The kinds of types. All other types are read as text: char, varchar, the text types, and types of later versions.
const KINDS: [(Kind, &[&str]); 15] = [
    (Kind::Integer, &["tinyint", "smallint", "mediumint", "int", "bigint", "year"]),
    (Kind::Bit, &["bit"]),
    (Kind::Decimal, &["decimal"]),
    (Kind::Float, &["float"]),
    (Kind::Double, &["double"]),
    (Kind::Date, &["date"]),
    (Kind::DateTime, &["datetime", "timestamp"]),
    (Kind::Time, &["time"]),
    (Kind::Bytes, &["binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"]),
    (Kind::Enum, &["enum"]),
    (Kind::Set, &["set"]),
    (Kind::Uuid, &["uuid"]),
    (Kind::Inet4, &["inet4"]),
    (Kind::Inet6, &["inet6"]),
    (
        Kind::Geometry,
        &[
            "geometry",
            "point",
            "linestring",
            "polygon",
            "multipoint",
            "multilinestring",
            "multipolygon",
            "geometrycollection",
        ],
    ),
];

pub(super) fn kind(data_type: &str) -> Kind {
    KINDS.iter().find(|(_, types)| types.contains(&data_type)).map_or(Kind::Text, |(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_has_the_kinds_of_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../console/src/kinds.ts");
        let rows = KINDS.iter().flat_map(|(kind, types)| types.iter().map(move |name| (name, format!("{kind:?}"))));
        let rows: String = rows.map(|(name, kind)| format!("  {name}: \"{}\",\n", kind.to_lowercase())).collect();
        let written = format!(
            "// The kinds of MariaDB's types, written by `ACCEPT=1 cargo test -p selkie-origin kinds` from the table in
// origin/src/database/schema_reader/kinds.rs. Other types are text.
export const KINDS = {{\n{rows}}} as const;\n"
        );
        if std::env::var_os("ACCEPT").is_some() {
            std::fs::write(path, &written).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap();
        assert!(committed == written, "write the file again: ACCEPT=1 cargo test -p selkie-origin kinds");
    }
}
