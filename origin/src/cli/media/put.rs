//! `selkie media put`: uploads local files, in the same steps as an upload over HTTP.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use shared::media::{FolderPath, MediaKind, MediaName};
use shared::upload::{Existing, Visibility};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::source::InputFile;
use super::{MediaContext, OfProject, path_of, stopped, unless_stopped};
use crate::cli::progress::Progress;
use crate::cli::{CliError, TextTable};
use crate::database::media::ChangeableFiles;
use crate::files::remove_file;
use crate::media::intake::{ClaimedFile, Intake};
use crate::media::library::Publication;
use crate::media::payload::{self, Whole};
use crate::media::rights::UploadRights;
use crate::media::sniff::sniff;
use crate::media::store::{Staged, Store};
use crate::signal;

#[derive(Debug, Args)]
pub struct PutArgs {
    /// The files; - is standard input, which needs --name
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    of: OfProject,
    /// The folder for the files, as a/b [default: the root]
    #[arg(long, value_name = "FOLDER", default_value = "", hide_default_value = true, value_parser = folder)]
    folder: FolderPath,
    /// The type of the files; others are refused [default: detected by each file's first bytes]
    #[arg(long = "type", value_name = "TYPE", value_parser = kinds())]
    kind: Option<MediaKind>,
    /// The file's name in the library, for one file [default: its local name]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<MediaName>,
    /// Only keys of the project and signed URLs may read the files
    #[arg(long)]
    private: bool,
    /// Replace files of the same name, which keep their ids
    #[arg(long)]
    update: bool,
}

pub(super) fn kinds() -> impl TypedValueParser<Value = MediaKind> {
    PossibleValuesParser::new(MediaKind::ALL.map(MediaKind::as_str))
        .try_map(|word| MediaKind::parse(&word).ok_or("there is no such type"))
}

pub(super) fn folder(text: &str) -> Result<FolderPath, String> {
    FolderPath::parse(text).map_err(|problem| problem.message().to_owned())
}

pub(super) fn name(text: &str) -> Result<MediaName, String> {
    MediaName::parse(text).map_err(|problem| match text.contains('/') {
        true => format!("{} Put the path into --folder.", problem.message()),
        false => problem.message().to_owned(),
    })
}

impl PutArgs {
    pub(super) async fn run(self, context: &MediaContext<'_>) -> Result<(), CliError> {
        let config = &context.context.config;
        let named = self.named(config.upload_max_items)?;
        context.system.projects.require(&self.of.project).await?;
        self.check_names(context, &named).await?;
        let intake = Intake::new(config);
        let stop = signal::stop_token().map_err(CliError::Signals)?;
        let library = context.library()?;
        let mut arrivals = Arrivals::new(library.store());
        for (name, source) in named {
            arrivals.take(name, source, &stop).await?;
        }
        let staged = std::mem::take(&mut arrivals.staged);
        let files = staged.into_iter().map(|(name, staged)| {
            let kind = self.kind.unwrap_or_else(|| guess(staged.head()));
            let visibility = match self.private {
                true => Visibility::Private,
                false => Visibility::Undeclared,
            };
            let label = None;
            let claim = ClaimedFile { name, label, kind, visibility };
            (claim, staged)
        });
        let examined =
            async { Ok(intake.examine_all((&self.of.project, Uuid::nil()), &UploadRights::ALL, files).await?) };
        let files = unless_stopped(&stop, examined).await?;
        // `stop` does not cancel the publication: a partial one would stay in the store until the next sweep.
        let rows = library
            .publish(Publication {
                project: self.of.project.clone(),
                folder: self.folder.clone(),
                existing: self.existing(),
                replaceable: ChangeableFiles::All,
                files,
                uploader: None,
                upload: None,
            })
            .await?;
        let files: Vec<_> = rows.iter().map(|row| Whole::of(row, &context.links)).collect();
        context.context.output.answer(&files, |_| {
            let mut table = TextTable::new(["id", "file", "url"]);
            for row in &rows {
                table.row([row.id.to_string(), path_of(row), payload::url(row, &context.links)]);
            }
            table.to_string()
        })
    }

    fn existing(&self) -> Existing {
        match self.update {
            true => Existing::IsReplaced,
            false => Existing::Stays,
        }
    }

    fn named(&self, max: usize) -> Result<Vec<(MediaName, InputFile)>, CliError> {
        let usage = |message: String, hint: &str| CliError::Usage { message, hint: Some(hint.to_owned()) };
        if self.files.len() > max {
            let message = format!("{} files are more than the maximum of one upload, {max}", self.files.len());
            return Err(usage(message, "put them in several times, or raise upload_max_items"));
        }
        if self.name.is_some() && self.files.len() > 1 {
            let message = "--name is for one file".to_owned();
            return Err(usage(message, "put the files in one by one, or without --name"));
        }
        let mut named: Vec<(MediaName, InputFile)> = Vec::with_capacity(self.files.len());
        for path in &self.files {
            let source = InputFile::of(path);
            source.size()?;
            let name = match &self.name {
                Some(name) => name.clone(),
                None => source.name()?,
            };
            if named.iter().any(|(taken, _)| *taken == name) {
                let message = format!("two of the files are called {name}");
                return Err(usage(message, "put them into different folders, or name one by --name"));
            }
            named.push((name, source));
        }
        Ok(named)
    }

    /// Fails if a name is taken, before any file is read. Publishing checks the names again.
    async fn check_names(&self, context: &MediaContext<'_>, named: &[(MediaName, InputFile)]) -> Result<(), CliError> {
        if self.update {
            return Ok(());
        }
        let names: Vec<_> = named.iter().map(|(name, _)| name.clone()).collect();
        match context.table.taken(&self.of.project, &self.folder, &names).await? {
            Some(name) => Err(crate::database::media::exists(&self.folder, &name).into()),
            None => Ok(()),
        }
    }
}

fn guess(head: &[u8]) -> MediaKind {
    match sniff(head) {
        Some(sniffed) if sniffed.kind == MediaKind::Image && sniffed.image.is_none() => MediaKind::File,
        Some(sniffed) => sniffed.kind,
        None => MediaKind::File,
    }
}

struct Arrivals<'a> {
    store: &'a Store,
    staged: Vec<(MediaName, Staged)>,
    paths: Vec<PathBuf>,
}

impl<'a> Arrivals<'a> {
    fn new(store: &'a Store) -> Self {
        Self { store, staged: Vec::new(), paths: Vec::new() }
    }

    async fn take(&mut self, name: MediaName, source: InputFile, stop: &CancellationToken) -> Result<(), CliError> {
        let progress = Progress::new(name.as_str(), source.size()?);
        let mut pieces = source.read()?;
        let mut staging = self.store.stage();
        let outcome = loop {
            let piece = tokio::select! {
                piece = pieces.next() => piece,
                () = stop.cancelled() => Err(stopped()),
            };
            match piece {
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
                Ok(Some(piece)) => {
                    staging.write(&piece).await?;
                    progress.advance(piece.len());
                }
            }
        };
        // After an error too, because only `finish` returns the path, which is needed to remove the file.
        let staged = staging.finish().await?;
        self.paths.push(staged.path().to_owned());
        outcome?;
        self.staged.push((name, staged));
        Ok(())
    }
}

impl Drop for Arrivals<'_> {
    fn drop(&mut self) {
        for path in &self.paths {
            // A published file has been moved. If the removal fails, the next sweep removes the file.
            let _ = remove_file(path);
        }
    }
}
