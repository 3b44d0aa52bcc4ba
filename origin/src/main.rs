//! The binary `selkie`: hands its arguments to [`origin::cli`], and its verdict to the shell.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let code = runtime.block_on(origin::cli::main(std::env::args_os()));
    // What still runs on the blocking pool (a read of stdin, a slow disk) must not hold up the exit.
    runtime.shutdown_background();
    Ok(code)
}
