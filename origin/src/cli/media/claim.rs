//! `selkie media claim`: marks the media store as belonging to this installation, after confirmation.

use clap::Args;
use serde::Serialize;

use super::MediaContext;
use crate::cli::CliError;
use crate::cli::system::{Consent, confirm};
use crate::media::library::Ownership;

#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// Don't ask for confirmation
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Claimed {
    claimed: bool,
}

impl ClaimArgs {
    pub(super) async fn run(self, context: &MediaContext<'_>) -> Result<(), CliError> {
        let library = context.library()?;
        let before = match library.ownership().await? {
            Ownership::Own => None,
            Ownership::Unmarked => Some("has no mark"),
            Ownership::Another => Some("is marked as another installation's"),
        };
        if let Some(before) = before {
            let warning = format!(
                "The media store {before}. Once it is this installation's, a sweep deletes all objects in it that this \
                 database does not name."
            );
            confirm(Consent::of(self.yes), &warning, "claim")?;
            library.take_over_store().await?;
        }
        let claimed = before.is_some();
        context.context.output.answer(&Claimed { claimed }, |_| {
            let text = match claimed {
                true => "the media store is this installation's now",
                false => "the media store is this installation's already",
            };
            text.to_owned()
        })
    }
}
