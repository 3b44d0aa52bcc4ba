//! MariaDB's error numbers (its `errmsg-utf8.txt`), names after those there, and what each means. No other file
//! has error numbers.

use shared::error::ErrorCode;

macro_rules! numbers {
    ($($name:ident = $number:literal,)*) => { $(pub(crate) const $name: u16 = $number;)* };
}

numbers! {
    DB_CREATE_EXISTS = 1007, CHECKREAD = 1020, DBACCESS_DENIED = 1044, ACCESS_DENIED = 1045, NO_DB = 1046,
    UNKNOWN_COM = 1047, BAD_NULL = 1048, BAD_DB = 1049, TABLE_EXISTS = 1050, BAD_FIELD = 1054, DUP_ENTRY = 1062,
    PARSE_ERROR = 1064, NO_SUCH_THREAD = 1094, UNKNOWN_ERROR = 1105, UNKNOWN_CHARACTER_SET = 1115, REGEXP_ERROR = 1139,
    NONEXISTING_GRANT = 1141, TABLEACCESS_DENIED = 1142, NO_SUCH_TABLE = 1146, ERROR_DURING_COMMIT = 1180,
    FT_MATCHING_KEY_NOT_FOUND = 1191, LOCK_WAIT_TIMEOUT = 1205, LOCK_DEADLOCK = 1213, SPECIFIC_ACCESS_DENIED = 1227,
    DATA_OUT_OF_RANGE_IN_COLUMN = 1264, DATA_TRUNCATED = 1265, UNKNOWN_COLLATION = 1273, NON_UPDATABLE_TABLE = 1288,
    OPTION_PREVENTS_STATEMENT = 1290, TRUNCATED_WRONG_VALUE = 1292, UNSUPPORTED_PS = 1295, SP_ALREADY_EXISTS = 1304,
    SP_DOES_NOT_EXIST = 1305, NONUPDATEABLE_COLUMN = 1348, VIEW_INVALID = 1356, TRG_ALREADY_EXISTS = 1359,
    TRG_DOES_NOT_EXIST = 1360, NO_DEFAULT_FOR_FIELD = 1364, TRUNCATED_WRONG_VALUE_FOR_FIELD = 1366,
    PROCACCESS_DENIED = 1370, DATA_TOO_LONG = 1406, BINLOG_UNSAFE_ROUTINE = 1418,
    BINLOG_CREATE_ROUTINE_NEED_SUPER = 1419, NO_SUCH_USER = 1449, ROW_IS_REFERENCED = 1451,
    NO_REFERENCED_ROW = 1452, NON_INSERTABLE_TABLE = 1471, EVENT_DOES_NOT_EXIST = 1539,
    DUP_ENTRY_WITH_KEY_NAME = 1586, DATA_OUT_OF_RANGE = 1690,
    NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN = 1906, STATEMENT_TIMEOUT = 1969, CONSTRAINT_FAILED = 4025,
    ILLEGAL_PARAMETER_TYPE = 4078,
}

/// The SQLSTATE that SIGNAL statements in triggers and procedures use by convention.
pub(super) const SIGNALLED: &str = "45000";

/// A column, table or view is missing, or the table changed since the statement was prepared.
pub(super) const STALE_SCHEMA: [u16; 5] = [BAD_FIELD, NO_SUCH_TABLE, 1412, 1615, 4092];

/// The statement asks for an algorithm or lock by which MariaDB can't change the table.
pub(super) const OTHER_ALGORITHM: [u16; 2] = [1845, 1846];

/// The account or its password is refused, or the account is locked or may not connect from this host.
pub(super) const LOGIN_REFUSED: [u16; 4] = [ACCESS_DENIED, 1130, 1698, 4151];

macro_rules! causes {
    ($($numbers:pat => $cause:ident,)*) => {
        const fn known(errno: u16) -> Option<ErrorCode> {
            match errno {
                $($numbers => Some(ErrorCode::$cause),)*
                _ => None,
            }
        }
    };
}

causes! {
    1643 | 1644 => RejectedByDatabase,
    1022 | 1062 | 1169 | 1586 => DuplicateKey,
    1216 | 1217 | 1451 | 1452 | 1557 | 1761 | 1762 => ForeignKeyViolation,
    1048 | 1263..=1265 | 1292 | 1364..=1367 | 1406 | 1411 | 1416 | 1690 | 1906 | 1907 | 3020 | 4025 | 4026
        | 4035..=4040 | 4048..=4050 | 4076 => InvalidValue,
    1044 | 1095 | 1141..=1143 | 1147 | 1227 | 1290 | 1370 | 1410 | 1419 | 1698 | 1873 | 4134 => PermissionDenied,
    1049 | 1008 => DatabaseNotFound,
    1051 | 1109 | 1146 => TableNotFound,
    1054 | 1072 | 1091 => UnknownField,
    1191 => FulltextIndexMissing,
    1020 | 1213 | 1614 => Deadlock,
    1205 | 1689 => LockTimeout,
    1317 | 1969 | 3024 | 4192 => QueryTimeout,
    1040 | 1041 | 1203 | 1226 | 1461 => Overloaded,
    // 1047: a cluster's node is not ready, or not in the primary component. 1180, 1181: a commit or rollback failed.
    1047 | 1053 | 1077 | 1079 | 1080 | 1152 | 1158..=1161 | 1180 | 1181 | 1184 | 1927 | 1928 | 2006
        | 2013 => DatabaseUnavailable,
    1153 | 1162 | 1301 => BodyTooLarge,
}

/// Returns the code for callers. `None`, for errors of the storage engine, disk or memory, becomes an internal error.
pub(super) fn code(errno: u16, state: &str) -> Option<ErrorCode> {
    match errno {
        _ if state == SIGNALLED => Some(ErrorCode::RejectedByDatabase),
        1021 | 1023..=1030 | 1032..=1039 | 1114 | 1194 | 1195 | 1296 => None,
        _ => known(errno).or(match state.get(..2) {
            Some("23") => Some(ErrorCode::DuplicateKey),
            Some("22") => Some(ErrorCode::InvalidValue),
            Some("08") => Some(ErrorCode::DatabaseUnavailable),
            _ => Some(ErrorCode::SqlError),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{ERROR_DURING_COMMIT, LOCK_WAIT_TIMEOUT, OPTION_PREVENTS_STATEMENT};
    use crate::database::DbError;
    use crate::database::admin::AdminError;
    use crate::database::media::TableError;
    use mysql_async::{Error, ServerError};
    use shared::error::{ErrorCode, Problem};

    #[test]
    fn administration_media_and_records_agree_on_an_error() {
        for (code, contended, expected) in [
            (LOCK_WAIT_TIMEOUT, true, ErrorCode::LockTimeout),
            (ERROR_DURING_COMMIT, false, ErrorCode::DatabaseUnavailable),
        ] {
            let error = || Error::Server(ServerError { code, message: String::new(), state: "HY000".to_owned() });
            assert_eq!(AdminError::of(error(), "admin").is_contended(), contended, "{code}");
            assert_eq!(Problem::from(TableError::from(error())).code(), expected, "{code}");
            assert_eq!(DbError::from(error()).into_problem().code(), expected, "{code}");
        }
    }

    #[test]
    fn the_media_of_a_read_only_server_are_unavailable() {
        let message = "The MariaDB server is running with the --read-only option so it cannot execute this statement";
        let (code, state) = (OPTION_PREVENTS_STATEMENT, "HY000".to_owned());
        let error = Error::Server(ServerError { code, message: message.to_owned(), state });
        let problem = Problem::from(TableError::from(error));
        assert_eq!(problem.code(), ErrorCode::DatabaseUnavailable);
        assert!(problem.cause().is_some_and(|cause| cause.contains("--read-only")), "{problem:?}");
    }
}
