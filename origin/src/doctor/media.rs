//! Checks that files can be staged and that the media store answers. Stores nothing in it.

use super::Finding;
use crate::config::{Config, StoreAddress};
use crate::media::store::{Store, StoreError};

const CHECK: &str = "store";

pub(super) async fn store(config: &Config) -> Finding {
    let place = match &config.media_store {
        StoreAddress::Directory(path) => format!("the media store {}", path.display()),
        StoreAddress::Bucket(address) => format!("the media store, bucket {},", address.bucket),
    };
    let opened = Store::open(&config.media_store, &config.media_dir());
    let checked = match opened {
        Ok(store) => store.check().await,
        Err(error) => Err(error),
    };
    match checked {
        Ok(()) => Finding::ok(CHECK, format!("{place} answers and takes files")),
        Err(error) => {
            let hint = hint(&error, &config.media_store);
            Finding::wrong(CHECK, format!("{place} fails: {}", error.in_full()), hint)
        }
    }
}

fn hint(error: &StoreError, address: &StoreAddress) -> &'static str {
    match (error, address) {
        (StoreError::Full(_), _) => "make room, or raise the quota",
        (_, StoreAddress::Directory(_)) => {
            "make it, give it to the user that selkie runs as, or set another by SELKIE_MEDIA_STORE"
        }
        (_, StoreAddress::Bucket(_)) => {
            "look at media_store, media_s3_endpoint, media_s3_region and the access key, and whether the data directory \
             can be written"
        }
    }
}
