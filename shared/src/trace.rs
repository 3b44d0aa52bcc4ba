//! W3C Trace Context (level 1): parses `traceparent`, and writes the header with a span of this server.

/// Request header with the caller's span: `00-{trace}-{span}-{flags}`.
pub const TRACEPARENT: &str = "traceparent";

/// Request header that is forwarded only together with a valid [`TRACEPARENT`].
pub const TRACESTATE: &str = "tracestate";

const BYTES: usize = 55;

/// A span in the form of a `traceparent` of version 00.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSpan {
    text: [u8; BYTES],
    /// The id of the caller's span in hexadecimal digits; zeros if the trace begins with this span.
    parent: [u8; 16],
}

impl TraceSpan {
    pub fn continued(header: &str, id: [u8; 8]) -> Option<Self> {
        let (text, rest) = header.as_bytes().split_at_checked(BYTES)?;
        let is_form = text.iter().enumerate().all(|(at, byte)| match at {
            2 | 35 | 52 => *byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
        // Versions after 00 may add further parts to the header.
        let has_end = rest.is_empty() || (rest.starts_with(b"-") && !text.starts_with(b"00"));
        let is_zero = |from: usize, to: usize| text[from..to].iter().all(|byte| *byte == b'0');
        if !is_form || !has_end || text.starts_with(b"ff") || is_zero(3, 35) || is_zero(36, 52) {
            return None;
        }
        let mut span = Self { text: text.try_into().ok()?, parent: text[36..52].try_into().ok()? };
        span.text[..2].copy_from_slice(b"00");
        // Only the flag "sampled" (the lowest bit) is passed on, since unknown flags must be 0.
        span.text[53] = b'0';
        span.text[54] =
            if matches!(text[54], b'1' | b'3' | b'5' | b'7' | b'9' | b'b' | b'd' | b'f') { b'1' } else { b'0' };
        span.set_id(id);
        Some(span)
    }

    pub fn begin(mut trace: [u8; 16], id: [u8; 8]) -> Self {
        let mut span = Self { text: *b"00-00000000000000000000000000000000-0000000000000000-01", parent: [b'0'; 16] };
        trace[15] |= 1;
        write_hex(&mut span.text[3..35], &trace);
        span.set_id(id);
        span
    }

    pub fn child(&self, id: [u8; 8]) -> Self {
        let mut child = *self;
        child.parent.copy_from_slice(&self.text[36..52]);
        child.set_id(id);
        child
    }

    fn set_id(&mut self, mut id: [u8; 8]) {
        // Makes the id valid: it must not be zero.
        id[7] |= 1;
        write_hex(&mut self.text[36..52], &id);
    }

    pub fn header(&self) -> &str {
        text(&self.text)
    }

    pub fn trace(&self) -> &str {
        text(&self.text[3..35])
    }

    pub fn id(&self) -> &str {
        text(&self.text[36..52])
    }

    /// Returns the id of the caller's span; zeros if the trace begins with this span.
    pub fn parent(&self) -> &str {
        text(&self.parent)
    }

    /// Returns the flag that asks each server to record its spans.
    pub fn is_sampled(&self) -> bool {
        self.text[54] == b'1'
    }
}

fn text(digits: &[u8]) -> &str {
    // The bytes were checked, or written by `write_hex`.
    std::str::from_utf8(digits).unwrap_or_default()
}

fn write_hex(to: &mut [u8], bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in to.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const ID: [u8; 8] = [0xab, 0, 1, 2, 3, 4, 5, 0x10];

    #[test]
    fn a_valid_header_is_continued_with_a_span_of_its_own() {
        let span = TraceSpan::continued(VALID, ID).unwrap();
        assert_eq!(span.header(), "00-0af7651916cd43dd8448eb211c80319c-ab00010203040511-01");
        assert_eq!(span.trace(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((span.id(), span.parent()), ("ab00010203040511", "b7ad6b7169203331"));
        assert!(span.is_sampled());
        let child = span.child([0; 8]);
        assert_eq!((child.trace(), child.parent(), child.id()), (span.trace(), span.id(), "0000000000000001"));
    }

    #[test]
    fn flags_and_later_versions_are_read_as_far_as_they_are_known() {
        for (flags, sent) in [("00", "00"), ("02", "00"), ("ff", "01"), ("09", "01"), ("a0", "00"), ("0d", "01")] {
            let header = format!("{}{flags}", &VALID[..53]);
            assert_eq!(&TraceSpan::continued(&header, ID).unwrap().header()[53..], sent, "{flags}");
        }
        for later in [format!("cc{}", &VALID[2..]), format!("01{}-what-the-future-adds", &VALID[2..])] {
            let span = TraceSpan::continued(&later, ID).unwrap();
            assert!(span.header().starts_with("00-0af7"), "{later}");
            assert_eq!(span.header().len(), BYTES);
        }
    }

    #[test]
    fn an_invalid_header_is_ignored() {
        let zeros = "0".repeat(32);
        for header in [
            String::new(),
            VALID[..54].to_owned(),
            format!("{VALID}-"),
            format!("{VALID}0"),
            format!("{VALID}, {VALID}"),
            format!(" {VALID}"),
            VALID.to_uppercase(),
            format!("ff{}", &VALID[2..]),
            format!("01{}.x", &VALID[2..]),
            VALID.replace('-', "_"),
            VALID.replace("0af7651916cd43dd8448eb211c80319c", &zeros),
            VALID.replace("b7ad6b7169203331", &zeros[..16]),
            VALID.replace("0af7", "0ag7"),
            format!("{}é", &VALID[..54]),
        ] {
            assert_eq!(TraceSpan::continued(&header, ID), None, "{header}");
        }
    }

    #[test]
    fn a_trace_that_begins_here_is_valid_and_sampled() {
        for bytes in [0, 0xff] {
            let span = TraceSpan::begin([bytes; 16], [bytes; 8]);
            assert!(span.is_sampled() && span.parent().bytes().all(|digit| digit == b'0'));
            let next = TraceSpan::continued(span.header(), ID).unwrap();
            assert_eq!((next.trace(), next.parent()), (span.trace(), span.id()));
        }
    }
}
