//! `selkie media get`: writes a media file to a local file (under a temporary name until complete) or to standard
//! output.

use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use clap::Args;
use futures_util::TryStreamExt as _;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use shared::media::Rendition;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::target::FileArgument;
use super::{MediaContext, OfProject, path_of, unless_stopped};
use crate::cli::CliError;
use crate::cli::progress::Progress;
use crate::database::media::{MediaRow, StoredObject};
use crate::files::remove_file;
use crate::media::store::StoreError;
use crate::signal;

#[derive(Debug, Args)]
pub struct GetArgs {
    /// The file: its id, or folder/name
    #[arg(value_name = "ID|PATH")]
    file: FileArgument,
    /// The local file or directory; - is standard output [default: the file's own name, in the current directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The thumbnail instead of the file
    #[arg(long)]
    thumbnail: bool,
    /// Replace an existing local file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    of: OfProject,
}

#[derive(Serialize)]
struct Fetched {
    id: u64,
    file: String,
    size: u64,
    output: String,
}

impl GetArgs {
    pub(super) async fn run(self, context: &MediaContext<'_>) -> Result<(), CliError> {
        let row = context.find(&self.of.project, &self.file).await?;
        let rendition = match self.thumbnail {
            true => Rendition::Thumbnail,
            false => Rendition::Original,
        };
        let object = row
            .rendition(rendition)
            .ok_or_else(|| CliError::Failed { message: format!("{} has no thumbnail", path_of(&row)), hint: None })?;
        let stop = signal::stop_token().map_err(CliError::Signals)?;
        if self.output.as_deref() == Some(Path::new("-")) {
            let mut stdout = stdout().map_err(CliError::Output)?;
            let copied = copy(context, &row, object, &mut stdout, CliError::Output);
            return unless_stopped(&stop, copied).await;
        }
        let target = self.target(&local_name(&row, rendition, object))?;
        let part = PartialFile::beside(&target)?;
        let copied = part.fill(context, &row, object);
        unless_stopped(&stop, copied).await?;
        part.become_file(&target, self.force)?;
        let answer =
            Fetched { id: row.id.get(), file: path_of(&row), size: object.size, output: target.display().to_string() };
        context.context.output.answer(&answer, |answer| {
            let size = indicatif::BinaryBytes(answer.size);
            format!("{} is in {} ({size})", answer.file, answer.output)
        })
    }

    fn target(&self, own_name: &str) -> Result<PathBuf, CliError> {
        let target = match &self.output {
            None => PathBuf::from(own_name),
            Some(given) if given.is_dir() => given.join(own_name),
            Some(given) => given.clone(),
        };
        match target.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(target),
            Err(error) => Err(unwritable(&target, &error)),
            Ok(about) if !(about.is_file() || about.is_symlink()) => Err(CliError::failed(
                format!("{} is no file that could be replaced", target.display()),
                "name another by --output; - is standard output",
            )),
            Ok(_) if self.force => Ok(target),
            Ok(_) => Err(taken(&target)),
        }
    }
}

fn taken(path: &Path) -> CliError {
    CliError::failed(
        format!("{} is there already", path.display()),
        "add --force to replace it, or name another by --output",
    )
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed { message: format!("{} can't be written: {error}", path.display()), hint: None }
}

async fn copy(
    context: &MediaContext<'_>,
    row: &MediaRow,
    object: &StoredObject,
    to: &mut (impl AsyncWrite + Unpin),
    unwritable: impl Fn(io::Error) -> CliError,
) -> Result<(), CliError> {
    let progress = Progress::new(row.name.as_str(), Some(object.size));
    let mut hash = Sha256::new();
    let mut bytes = match context.library()?.store().read(object.key, None).await {
        Err(StoreError::NotFound) => {
            return Err(CliError::failed(
                format!("the store has no bytes of {}", path_of(row)),
                "it was replaced or removed a moment ago, or the store is incomplete: try again",
            ));
        }
        opened => opened?,
    };
    while let Some(piece) = bytes.try_next().await? {
        hash.update(&piece);
        to.write_all(&piece).await.map_err(&unwritable)?;
        progress.advance(piece.len());
    }
    to.flush().await.map_err(&unwritable)?;
    if <[u8; 32]>::from(hash.finalize()) != object.sha256 {
        return Err(CliError::failed(
            format!("the bytes of {} are not those that were uploaded", path_of(row)),
            "the store was damaged: restore it from a backup",
        ));
    }
    Ok(())
}

/// Opens standard output without the line buffer of `std::io::stdout`. Must be flushed before it is dropped, since
/// [`tokio::fs::File`] writes in the background.
fn stdout() -> io::Result<tokio::fs::File> {
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(tokio::fs::File::from_std(stdout.into()))
}

struct PartialFile(PathBuf);

impl PartialFile {
    /// Names a temporary file beside `target`, so that renaming stays within one file system.
    fn beside(target: &Path) -> Result<Self, CliError> {
        let number = getrandom::u64().map_err(|error| unwritable(target, &io::Error::other(error)))?;
        Ok(Self(target.with_file_name(format!(".selkie-{number:016x}.part"))))
    }

    async fn fill(&self, context: &MediaContext<'_>, row: &MediaRow, object: &StoredObject) -> Result<(), CliError> {
        let faulty = |error: io::Error| unwritable(&self.0, &error);
        let made = tokio::fs::File::create_new(&self.0).await;
        let mut file = made.map_err(faulty)?;
        copy(context, row, object, &mut file, faulty).await?;
        file.sync_all().await.map_err(faulty)
    }

    fn become_file(&self, target: &Path, force: bool) -> Result<(), CliError> {
        if force {
            return std::fs::rename(&self.0, target).map_err(|error| unwritable(target, &error));
        }
        match renameat_with(CWD, &self.0, CWD, target, RenameFlags::NOREPLACE).map_err(io::Error::from) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(taken(target)),
            // The file system can't rename without replacing.
            Err(_) if target.symlink_metadata().is_ok() => Err(taken(target)),
            Err(_) => std::fs::rename(&self.0, target).map_err(|error| unwritable(target, &error)),
        }
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        let _ = remove_file(&self.0);
    }
}

/// The maximum length of a name without its suffix. File systems allow 255 bytes for both together.
const STEM_MAX_BYTES: usize = 200;

/// Returns the name of the local file. A leading dot (hidden) or hyphen (looks like an option) becomes `_`.
fn local_name(row: &MediaRow, rendition: Rendition, object: &StoredObject) -> String {
    let name = plain(row.name.as_str());
    match rendition {
        Rendition::Original => name,
        Rendition::Thumbnail => {
            let mut stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
            stem = &stem[..stem.floor_char_boundary(STEM_MAX_BYTES)];
            let format = object.mime.rsplit('/').next().unwrap_or("img");
            format!("{stem}.thumbnail.{format}")
        }
    }
}

fn plain(name: &str) -> String {
    match name.strip_prefix(['.', '-']) {
        Some(rest) => format!("_{rest}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_name_is_neither_hidden_nor_an_option() {
        for (name, local) in
            [("a.png", "a.png"), ("ü ñ.png", "ü ñ.png"), (".bashrc", "_bashrc"), ("-rf", "_rf"), ("...", "_..")]
        {
            assert_eq!(plain(name), local);
        }
    }
}
