//! The parsed form of an upload.

use super::label::Label;
use crate::media::{FolderPath, MediaKind, MediaName};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadShape {
    Named,
    /// Items `{imageBase64, imageName, imageType}` or `{fileBase64, fileName, fileType}`.
    Typed(Given),
    /// A multipart form. The response is as for [`UploadShape::Named`].
    Multipart,
}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Anybody with the URL may read the file, unless it is in or below a private folder, or replaces a private file.
    Undeclared,
    /// `private: false`: anybody with the URL may read the file, also if it replaces a private one, unless it is in or
    /// below a private folder.
    Public,
    /// Only callers of the project that may read media, and anybody with a signed URL, may read the file.
    Private,
    /// `privateFolder: true`: the folder also becomes private.
    PrivateFolder,
}

impl Visibility {
    /// Returns whether the file is declared private. Others may become private too: see [`Visibility::Undeclared`].
    pub fn is_private(self) -> bool {
        matches!(self, Self::Private | Self::PrivateFolder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedUpload {
    pub(super) shape: UploadShape,
    pub(super) kind: MediaKind,
    pub(super) folder: FolderPath,
    pub(super) existing: Existing,
    pub(super) items: Vec<UploadItem>,
}

impl ParsedUpload {
    pub fn shape(&self) -> UploadShape {
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

    /// Returns the files, at least one, with distinct names.
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

/// Parses a boolean. Browsers send `on` for a checked box, and Python sends `True`.
pub(crate) fn flag(word: &str) -> Option<bool> {
    match word {
        "true" | "True" | "1" | "on" => Some(true),
        "false" | "False" | "0" | "off" => Some(false),
        _ => None,
    }
}
