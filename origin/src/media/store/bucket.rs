//! Objects in a bucket of S3 or of a compatible service. Only this file and `refusal.rs` use `object_store`.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode,
    PutOptions, RetryConfig,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};

use super::error::StoreError;
use super::file::StagedFile;
use super::owner::{NAMED_MAX_BYTES, OWNER};
use super::refusal;
use super::{Listed, ObjectBytes, ObjectListing};
use crate::config::{Addressing, BucketAddress};
use crate::database::media::{FOLDER, ObjectKey};

/// The size of a part. S3 requires at least 5 MiB and allows 10,000 parts, so a file may have up to 83 GB.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// The maximum number of parts of a file in flight: enough to use the bandwidth despite latency.
const FILE_PARTS_AT_ONCE: usize = 3;

/// The maximum number of parts of all files in flight: 64 MiB of memory. Thumbnails are not counted.
const PARTS_AT_ONCE: usize = 8;

const HEADS_AT_ONCE: usize = 8;

#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) connect: Duration,
    /// The time limit for the head of a response, and for each pause in the body. A part must be sent within this time:
    /// 8 MiB in 30 s need 2.3 Mbit/s.
    pub(super) answer: Duration,
    /// The time since the first attempt began after which no further attempt is made.
    pub(super) retry: Duration,
    pub(super) retries_max: usize,
}

impl Timeouts {
    pub(super) const DEFAULT: Self = Self {
        connect: Duration::from_secs(5),
        answer: Duration::from_secs(30),
        retry: Duration::from_secs(20),
        retries_max: 3,
    };
}

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    service: Arc<AmazonS3>,
    prefix: Arc<str>,
    /// The key's id, which is removed from error messages, since services may repeat it.
    access_key: Arc<str>,
    parts: Arc<Semaphore>,
}

impl Bucket {
    pub(super) fn open(address: &BucketAddress, timeouts: Timeouts) -> Result<Self, StoreError> {
        // The client needs a process-wide crypto provider. An error means that the same provider was installed before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let required = |name, value: &'_ Option<SecretString>| match value {
            Some(value) => Ok(value.expose_secret().to_owned()),
            None => Err(StoreError::NotSet(name)),
        };
        let access_key = required("media_s3_access_key", &address.access_key)?;
        let secret_key = required("media_s3_secret_key", &address.secret_key)?;
        let options = ClientOptions::new()
            // There is no time limit for a whole response, which takes as long as the client needs to read it.
            .with_timeout_disabled()
            .with_connect_timeout(timeouts.connect)
            .with_read_timeout(timeouts.answer)
            .with_allow_http(true);
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&address.bucket)
            .with_region(&address.region)
            .with_access_key_id(&access_key)
            .with_secret_access_key(secret_key)
            .with_virtual_hosted_style_request(address.addressing == Addressing::Host)
            .with_client_options(options)
            .with_retry(RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries: timeouts.retries_max,
                retry_timeout: timeouts.retry,
            });
        if let Some(endpoint) = endpoint(address) {
            builder = builder.with_endpoint(endpoint);
        }
        let service = builder.build().map_err(|error| refusal::store_error(&error, &access_key))?;
        let prefix = match address.prefix.as_str() {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        Ok(Self {
            service: Arc::new(service),
            prefix: prefix.into(),
            access_key: access_key.into(),
            parts: Arc::new(Semaphore::new(PARTS_AT_ONCE)),
        })
    }

    pub(super) async fn check(&self) -> Result<(), StoreError> {
        // Lists one level: at most one page of 256 folders, however many objects there are.
        let answer = self.service.list_with_delimiter(Some(&self.folder())).await;
        answer.map(drop).map_err(|error| self.store_error(&error))
    }

    /// Stores a file. Continues if the caller is cancelled.
    pub(super) async fn publish(&self, file: Box<StagedFile>, key: ObjectKey) -> Result<(), StoreError> {
        let bucket = self.clone();
        tokio::spawn(async move {
            let outcome = bucket.send(&file, key).await;
            // The file of a resumable upload stays: the upload needs the file if the object is deleted again.
            spawn_blocking(move || drop(file)).await?;
            outcome
        })
        .await?
    }

    async fn send(&self, file: &StagedFile, key: ObjectKey) -> Result<(), StoreError> {
        let path = file.path().to_owned();
        let mut parts = spawn_blocking(move || FileChunks::open(&path)).await??;
        if parts.left > PART_BYTES as u64 {
            return self.send_in_parts(parts, key).await;
        }
        let _permit = self.permit().await?;
        let whole = spawn_blocking(move || parts.next()).await??;
        self.put(key, whole.unwrap_or_default()).await
    }

    async fn send_in_parts(&self, parts: FileChunks, key: ObjectKey) -> Result<(), StoreError> {
        let begun = self.service.put_multipart(&self.path(key)).await;
        let mut upload = begun.map_err(|error| self.store_error(&error))?;
        let sent = match self.send_parts(parts, &mut *upload).await {
            Ok(()) => upload.complete().await.map_err(|error| self.store_error(&error)),
            Err(error) => Err(error),
        };
        if sent.is_err()
            && let Err(error) = upload.abort().await
        {
            let error = self.store_error(&error);
            tracing::warn!(%error, %key, "parts of an upload may have stayed in the bucket");
        }
        sent.map(drop)
    }

    /// Sends all parts. Returns only when no part is in flight any more, even after an error.
    async fn send_parts(&self, mut parts: FileChunks, upload: &mut dyn MultipartUpload) -> Result<(), StoreError> {
        let mut sending = JoinSet::new();
        let outcome = async {
            loop {
                if sending.len() == FILE_PARTS_AT_ONCE {
                    self.check_sent(sending.join_next().await)?;
                }
                let permit = self.permit().await?;
                let part;
                (parts, part) = spawn_blocking(move || {
                    let part = parts.next();
                    (parts, part)
                })
                .await?;
                let Some(part) = part? else { break };
                let sent = upload.put_part(part.into());
                sending.spawn(async move {
                    let _permit = permit;
                    sent.await
                });
            }
            while let Some(sent) = sending.join_next().await {
                self.check_sent(Some(sent))?;
            }
            Ok(())
        }
        .await;
        sending.shutdown().await;
        outcome
    }

    fn check_sent(
        &self,
        sent: Option<Result<object_store::Result<()>, tokio::task::JoinError>>,
    ) -> Result<(), StoreError> {
        match sent {
            Some(sent) => sent?.map_err(|error| self.store_error(&error)),
            None => Ok(()),
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        let permit = Arc::clone(&self.parts).acquire_owned().await;
        permit.map_err(|closed| StoreError::Other(Box::new(closed)))
    }

    pub(super) async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), StoreError> {
        let put = self.service.put(&self.path(key), bytes.into()).await;
        put.map(drop).map_err(|error| self.store_error(&error))
    }

    pub(super) async fn read(&self, key: ObjectKey, range: Option<Range<u64>>) -> Result<ObjectBytes, StoreError> {
        if range.as_ref().is_some_and(Range::is_empty) {
            return Ok(Box::pin(futures_util::stream::empty()));
        }
        let range = range.map(|range| match i64::try_from(range.end) {
            Ok(_) => GetRange::Bounded(range),
            // Services can't parse such a large end of a range.
            Err(_) => GetRange::Offset(range.start),
        });
        let options = GetOptions { range, ..GetOptions::default() };
        match self.service.get_opts(&self.path(key), options).await {
            Ok(found) => {
                let bucket = self.clone();
                let bytes = found.into_stream();
                Ok(Box::pin(bytes.map_err(move |error| bucket.store_error(&error))))
            }
            Err(error) if refusal::is_absent(&error) => Err(StoreError::NotFound),
            Err(error) if refusal::is_beyond_the_end(&error) => Ok(Box::pin(futures_util::stream::empty())),
            Err(error) => Err(self.store_error(&error)),
        }
    }

    pub(super) async fn delete(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        let paths: Vec<_> = keys.iter().map(|key| Ok(self.path(*key))).collect();
        let paths = futures_util::stream::iter(paths).boxed();
        let mut deleted = self.service.delete_stream(paths);
        while let Some(one) = deleted.next().await {
            one.map_err(|error| self.store_error(&error))?;
        }
        Ok(())
    }

    pub(super) async fn existing(&self, keys: &[ObjectKey]) -> Result<Vec<ObjectKey>, StoreError> {
        let mut existing = Vec::new();
        for keys in keys.chunks(HEADS_AT_ONCE) {
            let found = try_join_all(keys.iter().map(|key| self.has(*key))).await?;
            existing.extend(keys.iter().zip(found).filter(|(_, is_there)| *is_there));
        }
        Ok(existing.into_iter().map(|(key, _)| *key).collect())
    }

    async fn has(&self, key: ObjectKey) -> Result<bool, StoreError> {
        let path = self.path(key);
        let mut found = self.service.head(&path).await.map(drop);
        if found.as_ref().is_err_and(refusal::is_absent) {
            // The answer to HEAD has no body, which would tell a missing bucket from a missing object.
            let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
            found = self.service.get_opts(&path, options).await.map(drop);
        }
        match found {
            Ok(()) => Ok(true),
            Err(error) if refusal::is_absent(&error) => Ok(false),
            Err(error) if refusal::is_beyond_the_end(&error) => Ok(true),
            Err(error) => Err(self.store_error(&error)),
        }
    }

    pub(super) async fn named(&self, name: &str) -> Result<Option<String>, StoreError> {
        let options = GetOptions { range: Some(GetRange::Bounded(0..NAMED_MAX_BYTES)), ..GetOptions::default() };
        let found = match self.service.get_opts(&self.named_path(name), options).await {
            Ok(found) => found.bytes().await,
            Err(error) if refusal::is_absent(&error) => return Ok(None),
            // An empty file has no bytes in any range.
            Err(error) if refusal::is_beyond_the_end(&error) => return Ok(Some(String::new())),
            Err(error) => Err(error),
        };
        let bytes = found.map_err(|error| self.store_error(&error))?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    pub(super) async fn claim(&self, owner: String) -> Result<(), StoreError> {
        let (path, only_new) = (self.named_path(OWNER), PutOptions::from(PutMode::Create));
        let put = self.service.put_opts(&path, owner.clone().into(), only_new);
        match put.await {
            Ok(_) => Ok(()),
            Err(object_store::Error::AlreadyExists { .. }) => match self.named(OWNER).await? {
                Some(mark) if mark.trim().is_empty() => self.put_named(OWNER, owner).await,
                _ => Ok(()),
            },
            Err(error) if refusal::is_not_implemented(&error) => self.put_named(OWNER, owner).await,
            Err(error) => Err(self.store_error(&error)),
        }
    }

    pub(super) async fn put_named(&self, name: &str, text: String) -> Result<(), StoreError> {
        let put = self.service.put(&self.named_path(name), text.into()).await;
        put.map(drop).map_err(|error| self.store_error(&error))
    }

    fn named_path(&self, name: &str) -> Path {
        Path::from(format!("{}{name}", self.prefix))
    }

    pub(super) fn list(&self) -> ObjectListing {
        let bucket = self.clone();
        let found = self.service.list(Some(&self.folder()));
        Box::pin(found.map(move |found| {
            let found = found.map_err(|error| bucket.store_error(&error))?;
            let path = found.location.as_ref();
            let path = path.strip_prefix(&*bucket.prefix).unwrap_or(path);
            Ok(Listed {
                key: ObjectKey::at(path),
                path: path.to_owned(),
                size: found.size,
                modified: found.last_modified.into(),
            })
        }))
    }

    fn path(&self, key: ObjectKey) -> Path {
        Path::from(format!("{}{}", self.prefix, key.path()))
    }

    fn folder(&self) -> Path {
        Path::from(format!("{}{FOLDER}", self.prefix))
    }

    fn store_error(&self, error: &object_store::Error) -> StoreError {
        refusal::store_error(error, &self.access_key)
    }
}

fn endpoint(address: &BucketAddress) -> Option<String> {
    let endpoint = address.endpoint.as_ref()?;
    let text = endpoint.as_str().trim_end_matches('/');
    Some(match address.addressing {
        Addressing::Path => text.to_owned(),
        Addressing::Host => {
            let start = format!("{}://", endpoint.scheme());
            let rest = text.strip_prefix(&start).unwrap_or(text);
            format!("{start}{}.{rest}", address.bucket)
        }
    })
}

struct FileChunks {
    file: File,
    left: u64,
}

impl FileChunks {
    fn open(path: &std::path::Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let left = file.metadata()?.len();
        Ok(Self { file, left })
    }

    fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.left == 0 {
            return Ok(None);
        }
        let length = usize::try_from(self.left).map_or(PART_BYTES, |left| left.min(PART_BYTES));
        let mut part = BytesMut::zeroed(length);
        self.file.read_exact(&mut part)?;
        self.left -= length as u64;
        Ok(Some(part.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::endpoint as parsed;

    #[test]
    fn the_bucket_stands_where_the_service_looks_for_it() {
        let mut address = BucketAddress {
            bucket: "media".to_owned(),
            prefix: String::new(),
            endpoint: None,
            region: "eu-central-1".to_owned(),
            access_key: Some("id".into()),
            secret_key: Some("secret".into()),
            addressing: Addressing::Host,
        };
        assert_eq!(endpoint(&address), None);
        let cases = [
            ("https://s3.example.org", "https://media.s3.example.org"),
            ("http://s3.example.org:9000/", "http://media.s3.example.org:9000"),
        ];
        for (given, expected) in cases {
            address.endpoint = parsed(given).ok();
            assert_eq!(endpoint(&address).as_deref(), Some(expected));
        }
        address.addressing = Addressing::Path;
        let expected = Some("http://s3.example.org:9000");
        assert_eq!(endpoint(&address).as_deref(), expected);
    }
}
