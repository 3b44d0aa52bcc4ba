//! The binary `selkie`: runs [`origin::cli`] and exits with its code.

use std::process::ExitCode;
use std::time::Duration;

/// The maximum time by which work on the blocking thread pool may delay the exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(origin::cli::main(std::env::args_os()));
    // Waits for blocking work such as the removal of staged files, but not forever, since a read of standard input may
    // never end.
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    Ok(code)
}
