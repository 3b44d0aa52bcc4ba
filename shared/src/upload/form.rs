//! The parsed form of an upload.

use super::label::Label;
use crate::media::{FolderPath, MediaKind, MediaName};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// JSON with items `{name, base64}`.
    Named,
    /// JSON with items `{imageBase64, imageName, imageType}` or `{fileBase64, fileName, fileType}`.
    Typed(Given),
    /// `multipart/form-data`. The response has the same form as for [`Shape::Named`].
    Multipart,
}

/// Whether `media` was written as an object or as a list in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    One,
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Stays,
    IsReplaced,
}

/// The visibility of an uploaded file, as the request declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// The request does not declare the file private: anybody who has the file's URL may read the file, unless the file
    /// is in or below a private folder, or replaces a private file.
    Public,
    /// `private: false`: anybody who has the URL may read the file, even if the file that it replaces was private,
    /// unless the file is in or below a private folder.
    MadePublic,
    /// Only callers of the file's project that may read media, and anybody with a signed URL, may read the file.
    Private,
    /// Like [`Visibility::Private`]; the file's folder also becomes private (`privateFolder: true`).
    PrivateFolder,
}

impl Visibility {
    /// Returns whether the request declares the file private. A file that is not declared private may still become
    /// private: see [`Visibility::Public`].
    pub fn is_private(self) -> bool {
        matches!(self, Self::Private | Self::PrivateFolder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadForm {
    pub(super) shape: Shape,
    pub(super) kind: MediaKind,
    pub(super) folder: FolderPath,
    pub(super) existing: Existing,
    pub(super) items: Vec<UploadItem>,
}

impl UploadForm {
    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn kind(&self) -> MediaKind {
        self.kind
    }

    pub fn folder(&self) -> &FolderPath {
        &self.folder
    }

    pub fn existing(&self) -> Existing {
        self.existing
    }

    /// Returns the files in the order in which they were parsed: at least one, with distinct names.
    pub fn items(&self) -> &[UploadItem] {
        &self.items
    }

    pub fn into_items(self) -> Vec<UploadItem> {
        self.items
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadItem {
    pub(super) name: MediaName,
    pub(super) label: Option<Label>,
    pub(super) kind: MediaKind,
    pub(super) visibility: Visibility,
}

impl UploadItem {
    pub fn name(&self) -> &MediaName {
        &self.name
    }

    pub fn label(&self) -> Option<&Label> {
        self.label.as_ref()
    }

    pub fn kind(&self) -> MediaKind {
        self.kind
    }

    pub fn visibility(&self) -> Visibility {
        self.visibility
    }
}

/// Parses a boolean of a multipart form or of `Upload-Metadata`; `None` for an unknown word. Browsers send `on` for a
/// checked box, and Python sends `True`.
pub(crate) fn flag(word: &str) -> Option<bool> {
    match word {
        "true" | "True" | "1" | "on" => Some(true),
        "false" | "False" | "0" | "off" => Some(false),
        _ => None,
    }
}
