//! The file that is imported, or standard input: its form, its decompression, and how many of its bytes were read.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

use super::TransferError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Csv { delimiter: u8 },
    NdJson,
}

const DAMAGED: &str = "the gzip file is damaged or cut short, as `gzip -t` shows: write it anew";

const GZIP: [u8; 2] = [0x1f, 0x8b];

#[derive(Clone, Debug)]
pub struct Input {
    /// The file; `None` is standard input.
    path: Option<PathBuf>,
    read: Arc<AtomicU64>,
}

impl Input {
    pub fn new(path: PathBuf) -> Self {
        Self { path: (path.as_os_str() != "-").then_some(path), read: Arc::default() }
    }

    /// Returns the name without endings, such as `posts` for `a/posts.csv.gz`.
    pub fn stem(&self) -> Option<String> {
        let name = self.path.as_ref()?.file_name()?.to_str()?;
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        (!stem.is_empty()).then(|| stem.to_owned())
    }

    pub fn name(&self) -> String {
        self.path.as_ref().map_or_else(|| "standard input".to_owned(), |path| path.display().to_string())
    }

    pub fn size(&self) -> Option<u64> {
        let found = std::fs::metadata(self.path.as_ref()?).ok()?;
        found.is_file().then_some(found.len())
    }

    /// Returns the number of bytes read so far: of a gzip file, compressed bytes.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub fn form(&self) -> Option<Form> {
        let name = self.path.as_ref()?.file_name()?.to_str()?.to_ascii_lowercase();
        match name.strip_suffix(".gz").unwrap_or(&name).rsplit_once('.')?.1 {
            "csv" => Some(Form::Csv { delimiter: b',' }),
            "tsv" => Some(Form::Csv { delimiter: b'\t' }),
            "ndjson" | "jsonl" => Some(Form::NdJson),
            _ => None,
        }
    }

    /// Converts an error. `hint` is for errors that may pass, not for damaged gzip files.
    pub(super) fn unreadable(&self, error: &io::Error, hint: Option<&str>) -> TransferError {
        let is_damaged =
            matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof);
        let hint = if is_damaged { Some(DAMAGED) } else { hint };
        TransferError::Failed {
            message: format!("{} can't be read: {error}", self.name()),
            hint: hint.map(str::to_owned),
        }
    }

    /// Opens the file. Blocks the thread.
    pub(super) fn open(&self) -> Result<Box<dyn Read + Send>, TransferError> {
        let failed = |error: &io::Error| match &self.path {
            Some(path) => TransferError::file(path, "read", error),
            None => TransferError::failed(format!("standard input can't be read: {error}"), "name a file"),
        };
        let source: Box<dyn Read + Send> = match &self.path {
            Some(path) => Box::new(File::open(path).map_err(|error| failed(&error))?),
            None => Box::new(io::stdin()),
        };
        self.read.store(0, Ordering::Relaxed);
        let mut source = Counted { source, read: Arc::clone(&self.read) };
        let mut first = Vec::new();
        source.by_ref().take(GZIP.len() as u64).read_to_end(&mut first).map_err(|error| failed(&error))?;
        let is_gzip = first == GZIP;
        let whole = io::Cursor::new(first).chain(source);
        Ok(if is_gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
    }
}

struct Counted {
    source: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(into)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_the_form_and_what_the_other_files_are_called() {
        let comma = Some(Form::Csv { delimiter: b',' });
        for (path, stem, form) in [
            ("a/posts.csv", Some("posts"), comma),
            ("posts.v2.CSV.gz", Some("posts.v2"), comma),
            ("posts.tsv", Some("posts"), Some(Form::Csv { delimiter: b'\t' })),
            ("posts.jsonl", Some("posts"), Some(Form::NdJson)),
            ("posts", Some("posts"), None),
            ("-", None, None),
        ] {
            let input = Input::new(path.into());
            assert_eq!((input.stem().as_deref(), input.form()), (stem, form), "{path}");
        }
    }
}
