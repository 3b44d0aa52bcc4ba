//! The binary `selkie`: runs [`origin::cli`] and exits with its code.

use std::process::ExitCode;
use std::time::Duration;

/// Longest delay of the exit by work on the blocking pool.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(origin::cli::main(std::env::args_os()));
    // Lets blocking work end, such as the removal of staged files, but doesn't wait forever for a read of stdin.
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    Ok(code)
}
