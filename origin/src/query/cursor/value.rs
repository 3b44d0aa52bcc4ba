//! Encodes the values in page cursors as bytes, and decodes them.

use crate::query::plan::Param;

/// Writes a letter for the type, a length of 4 bytes for text or bytes, and the bytes.
pub(super) fn write(value: &Param, out: &mut Vec<u8>) {
    match value {
        Param::Null => out.push(b'n'),
        Param::Int(number) => fixed(b'i', &number.to_be_bytes(), out),
        Param::UInt(number) => fixed(b'u', &number.to_be_bytes(), out),
        Param::Float(number) => fixed(b'f', &number.to_be_bytes(), out),
        Param::Double(number) => fixed(b'd', &number.to_be_bytes(), out),
        Param::Text(text) => varying(b't', text.as_bytes(), out),
        Param::Bytes(bytes) => varying(b'b', bytes, out),
    }
}

fn fixed(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(bytes);
}

fn varying(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    fixed(kind, &length.to_be_bytes(), out);
    out.extend_from_slice(bytes);
}

pub(super) fn read(bytes: &mut &[u8]) -> Option<Param> {
    let (kind, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(match kind {
        b'n' => Param::Null,
        b'i' => Param::Int(i64::from_be_bytes(take(bytes)?)),
        b'u' => Param::UInt(u64::from_be_bytes(take(bytes)?)),
        b'f' => Param::Float(f32::from_be_bytes(take(bytes)?)),
        b'd' => Param::Double(f64::from_be_bytes(take(bytes)?)),
        b't' => Param::Text(String::from_utf8(counted(bytes)?.to_vec()).ok()?.into()),
        b'b' => Param::Bytes(counted(bytes)?.to_vec()),
        _ => return None,
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn counted<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(u32::from_be_bytes(take(bytes)?)).ok()?;
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}
