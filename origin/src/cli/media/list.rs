//! `selkie media ls`: lists files.

use clap::Args;
use shared::limits::MEDIA_LIST_MAX_ITEMS;
use shared::media::{FolderPath, MediaKind, MediaName};
use shared::operation::media::MediaList;

use super::put::{folder, kinds, name};
use super::{MediaContext, OfProject, path_of};
use crate::cli::system::{note, time};
use crate::cli::{CliError, TextTable};
use crate::database::media::{MediaRow, ReadableFiles};
use crate::media::payload::Whole;

#[derive(Debug, Args)]
pub struct ListArgs {
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

/// The maximum page number. With a larger one, the offset would not fit MariaDB's integers.
const PAGES_MAX: u64 = u32::MAX as u64;

impl ListArgs {
    pub(super) async fn run(self, context: &MediaContext<'_>) -> Result<(), CliError> {
        context.system.projects.require(&self.of.project).await?;
        let mut list =
            MediaList { folder: self.folder, kind: self.kind, name: self.name, count: true, ..MediaList::default() };
        list.span.limit = Some(self.limit);
        list.span.offset = self.limit * (self.page - 1);
        let offset = list.span.offset;
        let (rows, count) = context.table.list(&self.of.project, &list, &ReadableFiles::All).await?;
        let files: Vec<_> = rows.iter().map(|row| Whole::of(row, &context.links)).collect();
        context.context.output.answer(&files, |_| text(&rows))?;
        let count = count.unwrap_or_default();
        if offset + self.limit < count {
            let (shown, next) = (rows.len(), self.page + 1);
            note(&format!("{shown} of {count} files; --page {next} shows more"));
        }
        Ok(())
    }
}

fn text(rows: &[MediaRow]) -> String {
    let mut table = TextTable::new(["id", "size", "type", "private", "created", "file"]);
    for row in rows {
        table.row([
            row.id.to_string(),
            indicatif::BinaryBytes(row.original.size).to_string(),
            row.kind.as_str().to_owned(),
            if row.private { "yes" } else { "no" }.to_owned(),
            time(row.created_at),
            path_of(row),
        ]);
    }
    table.to_string()
}
