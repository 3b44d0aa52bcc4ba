//! `selkie completions <shell>`: prints the completion script of a shell.

use std::io::Write;

use clap::Args;
use clap_complete::Shell;

use super::CliError;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn run(self) -> Result<(), CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "selkie", &mut script);
        std::io::stdout().lock().write_all(&script).map_err(CliError::Output)
    }
}
