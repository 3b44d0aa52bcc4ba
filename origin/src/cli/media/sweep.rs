//! `selkie media sweep`: what crashes left, in the ledger, among the staged files, and in the store.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::Shelf;
use crate::cli::CliError;

#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    /// Leave what is younger; one shorter than uploads take breaks those that are on their way
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    grace: Duration,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SweptAnswer {
    /// Objects that were known to be left over.
    due: u64,
    /// Files that never arrived whole.
    staged: u64,
    /// Objects that nothing names.
    orphans: u64,
    /// Files in the store that are none of ours: they stay.
    strangers: u64,
}

impl SweepArgs {
    pub(super) async fn run(self, shelf: &Shelf<'_>) -> Result<(), CliError> {
        let swept = shelf.library.sweep_all(self.grace).await?;
        let answer = SweptAnswer {
            due: swept.due,
            staged: swept.staged,
            orphans: swept.orphans,
            strangers: swept.strangers,
        };
        shelf.context.output.answer(&answer, text)
    }
}

fn text(swept: &SweptAnswer) -> String {
    let mut text = format!(
        "deleted {} objects that were left over, {} that nothing names, {} files that never arrived whole",
        swept.due, swept.orphans, swept.staged
    );
    if swept.strangers > 0 {
        text.push_str(&format!(
            "; {} files in the store are none of Selkie's and stay",
            swept.strangers
        ));
    }
    text
}
