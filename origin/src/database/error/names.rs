//! Finds the field and the constraint that an error message of MariaDB names.

use crate::database::errno;

/// Returns the field and the constraint. The field is `None` for a foreign key of several columns, and for
/// `ROW_IS_REFERENCED`, whose message names a field of the referring table.
pub(super) fn names(errno: u16, message: &str) -> (Option<&str>, Option<&str>) {
    match errno {
        // Duplicate entry 'x' for key 'title'
        errno::DUP_ENTRY | errno::DUP_ENTRY_WITH_KEY_NAME => {
            (None, message.rsplit_once("for key ").and_then(|(_, rest)| quoted(rest)))
        }
        // … CONSTRAINT `fk` FOREIGN KEY (`author_id`) REFERENCES …
        errno::ROW_IS_REFERENCED | errno::NO_REFERENCED_ROW => {
            let constraint = message.rsplit_once("CONSTRAINT ").and_then(|(_, rest)| quoted(rest));
            let columns = message.rsplit_once("FOREIGN KEY (").and_then(|(_, rest)| rest.split_once(')'));
            let field = columns.filter(|(list, _)| errno == errno::NO_REFERENCED_ROW && !list.contains(", "));
            (field.and_then(|(list, _)| quoted(list)), constraint)
        }
        // CONSTRAINT `posts.rating` failed for `demo`.`posts`: a dot in the name means the check of one field.
        errno::CONSTRAINT_FAILED => {
            let constraint = message.split_once("CONSTRAINT ").and_then(|(_, rest)| quoted(rest));
            (constraint.and_then(|name| name.split_once('.')).map(|(_, field)| field), constraint)
        }
        errno::NO_DEFAULT_FOR_FIELD => (message.strip_prefix("Field ").and_then(quoted), None),
        errno::BAD_NULL => (message.strip_prefix("Column ").and_then(quoted), None),
        // BIGINT value is out of range in '`demo`.`posts`.`views` + 1'
        errno::DATA_OUT_OF_RANGE => (message.split_once("in '").and_then(|(_, rest)| quoted(rest)), None),
        // Data too long for column 'title' at row 1
        errno::DATA_OUT_OF_RANGE_IN_COLUMN
        | errno::DATA_TRUNCATED
        | errno::TRUNCATED_WRONG_VALUE
        | errno::TRUNCATED_WRONG_VALUE_FOR_FIELD
        | errno::DATA_TOO_LONG
        | errno::ILLEGAL_PARAMETER_TYPE => {
            let named = message.rsplit_once("for column ").or_else(|| message.rsplit_once("column "));
            (named.and_then(|(_, rest)| quoted(rest)), None)
        }
        _ => (None, None),
    }
}

/// Returns the last part of a quoted name such as `` `a`.`b` ``; `None` if the name contains a quote.
fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '`'))?;
    let (name, rest) = text[1..].split_once(quote)?;
    if rest.starts_with(quote) {
        return None;
    }
    match rest.strip_prefix('.') {
        Some(rest) if rest.starts_with('`') => quoted(rest),
        _ => Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_messages() {
        for (errno, message, field, constraint) in [
            (1062, "Duplicate entry 'for key 'x'' for key 'PRIMARY'", None, Some("PRIMARY")),
            (
                1452,
                "Cannot add or update a child row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `fk` FOREIGN KEY \
                 (`t`) REFERENCES `t` (`id`))",
                Some("t"),
                Some("fk"),
            ),
            (1451, "… (`d`.`c`, CONSTRAINT `fk` FOREIGN KEY (`t`) REFERENCES `t` (`id`))", None, Some("fk")),
            (4025, "CONSTRAINT `ck` failed for `d`.`c`", None, Some("ck")),
            (4025, "CONSTRAINT `c.n` failed for `d`.`c`", Some("n"), Some("c.n")),
            (1364, "Field 'id' doesn't have a default value", Some("id"), None),
            (1048, "Column 'a' cannot be null", Some("a"), None),
            (1406, "Data too long for column 'a' at row 1", Some("a"), None),
            (1292, "Incorrect date value: 'for column 'x'' for column `d`.`e`.`day` at row 1", Some("day"), None),
            (1690, "BIGINT UNSIGNED value is out of range in '`d`.`t`.`n` + -700'", Some("n"), None),
            (1048, "Column 'a''b' cannot be null", None, None),
            (1105, "Unknown error", None, None),
        ] {
            assert_eq!(names(errno, message), (field, constraint), "{message}");
        }
    }
}
