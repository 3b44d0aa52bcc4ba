//! Finds the text of each setting, but doesn't parse it. The first source that has the setting wins: flag, environment
//! variable, file named by a `…_FILE` variable (secret settings), configuration file, standard variable of
//! OpenTelemetry, default.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::environment::{self, UnknownVariable};
use super::setting::{SETTINGS, Setting, find_setting};

/// The file that is read from the working directory if it exists and no other file is given.
const DEFAULT_FILE: &str = "selkie.toml";

#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub flags: BTreeMap<&'static str, String>,
    pub environment: BTreeMap<String, String>,
    /// The configuration file; if `None`, the file that `SELKIE_CONFIG` names, or `selkie.toml` if it exists.
    pub file: Option<PathBuf>,
    pub directory: PathBuf,
}

impl Sources {
    /// Returns a variable. An empty one counts as unset: scripts and Compose files often unset a variable so.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueOrigin {
    Flag,
    Environment,
    SecretFile,
    File,
    Default,
}

#[derive(Debug, Clone)]
pub struct FoundValue {
    pub text: String,
    pub origin: ValueOrigin,
}

#[derive(Debug)]
pub struct Layers {
    found: BTreeMap<&'static str, FoundValue>,
    pub accounts: AccountsFile,
    pub file: Option<PathBuf>,
    pub directory: PathBuf,
    pub unknown_variables: Vec<UnknownVariable>,
}

impl Layers {
    pub fn read(sources: Sources) -> Result<Self, ConfigError> {
        let unknown_variables = environment::unknown(&sources.environment)?;
        let file = locate_file(&sources);
        let mut table = match &file {
            Some(path) => read_table(path)?,
            None => toml::Table::new(),
        };
        let accounts = AccountsFile::take(&mut table, file.as_deref())?;
        let mut in_file = file_texts(table, file.as_deref())?;
        let mut found = BTreeMap::new();
        for setting in SETTINGS {
            let value = pick(setting, &sources, &mut in_file)?;
            if let Some(value) = value {
                found.insert(setting.name, value);
            }
        }
        Ok(Self { found, accounts, file, directory: sources.directory, unknown_variables })
    }

    pub fn get(&self, name: &str) -> Option<&FoundValue> {
        self.found.get(name)
    }
}

fn pick(
    setting: &'static Setting,
    sources: &Sources,
    in_file: &mut BTreeMap<&'static str, String>,
) -> Result<Option<FoundValue>, ConfigError> {
    let flag = sources.flags.get(setting.name).cloned();
    let standard = setting.standard_variable().and_then(|name| sources.variable(name)).map(str::to_owned);
    let layers = [
        (flag, ValueOrigin::Flag),
        (sources.variable(&setting.variable()).map(str::to_owned), ValueOrigin::Environment),
        (read_secret(setting, sources)?, ValueOrigin::SecretFile),
        (in_file.remove(setting.name), ValueOrigin::File),
        (standard, ValueOrigin::Environment),
        (setting.default.map(str::to_owned), ValueOrigin::Default),
    ];
    Ok(layers.into_iter().find_map(|(text, origin)| text.map(|text| FoundValue { text, origin })))
}

fn locate_file(sources: &Sources) -> Option<PathBuf> {
    let named = sources.file.clone().or_else(|| sources.variable("SELKIE_CONFIG").map(PathBuf::from));
    match named {
        Some(path) => Some(sources.directory.join(path)),
        None => Some(sources.directory.join(DEFAULT_FILE)).filter(|path| path.is_file()),
    }
}

fn read_table(path: &Path) -> Result<toml::Table, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::UnreadableFile { path: path.to_owned(), source })?;
    // The parser's full message quotes the line, which may contain a password; `message()` doesn't.
    text.parse::<toml::Table>().map_err(|error| ConfigError::NotToml {
        path: path.to_owned(),
        line: line_of(&text, error.span()),
        reason: error.message().to_owned(),
    })
}

fn line_of(text: &str, span: Option<std::ops::Range<usize>>) -> usize {
    let end = span.map_or(0, |span| span.start.min(text.len()));
    1 + text.bytes().take(end).filter(|byte| *byte == b'\n').count()
}

fn file_texts(table: toml::Table, path: Option<&Path>) -> Result<BTreeMap<&'static str, String>, ConfigError> {
    let path = path.unwrap_or(Path::new(DEFAULT_FILE));
    let mut texts = BTreeMap::new();
    for (key, value) in table {
        let Some(setting) = find_setting(&key) else {
            return Err(ConfigError::unknown_key(&key, path));
        };
        let text = scalar_text(value).ok_or(ConfigError::NotScalar { name: setting.name, path: path.to_owned() })?;
        texts.insert(setting.name, text);
    }
    Ok(texts)
}

/// Writes a value in the syntax of flags and variables: a list of strings becomes comma-separated.
fn scalar_text(value: toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Array(items) => {
            let words: Option<Vec<String>> = items.into_iter().map(|item| item.as_str().map(str::to_owned)).collect();
            words.map(|words| words.join(","))
        }
        _ => None,
    }
}

/// The maximum size of a secret's file. A longer file is probably the wrong file.
const SECRET_FILE_MAX_BYTES: u64 = 64 * 1024;

/// Reads a secret setting from a file that a variable such as `SELKIE_SECRET_FILE` names, for the credentials of
/// systemd and the secrets of Docker and Kubernetes.
fn read_secret(setting: &'static Setting, sources: &Sources) -> Result<Option<String>, ConfigError> {
    let Some(file_variable) = setting.file_variable() else {
        return Ok(None);
    };
    let Some(path) = sources.variable(&file_variable) else {
        return Ok(None);
    };
    let variable = setting.variable();
    if sources.variable(&variable).is_some() {
        return Err(ConfigError::SetTwice { variable, file_variable });
    }
    let path = sources.directory.join(path);
    match read_file(&path) {
        Ok(text) => Ok(Some(text)),
        Err(source) => Err(ConfigError::UnreadableSecret { file_variable, path, source }),
    }
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(SECRET_FILE_MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SECRET_FILE_MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {SECRET_FILE_MAX_BYTES} bytes")));
    }
    // Editors and `echo` add a line break at the end of a file.
    let length = text.trim_end_matches(['\r', '\n']).len();
    if length == 0 {
        return Err(io::Error::other("it is empty"));
    }
    text.truncate(length);
    Ok(text)
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    pub user: String,
    pub password: SecretString,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectAccounts {
    /// The account for requests with a full key or a role that may write to a table.
    pub rw: Account,
    pub ro: Account,
}

/// Accounts that the operator has created for projects, for an admin account that may not create users: tables such as
/// `[accounts.default]`, each with `rw` and `ro`.
#[derive(Debug, Clone, Default)]
pub struct AccountsFile(pub BTreeMap<String, ProjectAccounts>);

impl AccountsFile {
    pub(super) fn take(table: &mut toml::Table, path: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(value) = table.remove("accounts") else {
            return Ok(Self::default());
        };
        value.try_into().map(Self).map_err(|error: toml::de::Error| ConfigError::BadAccounts {
            path: path.unwrap_or(Path::new(DEFAULT_FILE)).to_owned(),
            reason: error.message().to_owned(),
        })
    }
}
