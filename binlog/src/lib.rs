//! Decodes MariaDB's binary log: bytes in, values out. Must not know connections, files, clocks or SQL.
//!
//! ```text
//! bytes → Decoder::read → Event { Header, Body }
//! Body::TableMap → TableMap::table → Table: the columns, kept by the caller
//! Body::Rows → Rows::data → RowData::changes(&Table) → Change { before, after } → Image::cells → Value
//! ```
//!
//! An event is a view of its bytes. Rows are decompressed and decoded only when they are asked for. Nothing panics on
//! any bytes, and nothing allocates more than a small multiple of the bytes, or than the limit of decompression.
//!
//! An event does not tell everything that a `SELECT` shows. The caller must take from the schema:
//!
//! - whether a binary column is a UUID, INET4 or INET6 (`address` prints them) or a VECTOR;
//! - whether a text is JSON; whether a number is ZEROFILL, a YEAR has two digits, a FLOAT or DOUBLE a number of decimals;
//! - the fraction digits of TIME, DATETIME and TIMESTAMP in the format of MariaDB 5.3
//!   ([`Table::set_fraction_digits`]): without them, rows with such a column are refused.

pub mod address;
mod bytes;
pub mod charset;
mod column;
mod compressed;
mod decoder;
mod error;
mod event;
mod event_type;
mod gtid;
mod query;
mod rows;
mod table;
mod table_map;
mod value;

pub use column::{Column, ColumnType};
pub use decoder::{Checksum, Decoder, Header};
pub use error::{BrokenRule, Error};
pub use event::{Body, Event, FormatDescription, Heartbeat, Incident, Rotate, XaPrepare};
pub use event_type::EventType;
pub use gtid::{Gtid, GtidEvent, GtidList, Gtids, Xid};
pub use query::Query;
pub use rows::{Cell, Cells, Change, Changes, Image, RowData, Rows, RowsKind};
pub use table::{KeyPart, Table};
pub use table_map::TableMap;
pub use value::{Bit, Date, DateTime, Decimal, Enum, Set, Text, Time, Timestamp, Value, Year};
