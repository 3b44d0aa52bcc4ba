//! `selkie import`: shows to which field each column goes, imports the rows, and reports those that were refused.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use shared::limits::BATCH_MAX_ROWS;

use super::export::FormatName;
use super::progress::Progress;
use super::system::{Consent, confirm, note};
use super::target::{ApiTarget, TargetArgs};
use super::{CliError, Context, TextTable};
use crate::signal;
use crate::transfer::{Conflict, Creation, Form, ImportOptions, ImportStart, Imported, Input, Job, TableRef};

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The table, such as demo.posts
    #[arg(value_name = "DATABASE.TABLE")]
    table: TableRef,
    /// The file, which may be compressed by gzip; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The form of the file [default: as its name ends, else as it begins]
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// The character between the cells of CSV [default: a comma; a tab for .tsv]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// The field that a column of CSV goes to; COLUMN= leaves the column out; may be repeated
    #[arg(long, value_name = "COLUMN=FIELD", value_parser = mapping, conflicts_with = "create")]
    map: Vec<(String, String)>,
    /// What happens to a row whose unique key exists: it updates that record, or is ignored [default: it is refused]
    #[arg(long, value_name = "update|ignore", value_parser = conflict)]
    on_conflict: Option<Conflict>,
    /// Create the table, with types that hold all values of the file, or of the first rows of standard input
    #[arg(long)]
    create: bool,
    /// Go on with an import that was broken off: no row is lost, and none is written twice
    #[arg(long)]
    resume: bool,
    /// The file for refused rows, with their lines and reasons [default: FILE.rejected.ndjson, without FILE's ending]
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Maximum rows of a request, all or none of which are written at once
    #[arg(long, value_name = "ROWS", default_value_t = BATCH_MAX_ROWS, value_parser = batch_rows)]
    batch_rows: usize,
    /// Don't ask, even if something is doubtful
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    target: TargetArgs,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "\\t" | "tab" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Ok(*byte),
            _ => Err("it must be one ASCII character and no quote, such as ';', or tab".to_owned()),
        },
    }
}

fn mapping(text: &str) -> Result<(String, String), String> {
    let (column, field) = text.split_once('=').ok_or("it must be a column and a field, such as title=headline")?;
    Ok((column.to_owned(), field.to_owned()))
}

fn conflict(text: &str) -> Result<Conflict, String> {
    let all = [Conflict::Update, Conflict::Ignore];
    all.into_iter().find(|choice| choice.as_str() == text).ok_or_else(|| "it must be update or ignore".to_owned())
}

fn batch_rows(text: &str) -> Result<usize, String> {
    let rows = text.parse().ok().filter(|rows| (1..=BATCH_MAX_ROWS).contains(rows));
    rows.ok_or_else(|| format!("it must be a number from 1 to {BATCH_MAX_ROWS}"))
}

#[derive(Serialize)]
struct ImportAnswer<'a> {
    table: String,
    imported: u64,
    unchanged: u64,
    refused: u64,
    rejects: Option<&'a PathBuf>,
}

impl ImportArgs {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let form = match (self.format, self.delimiter) {
            (Some(FormatName::Ndjson), Some(_)) => {
                let message = "--delimiter is for CSV, not for NDJSON".to_owned();
                return Err(CliError::Usage { message, hint: None });
            }
            (Some(FormatName::Ndjson), None) => Some(Form::NdJson),
            (_, Some(delimiter)) => Some(Form::Csv { delimiter }),
            (Some(FormatName::Csv), None) => Some(Form::Csv { delimiter: b',' }),
            (None, None) => None,
        };
        let input = Input::new(self.file);
        let stem = input.stem().unwrap_or_else(|| self.table.table.as_str().replace('/', "_"));
        let rejects = self.rejects.unwrap_or_else(|| format!("{stem}.rejected.ndjson").into());
        let consent = Consent::of(self.yes);
        let work = async |target: ApiTarget| {
            let options = ImportOptions {
                table: self.table,
                input,
                form,
                map: self.map,
                on_conflict: self.on_conflict,
                batch_rows: self.batch_rows,
                rejects,
                journal: format!("{stem}.import-journal").into(),
                start: if self.resume { ImportStart::Resume } else { ImportStart::New },
                creation: if self.create { Creation::Create } else { Creation::Exists },
                target: target.identity,
            };
            import(context, target.api, options, consent).await
        };
        self.target.run(context, work).await
    }
}

async fn import(
    context: &Context,
    api: crate::transfer::Api,
    options: ImportOptions,
    consent: Consent,
) -> Result<(), CliError> {
    let stop = signal::stop_token().map_err(CliError::Signals)?;
    let (input, table, rejects) = (options.input.clone(), options.table.to_string(), options.rejects.clone());
    let job = Job::prepare(api, options).await?;
    show(&job, &table);
    let doubts: Vec<&str> = job.doubts().iter().map(|doubt| doubt.0.as_str()).collect();
    if !doubts.is_empty() {
        confirm(consent, &format!("Something is doubtful: {}.", doubts.join("; ")), "import")?;
    }
    let bar = Progress::new(&table, input.size());
    let shown = |so_far: Imported| {
        let rows = so_far.imported + so_far.unchanged + so_far.refused;
        bar.set(input.bytes_read(), format!("{rows} rows, {} refused", so_far.refused));
    };
    let done = job.run(&stop, shown).await;
    drop(bar);
    let Imported { imported, unchanged, refused } = done?;
    let answer = ImportAnswer { table, imported, unchanged, refused, rejects: (refused > 0).then_some(&rejects) };
    context.output.answer(&answer, |answer| {
        let unchanged = if unchanged > 0 { format!("; rows left as they were: {unchanged}") } else { String::new() };
        format!("rows imported into {}: {imported}{unchanged}", answer.table)
    })?;
    match refused {
        0 => Ok(()),
        count => Err(CliError::RowsRefused { count, file: rejects }),
    }
}

fn show(job: &Job, table: &str) {
    let (rows, is_whole) = job.rows_seen();
    let which = if is_whole { "all" } else { "the first" };
    note(&format!("columns of the file, values of {which} {rows} rows, and fields of {table}:"));
    let mut lines = TextTable::new(["column", "values", "field", "type"]);
    for column in job.columns() {
        let (field, of_type) = column.field.clone().unwrap_or_else(|| ("(left out)".to_owned(), String::new()));
        lines.row([column.column.clone(), column.values.to_owned(), field, of_type]);
    }
    note(lines.to_string().trim_end());
    if let Some(statement) = job.create_statement() {
        note(statement);
    }
}
