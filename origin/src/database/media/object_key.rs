//! Keys of objects in the media store. Keys are generated here, so that no text from a caller becomes a path.

use std::fmt;

use uuid::Uuid;

pub(crate) const FOLDER: &str = "objects";

/// The key of one object in the media store: a UUIDv7, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(Uuid);

impl ObjectKey {
    #[expect(clippy::new_without_default, reason = "every call gives another: no default")]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    pub fn parse(text: &str) -> Option<Self> {
        let key = Self::from_uuid(Uuid::try_parse(text).ok()?)?;
        // A UUID has several spellings, but only this one occurs in paths.
        (key.to_string() == text).then_some(key)
    }

    pub fn from_uuid(id: Uuid) -> Option<Self> {
        (id.get_version_num() == 7).then_some(Self(id))
    }

    pub fn as_uuid(self) -> Uuid {
        self.0
    }

    /// Returns the object's path within the media store: `objects/<2 hex characters>/<uuid>`.
    pub fn path(self) -> String {
        // The last byte is random. The first bytes are the time, so that folders named after them would fill one after
        // another.
        let [.., last] = self.0.into_bytes();
        format!("{FOLDER}/{last:02x}/{}", self.0)
    }

    /// Returns the key of the object at `path`; `None` if no object can have that path.
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
