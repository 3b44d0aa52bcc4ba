//! `selkie export`: writes a table's rows to standard output.

use std::io::{self, BufWriter, Write as _};

use clap::{Args, ValueEnum};
use serde_json::Value;
use shared::format::Format;

use super::progress::Progress;
use super::target::TargetArgs;
use super::{CliError, Context};
use crate::transfer::{Export, TableRef, export};

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The table, such as demo.posts
    #[arg(value_name = "DATABASE.TABLE")]
    table: TableRef,
    /// The form of the rows
    #[arg(long, value_enum, default_value = "csv")]
    format: FormatName,
    /// Only the rows that these conditions allow, as the option `query` of the API: '{"category": "sea"}'
    #[arg(long, value_name = "JSON", value_parser = json)]
    query: Option<Value>,
    /// The fields [default: all but those that MariaDB computes]
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',')]
    select: Vec<String>,
    /// The fields that order the rows; - before a field is descending
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',', allow_hyphen_values = true)]
    order: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatName {
    Csv,
    Ndjson,
}

pub(super) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))
}

impl ExportArgs {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let Self { table, format, query, select, order, target } = self;
        let format = match format {
            FormatName::Csv => Format::Csv,
            FormatName::Ndjson => Format::NdJson,
        };
        let progress = Progress::new(&table.to_string(), None);
        let what = Export { table, format, query, select, order };
        let work = async |target: super::target::ApiTarget| {
            // A lock held across an `await` would not be `Send`, so each write locks. The response comes in large
            // parts.
            let mut out = BufWriter::new(io::stdout());
            export(&target.api, what, &mut out, |bytes| progress.advance(bytes)).await?;
            out.flush().map_err(CliError::Output)
        };
        target.run(context, work).await
    }
}
