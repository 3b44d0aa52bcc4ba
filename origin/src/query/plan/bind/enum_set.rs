//! Checks members of an ENUM or SET: MariaDB takes a number that isn't a member as the index of a member. Conditions
//! match a member without trailing spaces, and without case if the column's collation ignores case. Stored values and
//! keys are refused only if they can't be a member under any collation; MariaDB decides the rest.

use crate::query::catalog::{CaseSensitivity, Likeness, Members};

/// The maximum number of a SET's members in a value, each as often as it is repeated. A SET has 64 members at most.
const PARTS_MAX_COUNT: usize = 4_096;

/// Finds a condition's member. Empty text matches itself: without strict SQL mode, it is stored for an invalid value.
pub(super) fn named<'a>(members: &'a Members, text: &str, case: CaseSensitivity) -> Option<&'a str> {
    if text.is_empty() {
        return Some("");
    }
    index_of(members, text, case).map(|at| members.get(at))
}

/// Finds a condition's members, in the column's order. Empty text matches the empty SET.
pub(super) fn all_named(members: &Members, text: &str, case: CaseSensitivity) -> Option<String> {
    if text.is_empty() {
        return Some(String::new());
    }
    let indexes = parts(text)?.map(|part| index_of(members, part, case));
    let mut indexes = indexes.collect::<Option<Vec<_>>>()?;
    indexes.sort_unstable();
    indexes.dedup();
    let parts: Vec<&str> = indexes.iter().map(|at| members.get(*at)).collect();
    Some(parts.join(","))
}

fn index_of(members: &Members, text: &str, case: CaseSensitivity) -> Option<usize> {
    let likeness = match case {
        CaseSensitivity::Sensitive => Likeness::Padded,
        CaseSensitivity::Insensitive => Likeness::Case,
    };
    members.find(text, Likeness::Exact).or_else(|| members.find(text, likeness))
}

pub(super) fn one<'a>(members: &Members, text: &'a str) -> Option<&'a str> {
    // Without strict SQL mode, MariaDB stores empty text for an invalid value.
    let blank = text.is_empty();
    (blank || !matches!(find(members, text), MemberMatch::No)).then_some(text)
}

/// Returns the members to store, in the column's order. The whole text is returned unchanged at a part of which only
/// MariaDB's collation can tell whether it is a member; `None` at a part that is a member under no collation.
pub(super) fn several(members: &Members, text: &str) -> Option<String> {
    if text.is_empty() {
        return Some(String::new());
    }
    let mut found: Vec<(usize, &str)> = Vec::new();
    for part in parts(text)? {
        match find(members, part) {
            MemberMatch::At(index) => found.push((index, part)),
            MemberMatch::Perhaps => return Some(text.to_owned()),
            MemberMatch::No => return None,
        }
    }
    found.sort_unstable_by_key(|(index, _)| *index);
    found.dedup_by_key(|(index, _)| *index);
    let found: Vec<&str> = found.into_iter().map(|(_, part)| part).collect();
    Some(found.join(","))
}

fn parts(text: &str) -> Option<impl Iterator<Item = &str>> {
    text.split(',').nth(PARTS_MAX_COUNT).is_none().then(|| text.split(','))
}

enum MemberMatch {
    At(usize),
    Perhaps,
    No,
}

fn find(members: &Members, text: &str) -> MemberMatch {
    if let Some(index) = members.find(text, Likeness::Exact) {
        return MemberMatch::At(index);
    }
    // MariaDB takes a number for a member's index, even with whitespace around it.
    if text.trim().parse::<i64>().is_ok() {
        return MemberMatch::No;
    }
    match members.find(text, Likeness::AsciiCase) {
        Some(index) => MemberMatch::At(index),
        // A collation may treat é as e.
        None if !text.is_ascii() || !members.is_ascii() => MemberMatch::Perhaps,
        None => MemberMatch::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: &[&str]) -> Members {
        names.iter().collect()
    }

    #[test]
    fn a_condition_names_a_member_by_its_text() {
        let plain = members(&["open", "Été", "1"]);
        for (text, folded, exact) in [
            ("open", Some("open"), Some("open")),
            ("OPEN ", Some("open"), None),
            ("ÉTÉ", Some("Été"), None),
            ("ete", None, None),
            ("1", Some("1"), Some("1")),
            ("2", None, None),
            (" 1", None, None),
            ("ope", None, None),
            ("日", None, None),
            ("", Some(""), Some("")),
        ] {
            assert_eq!(named(&plain, text, CaseSensitivity::Insensitive), folded, "{text}");
            assert_eq!(named(&plain, text, CaseSensitivity::Sensitive), exact, "{text}");
        }
        let named = |text| all_named(&plain, text, CaseSensitivity::Insensitive);
        assert_eq!(named("1,Open,1").as_deref(), Some("open,1"));
        assert_eq!(named("").as_deref(), Some(""));
        assert_eq!(named("open,").as_deref(), None);
        assert_eq!(named("open,日").as_deref(), None);
    }

    #[test]
    fn numbers_are_no_members() {
        let plain = members(&["a", "b c"]);
        for text in ["a", "B C", "a ", ""] {
            assert_eq!(one(&plain, text), Some(text));
        }
        for text in ["1", " 2", "+1", "0", "c", "a,b c", "b  c"] {
            assert_eq!(one(&plain, text), None, "{text:?}");
        }
        assert_eq!(one(&members(&["2", "1"]), "1"), Some("1"));
        assert_eq!(one(&members(&["é"]), "e"), Some("e"));
        assert_eq!(one(&members(&["é"]), "1"), None);
    }

    #[test]
    fn sets_are_in_the_order_of_their_members() {
        let plain = members(&["x", "y", "z"]);
        assert_eq!(several(&plain, "z,x,z").as_deref(), Some("x,z"));
        assert_eq!(several(&plain, "").as_deref(), Some(""));
        for text in ["w", "x,w", "x,", ",", "x, y", "3"] {
            assert_eq!(several(&plain, text), None, "{text:?}");
        }
        assert_eq!(several(&members(&["é", "y"]), "y,e").as_deref(), Some("y,e"));
        assert_eq!(several(&plain, &["x"; PARTS_MAX_COUNT].join(",")).as_deref(), Some("x"));
        assert_eq!(several(&plain, &["x"; PARTS_MAX_COUNT + 1].join(",")), None);
        for text in [["x"; PARTS_MAX_COUNT + 1].join(","), "é".repeat(8 * 1024 * 1024)] {
            assert_eq!(all_named(&plain, &text, CaseSensitivity::Insensitive), None);
        }
    }

    #[test]
    fn many_values_are_looked_up_among_many_members() {
        // A comparison with each member would take very long.
        let names: Vec<String> = (0..16_000).map(|n| format!("é{n}")).collect();
        let many: Members = names.iter().collect();
        for name in names.iter().cycle().take(50_000) {
            let wanted = name.to_uppercase();
            assert_eq!(named(&many, &wanted, CaseSensitivity::Insensitive), Some(name.as_str()));
            assert_eq!(one(&many, &wanted), Some(wanted.as_str()));
        }
    }
}
