//! The token of a page: where the next page begins, and hashes of what the page shows. The token is signed, so that
//! every origin of the installation can trust it.

use super::{ChangesError, ResyncReason};
use crate::database::log_position::LogPosition;
use crate::database::position::Gtid;
use crate::query::cursor::{self, PageTokens};
use crate::query::plan::Param;
use shared::ident::ProjectName;

/// A place in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The position after the last transaction that was returned as a whole.
    pub position: LogPosition,
    /// If only a part of the transaction after `position` was returned: that transaction, and the number of its next
    /// change, with `CHANGES_PER_ROW` numbers for each row.
    pub within: Option<(Gtid, u64)>,
}

impl Place {
    /// Refuses a place after the end of the log, which a client has if the log was reset.
    pub fn check(&self, end: &Self) -> Result<(), ChangesError> {
        match end.position.is_at_or_after(&self.position) {
            true => Ok(()),
            false => Err(ChangesError::Resync(ResyncReason::UnknownPosition)),
        }
    }
}

/// Hashes of what a page shows. If one of them differs, the token can't be used, and the hash tells the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// A hash of the subscriptions as the caller wrote them.
    pub asked: [u8; Self::BYTES],
    /// A hash of the columns of the tables.
    pub schema: [u8; Self::BYTES],
    /// A hash of the lists as the caller may read them, with the conditions of the caller's role.
    pub seen: [u8; Self::BYTES],
}

impl Meaning {
    pub const BYTES: usize = 16;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub place: Place,
    pub meaning: Meaning,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// The token is not of this installation and project, or is no token.
    Foreign,
    /// The token is of other subscriptions.
    OtherSubscriptions,
    SchemaChanged,
    RoleChanged,
}

impl Token {
    pub fn write(&self, tokens: &PageTokens, project: &ProjectName) -> String {
        let Place { position, within } = &self.place;
        let (gtid, rows) = match within {
            Some((gtid, rows)) => (Param::Text(LogPosition::of(*gtid).to_string().into()), *rows),
            None => (Param::Null, 0),
        };
        let Meaning { asked, schema, seen } = self.meaning;
        let hashes = [asked, schema, seen].map(|hash| Param::Bytes(hash.to_vec()));
        let place = [Param::Text(position.to_string().into()), gtid, Param::UInt(rows)];
        tokens.of_changes(project).token(&place.into_iter().chain(hashes).collect::<Vec<_>>())
    }

    /// Checks a token, and returns its place. The page of the token must have had the same `meaning`.
    pub fn read(
        text: &str,
        tokens: &PageTokens,
        project: &ProjectName,
        meaning: &Meaning,
    ) -> Result<Place, TokenFault> {
        tokens.of_changes(project).check(text).map_err(|_| TokenFault::Foreign)?;
        let token = Self::parse(text).ok_or(TokenFault::Foreign)?;
        match token.meaning {
            Meaning { asked, .. } if asked != meaning.asked => Err(TokenFault::OtherSubscriptions),
            Meaning { schema, .. } if schema != meaning.schema => Err(TokenFault::SchemaChanged),
            Meaning { seen, .. } if seen != meaning.seen => Err(TokenFault::RoleChanged),
            _ => Ok(token.place),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let values = cursor::values(text)?;
        let [
            Param::Text(position),
            gtid,
            Param::UInt(rows),
            Param::Bytes(asked),
            Param::Bytes(schema),
            Param::Bytes(seen),
        ] = values.as_slice()
        else {
            return None;
        };
        let within = match gtid {
            Param::Text(gtid) => Some((LogPosition::parse(gtid)?.only()?, *rows)),
            _ => None,
        };
        let hash = |bytes: &[u8]| bytes.try_into().ok();
        Some(Self {
            place: Place { position: LogPosition::parse(position)?, within },
            meaning: Meaning { asked: hash(asked)?, schema: hash(schema)?, seen: hash(seen)? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_why_it_can_not_be_used() {
        let tokens = PageTokens::with_key(&[7; 32]);
        let project = |name| ProjectName::parse(name).unwrap();
        let meaning = Meaning { asked: [1; 16], schema: [2; 16], seen: [3; 16] };
        let gtid = Gtid { domain: 0, server: 1, number: 8 };
        for within in [None, Some((gtid, 5))] {
            let place = Place { position: LogPosition::parse("0-1-7,2-1-9").unwrap(), within };
            let text = Token { place: place.clone(), meaning }.write(&tokens, &project("shop"));
            assert_eq!(Token::read(&text, &tokens, &project("shop"), &meaning), Ok(place));
            for (name, meaning, fault) in [
                ("other", meaning, TokenFault::Foreign),
                ("shop", Meaning { asked: [9; 16], schema: [9; 16], ..meaning }, TokenFault::OtherSubscriptions),
                ("shop", Meaning { schema: [9; 16], seen: [9; 16], ..meaning }, TokenFault::SchemaChanged),
                ("shop", Meaning { seen: [9; 16], ..meaning }, TokenFault::RoleChanged),
            ] {
                assert_eq!(Token::read(&text, &tokens, &project(name), &meaning), Err(fault));
            }
            assert_eq!(Token::read(&text[1..], &tokens, &project("shop"), &meaning), Err(TokenFault::Foreign));
        }
    }
}
