//! A reader that fails once decoding takes too much memory: a lossless WebP of 4 MB may have 65,536 groups of Huffman
//! tables of 20 KB each. Measures the whole process, since allocations can't be counted by thread.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};

pub(super) struct MemoryGuard<R> {
    inner: R,
    resident_max_bytes: Option<u64>,
}

impl<R> MemoryGuard<R> {
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

fn resident_bytes() -> Option<u64> {
    let sizes = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = sizes.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
