//! Builds the CREATE TABLE statement of `selkie import --create` from a file's columns.

use shared::ident::{FieldName, TableName, shown};

use super::TransferError;
use super::column_type::Extent;
use super::columns::Column;
use crate::query::sql::create_table::{NewKey, create_table};

/// A column `id` of whole numbers is the primary key, with AUTO_INCREMENT; without a column `id`, the table gets such a
/// key.
pub(super) fn statement(
    table: &TableName,
    columns: &[Column],
    extent: Extent,
) -> Result<(String, Vec<String>), TransferError> {
    let mut typed = Vec::new();
    for column in columns {
        let name = FieldName::parse(&column.name).map_err(|problem| {
            TransferError::usage(problem.message().trim_end_matches('.'), "rename the column in the file")
        })?;
        let is_taken = |(other, _): &(FieldName, _)| other.as_str().eq_ignore_ascii_case(&column.name);
        if typed.iter().any(is_taken) {
            let message = format!("two columns are named {} but for the case of letters", shown(&column.name));
            return Err(TransferError::usage(message, "rename one of them in the file"));
        }
        typed.push((name, column.values.column_type(extent)));
    }
    let key = match columns.iter().find(|column| column.name.eq_ignore_ascii_case("id")) {
        None => NewKey::Added,
        Some(column) if column.values.is_whole_key() => NewKey::Column,
        Some(_) => NewKey::None,
    };
    let types = typed.iter().map(|(_, of_type)| of_type.to_string()).collect();
    Ok((create_table(table, &typed, key), types))
}
