//! Refused rows: why the API refused them or why they can't be read, and the file to which they are written.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::TransferError;
use super::api::ApiError;
use super::records::RecordFault;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reason {
    code: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

impl From<&ApiError> for Reason {
    fn from(refusal: &ApiError) -> Self {
        // The line number in the API's message is that of the request's body, not of the file.
        let message = match refusal.message.strip_prefix("Line ").and_then(|rest| rest.split_once(": ")) {
            Some((line, rest)) if line.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            _ => &refusal.message,
        };
        Self { code: refusal.code.clone(), message: message.to_owned(), field: refusal.details.field.clone() }
    }
}

impl From<RecordFault> for Reason {
    fn from(fault: RecordFault) -> Self {
        Self { code: fault.code.to_owned(), message: fault.message, field: None }
    }
}

#[derive(Serialize)]
pub(super) struct Reject<'a> {
    pub(super) line: u64,
    #[serde(flatten)]
    pub(super) reason: &'a Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) row: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
}

#[derive(Debug)]
pub(super) struct RejectsFile {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    bytes: u64,
}

impl RejectsFile {
    pub(super) fn check_new(path: &Path) -> Result<(), TransferError> {
        match path.exists() {
            true => Err(TransferError::usage(
                format!("{} exists: it may have the refused rows of an earlier import", path.display()),
                "delete it, or name another file by --rejects",
            )),
            false => Ok(()),
        }
    }

    /// Opens the file. Removes rows after `bytes` (its length in the journal): their batch is sent again.
    pub(super) fn open(path: &Path, bytes: u64) -> Result<Self, TransferError> {
        let failed = |error: &std::io::Error| TransferError::file(path, "written", error);
        let mut rejects = Self { path: path.to_owned(), file: None, bytes };
        if bytes == 0 {
            return match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(&error)),
                _ => Ok(rejects),
            };
        }
        let mut file = OpenOptions::new().write(true).open(path).map_err(|error| failed(&error))?;
        file.set_len(bytes).and_then(|()| file.seek(SeekFrom::End(0))).map_err(|error| failed(&error))?;
        rejects.file = Some(BufWriter::new(file));
        Ok(rejects)
    }

    pub(super) fn write(&mut self, reject: &Reject<'_>) -> Result<(), TransferError> {
        let failed = |error: &std::io::Error| TransferError::file(&self.path, "written", error);
        let mut line = serde_json::to_vec(reject).map_err(|error| failed(&error.into()))?;
        line.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = OpenOptions::new().write(true).create_new(true).open(&self.path);
                self.file.insert(BufWriter::new(file.map_err(|error| failed(&error))?))
            }
        };
        file.write_all(&line).map_err(|error| failed(&error))?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<u64, TransferError> {
        if let Some(file) = &mut self.file {
            let synced = file.flush().and_then(|()| file.get_ref().sync_data());
            synced.map_err(|error| TransferError::file(&self.path, "written", &error))?;
        }
        Ok(self.bytes)
    }
}
