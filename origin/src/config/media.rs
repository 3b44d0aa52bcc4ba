//! The settings of media that make sense only together: the store and the way to it.

use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::store_address::{Addressing, BucketAddress, StoreAddress, StoreName, endpoint};
use super::{ConfigError, Layers, optional, required, value};

/// Most bytes of a key or a region: services give 128 and less.
const NAME_MAX_BYTES: usize = 512;

/// Where media of an installation in `data_dir` arrive, and lie where no other place is named.
pub(super) fn directory(data_dir: &Path) -> PathBuf {
    data_dir.join("media")
}

/// The store. All of its settings are checked, also those that a directory has no use for.
pub(super) fn store(layers: &Layers, data_dir: &Path) -> Result<StoreAddress, ConfigError> {
    let name = optional(layers, "media_store", StoreName::parse)?;
    let endpoint = optional(layers, "media_s3_endpoint", endpoint)?;
    let region = required(layers, "media_s3_region", |text| graphic(text, "the name of a region, such as us-east-1"))?;
    let addressing =
        required(layers, "media_s3_path_style", |text| value::switch(text, Addressing::Path, Addressing::Host))?;
    // Whether they are set is asked where the bucket is opened: most commands never do.
    let access_key = optional(layers, "media_s3_access_key", access_key)?;
    let secret_key = optional(layers, "media_s3_secret_key", secret_key)?;
    Ok(match name {
        None => StoreAddress::Directory(directory(data_dir)),
        Some(StoreName::Directory(path)) => StoreAddress::Directory(path),
        Some(StoreName::Bucket { bucket, prefix }) => StoreAddress::Bucket(Box::new(BucketAddress {
            bucket,
            prefix,
            endpoint,
            region,
            access_key,
            secret_key,
            addressing,
        })),
    })
}

fn access_key(text: &str) -> Result<SecretString, String> {
    graphic(text, "the id of the access key to the bucket").map(SecretString::from)
}

fn secret_key(text: &str) -> Result<SecretString, String> {
    graphic(text, "the secret of the access key to the bucket").map(SecretString::from)
}

/// A text that can stand in a header as it is.
fn graphic(text: &str, expected: &str) -> Result<String, String> {
    let fits = (1..=NAME_MAX_BYTES).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| text.to_owned()).ok_or_else(|| expected.to_owned())
}
