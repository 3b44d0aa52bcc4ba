//! Converts MariaDB's geometry bytes to GeoJSON (RFC 7946). MariaDB's bytes are four bytes of SRID, which is ignored,
//! then well-known binary (OGC 06-103r4, section 8.2).

const NESTING_MAX_LEVELS: u8 = 16;
const SRID_BYTES: usize = 4;

/// Appends the geometry as GeoJSON; `null` for invalid bytes, a coordinate that is not finite, or too deep nesting.
pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut reader = WkbReader { bytes: bytes.get(SRID_BYTES..).unwrap_or_default(), little: true };
    if geometry(&mut reader, out, NESTING_MAX_LEVELS).is_none() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

struct WkbReader<'a> {
    bytes: &'a [u8],
    little: bool,
}

impl WkbReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = tail;
        Some(*head)
    }

    fn count(&mut self) -> Option<u32> {
        let bytes = self.take::<4>()?;
        Some(if self.little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn number(&mut self) -> Option<f64> {
        let bytes = self.take::<8>()?;
        Some(if self.little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) })
    }

    fn kind(&mut self) -> Option<u32> {
        self.little = self.take::<1>()? == [1];
        self.count()
    }
}

type CoordinatesWriter = fn(&mut WkbReader<'_>, &mut Vec<u8>) -> Option<()>;

fn geometry(reader: &mut WkbReader<'_>, out: &mut Vec<u8>, levels: u8) -> Option<()> {
    let (name, part): (&str, CoordinatesWriter) = match reader.kind()? {
        1 => ("Point", point),
        2 => ("LineString", line),
        3 => ("Polygon", polygon),
        4 => ("MultiPoint", |reader, out| list(reader, out, |reader, out| member(reader, out, point))),
        5 => ("MultiLineString", |reader, out| list(reader, out, |reader, out| member(reader, out, line))),
        6 => ("MultiPolygon", |reader, out| list(reader, out, |reader, out| member(reader, out, polygon))),
        7 => return collection(reader, out, levels.checked_sub(1)?),
        _ => return None,
    };
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\",\"coordinates\":");
    part(reader, out)?;
    out.push(b'}');
    Some(())
}

fn collection(reader: &mut WkbReader<'_>, out: &mut Vec<u8>, levels: u8) -> Option<()> {
    out.extend_from_slice(b"{\"type\":\"GeometryCollection\",\"geometries\":");
    list(reader, out, |reader, out| geometry(reader, out, levels))?;
    out.push(b'}');
    Some(())
}

fn list(
    reader: &mut WkbReader<'_>,
    out: &mut Vec<u8>,
    mut item: impl FnMut(&mut WkbReader<'_>, &mut Vec<u8>) -> Option<()>,
) -> Option<()> {
    let count = reader.count()?;
    out.push(b'[');
    for at in 0..count {
        if at > 0 {
            out.push(b',');
        }
        item(reader, out)?;
    }
    out.push(b']');
    Some(())
}

fn member(reader: &mut WkbReader<'_>, out: &mut Vec<u8>, part: CoordinatesWriter) -> Option<()> {
    reader.kind()?;
    part(reader, out)
}

fn point(reader: &mut WkbReader<'_>, out: &mut Vec<u8>) -> Option<()> {
    out.push(b'[');
    coordinate(reader.number()?, out)?;
    out.push(b',');
    coordinate(reader.number()?, out)?;
    out.push(b']');
    Some(())
}

fn line(reader: &mut WkbReader<'_>, out: &mut Vec<u8>) -> Option<()> {
    list(reader, out, point)
}

fn polygon(reader: &mut WkbReader<'_>, out: &mut Vec<u8>) -> Option<()> {
    list(reader, out, line)
}

fn coordinate(number: f64, out: &mut Vec<u8>) -> Option<()> {
    number.is_finite().then(|| out.extend_from_slice(zmij::Buffer::new().format(number).as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point_bytes(x: f64, y: f64) -> Vec<u8> {
        let mut bytes = vec![1, 1, 0, 0, 0];
        bytes.extend(x.to_le_bytes());
        bytes.extend(y.to_le_bytes());
        bytes
    }

    fn text(wkb: &[u8]) -> String {
        let mut out = Vec::new();
        write(&[&[0; SRID_BYTES], wkb].concat(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn points_and_collections_of_them() {
        assert_eq!(text(&point_bytes(1.5, -2.0)), r#"{"type":"Point","coordinates":[1.5,-2.0]}"#);
        let multi = [&[1u8, 4, 0, 0, 0, 1, 0, 0, 0][..], &point_bytes(1.0, 2.0)].concat();
        assert_eq!(text(&multi), r#"{"type":"MultiPoint","coordinates":[[1.0,2.0]]}"#);
        let collection = [&[1u8, 7, 0, 0, 0, 1, 0, 0, 0][..], &point_bytes(1.0, 2.0)].concat();
        assert_eq!(
            text(&collection),
            r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1.0,2.0]}]}"#
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_valid_json(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut out = Vec::new();
            write(&bytes, &mut out);
            prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&out).is_ok());
        }
    }
}
