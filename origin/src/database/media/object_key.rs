//! The names that objects have in the store: of our own making, so that nothing a caller writes becomes a path.

use std::fmt;

use uuid::Uuid;

/// The folder of the store in which all objects lie.
pub(crate) const FOLDER: &str = "objects";

/// The name of one object: a UUIDv7, which is never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(Uuid);

impl ObjectKey {
    /// A new one.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "every call gives another: no default")]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The key that `text` is, as [`Display`](fmt::Display) writes it; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let key = Self::from_uuid(Uuid::try_parse(text).ok()?)?;
        // Of the spellings of a UUID, the one that is a path.
        (key.to_string() == text).then_some(key)
    }

    /// The key that a column holds; `None` if it is none of ours.
    #[must_use]
    pub fn from_uuid(id: Uuid) -> Option<Self> {
        (id.get_version_num() == 7).then_some(Self(id))
    }

    /// The key as a column holds it.
    #[must_use]
    pub fn as_uuid(self) -> Uuid {
        self.0
    }

    /// Where the object lies within the store: `objects/<2 hex characters>/<uuid>`.
    #[must_use]
    pub fn path(self) -> String {
        // The last byte is random. The first ones are the time: folders by those would fill one by one.
        let [.., last] = self.0.into_bytes();
        format!("{FOLDER}/{last:02x}/{}", self.0)
    }

    /// The key of the object that lies at `path`; `None` for a file that none of ours could be.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let key = Self::parse(path.rsplit('/').next()?)?;
        (key.path() == path).then_some(key)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_its_text_its_path_and_its_column() {
        let key = ObjectKey::new();
        assert_eq!(ObjectKey::parse(&key.to_string()), Some(key));
        assert_eq!(ObjectKey::at(&key.path()), Some(key));
        assert_eq!(ObjectKey::from_uuid(key.as_uuid()), Some(key));
    }

    #[test]
    fn nothing_else_is_a_key() {
        let key = ObjectKey::new().to_string();
        let others = [
            "",
            "../../etc/passwd",
            "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            &key.to_uppercase(),
            &key.replace('-', ""),
            &format!("{{{key}}}"),
        ];
        for text in others {
            assert_eq!(ObjectKey::parse(text), None, "{text}");
        }
        assert_eq!(ObjectKey::at(&format!("objects/zz/{key}")), None);
        assert_eq!(ObjectKey::at(&key), None);
    }

    #[test]
    fn keys_of_one_moment_spread_over_the_folders() {
        let folders: std::collections::BTreeSet<String> =
            (0..1_000).map(|_| ObjectKey::new().path()[..10].to_owned()).collect();
        assert!(folders.len() > 200, "{}", folders.len());
    }
}
