//! Identifies the uploader of a file, and decides which files a caller may read, replace or delete.

use mysql_async::Value;
use sha2::{Digest as _, Sha256};
use shared::ident::ProjectName;
use shared::media::FolderPath;

use super::error::TableError;
use super::row::MediaRow;

/// Identifies the caller with a role that uploaded a file: a SHA-256 hash of the project and the caller. Within a
/// project, all keys with the same claim `sub` are one uploader, whatever their roles, and so are all tokens of one
/// issuer for one subject. A key without the claim is an uploader of its own. Full keys have no uploader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uploader([u8; 32]);

impl Uploader {
    pub fn of_subject(project: &ProjectName, subject: &str) -> Self {
        Self::hash(project, "sub", subject)
    }

    /// Returns the uploader for a UUID: the id of a key without a claim `sub`, or the id of the subject of a user's
    /// token.
    pub fn of_key(project: &ProjectName, key_id: &str) -> Self {
        Self::hash(project, "key", key_id)
    }

    fn hash(project: &ProjectName, kind: &str, name: &str) -> Self {
        // Neither project names nor kinds contain NUL, so different callers always give different texts.
        Self(Sha256::digest(format!("{project}\0{kind}\0{name}")).into())
    }

    pub(super) fn from_column(bytes: Option<Vec<u8>>) -> Result<Option<Self>, TableError> {
        let hash = |bytes: Vec<u8>| <[u8; 32]>::try_from(bytes).map_err(|_| TableError::Corrupt("uploader"));
        Ok(bytes.map(hash).transpose()?.map(Self))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The files and resumable uploads of a project that a caller may change: replace or delete a file, continue or delete
/// an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeableFiles {
    All,
    Own(Uploader),
    None,
}

impl ChangeableFiles {
    /// Returns whether the caller may change a file or upload of `uploader`; `None` stands for full keys and the
    /// command line.
    pub fn has(self, uploader: Option<Uploader>) -> bool {
        match self {
            Self::All => true,
            Self::Own(own) => uploader == Some(own),
            Self::None => false,
        }
    }
}

/// The files of a project that a caller may list, and whose metadata and private bytes it may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadableFiles {
    All,
    /// The files of this uploader, and those in these folders and below them.
    Some {
        own: Option<Uploader>,
        folders: Vec<FolderPath>,
    },
}

impl ReadableFiles {
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Some { own: None, folders } if folders.is_empty())
    }

    pub fn has(&self, file: &MediaRow) -> bool {
        let Self::Some { own, folders } = self else {
            return true;
        };
        let is_named = |folder: &str| folders.iter().any(|named| named.as_str() == folder);
        (own.is_some() && file.uploader == *own) || file.folder.lineage().any(is_named)
    }

    /// Returns the SQL condition for these files, with its values; `None` if all files are readable.
    pub(super) fn condition(&self) -> Option<(String, Vec<Value>)> {
        let Self::Some { own, folders } = self else {
            return None;
        };
        let (mut texts, mut values) = (vec!["FALSE"], Vec::new());
        if let Some(uploader) = own {
            texts.push("uploader = ?");
            values.push(uploader.as_bytes().into());
        }
        for folder in folders {
            // A prefix is compared without LIKE, whose wildcards folders may contain.
            texts.push("folder = ? OR LEFT(folder, CHAR_LENGTH(?) + 1) = CONCAT(?, '/')");
            values.extend(std::iter::repeat_n(folder.as_str().into(), 3));
        }
        Some((format!("({})", texts.join(" OR ")), values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_one_uploader_in_its_project_and_no_key_passes_for_it() {
        let project = |name| ProjectName::parse(name).unwrap();
        let seven = Uploader::of_subject(&project("shop"), "7");
        assert_eq!(seven, Uploader::of_subject(&project("shop"), "7"));
        for other in [
            Uploader::of_subject(&project("shop"), "8"),
            Uploader::of_subject(&project("blog"), "7"),
            Uploader::of_key(&project("shop"), "7"),
        ] {
            assert_ne!(seven, other);
        }
    }

    #[test]
    fn own_files_are_those_of_the_same_uploader_and_never_those_of_full_keys() {
        let uploader = |subject| Uploader::of_subject(&ProjectName::parse("shop").unwrap(), subject);
        let own = ChangeableFiles::Own(uploader("7"));
        assert!(own.has(Some(uploader("7"))));
        assert!(!own.has(Some(uploader("8"))) && !own.has(None));
        assert!(ChangeableFiles::All.has(None) && ChangeableFiles::All.has(Some(uploader("7"))));
        assert!(!ChangeableFiles::None.has(None) && !ChangeableFiles::None.has(Some(uploader("7"))));
    }
}
