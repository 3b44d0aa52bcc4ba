//! The binary `selkie`: hands its arguments to [`origin::cli`], and its verdict to the shell.

use std::process::ExitCode;

/// Takes less of a request's time than the C library's, and gives memory back: docs/decisions/0137.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let code = runtime.block_on(origin::cli::main(std::env::args_os()));
    // What still runs on the blocking pool (a read of stdin, a slow disk) must not hold up the exit.
    runtime.shutdown_background();
    Ok(code)
}
