//! Events as the driver returns them.

use mysql_async::binlog::events::Event;

/// The number of the table that an event of rows is of.
pub(super) fn table_number(event: &Event) -> Option<u64> {
    const BYTES: usize = 6;
    let [a, b, c, d, e, f] = *event.data().first_chunk::<BYTES>()?;
    Some(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
}

/// Writes the bytes of the event as MariaDB sent them, from the parts into which the driver has split it.
pub(super) fn raw_event(event: &Event, out: &mut Vec<u8>) {
    const CHECKSUM_BYTES: usize = 4;
    let header = event.header();
    out.clear();
    out.extend_from_slice(&header.timestamp().to_le_bytes());
    out.push(header.event_type_raw());
    out.extend_from_slice(&header.server_id().to_le_bytes());
    out.extend_from_slice(&header.event_size().to_le_bytes());
    out.extend_from_slice(&header.log_pos().to_le_bytes());
    out.extend_from_slice(&header.flags_raw().to_le_bytes());
    out.extend_from_slice(event.data());
    let missing = (header.event_size() as usize).saturating_sub(out.len());
    if missing > CHECKSUM_BYTES {
        let algorithm = event.footer().get_checksum_alg().ok().flatten();
        out.push(algorithm.map_or(0, |algorithm| algorithm as u8));
    }
    if missing >= CHECKSUM_BYTES {
        out.extend_from_slice(&event.checksum().unwrap_or_default());
    }
}
