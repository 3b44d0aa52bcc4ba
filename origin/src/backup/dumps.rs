//! Stores dumps in a backup, compressed, and reads them from there. What a dump contains is known to `database::admin`.

use std::io::Write as _;

use futures_util::StreamExt as _;
use sha2::{Digest, Sha256};

use super::{BackupError, BackupFile, Watcher};
use crate::database::admin::{Dump, Incomplete, Loaded, Loader, ObjectFault, RecordReader};
use crate::media::store::Store;

const DAMAGED: BackupError = BackupError::Damaged("a dump");

/// Stores a project's dump. With `routines`, `dump` is a project's own connection, which the project's code can end:
/// then only this dump is incomplete.
pub(super) async fn save_dump(
    dump: &mut Dump,
    routines: Option<&mut Dump>,
    databases: &[String],
    store: &Store,
    watcher: &dyn Watcher,
) -> Result<(BackupFile, Incomplete), BackupError> {
    let mut staging = store.stage();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 0).map_err(BackupError::Compress)?;
    encoder.include_checksum(true).map_err(BackupError::Compress)?;
    let mut sink = async |bytes: Vec<u8>| {
        encoder.write_all(&bytes).map_err(BackupError::Compress)?;
        staging.write(&std::mem::take(encoder.get_mut())).await?;
        watcher.advance(bytes.len());
        Ok(())
    };
    let (is_of_project, mut incomplete) = (routines.is_some(), Incomplete::default());
    match dump.save::<BackupError>(databases, routines, &mut incomplete, &mut sink).await {
        Err(BackupError::Admin(error)) if is_of_project => {
            let object = format!("part of {}", databases.join(", "));
            incomplete.missing.push(ObjectFault { object, reason: error.to_string() });
        }
        outcome => outcome?,
    }
    staging.write(&encoder.finish().map_err(BackupError::Compress)?).await?;
    Ok((BackupFile::store(store, staging.finish().await?).await?, incomplete))
}

pub(super) async fn check_dump(store: &Store, part: &BackupFile, watcher: &dyn Watcher) -> Result<(), BackupError> {
    watcher.begin("checking a dump".to_owned(), Some(part.size));
    let (mut bytes, mut size, mut hash) = (store.read(part.key()?, None).await?, 0, Sha256::new());
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk?;
        size += chunk.len() as u64;
        hash.update(&chunk);
        watcher.advance(chunk.len());
    }
    if part.is(size, &hash.finalize()) { Ok(()) } else { Err(DAMAGED) }
}

pub(super) async fn load_dump(
    mut loader: Loader,
    store: &Store,
    part: &BackupFile,
    watcher: &dyn Watcher,
) -> Result<Loaded, BackupError> {
    let mut records = RecordReader::default();
    let mut decoder = zstd::stream::write::Decoder::new(Vec::new()).map_err(BackupError::Compress)?;
    let mut bytes = store.read(part.key()?, None).await?;
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk?;
        watcher.advance(chunk.len());
        let mut left = &chunk[..];
        // Not `write_all`: a chunk of 128 KiB may decompress to 4 GiB, but one `write` only to some 100 KiB.
        while !left.is_empty() {
            let read = decoder.write(left).map_err(BackupError::Compress)?;
            left = &left[read..];
            records.push(&std::mem::take(decoder.get_mut()));
            while let Some(record) = records.next_record().map_err(|_| DAMAGED)? {
                loader.load(record).await?;
            }
        }
    }
    decoder.flush().map_err(BackupError::Compress)?;
    records.push(decoder.get_ref());
    while let Some(record) = records.next_record().map_err(|_| DAMAGED)? {
        loader.load(record).await?;
    }
    if !records.is_empty() {
        return Err(DAMAGED);
    }
    Ok(loader.finish().await?)
}
