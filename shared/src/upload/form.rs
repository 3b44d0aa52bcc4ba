//! What an upload's body said, once it was read to its end.

use super::label::Label;
use crate::media::{FolderPath, MediaKind, MediaName};

/// How the body was written, which decides how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// JSON with items `{name, base64}`.
    A,
    /// JSON with items `{imageBase64, imageName, imageType}` or `{fileBase64, fileName, fileType}`.
    B(Given),
    /// `multipart/form-data`, answered like A.
    C,
}

/// How `media` was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// As one object.
    One,
    /// As a list, whatever its length.
    List,
}

/// What becomes of a file of the same name in the same folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the upload is refused.
    Stays,
    /// It is replaced (`update: true`).
    IsReplaced,
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody who has its URL. One that replaces a private file stays private.
    Public,
    /// The same, said in so many words (`private: false`): also if it replaces a private one.
    MadePublic,
    /// Keys of its project, and whom they sign a URL for.
    Private,
    /// The same, and its folder is asked to be private (`privateFolder: true`).
    PrivateFolder,
}

impl Visibility {
    /// Whether the file needs a key or a signed URL.
    #[must_use]
    pub fn is_private(self) -> bool {
        matches!(self, Self::Private | Self::PrivateFolder)
    }
}

/// An upload: well-formed, complete, with names that may stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadForm {
    pub(super) shape: Shape,
    pub(super) kind: MediaKind,
    pub(super) folder: FolderPath,
    pub(super) existing: Existing,
    pub(super) items: Vec<UploadItem>,
}

impl UploadForm {
    /// How it was written.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Its `type`.
    #[must_use]
    pub fn kind(&self) -> MediaKind {
        self.kind
    }

    /// Where its files go.
    #[must_use]
    pub fn folder(&self) -> &FolderPath {
        &self.folder
    }

    /// What becomes of files that are there already.
    #[must_use]
    pub fn existing(&self) -> Existing {
        self.existing
    }

    /// The files, in the order of their events: one at least, no two of one name.
    #[must_use]
    pub fn items(&self) -> &[UploadItem] {
        &self.items
    }

    /// The files, to be kept.
    #[must_use]
    pub fn into_items(self) -> Vec<UploadItem> {
        self.items
    }
}

/// One file of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadItem {
    pub(super) name: MediaName,
    pub(super) label: Option<Label>,
    pub(super) kind: MediaKind,
    pub(super) visibility: Visibility,
}

impl UploadItem {
    /// What it is to be called.
    #[must_use]
    pub fn name(&self) -> &MediaName {
        &self.name
    }

    /// What it is said to be: the type of its data URL or part, else its `imageType` or `fileType`.
    #[must_use]
    pub fn label(&self) -> Option<&Label> {
        self.label.as_ref()
    }

    /// What it is to be taken for: the upload's `type`, but always a file if it came as `fileBase64`.
    #[must_use]
    pub fn kind(&self) -> MediaKind {
        self.kind
    }

    /// Who may read it.
    #[must_use]
    pub fn visibility(&self) -> Visibility {
        self.visibility
    }
}

/// Reads a flag as forms and their clients write it: `on` is a checked box, `True` is Python's. `None` for another word.
pub(crate) fn flag(word: &str) -> Option<bool> {
    match word {
        "true" | "True" | "1" | "on" => Some(true),
        "false" | "False" | "0" | "off" => Some(false),
        _ => None,
    }
}
