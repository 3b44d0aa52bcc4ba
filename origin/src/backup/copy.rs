//! Copies media objects between two stores, and writes and reads the list of the objects in a
//! backup.

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;

use futures_util::{StreamExt as _, stream};
use sha2::{Digest, Sha256};

use super::{BackupError, BackupFile, Watcher, hex};
use crate::database::media::{MediaTable, ObjectKey};
use crate::media::store::{Store, StoreError};

const COPIES_MAX_COUNT: usize = 8;

const LOOKED_UP_COUNT: usize = 1_000;

/// Size in bytes and SHA-256 of each object, by key.
pub(super) type Objects = BTreeMap<ObjectKey, (u64, String)>;

#[derive(Debug, Default)]
pub(super) struct Copied {
    /// The number of copied objects, without those that the target store already had.
    pub(super) new: u64,
    /// The objects that were not copied, because the source doesn't have them.
    pub(super) missing: Vec<ObjectKey>,
    /// The objects that were not copied, because their size or hash in the source is not the recorded one.
    pub(super) damaged: Vec<ObjectKey>,
}

enum CopyOutcome {
    Copied,
    Missing,
    Damaged,
}

/// Returns the files that MariaDB has on record.
pub(super) async fn recorded_objects(table: &MediaTable) -> Result<Objects, BackupError> {
    let mut objects = Objects::new();
    let mut after = 0;
    loop {
        let (found, last) = table.objects_after(after).await?;
        objects.extend(found.into_iter().map(|object| (object.key, (object.size, hex(&object.sha256)))));
        match last {
            Some(last) => after = last,
            None => return Ok(objects),
        }
    }
}

/// Copies objects, after checking their sizes and hashes. Missing or damaged objects are no error.
pub(super) async fn copy(
    from: &Store,
    to: &Store,
    objects: &Objects,
    watcher: &dyn Watcher,
) -> Result<Copied, BackupError> {
    let keys: Vec<ObjectKey> = objects.keys().copied().collect();
    let mut present = HashSet::new();
    for keys in keys.chunks(LOOKED_UP_COUNT) {
        present.extend(to.existing(keys).await?);
    }
    let absent = || objects.iter().filter(|(key, _)| !present.contains(*key));
    let bytes = absent().map(|(_, (size, _))| size).sum();
    watcher.begin(format!("copying {} of {} media objects", absent().count(), objects.len()), Some(bytes));
    let jobs = absent().map(|(key, (size, sha256))| async move {
        Ok::<_, BackupError>((*key, copy_one(from, to, *key, *size, sha256, watcher).await?))
    });
    let mut outcomes = stream::iter(jobs).buffer_unordered(COPIES_MAX_COUNT);
    let mut copied = Copied::default();
    while let Some(outcome) = outcomes.next().await {
        match outcome? {
            (_, CopyOutcome::Copied) => copied.new += 1,
            (key, CopyOutcome::Missing) => copied.missing.push(key),
            (key, CopyOutcome::Damaged) => copied.damaged.push(key),
        }
    }
    Ok(copied)
}

async fn copy_one(
    from: &Store,
    to: &Store,
    key: ObjectKey,
    size: u64,
    sha256: &str,
    watcher: &dyn Watcher,
) -> Result<CopyOutcome, BackupError> {
    let mut bytes = match from.read(key, None).await {
        Ok(bytes) => bytes,
        Err(StoreError::NotFound) => return Ok(CopyOutcome::Missing),
        Err(error) => return Err(error.into()),
    };
    let mut staging = to.stage();
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk?;
        staging.write(&chunk).await?;
        watcher.advance(chunk.len());
    }
    let staged = staging.finish().await?;
    if staged.size() != size || hex(&staged.sha256()) != sha256 {
        return Ok(CopyOutcome::Damaged);
    }
    to.publish(staged, key).await?;
    Ok(CopyOutcome::Copied)
}

pub(super) async fn write_list(store: &Store, objects: &Objects) -> Result<BackupFile, BackupError> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 0).map_err(BackupError::Compress)?;
    for (key, (size, sha256)) in objects {
        writeln!(encoder, "{key} {size} {sha256}").map_err(BackupError::Compress)?;
    }
    let mut staging = store.stage();
    staging.write(&encoder.finish().map_err(BackupError::Compress)?).await?;
    BackupFile::store(store, staging.finish().await?).await
}

pub(super) async fn read_list(store: &Store, part: &BackupFile) -> Result<Objects, BackupError> {
    const DAMAGED: BackupError = BackupError::Damaged("the list of media");
    let (mut packed, mut bytes) = (Vec::new(), store.read(part.key()?, None).await?);
    while let Some(chunk) = bytes.next().await {
        packed.extend_from_slice(&chunk?);
    }
    if !part.is(packed.len() as u64, &Sha256::digest(&packed)) {
        return Err(DAMAGED);
    }
    let text = zstd::decode_all(packed.as_slice()).map_err(|_| DAMAGED)?;
    let text = String::from_utf8(text).map_err(|_| DAMAGED)?;
    let parse = |line: &str| {
        let mut words = line.split(' ');
        Some((ObjectKey::parse(words.next()?)?, (words.next()?.parse().ok()?, words.next()?.to_owned())))
    };
    text.lines().map(|line| parse(line).ok_or(DAMAGED)).collect()
}
