//! One staged file on the local disk, with blocking I/O. Dropping deletes the file, unless it was published or belongs
//! to a resumable upload.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::process_folder::ProcessFolder;
use super::staging::{HEAD_BYTES, PIECE_BYTES};
use crate::files::remove_file;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    Owner,
    Kept,
    Gone,
}

#[derive(Debug)]
pub(super) struct StagedFile {
    path: PathBuf,
    lifetime: Lifetime,
    state: FileState,
    written: u64,
    /// The first bytes, for type detection; empty for a new file.
    head: Vec<u8>,
    /// The hash so far; `None` after resuming at an offset above 0, since the earlier bytes were not hashed.
    hash: Option<Sha256>,
    sha256: Option<[u8; 32]>,
    /// Keeps this process' folder from being deleted.
    _folder: Option<Arc<ProcessFolder>>,
}

#[derive(Debug)]
enum FileState {
    NotMade,
    Open(File),
    Closed,
}

impl StagedFile {
    pub(super) fn new_in(folder: Arc<ProcessFolder>) -> Self {
        let path = folder.path().join(Uuid::now_v7().to_string());
        Self::new(path, Lifetime::Owner, Some(folder))
    }

    fn new(path: PathBuf, lifetime: Lifetime, folder: Option<Arc<ProcessFolder>>) -> Self {
        Self {
            path,
            lifetime,
            _folder: folder,
            state: FileState::NotMade,
            written: 0,
            head: Vec::new(),
            hash: Some(Sha256::new()),
            sha256: None,
        }
    }

    pub(super) fn create_kept(path: PathBuf) -> io::Result<Self> {
        let mut file = Self::new(path, Lifetime::Kept, None);
        file.open()?;
        if let Some(folder) = file.path.parent() {
            sync_directory(folder)?;
        }
        Ok(file)
    }

    pub(super) fn resume(path: PathBuf, offset: u64) -> io::Result<Option<Self>> {
        let mut file = OpenOptions::new().read(true).write(true).open(&path)?;
        let length = file.metadata()?.len();
        if length < offset {
            return Ok(None);
        }
        if length > offset {
            file.set_len(offset)?;
        }
        let mut head = Vec::new();
        let head_length = offset.min(HEAD_BYTES as u64);
        (&file).take(head_length).read_to_end(&mut head)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Some(Self {
            path,
            lifetime: Lifetime::Kept,
            state: FileState::Open(file),
            written: offset,
            _folder: None,
            head,
            hash: (offset == 0).then(Sha256::new),
            sha256: None,
        }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    pub(super) fn take_sha256(&mut self) -> Option<[u8; 32]> {
        self.sha256.take()
    }

    pub(super) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.open()?.write_all(piece)?;
        self.written += piece.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.update(piece);
        }
        Ok(())
    }

    pub(super) fn suspend(&mut self, piece: &[u8]) -> io::Result<()> {
        self.write(piece)?;
        self.open()?.sync_all()
    }

    pub(super) fn finish(&mut self, piece: &[u8]) -> io::Result<()> {
        self.suspend(piece)?;
        self.state = FileState::Closed;
        let hash = match self.hash.take() {
            Some(hash) => hash,
            None => hash_of(&self.path)?,
        };
        self.sha256 = Some(hash.finalize().into());
        Ok(())
    }

    /// Stores the file in one atomic step. The file of a resumable upload also keeps its old name if the file system
    /// has hard links, so that publishing can be repeated if no row is written for the object.
    pub(super) fn publish_as(&mut self, to: &Path) -> io::Result<()> {
        if self.lifetime == Lifetime::Kept {
            match std::fs::hard_link(&self.path, to) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
                // The file system may not support hard links. The file is then renamed.
                Err(_) => {}
            }
        }
        std::fs::rename(&self.path, to)?;
        self.lifetime = Lifetime::Gone;
        Ok(())
    }

    fn open(&mut self) -> io::Result<&mut File> {
        if matches!(self.state, FileState::NotMade) {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path)?;
            self.state = FileState::Open(file);
        }
        match &mut self.state {
            FileState::Open(file) => Ok(file),
            FileState::NotMade | FileState::Closed => Err(io::Error::other("the staged file is closed")),
        }
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if self.lifetime == Lifetime::Owner && !matches!(self.state, FileState::NotMade) {
            // If deleting fails, the file is deleted when this process ends, or by a later sweep.
            let _ = remove_file(&self.path);
        }
    }
}

fn hash_of(path: &Path) -> io::Result<Sha256> {
    let mut file = File::open(path)?;
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE_BYTES]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hash),
            length => hash.update(&piece[..length]),
        }
    }
}

pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
