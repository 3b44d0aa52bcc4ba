//! Reads the files of `selkie media put` (local files or standard input) in pieces. Each file is read on its own
//! thread, so that a blocking pipe or terminal doesn't delay the handling of a stop signal.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use shared::media::MediaName;
use tokio::sync::mpsc;

use crate::cli::CliError;
use crate::media::store::PIECE_BYTES;

const PIECES_AHEAD: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InputFile {
    Stdin,
    File(PathBuf),
}

impl InputFile {
    pub(super) fn of(path: &Path) -> Self {
        match path.as_os_str() == "-" {
            true => Self::Stdin,
            false => Self::File(path.to_owned()),
        }
    }

    pub(super) fn name(&self) -> Result<MediaName, CliError> {
        let Self::File(path) = self else {
            return Err(CliError::Usage {
                message: "standard input has no name".to_owned(),
                hint: Some("name the file by --name".to_owned()),
            });
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let hint = "give it another name by --name";
        let name = name.ok_or_else(|| {
            let message = format!("{} ends with no name in UTF-8", path.display());
            CliError::failed(message, hint)
        })?;
        MediaName::parse(name).map_err(|problem| CliError::failed(problem.message().to_owned(), hint))
    }

    pub(super) fn size(&self) -> Result<Option<u64>, CliError> {
        let Self::File(path) = self else {
            return Ok(None);
        };
        let about = path.metadata().map_err(|error| self.unreadable(&error))?;
        if about.is_dir() {
            return Err(CliError::failed(
                format!("{} is a directory", path.display()),
                format!("name its files: {}/*", path.display()),
            ));
        }
        Ok(about.is_file().then_some(about.len()))
    }

    pub(super) fn read(self) -> Result<Pieces, CliError> {
        let (pieces, arriving) = mpsc::channel(PIECES_AHEAD);
        let source = self.clone();
        std::thread::Builder::new()
            .name("put".to_owned())
            .spawn(move || {
                let outcome = match self {
                    Self::Stdin => send(io::stdin().lock(), &pieces),
                    Self::File(path) => File::open(path).and_then(|file| send(file, &pieces)),
                };
                if let Err(error) = outcome {
                    let _ = pieces.blocking_send(Err(error));
                }
            })
            .map_err(|error| source.unreadable(&error))?;
        Ok(Pieces { source, arriving })
    }

    fn unreadable(&self, error: &io::Error) -> CliError {
        let name = match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
        };
        CliError::Failed { message: format!("{name} can't be read: {error}"), hint: None }
    }
}

fn send(mut from: impl Read, pieces: &mpsc::Sender<io::Result<Vec<u8>>>) -> io::Result<()> {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        from.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if piece.is_empty() || pieces.blocking_send(Ok(piece)).is_err() {
            return Ok(());
        }
    }
}

pub(super) struct Pieces {
    source: InputFile,
    arriving: mpsc::Receiver<io::Result<Vec<u8>>>,
}

impl Pieces {
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, CliError> {
        let piece = self.arriving.recv().await.transpose();
        piece.map_err(|error| self.source.unreadable(&error))
    }
}
