//! One change as JSON, as a caller gets it.

use super::token::Place;
use crate::database::log_position::LogPosition;
use crate::database::run::images::SeenRows;
use jiff::Timestamp;
use shared::envelope::write_string;
use shared::operation::webhook::ChangeType;

/// A change as a JSON object, and the place after it.
#[derive(Debug)]
pub struct Change {
    pub json: Vec<u8>,
    pub after: Place,
    pub ends_transaction: bool,
}

/// How the change of one logged row changes the list of a subscription. The numbers are indexes of rows in the JSON
/// document that the statement read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeenChange {
    Insert(usize),
    /// The record came into the subscription, or has another key than before.
    Entered(usize),
    Update(usize, usize),
    Delete(usize),
    /// The record left the subscription, or has another key now.
    Left(usize),
}

impl SeenChange {
    /// Returns the changes that a caller sees: none, one, or two if the record's key changed.
    pub(super) fn of(rows: &SeenRows, before: Option<usize>, after: Option<usize>) -> [Option<Self>; 2] {
        let seen = |at: Option<usize>| at.filter(|at| rows.is_seen(*at));
        match (before, after, seen(before), seen(after)) {
            (_, _, Some(old), Some(new)) if !rows.have_same_key(old, new) => {
                [Some(Self::Left(old)), Some(Self::Entered(new))]
            }
            (_, _, Some(old), Some(new)) => {
                [(!rows.changed_fields(old, new).is_empty()).then_some(Self::Update(old, new)), None]
            }
            (None, _, None, Some(new)) => [Some(Self::Insert(new)), None],
            (Some(_), _, None, Some(new)) => [Some(Self::Entered(new)), None],
            (_, None, Some(old), None) => [Some(Self::Delete(old)), None],
            (_, Some(_), Some(old), None) => [Some(Self::Left(old)), None],
            (_, _, None, None) => [None, None],
        }
    }

    pub(super) fn change_type(self) -> ChangeType {
        match self {
            Self::Insert(_) | Self::Entered(_) => ChangeType::Insert,
            Self::Update(..) => ChangeType::Update,
            Self::Delete(_) | Self::Left(_) => ChangeType::Delete,
        }
    }

    /// Writes the change without the member `"end"` and the closing brace, which [`finish`] writes.
    pub(super) fn write(
        self,
        rows: &SeenRows,
        subscription: Option<&str>,
        position: &LogPosition,
        committed_at: u32,
        out: &mut Vec<u8>,
    ) {
        let (Self::Insert(row) | Self::Entered(row) | Self::Update(_, row) | Self::Delete(row) | Self::Left(row)) =
            self;
        out.extend_from_slice(match self.change_type() {
            ChangeType::Insert => br#"{"type":"insert","key":"#,
            ChangeType::Update => br#"{"type":"update","key":"#,
            ChangeType::Delete => br#"{"type":"delete","key":"#,
        });
        rows.write_key(row, out);
        match self {
            Self::Left(_) => out.extend_from_slice(br#","left":true"#),
            _ => {
                out.extend_from_slice(br#","record":"#);
                rows.write_record(row, out);
            }
        }
        if let Self::Entered(_) = self {
            out.extend_from_slice(br#","entered":true"#);
        }
        if let Self::Update(before, after) = self {
            out.extend_from_slice(br#","changed":["#);
            for (at, field) in rows.changed_fields(before, after).into_iter().enumerate() {
                out.extend_from_slice(if at == 0 { b"" } else { b"," });
                out.extend_from_slice(rows.name(field));
            }
            out.push(b']');
        }
        if let Some(id) = subscription {
            out.extend_from_slice(br#","subscription":"#);
            write_string(out, id);
        }
        out.extend_from_slice(br#","position":"#);
        write_string(out, &format!("gtid:{position}"));
        out.extend_from_slice(br#","at":"#);
        let at = Timestamp::from_second(committed_at.into()).unwrap_or_default();
        write_string(out, &at.to_string());
    }
}

pub(super) fn finish(json: &mut Vec<u8>, ends_transaction: bool) {
    if ends_transaction {
        json.extend_from_slice(br#","end":true"#);
    }
    json.push(b'}');
}
