//! `selkie media rm`: finds all files first, then removes them.

use clap::Args;
use serde::Serialize;

use super::target::FileArgument;
use super::{MediaContext, OfProject, path_of};
use crate::cli::CliError;
use crate::cli::system::note;
use crate::database::media::{ChangeableFiles, MediaRow};

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The files: ids, or folder/name; a name of digits alone is written with a / before it
    #[arg(value_name = "ID|PATH", required = true)]
    files: Vec<FileArgument>,
    #[command(flatten)]
    of: OfProject,
}

#[derive(Serialize)]
struct Removed {
    id: u64,
    name: String,
    folder: String,
    #[serde(skip)]
    path: String,
}

impl RemoveArgs {
    pub(super) async fn run(self, context: &MediaContext<'_>) -> Result<(), CliError> {
        let mut rows: Vec<MediaRow> = Vec::with_capacity(self.files.len());
        for target in &self.files {
            let row = context.find(&self.of.project, target).await?;
            if rows.iter().all(|known| known.id != row.id) {
                rows.push(row);
            }
        }
        let library = context.library()?;
        let mut removed = Vec::with_capacity(rows.len());
        let mut outcome = Ok(());
        for row in rows {
            match library.delete(&self.of.project, row.id, ChangeableFiles::All).await {
                Ok(Some(row)) => removed.push(Removed {
                    id: row.id.get(),
                    name: row.name.to_string(),
                    folder: row.folder.to_string(),
                    path: path_of(&row),
                }),
                Ok(None) => note(&format!("{} was removed by another", path_of(&row))),
                Err(problem) => {
                    outcome = Err(problem.into());
                    break;
                }
            }
        }
        context.context.output.answer(&removed, |removed| {
            let lines = removed.iter();
            lines.map(|file| format!("{} (id {}) is removed\n", file.path, file.id)).collect()
        })?;
        outcome
    }
}
