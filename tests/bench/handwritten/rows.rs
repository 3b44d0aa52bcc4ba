//! Writes rows as JSON in the two styles: collected as values, or streamed as bytes.

use std::io::Write as _;

use axum::body::{Body, Bytes};
use futures_util::{TryStreamExt as _, stream};
use mysql_async::{
    Conn, Params, ResultSetStream, Row, Value,
    prelude::{Query as _, Queryable as _, WithParams as _},
};
use serde_json::Map;

/// Size in bytes from which a buffer is sent.
const CHUNK_BYTES: usize = 32 * 1024;

type Rows = ResultSetStream<'static, 'static, 'static, Row, mysql_async::BinaryProtocol>;

/// Collects all rows as a JSON value.
pub(super) async fn values(
    mut connection: Conn,
    text: &str,
    params: Params,
) -> mysql_async::Result<Vec<serde_json::Value>> {
    let rows: Vec<Row> = connection.exec(text, params).await?;
    Ok(rows.into_iter().map(tree).collect())
}

fn tree(row: Row) -> serde_json::Value {
    let columns = row.columns();
    let mut record = Map::with_capacity(columns.len());
    for (column, value) in columns.iter().zip(row.unwrap_raw()) {
        let value = match value {
            None | Some(Value::NULL) => serde_json::Value::Null,
            Some(Value::Bytes(bytes)) => serde_json::Value::String(String::from_utf8_lossy(&bytes).into_owned()),
            Some(Value::Int(number)) => number.into(),
            Some(Value::UInt(number)) => number.into(),
            Some(Value::Float(number)) => number.into(),
            Some(Value::Double(number)) => number.into(),
            Some(date @ Value::Date(..)) => serde_json::Value::String(moment(&date)),
            Some(time @ Value::Time(..)) => serde_json::Value::String(time.as_sql(true)),
        };
        record.insert(column.name_str().into_owned(), value);
    }
    serde_json::Value::Object(record)
}

/// Writes the only row to a body of known length.
pub(super) async fn streamed_record(connection: Conn, text: &'static str, params: Params) -> mysql_async::Result<Body> {
    let rows: Rows = text.with(params).stream(connection).await?;
    Ok(body(rows, "{\"success\":true,\"payload\":", "}"))
}

/// Streams every row while the body is sent.
pub(super) async fn streamed_list(connection: Conn, text: &'static str, params: Params) -> mysql_async::Result<Body> {
    let rows: Rows = text.with(params).stream(connection).await?;
    Ok(body(rows, "{\"success\":true,\"payload\":[", "]}"))
}

fn body(rows: Rows, head: &'static str, tail: &'static str) -> Body {
    let start = (rows, Vec::from(head), Some(tail));
    Body::from_stream(stream::try_unfold(start, async |(mut rows, mut buffer, tail)| {
        let Some(end) = tail else {
            return Ok::<_, mysql_async::Error>(None);
        };
        let mut first = !buffer.is_empty();
        buffer.reserve(CHUNK_BYTES / 8);
        while let Some(row) = rows.try_next().await? {
            if !first {
                buffer.push(b',');
            }
            first = false;
            write_row(&row, &mut buffer);
            if buffer.len() >= CHUNK_BYTES {
                return Ok(Some((Bytes::from(buffer), (rows, Vec::new(), tail))));
            }
        }
        buffer.extend_from_slice(end.as_bytes());
        Ok(Some((Bytes::from(buffer), (rows, Vec::new(), None))))
    }))
}

fn write_row(row: &Row, buffer: &mut Vec<u8>) {
    for (index, column) in row.columns_ref().iter().enumerate() {
        buffer.push(if index == 0 { b'{' } else { b',' });
        // Writing to a vector can't fail.
        let _ = serde_json::to_writer(&mut *buffer, &column.name_str());
        buffer.push(b':');
        match row.as_ref(index) {
            None | Some(Value::NULL) => buffer.extend_from_slice(b"null"),
            Some(Value::Bytes(bytes)) => {
                let _ = serde_json::to_writer(&mut *buffer, &String::from_utf8_lossy(bytes));
            }
            Some(Value::Int(number)) => drop(serde_json::to_writer(&mut *buffer, number)),
            Some(Value::UInt(number)) => drop(serde_json::to_writer(&mut *buffer, number)),
            Some(Value::Float(number)) => drop(serde_json::to_writer(&mut *buffer, number)),
            Some(Value::Double(number)) => drop(serde_json::to_writer(&mut *buffer, number)),
            Some(date @ Value::Date(..)) => drop(write!(buffer, "\"{}\"", moment(date))),
            Some(time @ Value::Time(..)) => drop(write!(buffer, "\"{}\"", time.as_sql(true))),
        }
    }
    buffer.push(b'}');
}

fn moment(value: &Value) -> String {
    match value {
        Value::Date(year, month, day, hour, minute, second, _) => {
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
        }
        other => other.as_sql(true),
    }
}
