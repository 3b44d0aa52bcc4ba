//! Objects in a bucket of S3, or of a service that speaks like it.
//!
//! The only file that knows `object_store`.

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
use super::owner::{OWNER, OWNER_MAX_BYTES};
use super::refusal;
use super::{Listed, Listing, ObjectBytes};
use crate::config::{Addressing, BucketAddress};
use crate::database::media::{FOLDER, ObjectKey};

/// Bytes of a part: S3 wants 5 MiB or more, and allows 10,000 of them, which makes 80 GB. A file of one part is put as it is.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// Parts of one file on their way at once: enough to fill a line in spite of the waits between them.
const FILE_PARTS_AT_ONCE: usize = 3;

/// Parts of all files in memory at once: 64 MiB.
const PARTS_AT_ONCE: usize = 8;

/// Objects that are asked for at once in a sweep.
const HEADS_AT_ONCE: usize = 8;

/// How long is waited for the service. Each request ends, and is repeated at most so often.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For a connection.
    pub(super) connect: Duration,
    /// For the head of an answer from when the request begins, and between two pieces of its body. A part must be sent
    /// within it: 8 MiB in 30 s is a line of 2.3 Mbit/s, three at once 7.
    pub(super) answer: Duration,
    /// Since the first attempt, after which none is begun.
    pub(super) retry: Duration,
    /// Attempts after the first.
    pub(super) retries_max: usize,
}

impl Patience {
    /// For services on the internet.
    pub(super) const USUAL: Self = Self {
        connect: Duration::from_secs(5),
        answer: Duration::from_secs(30),
        retry: Duration::from_secs(20),
        retries_max: 3,
    };
}

/// A bucket with objects.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    service: Arc<AmazonS3>,
    /// Empty, or ends with `/`.
    prefix: Arc<str>,
    /// What must not reach the log, though a service may repeat it.
    access_key: Arc<str>,
    parts: Arc<Semaphore>,
}

impl Bucket {
    /// Makes ready to use it; asks nobody yet.
    pub(super) fn open(address: &BucketAddress, patience: Patience) -> Result<Self, StoreError> {
        // The client asks for a process-wide choice. Whoever made it before chose the same: there is one to choose from.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let required = |name, value: &'_ Option<SecretString>| match value {
            Some(value) => Ok(value.expose_secret().to_owned()),
            None => Err(StoreError::NotSet(name)),
        };
        let access_key = required("media_s3_access_key", &address.access_key)?;
        let secret_key = required("media_s3_secret_key", &address.secret_key)?;
        let options = ClientOptions::new()
            // A whole answer may take as long as its reader does.
            .with_timeout_disabled()
            .with_connect_timeout(patience.connect)
            .with_read_timeout(patience.answer)
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
                max_retries: patience.retries_max,
                retry_timeout: patience.retry,
            });
        if let Some(endpoint) = endpoint(address) {
            builder = builder.with_endpoint(endpoint);
        }
        let service = builder.build().map_err(|error| refusal::told(&error, &access_key))?;
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

    /// Whether the bucket is there, and may be looked into.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        // One page of 256 folders at most, however many objects there are.
        let answer = self.service.list_with_delimiter(Some(&self.folder())).await;
        answer.map(drop).map_err(|error| self.told(&error))
    }

    /// Puts a staged file under its key and lets go of it. Goes on if the caller leaves.
    pub(super) async fn publish(&self, file: Box<StagedFile>, key: ObjectKey) -> Result<(), StoreError> {
        let bucket = self.clone();
        tokio::spawn(async move {
            let outcome = bucket.send(&file, key).await;
            // One that is kept stays until it is discarded: the object may yet be taken back.
            spawn_blocking(move || drop(file)).await?;
            outcome
        })
        .await?
    }

    async fn send(&self, file: &StagedFile, key: ObjectKey) -> Result<(), StoreError> {
        let path = file.path().to_owned();
        let mut parts = spawn_blocking(move || Parts::open(&path)).await??;
        if parts.left > PART_BYTES as u64 {
            return self.send_in_parts(parts, key).await;
        }
        let _permit = self.permit().await?;
        let whole = spawn_blocking(move || parts.next()).await??;
        self.put(key, whole.unwrap_or_default()).await
    }

    async fn send_in_parts(&self, parts: Parts, key: ObjectKey) -> Result<(), StoreError> {
        let begun = self.service.put_multipart(&self.path(key)).await;
        let mut upload = begun.map_err(|error| self.told(&error))?;
        let sent = match self.send_parts(parts, &mut *upload).await {
            Ok(()) => upload.complete().await.map_err(|error| self.told(&error)),
            Err(error) => Err(error),
        };
        if sent.is_err()
            && let Err(error) = upload.abort().await
        {
            let error = self.told(&error);
            tracing::warn!(%error, %key, "parts of an upload may have stayed in the bucket");
        }
        sent.map(drop)
    }

    /// Returns when no part is on its way any more, whatever became of them.
    async fn send_parts(&self, mut parts: Parts, upload: &mut dyn MultipartUpload) -> Result<(), StoreError> {
        let mut sending = JoinSet::new();
        let outcome = async {
            loop {
                if sending.len() == FILE_PARTS_AT_ONCE {
                    self.settle(sending.join_next().await)?;
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
                self.settle(Some(sent))?;
            }
            Ok(())
        }
        .await;
        sending.shutdown().await;
        outcome
    }

    fn settle(&self, sent: Option<Result<object_store::Result<()>, tokio::task::JoinError>>) -> Result<(), StoreError> {
        match sent {
            Some(sent) => sent?.map_err(|error| self.told(&error)),
            None => Ok(()),
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        let permit = Arc::clone(&self.parts).acquire_owned().await;
        permit.map_err(|closed| StoreError::Other(Box::new(closed)))
    }

    /// Puts bytes under a key, in one request.
    pub(super) async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), StoreError> {
        let put = self.service.put(&self.path(key), bytes.into()).await;
        put.map(drop).map_err(|error| self.told(&error))
    }

    /// Asks for an object; returns when its first bytes are on their way.
    pub(super) async fn read(&self, key: ObjectKey, range: Option<Range<u64>>) -> Result<ObjectBytes, StoreError> {
        if range.as_ref().is_some_and(Range::is_empty) {
            return Ok(Box::pin(futures_util::stream::empty()));
        }
        let range = range.map(|range| match i64::try_from(range.end) {
            Ok(_) => GetRange::Bounded(range),
            // More than services can read.
            Err(_) => GetRange::Offset(range.start),
        });
        let options = GetOptions { range, ..GetOptions::default() };
        match self.service.get_opts(&self.path(key), options).await {
            Ok(found) => {
                let bucket = self.clone();
                let bytes = found.into_stream();
                Ok(Box::pin(bytes.map_err(move |error| bucket.told(&error))))
            }
            Err(error) if refusal::is_absent(&error) => Err(StoreError::NotFound),
            Err(error) if refusal::is_behind_the_end(&error) => Ok(Box::pin(futures_util::stream::empty())),
            Err(error) => Err(self.told(&error)),
        }
    }

    /// Removes objects that may not be there.
    pub(super) async fn delete(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        let paths: Vec<_> = keys.iter().map(|key| Ok(self.path(*key))).collect();
        let paths = futures_util::stream::iter(paths).boxed();
        let mut deleted = self.service.delete_stream(paths);
        while let Some(one) = deleted.next().await {
            one.map_err(|error| self.told(&error))?;
        }
        Ok(())
    }

    /// Those of these objects that are there.
    pub(super) async fn existing(&self, keys: &[ObjectKey]) -> Result<Vec<ObjectKey>, StoreError> {
        let mut existing = Vec::new();
        for keys in keys.chunks(HEADS_AT_ONCE) {
            let found = try_join_all(keys.iter().map(|key| self.has(*key))).await?;
            existing.extend(keys.iter().zip(found).filter(|(_, is_there)| *is_there));
        }
        Ok(existing.into_iter().map(|(key, _)| *key).collect())
    }

    async fn has(&self, key: ObjectKey) -> Result<bool, StoreError> {
        match self.service.head(&self.path(key)).await {
            Ok(_) => Ok(true),
            Err(error) if refusal::is_absent(&error) => Ok(false),
            Err(error) => Err(self.told(&error)),
        }
    }

    /// The mark of the owner, if there is one.
    pub(super) async fn owner(&self) -> Result<Option<String>, StoreError> {
        let options = GetOptions { range: Some(GetRange::Bounded(0..OWNER_MAX_BYTES)), ..GetOptions::default() };
        let found = match self.service.get_opts(&self.owner_path(), options).await {
            Ok(found) => found.bytes().await,
            Err(error) if refusal::is_absent(&error) => return Ok(None),
            Err(error) => Err(error),
        };
        let bytes = found.map_err(|error| self.told(&error))?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Sets the mark of the owner, unless there is one.
    pub(super) async fn claim(&self, owner: String) -> Result<(), StoreError> {
        let (path, only_new) = (self.owner_path(), PutOptions::from(PutMode::Create));
        let put = self.service.put_opts(&path, owner.clone().into(), only_new);
        match put.await {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
            // Not all services know conditions on writes.
            Err(error) if refusal::is_not_implemented(&error) => self.take_over(owner).await,
            Err(error) => Err(self.told(&error)),
        }
    }

    /// Sets the mark of the owner, whatever was there.
    pub(super) async fn take_over(&self, owner: String) -> Result<(), StoreError> {
        let put = self.service.put(&self.owner_path(), owner.into()).await;
        put.map(drop).map_err(|error| self.told(&error))
    }

    fn owner_path(&self) -> Path {
        Path::from(format!("{}{OWNER}", self.prefix))
    }

    /// All that lies among the objects.
    pub(super) fn list(&self) -> Listing {
        let bucket = self.clone();
        let found = self.service.list(Some(&self.folder()));
        Box::pin(found.map(move |found| {
            let found = found.map_err(|error| bucket.told(&error))?;
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

    fn told(&self, error: &object_store::Error) -> StoreError {
        refusal::told(error, &self.access_key)
    }
}

/// The endpoint as the client wants it: with the bucket in it, where that is to stand in the host.
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

/// A staged file, part by part.
struct Parts {
    file: File,
    left: u64,
}

impl Parts {
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
