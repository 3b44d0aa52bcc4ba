//! Load and comparison: what a request costs through Selkie, compared with the bare driver without HTTP and with an
//! axum server written by hand for exactly these requests.
//!
//! Everything runs on this machine's loopback, with one private MariaDB with default settings. All contenders are
//! measured in the same run, in turn (A B A B …), because absolute figures vary with other load of the machine. Medians
//! are printed; their ratios are what matters.

#![allow(clippy::disallowed_methods, reason = "an answer of another type ends a measurement, by a panic as well")]

mod accounting;
mod arguments;
mod changes;
mod compare;
mod data;
mod edge;
mod floor;
mod growth;
mod handwritten;
mod http;
mod load;
mod machine;
mod mariadb;
mod pace;
mod peers;
mod report;
mod request;
mod role;
mod sample;
mod selkie;
mod uploads;
mod workload;

use clap::Parser as _;
use machines::process;

use arguments::{Arguments, Command};

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match arguments.command {
        Some(Command::ServeHandwritten(serve)) => runtime.block_on(handwritten::serve(serve)),
        Some(Command::ServeHello { listen }) => runtime.block_on(handwritten::serve_hello(listen)),
        Some(Command::Uploads(uploads)) => runtime.block_on(async {
            tokio::select! {
                result = uploads::run(&uploads) => result,
                () = process::interrupted() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
        Some(Command::Edge(edge)) => runtime.block_on(async {
            tokio::select! {
                result = edge::run(&edge) => result,
                () = process::interrupted() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
        Some(Command::Changes(changes)) => runtime.block_on(async {
            tokio::select! {
                result = changes::run(&changes) => result,
                () = process::interrupted() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
        Some(Command::Growth(growth)) => runtime.block_on(async {
            tokio::select! {
                result = growth::run(&growth) => result,
                () = process::interrupted() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
        command @ (Some(Command::Peers(_)) | None) => runtime.block_on(async {
            let compare = match command {
                Some(Command::Peers(peers)) => peers.with_peers(),
                _ => arguments.compare,
            };
            tokio::select! {
                result = compare::run(compare) => result,
                // Dropping the comparison stops the processes that it started.
                () = process::interrupted() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
    }
}
