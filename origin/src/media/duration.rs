//! How long a video or a sound lasts, where its file says so cheaply.
//!
//! Sound is `lofty`'s; of MP4, QuickTime, WebM and Matroska the one number that is wanted stands near the
//! beginning or the end, and is read here, since libraries for them read whole indexes. A file that does not
//! tell, or tells nonsense, is a file without a duration, never a fault.

mod ebml;
mod moov;
#[cfg(test)]
mod tests;

use super::sniff::Sniffed;
use lofty::config::{ParseOptions, ParsingMode};
use lofty::file::{AudioFile, FileType};
use lofty::probe::Probe;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Bytes that reading a length takes at most.
pub(crate) const MEMORY_BYTES: u64 = 32 * 1024 * 1024;

/// Bytes that are read of one file: what says how long it lasts is far smaller.
const READ_MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Reads and seeks of one file: each may go to the disk.
const STEPS_MAX_COUNT: u32 = 20_000;

/// The longest duration that is believed: a year, in seconds.
const SECONDS_MAX: f64 = 366.0 * 24.0 * 3600.0;

/// Seconds; `None` if the file does not tell.
#[must_use]
pub fn duration(path: &Path, sniffed: Sniffed) -> Option<f64> {
    let read = || {
        let file = File::open(path).ok()?;
        let bytes = file.metadata().ok()?.len();
        let mut reader = BufReader::new(Bounded {
            file,
            bytes_left: READ_MAX_BYTES,
            steps_left: STEPS_MAX_COUNT,
        });
        match sniffed.mime {
            "video/mp4" | "audio/mp4" | "video/quicktime" | "video/x-m4v" | "video/3gpp"
            | "video/3gpp2" => moov::seconds(&mut reader, bytes),
            "video/webm" | "video/x-matroska" => ebml::seconds(&mut reader, bytes),
            mime => sound(reader, mime),
        }
    };
    catch_unwind(AssertUnwindSafe(read))
        .ok()
        .flatten()
        .filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds))
}

fn sound(reader: BufReader<Bounded>, mime: &str) -> Option<f64> {
    let probe = match mime {
        "audio/mpeg" => Probe::with_file_type(reader, FileType::Mpeg),
        "audio/aac" => Probe::with_file_type(reader, FileType::Aac),
        "audio/flac" => Probe::with_file_type(reader, FileType::Flac),
        "audio/wav" => Probe::with_file_type(reader, FileType::Wav),
        "audio/aiff" => Probe::with_file_type(reader, FileType::Aiff),
        // Which codec, the first page says.
        "audio/ogg" => Probe::new(reader).guess_file_type().ok()?,
        _ => return None,
    };
    let options = ParseOptions::new()
        .read_tags(false)
        .read_cover_art(false)
        .parsing_mode(ParsingMode::Relaxed);
    let properties = probe.options(options).read().ok()?;
    let seconds = properties.properties().duration().as_secs_f64();
    (seconds > 0.0).then_some(seconds)
}

/// A file that ends early for who reads too much of it.
struct Bounded {
    file: File,
    bytes_left: u64,
    steps_left: u32,
}

impl Bounded {
    fn step(&mut self) -> io::Result<()> {
        self.steps_left = self
            .steps_left
            .checked_sub(1)
            .ok_or(io::ErrorKind::QuotaExceeded)?;
        Ok(())
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.step()?;
        let count = self.file.read(buffer)?;
        self.bytes_left = self
            .bytes_left
            .checked_sub(count as u64)
            .ok_or(io::ErrorKind::QuotaExceeded)?;
        Ok(count)
    }
}

impl Seek for Bounded {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.step()?;
        self.file.seek(to)
    }
}
