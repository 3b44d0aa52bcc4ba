//! Writes the driver's values as CSV cells: NULL is an empty cell, a JSON value or a geometry is its JSON text.

use super::json::Decoder;
use mysql_async::Value;
use shared::envelope::write_csv;

impl Decoder {
    /// Appends the value as a CSV cell. An invalid geometry is an empty cell, as NULL is.
    pub(super) fn write_csv(self, value: &Value, out: &mut Vec<u8>) {
        match (self, value) {
            (_, Value::NULL) => {}
            (Self::Text | Self::Json, Value::Bytes(bytes)) => text(bytes, out),
            (Self::Geometry, value) => {
                let mut json = Vec::new();
                self.write(value, &mut json);
                if json != b"null" {
                    text(&json, out);
                }
            }
            _ => self.write_bare(value, out),
        }
    }

    /// Appends the JSON value without its quotes. An empty text keeps the quotes, to differ from NULL.
    fn write_bare(self, value: &Value, out: &mut Vec<u8>) {
        let start = out.len();
        self.write(value, out);
        if out.get(start) == Some(&b'"') {
            let end = out.len() - 1;
            out.copy_within(start + 1..end, start);
            out.truncate(end - 1);
            if out.len() == start {
                write_csv(out, "");
            }
        }
    }
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => write_csv(out, text),
        Err(_) => write_csv(out, &String::from_utf8_lossy(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(decoder: Decoder, value: &Value) -> String {
        let mut out = b"x,".to_vec();
        decoder.write_csv(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_hold_what_json_says_without_its_quotes() {
        let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
        for (decoder, value, cell) in [
            (Decoder::Integer, Value::Int(-5), "-5"),
            (Decoder::Integer, Value::UInt(u64::MAX), "18446744073709551615"),
            (Decoder::Integer, Value::Int(i64::MIN), "-9223372036854775808"),
            (Decoder::Integer, bytes(b"9007199254740993"), "9007199254740993"),
            (Decoder::Bit, bytes(&[1, 0]), "256"),
            (Decoder::BitExpression, bytes(b"18446744073709551615"), "18446744073709551615"),
            (Decoder::Float, Value::Double(0.1), "0.1"),
            (Decoder::Text, bytes(b"10.50"), "10.50"),
            (Decoder::Text, bytes(b""), "\"\""),
            (Decoder::Text, bytes(b"a \"b\", c"), "\"a \"\"b\"\", c\""),
            (Decoder::Text, bytes(b"\xff"), "\u{fffd}"),
            (Decoder::Text, Value::NULL, ""),
            (Decoder::Json, bytes(b"{\"a\": 1}"), "\"{\"\"a\"\": 1}\""),
            (Decoder::Json, bytes(b"null"), "null"),
            (Decoder::Bytes, bytes(&[0, 1, 2]), "AAEC"),
            (Decoder::Bytes, bytes(&[]), "\"\""),
            (Decoder::Geometry, bytes(b"nonsense"), ""),
            (Decoder::Date, Value::Date(2026, 1, 2, 0, 0, 0, 0), "2026-01-02"),
            (Decoder::DateTime(3), Value::Date(2026, 1, 2, 3, 4, 5, 67_000), "2026-01-02 03:04:05.067"),
            (Decoder::Time(0), Value::Time(true, 34, 22, 59, 59, 0), "-838:59:59"),
        ] {
            assert_eq!(csv(decoder, &value), format!("x,{cell}"), "{decoder:?}");
        }
    }
}
