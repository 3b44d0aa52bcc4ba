//! `selkie media ls`: lists files.

use clap::Args;
use shared::limits::MEDIA_LIST_MAX_ITEMS;
use shared::media::{FolderPath, MediaKind, MediaName};
use shared::operation::media::MediaList;

use super::line::{FileLine, format_table};
use super::put::{folder, kinds, name};
use super::{MediaContext, OfProject};
use crate::cli::CliError;
use crate::cli::system::note;
use crate::database::media::ReadableFiles;

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only files directly in this folder; / is the root [default: all folders]
    #[arg(value_name = "FOLDER", value_parser = folder)]
    folder: Option<FolderPath>,
    #[command(flatten)]
    of: OfProject,
    /// Only files of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = kinds())]
    kind: Option<MediaKind>,
    /// Only files of exactly this name
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<MediaName>,
    /// Files per page
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=MEDIA_LIST_MAX_ITEMS))]
    limit: u64,
    /// The page, counted from 1
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=PAGES_MAX))]
    page: u64,
}

/// With a larger page number, the offset would not fit MariaDB's integers.
const PAGES_MAX: u64 = u32::MAX as u64;

impl ListArgs {
    pub(super) async fn run(self, context: &MediaContext<'_>) -> Result<(), CliError> {
        context.system.projects.require(&self.of.project).await?;
        let mut list =
            MediaList { folder: self.folder, kind: self.kind, name: self.name, count: true, ..MediaList::default() };
        list.span.limit = Some(self.limit);
        list.span.offset = self.limit * (self.page - 1);
        let offset = list.span.offset;
        let found = context.table.list(&self.of.project, &list, &ReadableFiles::All).await;
        let (rows, count) = found.map_err(|error| error.into_problem())?;
        let lines: Vec<_> = rows.iter().map(|row| FileLine::of(row, &context.links)).collect();
        context.context.output.answer(&lines, |lines| format_table(lines))?;
        let count = count.unwrap_or_default();
        if offset + self.limit < count {
            let (shown, next) = (lines.len(), self.page + 1);
            note(&format!("{shown} of {count} files; --page {next} shows more"));
        }
        Ok(())
    }
}
