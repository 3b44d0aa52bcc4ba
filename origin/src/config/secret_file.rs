//! Reads the values of secret settings from files named by variables such as `SELKIE_SECRET_FILE`, for the credentials
//! of systemd and the secrets of Docker and Kubernetes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::ConfigError;
use super::layers::Sources;
use super::setting::Setting;

/// A longer file is probably the wrong file.
const SECRET_FILE_MAX_BYTES: u64 = 64 * 1024;

pub(super) fn read(setting: &'static Setting, sources: &Sources) -> Result<Option<String>, ConfigError> {
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
