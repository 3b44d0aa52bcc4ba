//! The numbers of event types.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventType(pub u8);

macro_rules! types {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl EventType {
            $(pub const $name: Self = Self($number);)*

            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

types! {
    QUERY = 2, "QUERY";
    STOP = 3, "STOP";
    ROTATE = 4, "ROTATE";
    INTVAR = 5, "INTVAR";
    RAND = 13, "RAND";
    USER_VAR = 14, "USER_VAR";
    FORMAT_DESCRIPTION = 15, "FORMAT_DESCRIPTION";
    XID = 16, "XID";
    BEGIN_LOAD_QUERY = 17, "BEGIN_LOAD_QUERY";
    EXECUTE_LOAD_QUERY = 18, "EXECUTE_LOAD_QUERY";
    TABLE_MAP = 19, "TABLE_MAP";
    WRITE_ROWS_V1 = 23, "WRITE_ROWS_V1";
    UPDATE_ROWS_V1 = 24, "UPDATE_ROWS_V1";
    DELETE_ROWS_V1 = 25, "DELETE_ROWS_V1";
    INCIDENT = 26, "INCIDENT";
    HEARTBEAT = 27, "HEARTBEAT";
    WRITE_ROWS = 30, "WRITE_ROWS";
    UPDATE_ROWS = 31, "UPDATE_ROWS";
    DELETE_ROWS = 32, "DELETE_ROWS";
    XA_PREPARE = 38, "XA_PREPARE";
    PARTIAL_UPDATE_ROWS = 39, "PARTIAL_UPDATE_ROWS";
    ANNOTATE_ROWS = 160, "ANNOTATE_ROWS";
    BINLOG_CHECKPOINT = 161, "BINLOG_CHECKPOINT";
    GTID = 162, "GTID";
    GTID_LIST = 163, "GTID_LIST";
    START_ENCRYPTION = 164, "START_ENCRYPTION";
    QUERY_COMPRESSED = 165, "QUERY_COMPRESSED";
    WRITE_ROWS_COMPRESSED_V1 = 166, "WRITE_ROWS_COMPRESSED_V1";
    UPDATE_ROWS_COMPRESSED_V1 = 167, "UPDATE_ROWS_COMPRESSED_V1";
    DELETE_ROWS_COMPRESSED_V1 = 168, "DELETE_ROWS_COMPRESSED_V1";
    WRITE_ROWS_COMPRESSED = 169, "WRITE_ROWS_COMPRESSED";
    UPDATE_ROWS_COMPRESSED = 170, "UPDATE_ROWS_COMPRESSED";
    DELETE_ROWS_COMPRESSED = 171, "DELETE_ROWS_COMPRESSED";
    PARTIAL_ROW_DATA = 172, "PARTIAL_ROW_DATA";
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "event of type {}", self.0),
        }
    }
}
