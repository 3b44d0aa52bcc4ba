//! `selkie media sweep`: deletes objects that are due, staged files of incomplete uploads, and orphaned objects.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::MediaContext;
use crate::cli::CliError;
use crate::media::library::SweepTerms;
use crate::media::store::Effect;

#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Delete; without it, only count
    #[arg(long)]
    delete: bool,
    /// Spare objects younger than this; a time shorter than an upload takes breaks running uploads
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    grace: Duration,
    /// Percent of the store's objects that may be deleted as orphans; up to 100 objects always may
    #[arg(long, value_name = "PERCENT", default_value = "50", value_parser = clap::value_parser!(u8).range(0..=100))]
    max_share: u8,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SweptAnswer {
    deleted: bool,
    due: u64,
    staged: u64,
    /// The number of objects older than `--grace` that no database row names.
    orphans: u64,
    objects: u64,
    /// The number of files that Selkie did not write and never deletes.
    strangers: u64,
}

impl SweepArgs {
    pub(super) async fn run(self, context: &MediaContext<'_>) -> Result<(), CliError> {
        let effect = match self.delete {
            true => Effect::Deletes,
            false => Effect::Counts,
        };
        let terms = SweepTerms { effect, grace: self.grace, share_max: self.max_share };
        let swept = context.library()?.sweep_all(terms).await?;
        let answer = SweptAnswer {
            deleted: self.delete,
            due: swept.due,
            staged: swept.staged,
            orphans: swept.orphans,
            objects: swept.objects,
            strangers: swept.strangers,
        };
        context.context.output.answer(&answer, text)
    }
}

fn text(swept: &SweptAnswer) -> String {
    let mut text = format!(
        "{} {} objects that were left over, {} of {} that nothing names, {} files that never arrived whole",
        if swept.deleted { "deleted" } else { "would delete" },
        swept.due,
        swept.orphans,
        swept.objects,
        swept.staged
    );
    if swept.strangers > 0 {
        text.push_str(&format!("; {} files in the store are none of Selkie's and stay", swept.strangers));
    }
    if !swept.deleted {
        text.push_str("; nothing was deleted: --delete does it");
    }
    text
}
