//! `selkie media sign`: prints a signed URL of a file.

use std::time::Duration;

use clap::Args;
use shared::operation::media::SignedFor;

use super::target::FileArgument;
use super::{MediaContext, OfProject};
use crate::cli::CliError;
use crate::cli::system::note;
use crate::clock::now;
use crate::media::payload::Signed;

#[derive(Debug, Args)]
pub struct SignArgs {
    /// The file: its id, or folder/name
    #[arg(value_name = "ID|PATH")]
    file: FileArgument,
    /// How long the URL is valid, as 30m or 7d; a week at most
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = valid_for)]
    expires: SignedFor,
    #[command(flatten)]
    of: OfProject,
}

fn valid_for(text: &str) -> Result<SignedFor, String> {
    let time: Duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    SignedFor::new(time.as_secs()).map_err(|problem| problem.message().to_owned())
}

impl SignArgs {
    pub(super) async fn run(self, context: &MediaContext<'_>) -> Result<(), CliError> {
        let row = context.find(&self.of.project, &self.file).await?;
        let signature = context.system.signer.sign((row.id, &row.path()), now(), self.expires);
        let answer = Signed::of(&row, &context.links, &signature);
        note(&format!("valid until {}", answer.expires_at));
        if !row.private {
            note("the file is public: anybody may read it without a signature");
        }
        if context.context.config.public_url.is_none() {
            note("the URL has no host: set public_url to where callers reach the service");
        }
        // Only the URL goes to standard output, so that the output can be piped.
        context.context.output.answer(&answer, |answer| answer.url.clone())
    }
}
