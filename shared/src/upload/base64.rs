//! A push decoder for base64 with one buffer of fixed size. Accepts both alphabets, even mixed, with or without
//! padding, and skips spaces. Refuses other characters, wrong padding, and unused bits that are set.

use crate::limits::UPLOAD_CHUNK_BYTES;
use base64_simd::{AsOut, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base64Fault {
    Character(u8),
    Padding,
    /// A single character in the last group, or too little padding.
    Cut,
    TrailingBits,
}

/// Marks bytes in [`SIX_BITS`] that are no base64 characters.
const NONE: u8 = 0xff;

const SIX_BITS: [u8; 256] = {
    let mut table = [NONE; 256];
    let mut value = 0;
    while value < 64u8 {
        let character = match value {
            0..26 => b'A' + value,
            26..52 => b'a' + (value - 26),
            52..62 => b'0' + (value - 52),
            62 => b'+',
            _ => b'/',
        };
        table[character as usize] = value;
        value += 1;
    }
    table[b'-' as usize] = 62;
    table[b'_' as usize] = 63;
    table
};

pub(super) struct Base64Decoder {
    decoded: Box<[u8]>,
    state: DecoderState,
}

#[derive(Clone, Copy, Default)]
pub(super) struct DecoderState {
    filled: usize,
    /// 6-bit values of an incomplete group of four characters.
    group: [u8; 4],
    grouped: usize,
    padding: usize,
    url_safe: bool,
    total: u64,
}

impl Base64Decoder {
    pub(super) fn new() -> Self {
        Self { decoded: vec![0; UPLOAD_CHUNK_BYTES].into(), state: DecoderState::default() }
    }

    pub(super) fn restart(&mut self) {
        self.state = DecoderState::default();
    }

    pub(super) fn mark(&self) -> DecoderState {
        self.state
    }

    pub(super) fn reset(&mut self, state: DecoderState) {
        self.state = state;
    }

    pub(super) fn decoded(&self) -> &[u8] {
        &self.decoded[..self.state.filled]
    }

    pub(super) fn clear(&mut self) {
        self.state.filled = 0;
    }

    pub(super) fn total(&self) -> u64 {
        self.state.total
    }

    pub(super) fn is_full(&self) -> bool {
        self.decoded.len() - self.state.filled < 3
    }

    /// Returns how many characters [`Base64Decoder::push`] accepts: at least one, unless the buffer is full.
    pub(super) fn room(&self) -> usize {
        (self.decoded.len() - self.state.filled) / 3 * 4 - self.state.grouped
    }

    /// Decodes at most [`Base64Decoder::room`] characters. The error has the number of characters before the fault.
    pub(super) fn push(&mut self, characters: &[u8]) -> Result<(), (usize, Base64Fault)> {
        let mut at = 0;
        while at < characters.len() {
            if self.state.grouped == 0 && self.state.padding == 0 {
                at += self.bulk(&characters[at..]);
            }
            let Some(&character) = characters.get(at) else {
                break;
            };
            self.character(character).map_err(|fault| (at, fault))?;
            at += 1;
        }
        Ok(())
    }

    /// Decodes whole groups, up to the first with another character. Returns the length of the decoded text.
    fn bulk(&mut self, characters: &[u8]) -> usize {
        let whole = &characters[..characters.len() / 4 * 4];
        if whole.is_empty() {
            return 0;
        }
        if self.decode_groups(whole) {
            return whole.len();
        }
        let clean = whole.iter().position(|&character| SIX_BITS[usize::from(character)] == NONE).unwrap_or(whole.len());
        let clean = &whole[..clean / 4 * 4];
        if clean.is_empty() {
            return 0;
        }
        self.state.url_safe = clean.iter().any(|character| b"-_".contains(character));
        if !self.decode_groups(clean) {
            for group in clean.as_chunks::<4>().0 {
                self.state.group = group.map(|character| SIX_BITS[usize::from(character)]);
                self.flush(3);
            }
        }
        clean.len()
    }

    /// Decodes groups of four characters in one alphabet: the URL-safe one if `url_safe` is set, or else the standard
    /// one. Returns `false`, with the state unchanged, if any character is not in that alphabet.
    fn decode_groups(&mut self, groups: &[u8]) -> bool {
        let room = &mut self.decoded[self.state.filled..self.state.filled + groups.len() / 4 * 3];
        let alphabet = if self.state.url_safe { URL_SAFE_NO_PAD } else { STANDARD_NO_PAD };
        let Ok(bytes) = alphabet.decode(groups, room.as_out()) else {
            return false;
        };
        self.state.filled += bytes.len();
        self.state.total += bytes.len() as u64;
        true
    }

    fn character(&mut self, character: u8) -> Result<(), Base64Fault> {
        match character {
            b' ' => Ok(()),
            b'=' if self.state.grouped >= 2 && self.state.grouped + self.state.padding < 4 => {
                self.state.padding += 1;
                Ok(())
            }
            b'=' => Err(Base64Fault::Padding),
            _ => match SIX_BITS[usize::from(character)] {
                NONE => Err(Base64Fault::Character(character)),
                _ if self.state.padding > 0 => Err(Base64Fault::Character(character)),
                bits => {
                    self.state.group[self.state.grouped] = bits;
                    self.state.grouped += 1;
                    if self.state.grouped == 4 {
                        self.flush(3);
                    }
                    Ok(())
                }
            },
        }
    }

    fn flush(&mut self, bytes: usize) {
        let [a, b, c, d] = self.state.group;
        let three = [(a << 2) | (b >> 4), (b << 4) | (c >> 2), (c << 6) | d];
        self.decoded[self.state.filled..self.state.filled + bytes].copy_from_slice(&three[..bytes]);
        self.state.filled += bytes;
        self.state.total += bytes as u64;
        self.state.grouped = 0;
    }

    /// Decodes the last, incomplete group. The buffer must not be full.
    pub(super) fn finish(&mut self) -> Result<(), Base64Fault> {
        if self.state.padding > 0 && self.state.grouped + self.state.padding < 4 {
            return Err(Base64Fault::Cut);
        }
        let (bytes, behind) = match self.state.grouped {
            0 => return Ok(()),
            2 => (1, self.state.group[1] & 0b1111),
            3 => (2, self.state.group[2] & 0b11),
            _ => return Err(Base64Fault::Cut),
        };
        if behind != 0 {
            return Err(Base64Fault::TrailingBits);
        }
        self.flush(bytes);
        Ok(())
    }
}
