//! The binary `selkie`: hands its arguments to [`origin::cli`], and its verdict to the shell.

use std::process::ExitCode;
use std::time::Duration;

/// Longest that work on the blocking pool delays the exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(origin::cli::main(std::env::args_os()));
    // Work on the blocking pool ends first, such as the removal of staged files; a read of stdin can't hold up the exit.
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    Ok(code)
}
