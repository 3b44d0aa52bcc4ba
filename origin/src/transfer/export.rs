//! Exports rows: writes the rows of one read to a stream, in a form that `selkie import` reads.

use std::io::Write;

use serde_json::{Map, Value, json};
use shared::format::Format;

use super::api::failed;
use super::{Api, TableRef, TransferError};

#[derive(Clone, Debug)]
pub struct Export {
    pub table: TableRef,
    pub format: Format,
    pub query: Option<Value>,
    /// The fields; if empty, all but those that MariaDB computes.
    pub select: Vec<String>,
    /// The fields that order the rows. `-` before a name sorts in descending order.
    pub order: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    pub bytes: u64,
}

/// Writes the rows to `out`. Leaves out computed fields that `select` doesn't name: an import can't write them.
pub async fn export(
    api: &Api,
    export: Export,
    out: &mut (dyn Write + Send),
    mut written: impl FnMut(usize),
) -> Result<Exported, TransferError> {
    let mut options = Map::new();
    if let Some(query) = export.query {
        options.insert("query".to_owned(), query);
    }
    let select = match export.select.is_empty() {
        true => stored(api, &export.table).await?,
        false => export.select,
    };
    if !select.is_empty() {
        options.insert("selectFields".to_owned(), select.into());
    }
    if !export.order.is_empty() {
        let step = |name: &String| match name.strip_prefix('-') {
            Some(name) => json!({ "field": name, "strategy": "DESC" }),
            None => json!({ "field": name }),
        };
        options.insert("order".to_owned(), export.order.iter().map(step).collect());
    }
    let accept = if export.format == Format::Csv { "text/csv" } else { export.format.content_type() };
    let mut response = api.read(&export.table, &Value::Object(options), accept).await?;
    if response.headers().contains_key("x-selkie-limited") {
        let message = format!("{} has more rows than the server or the key's role lets one read have", export.table);
        return Err(TransferError::failed(message, "export parts by --query, or raise max_rows"));
    }
    let mark = export.format.cut_mark().as_bytes();
    let (mut bytes, mut end) = (0, Vec::new());
    while let Some(part) = response.chunk().await.map_err(|error| failed(&cut(bytes), &error))? {
        out.write_all(&part).map_err(TransferError::Output)?;
        bytes += part.len() as u64;
        end.extend_from_slice(&part[part.len().saturating_sub(mark.len())..]);
        end.drain(..end.len().saturating_sub(mark.len()));
        written(part.len());
    }
    if !mark.is_empty() && end == mark {
        return Err(TransferError::failed(cut(bytes), "the origin's log has the cause"));
    }
    out.flush().map_err(TransferError::Output)?;
    Ok(Exported { bytes })
}

/// Returns the names of all fields that MariaDB doesn't compute; none if the table does not exist. They are always
/// sent, since a read without `selectFields` leaves INVISIBLE fields out.
async fn stored(api: &Api, table: &TableRef) -> Result<Vec<String>, TransferError> {
    let fields = api.schema(table).await?.map(|schema| schema.fields).unwrap_or_default();
    // `Field::writable` would be wrong here: a view may have no writable field.
    Ok(fields.into_iter().filter(|field| !field.is_generated()).map(|field| field.name).collect())
}

fn cut(bytes: u64) -> String {
    format!("the answer broke off after {bytes} bytes, so the export is not complete")
}
