//! `selkie console`: the address of the console.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use clap::Args;
use serde::Serialize;

use super::system::note;
use super::{CliError, Context};
use crate::config::{Config, ConsoleConfig};

#[derive(Debug, Args)]
pub struct ConsoleArgs {
    /// Open the console in this machine's browser too
    #[arg(long)]
    open: bool,
}

#[derive(Serialize)]
struct Answer {
    url: String,
}

impl ConsoleArgs {
    /// Prints the console's address, without contacting the service.
    ///
    /// # Errors
    /// The answer can't be written.
    pub fn run(&self, context: &Context) -> Result<(), CliError> {
        let url = address(&context.config);
        match context.config.console {
            ConsoleConfig::Served => note("sign in with a key, such as one of: selkie key create --access full"),
            ConsoleConfig::Off => note("the setting console is off: nothing is served at this address"),
        }
        if self.open && !is_opened(&url) {
            note("no browser could be started: open the address yourself");
        }
        context.output.answer(&Answer { url }, |answer| answer.url.clone())
    }
}

/// Returns the console's address: that of `public_url`, else of this machine.
fn address(config: &Config) -> String {
    let base = config.public_url.as_ref().map(|url| url.as_str().to_owned());
    let own = || {
        let ip = match config.listen.ip() {
            ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        format!("http://{}", SocketAddr::new(ip, config.listen.port()))
    };
    format!("{}/console", base.unwrap_or_else(own))
}

fn is_opened(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
