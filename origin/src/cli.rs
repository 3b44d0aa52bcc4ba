//! The command line: every command with its arguments, and code that the commands share. Each command has its own file
//! under `cli/`. Knows no SQL and no HTTP.

pub mod backup;
pub mod changes;
pub mod completions;
pub mod config;
pub mod console;
pub mod database;
pub mod dev;
pub mod doctor;
pub mod edge;
mod error;
pub mod export;
pub mod import;
pub mod init;
pub mod issuer;
pub mod key;
pub mod man;
pub mod media;
mod output;
mod progress;
pub mod project;
pub mod role;
pub mod serve;
mod system;
mod target;
pub mod types;
pub mod webhook;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use self::error::CliError;
pub use self::output::{OutputFormat, TextTable};
use crate::config::{Config, ConfigError, Layers, SETTINGS, Setting, Sources, Visibility};
use crate::system::installation::{Installation, Purpose};

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3 imported, but rows were refused.\n\
    Every setting may also stand in the environment (SELKIE_…) or in selkie.toml; \
    flags come first, then the environment, then the file. `selkie config` shows what is in force.";

/// A JSON API over MariaDB.
#[derive(Debug, Parser)]
#[command(name = "selkie", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
struct Cli {
    /// Answer in JSON
    #[arg(long, global = true)]
    json: bool,
    /// The configuration file [env: SELKIE_CONFIG] [default: selkie.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Run the origin
    Serve(serve::ServeArgs),
    /// Run everything on this machine: a private MariaDB, the origin, the edge, and a demo database
    Dev(dev::DevArgs),
    /// Create an installation: its secret, its private MariaDB unless another is named, and the system schema
    Init,
    /// Issue, list and revoke keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Print what the edge must be configured with
    #[command(subcommand)]
    Edge(edge::EdgeCommand),
    /// Set, list, show, check and remove roles: what keys may do that are neither full nor read
    #[command(subcommand)]
    Role(role::RoleCommand),
    /// Add, list and remove issuers of tokens: who signs in the users of a project
    #[command(subcommand)]
    Issuer(issuer::IssuerCommand),
    /// Create, list and remove projects
    #[command(subcommand)]
    Project(project::ProjectCommand),
    /// Create, adopt, release, list and drop a project's databases
    #[command(subcommand)]
    Database(database::DatabaseCommand),
    /// Put, get, list, sign and remove media files; delete orphaned objects from the media store
    #[command(subcommand)]
    Media(media::MediaCommand),
    /// Import rows from a CSV or NDJSON file into a table
    Import(Box<import::ImportArgs>),
    /// Export a table's rows as CSV or NDJSON
    Export(Box<export::ExportArgs>),
    /// Print the changes of a table as NDJSON, as they are committed, until it is stopped
    Changes(Box<changes::ChangesArgs>),
    /// Make, change, list, pause, test and remove webhooks, which send the changes of tables to endpoints
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Print a link to the console, the web page to work with the data; it signs in once, within a minute
    Console(console::ConsoleArgs),
    /// Print the types of a project's tables in TypeScript, Python or Rust
    Types(types::TypesArgs),
    /// Save databases and media to a directory or a bucket, while the installation runs
    Backup(backup::BackupArgs),
    /// Restore a backup into an empty installation
    Restore(backup::RestoreArgs),
    /// Check the installation and say how to fix it
    Doctor,
    /// Show the configuration in force, and where each value comes from
    Config(config::ConfigArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Write the man pages of all commands into a directory
    Man(man::ManArgs),
    /// Run a program, and end it with all its child processes when standard input is closed
    #[command(hide = true)]
    Guard(dev::GuardArgs),
}

#[derive(Debug)]
pub struct Context {
    pub config: Config,
    pub output: OutputFormat,
}

impl Context {
    /// Opens the installation, which the caller must close.
    pub async fn open(&self) -> Result<Installation, CliError> {
        Ok(Installation::open(&self.config, Purpose::Command).await?)
    }
}

pub async fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches).map(|cli| (cli, matches)));
    let outcome = match parsed {
        Ok((cli, matches)) => Box::pin(run(cli, &matches)).await,
        Err(error) => return usage(&error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.report();
            error.exit_code()
        }
    }
}

async fn run(cli: Cli, matches: &ArgMatches) -> Result<(), CliError> {
    // These commands must also work without a valid configuration.
    let command = match cli.command {
        CliCommand::Completions(args) => return args.run(),
        CliCommand::Man(args) => return args.run(),
        CliCommand::Guard(args) => return args.run().await,
        command => command,
    };
    let layers = Layers::read(sources(cli.config, matches)?)?;
    for variable in &layers.unknown_variables {
        system::note(&format!("selkie: warning: {variable}"));
    }
    let context = Context { config: Config::from_layers(&layers)?, output: OutputFormat::new(cli.json) };
    match command {
        CliCommand::Serve(args) => args.run(&context).await,
        CliCommand::Dev(args) => args.run(&context).await,
        CliCommand::Init => init::run(&context).await,
        CliCommand::Key(args) => args.run(&context).await,
        CliCommand::Edge(args) => args.run(&context),
        CliCommand::Role(args) => args.run(&context).await,
        CliCommand::Issuer(args) => args.run(&context).await,
        CliCommand::Project(args) => args.run(&context).await,
        CliCommand::Database(args) => args.run(&context).await,
        CliCommand::Media(args) => args.run(&context).await,
        CliCommand::Import(args) => Box::pin(args.run(&context)).await,
        CliCommand::Export(args) => Box::pin(args.run(&context)).await,
        CliCommand::Changes(args) => Box::pin(args.run(&context)).await,
        CliCommand::Webhook(args) => Box::pin(args.run(&context)).await,
        CliCommand::Console(args) => args.run(&context).await,
        CliCommand::Types(args) => args.run(&context).await,
        CliCommand::Backup(args) => args.run(&context).await,
        CliCommand::Restore(args) => args.run(&context).await,
        CliCommand::Doctor => doctor::run(&context).await,
        CliCommand::Config(args) => args.run(&context, &layers),
        CliCommand::Completions(args) => args.run(),
        CliCommand::Man(args) => args.run(),
        CliCommand::Guard(args) => args.run().await,
    }
}

fn command() -> clap::Command {
    let settings = SETTINGS.iter().filter(|setting| setting.has_flag()).map(|setting| {
        let default = setting.default.map_or_else(String::new, |text| format!(" [default: {text}]"));
        Arg::new(setting.name)
            .long(setting.flag())
            .value_name(setting.value_name)
            .help(format!("{} [env: {}]{default}", setting.help, setting.variable()))
            .help_heading("Settings")
            .hide_short_help(true)
            .global(true)
    });
    Cli::command().args(settings)
}

fn sources(file: Option<PathBuf>, matches: &ArgMatches) -> Result<Sources, CliError> {
    let flags: BTreeMap<&'static str, String> = SETTINGS
        .iter()
        .filter(|setting| setting.has_flag())
        .filter(|setting| matches.value_source(setting.name) == Some(ValueSource::CommandLine))
        .filter_map(|setting| {
            let text = matches.get_one::<String>(setting.name)?;
            Some((setting.name, text.clone()))
        })
        .collect();
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with("SELKIE_") || name.starts_with("OTEL_"))
        .map(|(name, value)| match value.into_string() {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(ConfigError::NotUtf8 { name }),
        })
        .collect::<Result<_, _>>()?;
    Ok(Sources { flags, environment, file, directory: std::env::current_dir().map_err(CliError::WorkingDirectory)? })
}

fn usage(error: &clap::Error) -> ExitCode {
    if let Some(setting) = secret_flag(error) {
        let error = CliError::Usage {
            message: format!(
                "there is no flag --{}: every user of this machine can read the arguments of a program",
                setting.flag()
            ),
            hint: Some(format!("set {}", setting.spellings())),
        };
        error.report();
        return error.exit_code();
    }
    // An error is ignored: the reader of the help has probably closed the pipe.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(error::USAGE),
    }
}

/// Returns the secret setting that was given as a flag, though secret settings have no flags.
fn secret_flag(error: &clap::Error) -> Option<&'static Setting> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let name = given.strip_prefix("--")?;
    SETTINGS.iter().filter(|setting| setting.visibility == Visibility::Secret).find(|setting| setting.flag() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn the_unit_of_systemd_runs_a_command_with_settings_that_exist() {
        let unit = include_str!("../../packaging/debian/selkie.service");
        let values = |name: &str| -> Vec<&str> { unit.lines().filter_map(|line| line.strip_prefix(name)).collect() };
        let run = values("ExecStart=")[0].strip_prefix("/usr/bin/").unwrap();
        assert!(command().try_get_matches_from(run.split(' ')).is_ok(), "{run}");
        let variables: Vec<String> =
            SETTINGS.iter().flat_map(|setting| [Some(setting.variable()), setting.file_variable()]).flatten().collect();
        // Examples that are commented out are checked too.
        for line in values("Environment=").into_iter().chain(values("#   Environment=")) {
            let (name, _) = line.split_once('=').unwrap();
            assert!(name == "SELKIE_CONFIG" || variables.iter().any(|variable| variable == name), "{line}");
        }
    }

    #[test]
    fn every_shell_has_a_completion_script() {
        for shell in clap_complete::Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command(), "selkie", &mut script);
            assert!(String::from_utf8_lossy(&script).contains("selkie"), "{shell}");
        }
    }

    #[test]
    fn a_flag_counts_before_and_after_the_command() {
        for line in ["selkie --pool-size 3 serve", "selkie serve --pool-size 3"] {
            let matches = command().try_get_matches_from(line.split(' ')).unwrap();
            let sources = sources(None, &matches).unwrap();
            assert_eq!(sources.flags.get("pool_size").map(String::as_str), Some("3"), "{line}");
        }
    }

    #[test]
    fn no_secret_setting_has_a_flag_and_one_given_is_answered_with_the_other_ways() {
        let secret = |setting: &&Setting| setting.visibility == Visibility::Secret;
        let names: Vec<&str> = SETTINGS.iter().filter(secret).map(|row| row.name).collect();
        let expected =
            ["database_url", "replica_url", "secret", "media_s3_access_key", "media_s3_secret_key", "otlp_headers"];
        assert_eq!(names, expected);
        for setting in SETTINGS.iter().filter(secret) {
            let flag = format!("--{}", setting.flag());
            for line in [vec!["selkie", "serve", &flag, "x"], vec!["selkie", &format!("{flag}=x"), "key", "list"]] {
                let refused = command().try_get_matches_from(&line).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::UnknownArgument, "{line:?}");
                let found = secret_flag(&refused).map(|found| found.name);
                assert_eq!(found, Some(setting.name), "{line:?}");
            }
        }
    }
}
