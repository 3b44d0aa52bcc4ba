//! AVIF: its container is checked and its size read; nothing is decoded, so there is no thumbnail.

use super::{Decode, Header, ImageFault, Size};
use crate::media::boxes::{BoxFault, BoxHead, HEAD_BYTES};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Bytes of the box that describes the items: a picture's is under one KB.
const META_MAX_BYTES: u64 = 1024 * 1024;

/// Boxes of one level.
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
        let BoxHead {
            kind,
            start,
            length,
        } = BoxHead::read(&head[..taken], bytes - at)?;
        // A picture, or a sequence that is one of the pictures as well.
        if &kind == b"meta" && described.is_none() {
            if length > META_MAX_BYTES {
                return Err(ImageFault::Corrupt);
            }
            let mut meta = vec![0; (length - start) as usize];
            file.seek(SeekFrom::Start(at + start))?;
            file.read_exact(&mut meta)?;
            // Four bytes of version and flags.
            described = size(meta.get(4..).ok_or(ImageFault::Corrupt)?)?;
        }
        at += length;
    }
    let size = described.ok_or(ImageFault::Corrupt)?;
    Ok(Header {
        size,
        memory_bytes: META_MAX_BYTES,
        decode: Decode::Shown(size),
    })
}

impl From<BoxFault> for ImageFault {
    fn from(fault: BoxFault) -> Self {
        match fault {
            BoxFault::Cut => Self::Cut,
            BoxFault::Corrupt => Self::Corrupt,
        }
    }
}

/// Kinds and contents.
type Boxes<'c> = Vec<([u8; 4], &'c [u8])>;

/// The boxes within a box.
fn children(content: &[u8]) -> Result<Boxes<'_>, ImageFault> {
    let (mut rest, mut found) = (content, Vec::new());
    while !rest.is_empty() && found.len() < BOXES_MAX_COUNT {
        let BoxHead {
            kind,
            start,
            length,
        } = BoxHead::read(rest, rest.len() as u64)?;
        let (this, behind) = rest.split_at(length as usize);
        found.push((kind, this.get(start as usize..).ok_or(ImageFault::Cut)?));
        rest = behind;
    }
    Ok(found)
}

/// The largest size among the items' properties: tiles and the layer of opacity are no larger than the
/// picture. Turned by a quarter, if it is to be.
fn size(meta: &[u8]) -> Result<Option<Size>, ImageFault> {
    let mut found: Option<Size> = None;
    let mut turned = false;
    for (kind, properties) in children(meta)? {
        if &kind != b"iprp" {
            continue;
        }
        for (kind, container) in children(properties)? {
            if &kind != b"ipco" {
                continue;
            }
            for (kind, property) in children(container)? {
                match (&kind, property) {
                    (b"ispe", [_, _, _, _, w0, w1, w2, w3, h0, h1, h2, h3, ..]) => {
                        let size = Size {
                            width: u32::from_be_bytes([*w0, *w1, *w2, *w3]),
                            height: u32::from_be_bytes([*h0, *h1, *h2, *h3]),
                        };
                        if found.is_none_or(|other| other.pixels() < size.pixels()) {
                            found = Some(size);
                        }
                    }
                    (b"irot", [angle, ..]) => turned = angle & 1 == 1,
                    _ => {}
                }
            }
        }
    }
    Ok(found.map(|size| match turned {
        true => Size {
            width: size.height,
            height: size.width,
        },
        false => size,
    }))
}
