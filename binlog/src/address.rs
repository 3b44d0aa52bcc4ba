//! Prints UUID, INET4 and INET6 values as MariaDB does. The log has them as binary strings of fixed length, which only
//! the schema distinguishes from BINARY. A UUID has the byte order of its text there, even if a table stores another.

use std::fmt::Write as _;

/// Formats a UUID; `None` if there are not 16 bytes.
pub fn uuid(bytes: &[u8]) -> Option<String> {
    let bytes = <[u8; 16]>::try_from(bytes).ok()?;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

/// Formats an INET4; `None` if there are not 4 bytes.
pub fn inet4(bytes: &[u8]) -> Option<String> {
    let [a, b, c, d] = <[u8; 4]>::try_from(bytes).ok()?;
    Some(format!("{a}.{b}.{c}.{d}"))
}

/// Formats an INET6; `None` if there are not 16 bytes. Unlike `std`, MariaDB also shortens a single group of zeros.
pub fn inet6(bytes: &[u8]) -> Option<String> {
    let bytes = <[u8; 16]>::try_from(bytes).ok()?;
    let (groups, _) = bytes.as_chunks::<2>();
    let groups: Vec<u16> = groups.iter().copied().map(u16::from_be_bytes).collect();
    let zeros_from = |start: usize| groups.iter().skip(start).take_while(|group| **group == 0).count();
    // Finds the first of the longest runs of zeros.
    let (gap, length) =
        (0..groups.len()).map(|start| (start, zeros_from(start))).rev().max_by_key(|(_, zeros)| *zeros)?;
    let [.., a, b, c, d] = bytes;
    match (gap, length, groups.get(5)) {
        (0, 6, _) => return Some(format!("::{a}.{b}.{c}.{d}")),
        (0, 5, Some(0xFFFF)) => return Some(format!("::ffff:{a}.{b}.{c}.{d}")),
        _ => {}
    }
    let part = |groups: &[u16]| groups.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":");
    if length == 0 {
        return Some(part(&groups));
    }
    let (before, after) = (groups.get(..gap)?, groups.get(gap + length..)?);
    Some(format!("{}::{}", part(before), part(after)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn addresses_are_printed_as_mariadb_prints_them() {
        let texts = [
            "::",
            "::1",
            "::0.1.0.2",
            "::ffff:1.2.3.4",
            "::ffff:0.0.0.0",
            "::1:0:0",
            "1::2:3:4:5:6:7",
            "1::2:3:0:0:4",
            "::1:2:3:4:5:6:0",
            "ffff:0:0:ffff::",
            "1:2:3:4:5:6:7:8",
        ];
        for text in texts {
            let bytes = text.parse::<Ipv6Addr>().unwrap().octets();
            assert_eq!(inet6(&bytes).unwrap(), text);
        }
        assert_eq!(inet4(&[10, 0, 0, 255]).unwrap(), "10.0.0.255");
        let bytes: Vec<u8> = (0x10..0x20).collect();
        assert_eq!(uuid(&bytes).unwrap(), "10111213-1415-1617-1819-1a1b1c1d1e1f");
        assert_eq!((uuid(&bytes[1..]), inet6(&bytes[1..]), inet4(&bytes)), (None, None, None));
    }
}
