//! `selkie config`: shows the settings, and where each value comes from.

use clap::Args;
use serde::Serialize;

use super::{CliError, Context, TextTable};
use crate::config::{Layers, SETTINGS, Setting, ValueOrigin, Visibility, sample_file};

#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Print a selkie.toml with every setting, its meaning and its default instead
    #[arg(long)]
    sample: bool,
}

#[derive(Serialize)]
struct SettingLine {
    name: &'static str,
    value: Option<String>,
    origin: ValueOrigin,
    variable: String,
}

impl ConfigArgs {
    pub(super) fn run(self, context: &Context, layers: &Layers) -> Result<(), CliError> {
        if self.sample {
            return context.output.answer(&sample_file(), String::clone);
        }
        let mut lines: Vec<SettingLine> = SETTINGS.iter().map(|row| line(row, layers)).collect();
        lines.extend(accounts(context));
        context.output.answer(&lines, |lines| text(lines, context))
    }
}

fn line(setting: &Setting, layers: &Layers) -> SettingLine {
    let found = layers.get(setting.name);
    let shown = found.map(|found| match setting.visibility {
        Visibility::Plain => found.text.clone(),
        Visibility::Secret => "(hidden)".to_owned(),
    });
    SettingLine {
        name: setting.name,
        value: shown,
        origin: found.map_or(ValueOrigin::Default, |found| found.origin),
        variable: setting.variable(),
    }
}

fn accounts(context: &Context) -> Option<SettingLine> {
    let projects: Vec<&str> = context.config.accounts.keys().map(String::as_str).collect();
    (!projects.is_empty()).then(|| SettingLine {
        name: "accounts",
        value: Some(format!("(hidden) for {}", projects.join(", "))),
        origin: ValueOrigin::File,
        variable: String::new(),
    })
}

fn text(lines: &[SettingLine], context: &Context) -> String {
    let mut table = TextTable::new(["setting", "value", "from", "variable"]);
    for line in lines {
        let value = line.value.as_deref().unwrap_or("-").to_owned();
        let from = match line.origin {
            ValueOrigin::Flag => "flag",
            ValueOrigin::Environment => "environment",
            ValueOrigin::SecretFile => "secret file",
            ValueOrigin::File => "file",
            ValueOrigin::Default => "default",
        };
        table.row([line.name.to_owned(), value, from.to_owned(), line.variable.clone()]);
    }
    let file = context.config.file.as_ref();
    let file = file.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
    format!("{table}\nfile: {file}\n")
}
