//! Names of files and folders in the media library: their rules, and how they are written in a URL. Names never become
//! paths on a disk or keys in a bucket, so all of Unicode is allowed, except characters that are ambiguous in a URL or
//! a listing.

mod cache_purge;

use crate::error::{ErrorCode, Problem};
use crate::ident::{ProjectName, checked_text, shown};
use crate::limits::MEDIA_NAME_MAX_BYTES;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

pub use cache_purge::{ACCEPTS_PURGE_HEADER, FilePathHash, PURGE_HEADER, project_to_purge, purge_project};

/// The percent-encoded characters: all except the unreserved ones of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A file's name without its folder: no slash, at most 255 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MediaName(Box<str>);

impl MediaName {
    /// Parses a name, and drops a leading `/`. Fails with `invalid_body` if the name is empty, `.` or `..`, too long,
    /// or has a character that is not allowed.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let name = text.strip_prefix('/').unwrap_or(text);
        if name.contains('/') {
            return Err(refused("name", text, "holds a slash").with_hint("Put the path into the key folder."));
        }
        check_part("name", text, name)?;
        Ok(Self(name.into()))
    }

    /// Returns the extension in lower case; `None` for names such as `README` and `.profile`.
    pub fn extension(&self) -> Option<String> {
        let (stem, extension) = self.0.rsplit_once('.')?;
        (!stem.is_empty() && !extension.is_empty()).then(|| extension.to_lowercase())
    }
}

checked_text!(MediaName);

/// A folder's path: parts separated by slashes, at most 255 bytes; empty for the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FolderPath(Box<str>);

impl FolderPath {
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses a path, and drops a leading and a trailing slash. Fails with `invalid_body` if the path is too long, or a
    /// part is no valid [`MediaName`].
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let path = text.strip_prefix('/').unwrap_or(text);
        if path.is_empty() {
            return Ok(Self::root());
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.len() > MEDIA_NAME_MAX_BYTES {
            return Err(too_long("folder", text));
        }
        path.split('/').try_for_each(|part| check_part("folder", text, part))?;
        Ok(Self(path.into()))
    }

    /// Returns the folders that contain this folder, the outermost first, then the folder itself; without the root.
    pub fn lineage(&self) -> impl Iterator<Item = &str> {
        let ends = self.0.match_indices('/').map(|(at, _)| at);
        let own = (!self.0.is_empty()).then_some(self.0.len());
        ends.chain(own).map(|end| &self.0[..end])
    }
}

checked_text!(FolderPath);

fn check_part(kind: &str, whole: &str, part: &str) -> Result<(), Problem> {
    let fault = if part.is_empty() {
        "has an empty part"
    } else if part == "." || part == ".." {
        "has a part that is . or .."
    } else if part.contains('\\') {
        "holds a backslash, which some systems take for a slash"
    } else if part.chars().any(char::is_control) {
        "holds a control character"
    } else if part.chars().any(disguises) {
        "holds a character that ends a line or changes the direction of text"
    } else if part.len() > MEDIA_NAME_MAX_BYTES {
        return Err(too_long(kind, whole));
    } else {
        return Ok(());
    };
    Err(refused(kind, whole, fault))
}

/// Returns whether a character changes how text is displayed: after some, `gpj.exe` would be shown as `exe.jpg`.
fn disguises(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn too_long(kind: &str, text: &str) -> Problem {
    refused(kind, text, "is longer than 255 bytes of UTF-8")
}

fn refused(kind: &str, text: &str, fault: &str) -> Problem {
    Problem::new(ErrorCode::InvalidBody, format!("The {kind} {} {fault}.", shown(text)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// An image; it gets a thumbnail if a decoder supports its format.
    Image,
    Video,
    Audio,
    File,
}

impl MediaKind {
    pub const ALL: [Self; 4] = [Self::Image, Self::Video, Self::Audio, Self::File];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Video => "video",
            Self::Audio => "audio",
            Self::File => "file",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rendition {
    Original,
    Thumbnail,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilePath {
    pub project: ProjectName,
    pub folder: FolderPath,
    pub name: MediaName,
}

impl FilePath {
    pub const PREFIX: &'static str = "/media/";

    /// Parses `path`, percent-encoded as received. Fails with `media_not_found` for a path that no file can have.
    pub fn parse(path: &str) -> Result<Self, Problem> {
        Self::read(path).ok_or_else(Self::not_found)
    }

    fn read(path: &str) -> Option<Self> {
        let (project, rest) = path.strip_prefix(Self::PREFIX)?.split_once('/')?;
        // Each part is decoded by itself. An encoded slash is refused.
        let mut parts =
            rest.split('/').map(|part| percent_decode_str(part).decode_utf8().ok()).collect::<Option<Vec<_>>>()?;
        if parts.iter().any(|part| part.is_empty() || part.contains('/')) {
            return None;
        }
        let name = MediaName::parse(&parts.pop()?).ok()?;
        let folder = parts.join("/");
        Some(Self {
            project: ProjectName::parse(&percent_decode_str(project).decode_utf8().ok()?).ok()?,
            folder: FolderPath::parse(&folder).ok()?,
            name,
        })
    }

    pub fn to_url_path(&self) -> String {
        url_path(self.project.as_str(), self.folder.as_str(), &self.name.0)
    }

    /// Returns the problem for a missing file, and also for a file that the caller may not see.
    pub fn not_found() -> Problem {
        Problem::new(ErrorCode::MediaNotFound, "There is no such file.")
    }
}

/// Returns the percent-encoded path of a file's URL. The names must be valid.
pub fn url_path(project: &str, folder: &str, name: &str) -> String {
    let mut path = format!("{}{project}", FilePath::PREFIX);
    let parts = folder.split('/').filter(|part| !part.is_empty());
    for part in parts.chain([name]) {
        path.push('/');
        path.extend(utf8_percent_encode(part, ENCODED));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_of_any_script() {
        for name in ["a.png", "写真.jpg", "Ünï códe .tar.gz", ".profile", "CON", "a⁄b", "🦭", "..."] {
            assert_eq!(MediaName::parse(name).unwrap().as_str(), name);
        }
        assert_eq!(MediaName::parse("/a.png").unwrap().as_str(), "a.png");
        let longest = "a".repeat(255);
        assert_eq!(MediaName::parse(&longest).unwrap().to_string(), longest);
    }

    #[test]
    fn names_that_read_as_paths_or_hide_something_are_refused() {
        for name in [
            "",
            "/",
            ".",
            "..",
            "a/b",
            "../a",
            "/../a",
            "a\\b",
            "..\\a",
            "a\0",
            "a\n",
            "a\u{7f}",
            "a\u{85}",
            "\u{202e}gpj.exe",
            "a\u{2028}",
        ] {
            let refused = MediaName::parse(name).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::InvalidBody, "{name:?}");
        }
        for name in ["a\u{2028}", "\u{202e}gpj.exe"] {
            let message = MediaName::parse(name).unwrap_err().message().to_owned();
            assert!(message.contains("ends a line or changes the direction of text"), "{message}");
        }
        assert!(MediaName::parse(&"é".repeat(128)).is_err());
    }

    #[test]
    fn folders_have_parts_and_the_root_has_none() {
        for (given, cache_purge) in
            [("", ""), ("/", ""), ("a", "a"), ("/a/b", "a/b"), ("a/b/", "a/b"), ("ä/日", "ä/日")]
        {
            assert_eq!(FolderPath::parse(given).unwrap().as_str(), cache_purge, "{given:?}");
        }
        for folder in ["//", "a//b", "//a", "a/../b", "..", "./a", "a\\b", "a/\u{1}"] {
            assert!(FolderPath::parse(folder).is_err(), "{folder:?}");
        }
        let longest = "a/".repeat(127) + "a";
        assert_eq!(FolderPath::parse(&longest).unwrap().to_string(), longest);
        assert!(FolderPath::parse(&(longest + "a")).is_err());
        let folder = FolderPath::parse("a/b/c").unwrap();
        assert_eq!(folder.lineage().collect::<Vec<_>>(), ["a", "a/b", "a/b/c"]);
        assert_eq!(FolderPath::root().lineage().count(), 0);
    }

    #[test]
    fn extensions_stand_behind_the_last_dot() {
        for (name, extension) in
            [("a.PNG", Some("png")), ("a.tar.gz", Some("gz")), ("a", None), (".a", None), ("a.", None)]
        {
            assert_eq!(MediaName::parse(name).unwrap().extension().as_deref(), extension);
        }
    }

    #[test]
    fn a_file_is_found_by_the_url_that_names_it() {
        for (folder, name) in [("", "a.png"), ("a/b", "ü ?#%2f.png"), ("日", "🦭"), ("a b", "c+d&e=f")] {
            let file = FilePath {
                project: ProjectName::parse("default").unwrap(),
                folder: FolderPath::parse(folder).unwrap(),
                name: MediaName::parse(name).unwrap(),
            };
            let path = file.to_url_path();
            assert!(path.is_ascii() && !path.contains(['?', '#', ' ']), "{path}");
            assert_eq!(FilePath::parse(&path).unwrap(), file);
        }
    }

    #[test]
    fn paths_that_no_file_can_have_are_not_found() {
        for path in [
            "/media/default",
            "/media/default/",
            "/media//a",
            "/media/default//a",
            "/media/default/a//b",
            "/media/default/a/",
            "/media/default/a%2Fb",
            "/media/default/%2e%2e/a",
            "/media/default/..",
            "/media/default/%ff",
            "/media/Default/a",
            "/media/default/a%5Cb",
            "/media/default/%00",
        ] {
            assert_eq!(FilePath::parse(path).unwrap_err().code(), ErrorCode::MediaNotFound, "{path}");
        }
    }
}
