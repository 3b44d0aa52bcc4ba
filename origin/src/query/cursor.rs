//! Page cursors (the tokens in `next` and `after`): the sort values of a page's last row with a MAC. The MAC also
//! covers the project and what all pages of the read share, so that nobody can forge a cursor or use it with another
//! read.

use crate::query::plan::Param;
use crate::query::plan::keyset::foreign_cursor;
use crate::query::sql::Statement;
use crate::secret::InstallationSecret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use shared::error::Problem;
use shared::ident::ProjectName;

/// The MAC is half of an HMAC-SHA256, the minimum that RFC 2104 (section 5) recommends.
const MAC_BYTES: usize = 16;
const VERSION: u8 = 2;

#[derive(Clone)]
pub struct PageTokens {
    keyed: Hmac<Sha256>,
}

impl std::fmt::Debug for PageTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PageTokens")
    }
}

#[derive(Clone)]
pub struct ReadCursors(Hmac<Sha256>);

impl std::fmt::Debug for ReadCursors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadCursors")
    }
}

impl PageTokens {
    pub fn new(secret: &InstallationSecret) -> Self {
        Self::with_key(&secret.derive("pages:tokens"))
    }

    #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
    pub(crate) fn with_key(key: &[u8]) -> Self {
        Self { keyed: Hmac::new_from_slice(key).expect("HMAC takes a key of any length") }
    }

    pub fn of_read(&self, project: &ProjectName, shared: &Statement) -> ReadCursors {
        let mut values = Vec::new();
        for param in shared.params() {
            write_value(param, &mut values);
        }
        self.of_parts([project.as_str().as_bytes(), shared.text().as_bytes(), &values])
    }

    /// Tokens of the feed of changes, which hold what they belong to themselves.
    pub fn of_changes(&self, project: &ProjectName) -> ReadCursors {
        self.of_parts([project.as_str().as_bytes(), b"changes", b""])
    }

    fn of_parts(&self, parts: [&[u8]; 3]) -> ReadCursors {
        let mut mac = self.keyed.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        ReadCursors(mac)
    }
}

impl ReadCursors {
    pub fn token(self, values: &[Param]) -> String {
        let mut bytes = vec![VERSION];
        for value in values {
            write_value(value, &mut bytes);
        }
        let mac = self.mac(&bytes);
        bytes.extend_from_slice(&mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Refuses a token that is forged or of another read. The values of a token must not be used before this check.
    pub fn check(&self, token: &str) -> Result<(), Problem> {
        let is_own = || {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
            let (body, given) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
            let mut mac = self.0.clone();
            mac.update(body);
            mac.verify_truncated_left(given).ok()
        };
        is_own().ok_or_else(foreign_cursor)
    }

    fn mac(self, body: &[u8]) -> [u8; MAC_BYTES] {
        let mut mac = self.0;
        mac.update(body);
        let whole = mac.finalize().into_bytes();
        let mut short = [0; MAC_BYTES];
        short.copy_from_slice(&whole[..MAC_BYTES]);
        short
    }
}

/// Reads the values of a token; `None` if it is malformed. Only [`ReadCursors::check`] tells whether it is genuine.
pub fn values(token: &str) -> Option<Vec<Param>> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (version, mut rest) = bytes.get(..bytes.len().checked_sub(MAC_BYTES)?)?.split_first()?;
    if *version != VERSION {
        return None;
    }
    let mut values = Vec::new();
    while !rest.is_empty() {
        values.push(read_value(&mut rest)?);
    }
    Some(values)
}

/// Writes a letter for the type, a length of 4 bytes for text or bytes, and the bytes.
fn write_value(value: &Param, out: &mut Vec<u8>) {
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

fn read_value(bytes: &mut &[u8]) -> Option<Param> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const READ: [&[u8]; 3] = [b"read", b"", b""];

    fn tokens() -> PageTokens {
        PageTokens::with_key(b"a key of the test")
    }

    fn sample() -> Vec<Param> {
        vec![
            Param::Null,
            Param::Int(-7),
            Param::UInt(u64::MAX),
            Param::Float(0.1),
            Param::Double(-0.0),
            Param::Text("naïve 🦭".into()),
            Param::Bytes(vec![0, 255]),
        ]
    }

    #[test]
    fn a_token_gives_its_values_back() {
        for given in [sample(), Vec::new()] {
            let token = tokens().of_parts(READ).token(&given);
            tokens().of_parts(READ).check(&token).unwrap();
            assert_eq!(values(&token), Some(given));
        }
    }

    #[test]
    fn a_token_of_another_read_or_key_is_refused() {
        let token = tokens().of_parts(READ).token(&sample());
        assert!(tokens().of_parts([b"rea", b"d", b""]).check(&token).is_err());
        let foreign = PageTokens::with_key(b"another key");
        assert!(foreign.of_parts(READ).check(&token).is_err());
    }

    proptest! {
        #[test]
        fn a_changed_token_is_refused(at in 0usize..1000, to in "[A-Za-z0-9_=-]") {
            let token = tokens().of_parts(READ).token(&sample());
            let at = at % token.len();
            let changed = format!("{}{to}{}", &token[..at], &token[at + 1..]);
            prop_assume!(changed != token);
            prop_assert!(tokens().of_parts(READ).check(&changed).is_err());
        }

        #[test]
        fn nothing_panics(token in ".{0,80}") {
            let _ = values(&token);
            prop_assert!(tokens().of_parts(READ).check(&token).is_err());
        }
    }
}
