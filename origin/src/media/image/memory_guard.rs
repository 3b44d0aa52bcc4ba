//! A file whose reading fails once decoding takes more memory than all images together may.
//!
//! For decoders whose memory the header does not tell: a lossless WebP of 4 MB can announce 65,536 groups of Huffman
//! tables, 20 KB each. The memory measured is the whole process's, since no allocator counts by thread.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};

/// A reader that fails with `OutOfMemory` once the process has grown by more than a number of bytes since it was opened.
pub(super) struct MemoryGuard<R> {
    inner: R,
    /// `None` where the system does not tell how much memory a process has.
    resident_max_bytes: Option<u64>,
}

impl<R> MemoryGuard<R> {
    /// Lets the process grow by `growth_bytes` while `inner` is read.
    pub(super) fn new(inner: R, growth_bytes: u64) -> Self {
        Self { inner, resident_max_bytes: resident_bytes().map(|bytes| bytes + growth_bytes) }
    }
}

impl<R: Read> Read for MemoryGuard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let (Some(max), Some(now)) = (self.resident_max_bytes, resident_bytes())
            && now > max
        {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.inner.read(buffer)
    }
}

impl<R: Seek> Seek for MemoryGuard<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// The memory of this process that is in use, by Linux's `/proc/self/statm`.
fn resident_bytes() -> Option<u64> {
    let sizes = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = sizes.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
