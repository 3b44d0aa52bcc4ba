//! Hashes that stand for cached files, and the headers by which the origin tells the edge which files to purge. The
//! paths themselves would be too long for a header: a path may have 510 bytes, and one upload has up to 64 files by
//! default.

use super::FilePath;
use crate::fingerprint::hex;
use crate::ident::{ProjectName, checked_text};
use crate::limits::PURGED_MAX_COUNT;
use sha2::{Digest as _, Sha256};

/// Request header by which the edge asks for [`PURGE_HEADER`]. The edge drops it from clients' requests.
pub const ACCEPTS_PURGE_HEADER: &str = "x-selkie-accepts-purge";

/// Response header by which the origin tells the edge what to purge from its cache: comma-separated [`FilePathHash`]es
/// and, if a folder of a project became private, `project:<name>` for all cached files of that project. The edge
/// removes the header from the response to the client.
pub const PURGE_HEADER: &str = "x-selkie-purge";

const PROJECT_MARK: &str = "project:";

pub fn purge_project(project: &ProjectName) -> String {
    format!("{PROJECT_MARK}{project}")
}

pub fn project_to_purge(header: &str) -> Option<ProjectName> {
    let mut entries = header.split(',').map(str::trim);
    let name = entries.find_map(|entry| entry.strip_prefix(PROJECT_MARK))?;
    ProjectName::parse(name).ok()
}

/// Bytes of a hash. A collision, by which one file would be served as the other, takes about 2^64 hashes.
const NAME_BYTES: usize = 16;

/// The hash of a file's path, 32 hex digits, which names the file in cache keys and purge headers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePathHash(Box<str>);

impl FilePathHash {
    /// Returns the same hash however the URL was percent-encoded.
    pub fn of(path: &FilePath) -> Self {
        Self(hex(&Sha256::digest(path.to_url_path())[..NAME_BYTES]).into())
    }

    pub fn read_list(header: &str) -> impl Iterator<Item = Self> {
        let names = header.split(',').map(str::trim).filter(|name| {
            let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            name.len() == 2 * NAME_BYTES && name.bytes().all(is_hex)
        });
        names.take(PURGED_MAX_COUNT).map(|name| Self(name.into()))
    }

    pub fn list<'a>(paths: impl Iterator<Item = &'a FilePath>) -> String {
        let names: Vec<_> = paths.take(PURGED_MAX_COUNT).map(|path| Self::of(path).0).collect();
        names.join(",")
    }
}

checked_text!(FilePathHash);

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    #[test]
    fn a_path_has_one_name_however_it_is_encoded() {
        let name = FilePathHash::of(&path("/media/default/a%20b/%C3%BC.png"));
        assert_eq!(name.to_string(), name.as_str());
        assert_eq!(name.as_str().len(), 32);
        assert_eq!(name, FilePathHash::of(&path("/media/default/%61 b/ü.png")));
        for other in ["/media/default/b/ü.png", "/media/other/a b/ü.png"] {
            assert_ne!(name, FilePathHash::of(&path(other)));
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_holds_nothing_else() {
        let paths: Vec<_> = (0..PURGED_MAX_COUNT + 1).map(|n| path(&format!("/media/default/{n}"))).collect();
        let list = FilePathHash::list(paths.iter());
        let names: Vec<_> = paths.iter().map(FilePathHash::of).collect();
        let read: Vec<_> = FilePathHash::read_list(&list).collect();
        assert_eq!(read, names[..PURGED_MAX_COUNT]);
        let odd = format!(" {} ,, x,{}é", names[0], &names[1].as_str()[1..]);
        assert_eq!(FilePathHash::read_list(&odd).collect::<Vec<_>>(), names[..1]);
        assert_eq!(project_to_purge(&odd), None);
        let project = ProjectName::parse("default").unwrap();
        let both = format!("{}, {}", names[0], purge_project(&project));
        assert_eq!(FilePathHash::read_list(&both).collect::<Vec<_>>(), names[..1]);
        assert_eq!(project_to_purge(&both), Some(project));
    }
}
