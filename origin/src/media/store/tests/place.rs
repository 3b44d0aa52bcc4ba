//! The stores that the tests run on.

use std::path::{Path, PathBuf};

use super::super::*;

/// A store, and where its files really are.
pub(super) struct Place {
    pub(super) store: Store,
    /// Where files arrive.
    pub(super) staging: PathBuf,
    /// What `objects/…` is within.
    pub(super) objects: PathBuf,
    _directory: tempfile::TempDir,
}

pub(super) fn directory() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("media");
    let address = StoreAddress::Directory(root.clone());
    Place {
        store: Store::open(&address, directory.path(), Durability::Synced).unwrap(),
        staging: root.join("staging"),
        objects: root,
        _directory: directory,
    }
}

pub(super) async fn everywhere(test: impl AsyncFn(&Place)) {
    test(&directory()).await;
}

/// The files of a folder, without its folders.
pub(super) fn files_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.path())
        .collect()
}
