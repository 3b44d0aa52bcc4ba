//! The binary `selkie`: runs [`origin::cli`] and exits with its code.

use std::process::ExitCode;
use std::time::Duration;

/// The time limit at exit for work on the blocking thread pool, such as the removal of staged files: a read of standard
/// input may never end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(origin::cli::main(std::env::args_os()));
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    Ok(code)
}
