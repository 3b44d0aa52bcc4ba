//! The parsed form of an upload.

use super::label::Label;
use crate::media::{FolderPath, MediaKind, MediaName};

/// The encoding of the request, which decides the shape of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// JSON with items `{name, base64}`.
    A,
    /// JSON with items `{imageBase64, imageName, imageType}` or `{fileBase64, fileName, fileType}`.
    B(Given),
    /// `multipart/form-data`, answered like A.
    C,
}

/// How `media` was written in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    One,
    /// A list of any length.
    List,
}

/// What happens to an existing file of the same name and folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, and the upload is refused.
    Stays,
    /// `update: true`.
    IsReplaced,
}

/// The readers of a file that the upload requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody who has its URL; a file that replaces a private one stays private.
    Public,
    /// `private: false`: everybody who has its URL, even if it replaces a private file.
    MadePublic,
    /// Keys of its project, and holders of a signed URL.
    Private,
    /// As [`Visibility::Private`], and its folder becomes private (`privateFolder: true`).
    PrivateFolder,
}

impl Visibility {
    /// Returns whether reading the file needs a key or a signed URL.
    #[must_use]
    pub fn is_private(self) -> bool {
        matches!(self, Self::Private | Self::PrivateFolder)
    }
}

/// A complete, valid upload form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadForm {
    pub(super) shape: Shape,
    pub(super) kind: MediaKind,
    pub(super) folder: FolderPath,
    pub(super) existing: Existing,
    pub(super) items: Vec<UploadItem>,
}

impl UploadForm {
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    #[must_use]
    pub fn kind(&self) -> MediaKind {
        self.kind
    }

    #[must_use]
    pub fn folder(&self) -> &FolderPath {
        &self.folder
    }

    #[must_use]
    pub fn existing(&self) -> Existing {
        self.existing
    }

    /// The files in the order of their events: at least one, with distinct names.
    #[must_use]
    pub fn items(&self) -> &[UploadItem] {
        &self.items
    }

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
    #[must_use]
    pub fn name(&self) -> &MediaName {
        &self.name
    }

    /// The declared type: that of the data URL or part, else `imageType` or `fileType`.
    #[must_use]
    pub fn label(&self) -> Option<&Label> {
        self.label.as_ref()
    }

    /// The upload's `type`, but always a file if it was sent as `fileBase64`.
    #[must_use]
    pub fn kind(&self) -> MediaKind {
        self.kind
    }

    #[must_use]
    pub fn visibility(&self) -> Visibility {
        self.visibility
    }
}

/// Parses a boolean of a form: `on` is a checked box, `True` is Python's. `None` for any other word.
pub(crate) fn flag(word: &str) -> Option<bool> {
    match word {
        "true" | "True" | "1" | "on" => Some(true),
        "false" | "False" | "0" | "off" => Some(false),
        _ => None,
    }
}
