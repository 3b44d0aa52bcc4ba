//! Boxes of the ISO base media family (MP4, QuickTime, AVIF): what stands before a box's content.

/// What stands before a box's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BoxHead {
    pub(super) kind: [u8; 4],
    /// Bytes before the content.
    pub(super) start: u64,
    /// Bytes altogether.
    pub(super) length: u64,
}

/// Why there is no box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoxFault {
    /// It is longer than what is left.
    Cut,
    /// It is shorter than its own head.
    Corrupt,
}

/// Bytes that tell all about a box.
pub(super) const HEAD_BYTES: usize = 16;

impl BoxHead {
    /// Reads the head of a box in a place where `left` bytes are left.
    pub(super) fn read(head: &[u8], left: u64) -> Result<Self, BoxFault> {
        let [s0, s1, s2, s3, k0, k1, k2, k3, rest @ ..] = head else {
            return Err(BoxFault::Cut);
        };
        let (start, length) = match u32::from_be_bytes([*s0, *s1, *s2, *s3]) {
            // To the end.
            0 => (8, left),
            1 => (
                16,
                u64::from_be_bytes(*rest.first_chunk().ok_or(BoxFault::Cut)?),
            ),
            length => (8, u64::from(length)),
        };
        if length < start {
            return Err(BoxFault::Corrupt);
        }
        if length > left {
            return Err(BoxFault::Cut);
        }
        Ok(Self {
            kind: [*k0, *k1, *k2, *k3],
            start,
            length,
        })
    }
}
