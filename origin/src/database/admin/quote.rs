//! Quoting of names in statements that can't take them as parameters.

use shared::ident::{DatabaseName, ProjectName};

/// The maximum length of a database pattern in a GRANT, escapes included: the width of `mysql.db.Db`.
const GRANT_PATTERN_MAX_CHARS: usize = 64;

pub(super) fn ident(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Returns the GRANT pattern that matches exactly this database. In a pattern, `_` and `%` are wildcards, and `\`
/// escapes them and itself.
pub(super) fn exact(database: &DatabaseName) -> String {
    let mut pattern = String::with_capacity(database.as_str().len() + 4);
    for c in database.as_str().chars() {
        if matches!(c, '_' | '%' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Returns whether MariaDB can store the GRANT pattern that matches exactly this database: whether the pattern has at
/// most 64 characters, escapes included. Otherwise a wildcard would be needed, which would match other databases too.
pub(crate) fn pattern_fits(database: &DatabaseName) -> bool {
    exact(database).chars().count() <= GRANT_PATTERN_MAX_CHARS
}

/// Returns the GRANT pattern that matches all databases named `<project>_…`, which the project may create itself:
/// `<project>\_%`.
pub(super) fn own(project: &ProjectName) -> String {
    format!("{}\\_%", project.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_and_backticks_in_names_are_taken_literally() {
        let name = DatabaseName::parse("a_b%c\\d`e").unwrap();
        assert_eq!(exact(&name), "a\\_b\\%c\\\\d`e");
        assert_eq!(ident(&exact(&name)), "`a\\_b\\%c\\\\d``e`");
        assert_eq!(own(&ProjectName::parse("shop").unwrap()), "shop\\_%");
    }
}
