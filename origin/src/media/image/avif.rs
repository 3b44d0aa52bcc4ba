//! Checks the container of AVIF files and reads the image's size. Decodes no pixels, so there is no thumbnail.

use super::{Decode, Header, ImageFault, Size};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// The maximum size of a `meta` box. Usual images have less than 1 KB.
const META_MAX_BYTES: u64 = 1024 * 1024;

/// The maximum number of boxes on one level of the file.
const BOXES_MAX_COUNT: usize = 1024;

pub(super) fn open(mut file: File, bytes: u64) -> Result<Header, ImageFault> {
    let mut at = 0;
    let mut described = None;
    for _ in 0..BOXES_MAX_COUNT {
        if at >= bytes {
            break;
        }
        file.seek(SeekFrom::Start(at))?;
        let mut head = [0; HEAD_BYTES];
        let taken = head.len().min((bytes - at) as usize);
        file.read_exact(&mut head[..taken])?;
        let BoxHead { kind, start, length } = BoxHead::read(&head[..taken], bytes - at)?;
        // An image sequence (animation) has a `meta` box only if it also contains a still image.
        if &kind == b"meta" && described.is_none() {
            if length > META_MAX_BYTES {
                return Err(ImageFault::Corrupt);
            }
            let mut meta = vec![0; (length - start) as usize];
            file.seek(SeekFrom::Start(at + start))?;
            file.read_exact(&mut meta)?;
            described = size(meta.get(4..).ok_or(ImageFault::Corrupt)?)?;
        }
        at += length;
    }
    let size = described.ok_or(ImageFault::Corrupt)?;
    Ok(Header { size, memory_bytes: META_MAX_BYTES, decode: Decode::Shown(size) })
}

struct BoxHead {
    kind: [u8; 4],
    start: u64,
    length: u64,
}

const HEAD_BYTES: usize = 16;

impl BoxHead {
    /// `left` is the number of bytes left in the file or enclosing box.
    fn read(head: &[u8], left: u64) -> Result<Self, ImageFault> {
        let [s0, s1, s2, s3, k0, k1, k2, k3, rest @ ..] = head else {
            return Err(ImageFault::Cut);
        };
        let (start, length) = match u32::from_be_bytes([*s0, *s1, *s2, *s3]) {
            // Length 0 means that the box extends to the end of the file or enclosing box.
            0 => (8, left),
            1 => (16, u64::from_be_bytes(*rest.first_chunk().ok_or(ImageFault::Cut)?)),
            length => (8, u64::from(length)),
        };
        if length < start {
            return Err(ImageFault::Corrupt);
        }
        if length > left {
            return Err(ImageFault::Cut);
        }
        Ok(Self { kind: [*k0, *k1, *k2, *k3], start, length })
    }
}

type Boxes<'c> = Vec<([u8; 4], &'c [u8])>;

fn children(content: &[u8]) -> Result<Boxes<'_>, ImageFault> {
    let (mut rest, mut found) = (content, Vec::new());
    while !rest.is_empty() && found.len() < BOXES_MAX_COUNT {
        let BoxHead { kind, start, length } = BoxHead::read(rest, rest.len() as u64)?;
        let (this, behind) = rest.split_at(length as usize);
        found.push((kind, this.get(start as usize..).ok_or(ImageFault::Cut)?));
        rest = behind;
    }
    Ok(found)
}

/// Returns the size of the primary item, after its rotation; other items are opacity, tiles, gain map or preview.
fn size(meta: &[u8]) -> Result<Option<Size>, ImageFault> {
    let boxes = children(meta)?;
    let find = |wanted: &[u8; 4]| boxes.iter().find(|(kind, _)| kind == wanted);
    let (Some((_, pitm)), Some((_, iprp))) = (find(b"pitm"), find(b"iprp")) else {
        return Ok(None);
    };
    let mut pitm = BoxFields::of(pitm);
    let version = pitm.version_and_flags().0;
    let primary = pitm.item(version);
    let (mut properties, mut associated) = (Vec::new(), Vec::new());
    for (kind, content) in children(iprp)? {
        match &kind {
            b"ipco" => properties = children(content)?,
            b"ipma" => associated.extend(associations(content, primary)),
            _ => {}
        }
    }
    let (mut found, mut turned) = (None, false);
    // Property indices begin at 1; 0 means no property.
    let indices = associated.iter().filter_map(|index| index.checked_sub(1));
    for (kind, property) in indices.filter_map(|index| properties.get(usize::from(index))) {
        match (kind, property) {
            (b"ispe", [_, _, _, _, w0, w1, w2, w3, h0, h1, h2, h3, ..]) => {
                found = Some(Size {
                    width: u32::from_be_bytes([*w0, *w1, *w2, *w3]),
                    height: u32::from_be_bytes([*h0, *h1, *h2, *h3]),
                });
            }
            (b"irot", [angle, ..]) => turned = angle & 1 == 1,
            _ => {}
        }
    }
    Ok(found.map(|size| match turned {
        true => Size { width: size.height, height: size.width },
        false => size,
    }))
}

fn associations(ipma: &[u8], wanted: u32) -> Vec<u16> {
    let mut fields = BoxFields::of(ipma);
    let (version, flags) = fields.version_and_flags();
    let mut found = Vec::new();
    for _ in 0..fields.number(4) {
        if fields.rest.is_empty() {
            break;
        }
        let item = fields.item(version);
        for _ in 0..fields.number(1) {
            // The highest bit says that readers must understand the property; it is masked out here.
            let index = match flags & 1 {
                0 => fields.number(1) & 0x7F,
                _ => fields.number(2) & 0x7FFF,
            };
            if item == wanted {
                found.push(index as u16);
            }
        }
    }
    found
}

struct BoxFields<'c> {
    rest: &'c [u8],
}

impl<'c> BoxFields<'c> {
    fn of(rest: &'c [u8]) -> Self {
        Self { rest }
    }

    fn number(&mut self, bytes: usize) -> u32 {
        let (these, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.rest = rest;
        these.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    fn version_and_flags(&mut self) -> (u32, u32) {
        (self.number(1), self.number(3))
    }

    fn item(&mut self, version: u32) -> u32 {
        self.number(if version == 0 { 2 } else { 4 })
    }
}
