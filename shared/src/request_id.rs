//! Request ids, which identify a request in logs, headers and errors.

use crate::ident::checked_text;
use crate::limits::REQUEST_ID_MAX_BYTES;

pub const HEADER: &str = "x-request-id";

/// A request id. Its characters need no quoting in a header or a log line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// Accepts 1 to 128 letters, digits and `-_.~:+/=@`.
    pub fn from_incoming(header: &str) -> Option<Self> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.~:+/=@".contains(&b);
        let well_formed = (1..=REQUEST_ID_MAX_BYTES).contains(&header.len()) && header.bytes().all(allowed);
        well_formed.then(|| Self(header.into()))
    }

    pub fn generate(unix_millis: u64, random: &[u8; 10]) -> Self {
        let id = uuid::Builder::from_unix_timestamp_millis(unix_millis, random).into_uuid();
        let mut text = uuid::Uuid::encode_buffer();
        Self((&*id.hyphenated().encode_lower(&mut text)).into())
    }
}

checked_text!(RequestId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_formed_incoming_id_is_kept() {
        for id in ["1", "abc-DEF_0.1", "019c9a4e-7b5a-7000-8000-000000000000", &"x".repeat(128)] {
            assert_eq!(RequestId::from_incoming(id).unwrap().as_str(), id);
        }
    }

    #[test]
    fn an_id_that_could_forge_a_log_line_or_a_header_is_not_kept() {
        for id in ["", "a b", "a\nb", "a\"b", "é", "a,b", "<x>", &"x".repeat(129)] {
            assert_eq!(RequestId::from_incoming(id), None, "{id:?}");
        }
    }

    #[test]
    fn a_generated_id_is_a_uuid_of_version_7_that_begins_with_its_time() {
        let id = RequestId::generate(0x0199_aabb_ccdd, &[0xff; 10]);
        assert_eq!(id.as_str(), "0199aabb-ccdd-7fff-bfff-ffffffffffff");
        assert!(RequestId::from_incoming(id.as_str()).is_some());
    }
}
