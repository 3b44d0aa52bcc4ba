//! `selkie console`: prints the address of the console, as a link that signs in once.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use clap::Args;
use serde::Serialize;
use shared::ident::ProjectName;
use uuid::Uuid;

use super::system::{Opened, note, project};
use super::{CliError, Context};
use crate::config::{Config, ConsoleConfig};
use crate::process::withhold_secrets;
use crate::system::keys::LINK_LIFETIME;

#[derive(Debug, Args)]
pub struct ConsoleArgs {
    /// Open the console in this machine's browser too
    #[arg(long)]
    open: bool,
    /// The project for which the link gives a full key
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
    /// Print the address alone, without a link: it needs no database
    #[arg(long)]
    no_link: bool,
}

#[derive(Serialize)]
struct LinkAnswer {
    url: String,
}

impl ConsoleArgs {
    /// Prints the link without contacting the running service: this process signs it with the newest signing key, whose
    /// name is read from MariaDB.
    pub async fn run(&self, context: &Context) -> Result<(), CliError> {
        let mut url = address(&context.config);
        match context.config.console {
            ConsoleConfig::Off => note("the setting console is off: nothing is served at this address"),
            ConsoleConfig::Served if self.no_link => {
                note("sign in with a key, such as one of: selkie key create --access full");
            }
            ConsoleConfig::Served => {
                let opened = Opened::migrated(context).await?;
                let link = opened.system.keys.link(&self.project).await.map_err(CliError::from);
                // The token is in the URL's fragment, which browsers don't send to the server.
                url = format!("{url}#link={}", opened.close(link).await?);
                let seconds = LINK_LIFETIME.as_secs();
                note(&format!(
                    "the link signs in once, within {seconds} seconds, with a full key of project {}",
                    self.project
                ));
            }
        }
        if self.open {
            let opened = if url.contains('#') { redirection(&url) } else { Ok(url.clone()) };
            if !opened.is_ok_and(|address| is_opened(&address)) {
                note("no browser could be started: open the address yourself");
            }
        }
        context.output.answer(&LinkAnswer { url }, |answer| answer.url.clone())
    }
}

/// Returns the console's address. An unspecified IP address of `listen` becomes 127.0.0.1.
fn address(config: &Config) -> String {
    let base = config.public_url.as_ref().map(|url| url.as_str().to_owned());
    let own = || {
        let ip = match config.listen.ip() {
            ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", SocketAddr::new(ip, config.listen.port()))
    };
    format!("{}/console", base.unwrap_or_else(own))
}

/// Writes the link to a file that only this user may read, while every user of the machine may read the arguments of a
/// browser. The file stays, because a browser may read it at any later time; the link soon expires.
fn redirection(url: &str) -> io::Result<String> {
    let path = std::env::temp_dir().join(format!("selkie-console-{}.html", Uuid::now_v7()));
    let url = url.replace('&', "&amp;").replace('"', "&quot;");
    let page =
        format!("<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={url}\">\n");
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?.write_all(page.as_bytes())?;
    Ok(path.display().to_string())
}

fn is_opened(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    withhold_secrets(&mut command);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
