//! `selkie man DIR`: writes a man page for each command that is not hidden. Only the page of `selkie` lists the
//! settings.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;

use super::CliError;

#[derive(Debug, Args)]
pub struct ManArgs {
    /// The directory, which is created if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl ManArgs {
    pub(super) fn run(self) -> Result<(), CliError> {
        let written = fs::create_dir_all(&self.directory).and_then(|()| {
            let pages = pages()?;
            pages.iter().try_for_each(|(name, page)| fs::write(self.directory.join(name), page))
        });
        written.map_err(|source| CliError::Failed {
            message: format!("the man pages can't be written into {}: {source}", self.directory.display()),
            hint: None,
        })
    }
}

fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = Vec::new();
    collect(super::command(), None, &mut pages)?;
    Ok(pages)
}

fn collect(command: Command, parent: Option<&str>, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let spelling =
        parent.map_or_else(|| command.get_name().to_owned(), |above| format!("{above} {}", command.get_name()));
    let title = spelling.replace(' ', "-");
    let subcommands: Vec<Command> = command.get_subcommands().filter(|below| !below.is_hide_set()).cloned().collect();
    let command = command.disable_help_subcommand(true).display_name(&title).bin_name(&spelling);
    let command = match parent {
        // The settings are hidden in the short help (`-h`), but belong on this page.
        None => command.mut_args(|arg| arg.hide_short_help(false)).override_usage("selkie [OPTION]… COMMAND"),
        Some(_) => command
            .after_help("Options of all commands (--json, --config, the settings) and exit codes: see selkie(1)."),
    };
    let man = Man::new(command).title(&title).source(concat!("selkie ", env!("CARGO_PKG_VERSION"))).manual("Selkie");
    let mut page = Vec::new();
    man.render(&mut page)?;
    pages.push((format!("{title}.1"), page));
    subcommands.into_iter().try_for_each(|below| collect(below, Some(&spelling), pages))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SETTINGS;

    #[test]
    fn every_command_has_a_man_page_with_its_name() {
        let pages = pages().unwrap();
        for (name, page) in &pages {
            let text = String::from_utf8_lossy(page);
            let title = name.trim_end_matches(".1").replace('-', "\\-");
            assert!(text.contains(&format!("{title} \\- ")), "{text}");
        }
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for expected in ["selkie.1", "selkie-serve.1", "selkie-key-create.1"] {
            assert!(names.contains(&expected), "{names:?}");
        }
        assert!(!names.contains(&"selkie-guard.1"));
        let first = String::from_utf8_lossy(&pages[0].1);
        for setting in SETTINGS.iter().filter(|setting| setting.has_flag()) {
            assert!(first.contains(&format!("[env: {}]", setting.variable())), "{}", setting.name);
        }
    }
}
