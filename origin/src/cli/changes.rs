//! `selkie changes`: writes the changes of a table to standard output, one in each line, until it is stopped.

use std::io::{self, BufWriter};

use clap::Args;
use serde_json::Value;

use super::export::json;
use super::system::note;
use super::target::{ApiTarget, TargetArgs};
use super::{CliError, Context};
use crate::signal;
use crate::transfer::{Follower, TableRef};

#[derive(Debug, Args)]
pub struct ChangesArgs {
    /// The table, such as demo.posts
    #[arg(value_name = "DATABASE.TABLE")]
    table: TableRef,
    /// Go on after this token, the `next` of an earlier line [default: from now on]
    #[arg(long, value_name = "TOKEN")]
    since: Option<String>,
    /// Begin with every record as it is now. If changes are missing, print a line of the type `resync` and begin again
    /// with every record. With --since, print the records only in that case
    #[arg(long)]
    snapshot: bool,
    /// Only records that fulfil these conditions, as the option `query` of the API: '{"category": "sea"}'
    #[arg(long, value_name = "JSON", value_parser = json)]
    query: Option<Value>,
    /// The fields [default: all]
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',')]
    select: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
}

impl ChangesArgs {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let Self { table, since, snapshot, query, select, target } = self;
        let stop = signal::stop_token().map_err(CliError::Signals)?;
        let mut follower = Follower::new(table, since);
        (follower.snapshot, follower.query, follower.select) = (snapshot, query, select);
        let work = async |target: ApiTarget| {
            let mut out = BufWriter::new(io::stdout());
            tokio::select! {
                outcome = follower.run(&target.api, &mut out) => outcome.map_err(CliError::from),
                () = stop.cancelled() => Ok(()),
            }
        };
        let outcome = target.run_for(context, None, work).await;
        if let Some(token) = follower.token() {
            note(&format!("selkie: go on by --since {token}"));
        }
        outcome
    }
}
