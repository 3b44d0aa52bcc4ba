//! Names inside the administrator's statements, where no parameter can stand.

use shared::ident::{DatabaseName, ProjectName};

/// Characters of a database's name in a GRANT, escapes included: the width of `mysql.db.Db`.
const GRANT_PATTERN_MAX_CHARS: usize = 64;

/// `` `name` ``, inner backticks doubled.
pub(super) fn ident(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The pattern that matches exactly this database. In a GRANT, `_` and `%` are wildcards and `\`
/// escapes them, itself included.
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

/// Whether a GRANT can name exactly this database. One that it can't would have to be granted with a
/// wildcard, and so together with others.
pub(crate) fn pattern_fits(database: &DatabaseName) -> bool {
    exact(database).chars().count() <= GRANT_PATTERN_MAX_CHARS
}

/// The pattern of the databases that a project makes by itself: `<project>\_%`.
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
