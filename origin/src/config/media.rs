//! Parses the settings of the media store, which depend on each other.

use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::store_address::{Addressing, BucketAddress, StoreAddress, StoreName, endpoint};
use super::{ConfigError, Layers, optional, required, value};

/// The maximum length of a region's or key's name. S3 services use at most 128 bytes.
const NAME_MAX_BYTES: usize = 512;

pub(super) fn directory(data_dir: &Path) -> PathBuf {
    data_dir.join("media")
}

/// Reads the settings of buckets. Missing access keys are no error here, since most commands don't use a bucket.
pub(super) fn access(layers: &Layers) -> Result<BucketAddress, ConfigError> {
    Ok(BucketAddress {
        bucket: String::new(),
        prefix: String::new(),
        endpoint: optional(layers, "media_s3_endpoint", endpoint)?,
        region: required(layers, "media_s3_region", |text| graphic(text, "the name of a region, such as us-east-1"))?,
        addressing: required(layers, "media_s3_path_style", |text| {
            value::switch(text, Addressing::Path, Addressing::Host)
        })?,
        access_key: optional(layers, "media_s3_access_key", access_key)?,
        secret_key: optional(layers, "media_s3_secret_key", secret_key)?,
    })
}

pub(super) fn store(layers: &Layers, data_dir: &Path, s3: &BucketAddress) -> Result<StoreAddress, ConfigError> {
    Ok(match optional(layers, "media_store", StoreName::parse)? {
        None => StoreAddress::Directory(directory(data_dir)),
        Some(StoreName::Directory(path)) => StoreAddress::Directory(path),
        Some(StoreName::Bucket { bucket, prefix }) => StoreAddress::Bucket(Box::new(s3.at(bucket, prefix))),
    })
}

fn access_key(text: &str) -> Result<SecretString, String> {
    graphic(text, "the id of the access key to the bucket").map(SecretString::from)
}

fn secret_key(text: &str) -> Result<SecretString, String> {
    graphic(text, "the secret of the access key to the bucket").map(SecretString::from)
}

fn graphic(text: &str, expected: &str) -> Result<String, String> {
    let fits = (1..=NAME_MAX_BYTES).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| text.to_owned()).ok_or_else(|| expected.to_owned())
}
