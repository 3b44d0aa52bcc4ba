//! The stores that the tests run on.

use std::path::{Path, PathBuf};

use super::super::bucket::{Bucket, Timeouts};
use super::super::*;
use super::service::{ACCESS_KEY, BUCKET, SECRET_KEY, Service};
use crate::config::{Addressing, BucketAddress, endpoint};

pub(super) struct Place {
    pub(super) store: Store,
    pub(super) staging: PathBuf,
    pub(super) objects: PathBuf,
    _directory: tempfile::TempDir,
}

/// Short timeouts for tests with a broken service.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_millis(500),
    answer: Duration::from_millis(1_000),
    retry: Duration::from_millis(500),
    retries_max: 2,
};

pub(super) fn directory() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("media");
    let address = StoreAddress::Directory(root.clone());
    Place {
        store: Store::open(&address, directory.path()).unwrap(),
        staging: root.join("staging"),
        objects: root,
        _directory: directory,
    }
}

pub(super) fn address(service: &Service, prefix: &str) -> BucketAddress {
    BucketAddress {
        bucket: BUCKET.to_owned(),
        prefix: prefix.to_owned(),
        endpoint: Some(endpoint(&service.url()).unwrap()),
        region: "us-east-1".to_owned(),
        access_key: Some(ACCESS_KEY.into()),
        secret_key: Some(SECRET_KEY.into()),
        addressing: Addressing::Path,
    }
}

/// Opens a store on the test service's bucket, below `prefix`, as the configuration does.
pub(super) fn bucket(service: &Service, prefix: &str) -> Place {
    let address = StoreAddress::Bucket(Box::new(address(service, prefix)));
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&address, directory.path()).unwrap();
    place(store, directory, service.bucket().join(prefix))
}

pub(super) fn impatient_bucket(service: &Service) -> Place {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Bucket::open(&address(service, ""), TIMEOUTS).unwrap();
    let staging = directory.path().join("staging");
    let store = Store::over(super::super::Backend::Bucket(bucket), staging);
    place(store.unwrap(), directory, service.bucket())
}

fn place(store: Store, directory: tempfile::TempDir, objects: PathBuf) -> Place {
    Place { store, staging: directory.path().join("staging"), objects, _directory: directory }
}

pub(super) async fn everywhere(test: impl AsyncFn(&Place)) {
    test(&directory()).await;
    let service = Service::start().await;
    test(&bucket(&service, "")).await;
    let service = Service::start().await;
    test(&bucket(&service, "some/folder")).await;
}

/// Returns the files below a folder, without lock files and resumable uploads.
pub(super) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("tus") {
            files.extend(files_in(&path));
        } else if path.is_file() && path.extension().is_none() {
            files.push(path);
        }
    }
    files
}
