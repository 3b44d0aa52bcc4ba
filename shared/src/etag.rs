//! Lists of tags: whether a caller's list names an answer (RFC 9110, sections 8.8.3, 13.1.1 and 13.1.2).

/// Whether an `If-None-Match` names a tag, which is in its quotes: by `*`, or in a list, weak or strong. What is no
/// list of tags names nothing.
#[must_use]
pub fn names(if_none_match: &str, tag: &str) -> bool {
    if_none_match.trim() == "*" || tags(if_none_match).any(|(listed, _)| listed == tag)
}

/// Whether an `If-Match` or an `If-Range` names it: a weak tag, which may stand for other bytes, does not.
#[must_use]
pub fn names_strongly(if_match: &str, tag: &str) -> bool {
    if_match.trim() == "*"
        || tags(if_match).any(|(listed, strength)| listed == tag && strength == Strength::Strong)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strength {
    Weak,
    Strong,
}

/// The tags of a list, each in its quotes and without its `W/`, until something is none.
fn tags(list: &str) -> impl Iterator<Item = (&str, Strength)> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let tag = rest.trim_start_matches([' ', '\t', ',']);
        let (tag, strength) = match tag.strip_prefix("W/") {
            Some(tag) => (tag, Strength::Weak),
            None => (tag, Strength::Strong),
        };
        let end = tag.strip_prefix('"')?.find('"')? + 2;
        let (tag, behind) = tag.split_at(end);
        rest = behind;
        Some((tag, strength))
    })
}
