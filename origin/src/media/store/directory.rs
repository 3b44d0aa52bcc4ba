//! Objects as files in a directory. Every change that readers can see is atomic and synced to the disk.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use tokio::task::spawn_blocking;

use super::error::StoreError;
use super::file::{StagedFile, sync_directory};
use super::{Listed, ObjectBytes, ObjectListing};
use crate::database::media::{FOLDER, ObjectKey};
use crate::files::{private_directory, remove_file};

/// The size of one read. A thousand concurrent readers take about 130 MB.
const READ_BYTES: usize = 128 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(super) fn open(root: PathBuf) -> io::Result<Self> {
        private_directory(&root.join(FOLDER))?;
        Ok(Self { root })
    }

    pub(super) fn publish(&self, file: &mut StagedFile, key: ObjectKey) -> io::Result<()> {
        let target = self.path(key);
        let folder = target.parent().unwrap_or(&self.root);
        match file.publish_as(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                private_directory(folder)?;
                sync_directory(&self.root.join(FOLDER))?;
                file.publish_as(&target)?;
            }
            outcome => outcome?,
        }
        sync_directory(folder)
    }

    pub(super) async fn read(&self, key: ObjectKey, range: Option<Range<u64>>) -> Result<ObjectBytes, StoreError> {
        let path = self.path(key);
        let (mut reader, first) = spawn_blocking(move || {
            let mut reader = FileRange::open(&path, range).map_err(StoreError::of_object)?;
            let first = reader.piece()?;
            Ok::<_, StoreError>((reader, first))
        })
        .await??;
        Ok(Box::pin(async_stream::try_stream! {
            let mut next = first;
            while !next.is_empty() {
                yield next;
                if reader.left == 0 {
                    break;
                }
                let read;
                (reader, read) = spawn_blocking(move || {
                    let read = reader.piece();
                    (reader, read)
                })
                .await?;
                next = read?;
            }
        }))
    }

    pub(super) fn delete(&self, keys: &[ObjectKey]) -> io::Result<()> {
        let mut folders = std::collections::BTreeSet::new();
        for key in keys {
            let path = self.path(*key);
            remove_file(&path)?;
            folders.extend(path.parent().map(Path::to_owned));
        }
        folders.iter().filter(|folder| folder.exists()).try_for_each(|folder| sync_directory(folder))
    }

    pub(super) fn existing(&self, keys: &[ObjectKey]) -> io::Result<Vec<ObjectKey>> {
        let mut existing = Vec::new();
        for key in keys {
            if self.path(*key).try_exists()? {
                existing.push(*key);
            }
        }
        Ok(existing)
    }

    pub(super) fn named(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn list(&self) -> ObjectListing {
        let top = self.root.join(FOLDER);
        Box::pin(async_stream::try_stream! {
            let path = top.clone();
            let (files, folders) = spawn_blocking(move || entries(&path, FOLDER)).await??;
            for file in files {
                yield file;
            }
            for folder in folders {
                let (path, name) = (top.join(&folder), format!("{FOLDER}/{folder}"));
                let (files, _) = spawn_blocking(move || entries(&path, &name)).await??;
                for file in files {
                    yield file;
                }
            }
        })
    }

    fn path(&self, key: ObjectKey) -> PathBuf {
        self.root.join(key.path())
    }
}

struct FileRange {
    file: File,
    left: u64,
}

impl FileRange {
    fn open(path: &Path, range: Option<Range<u64>>) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let Some(range) = range else {
            return Ok(Self { file, left: size });
        };
        file.seek(SeekFrom::Start(range.start))?;
        let left = range.end.min(size).saturating_sub(range.start);
        Ok(Self { file, left })
    }

    fn piece(&mut self) -> io::Result<Bytes> {
        let length = usize::try_from(self.left).map_or(READ_BYTES, |left| left.min(READ_BYTES));
        let mut piece = BytesMut::zeroed(length);
        // Fails if the file was truncated meanwhile: the response would be shorter than announced.
        self.file.read_exact(&mut piece)?;
        self.left -= length as u64;
        Ok(piece.freeze())
    }
}

fn entries(path: &Path, name: &str) -> io::Result<(Vec<Listed>, Vec<String>)> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let own = entry.file_name().to_string_lossy().into_owned();
        let about = match entry.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            about => about?,
        };
        if about.is_dir() {
            folders.push(own);
            continue;
        }
        let path = format!("{name}/{own}");
        files.push(Listed {
            key: ObjectKey::at(&path),
            path,
            size: about.len(),
            modified: about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        });
    }
    Ok((files, folders))
}
