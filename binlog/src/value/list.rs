//! ENUM and SET, with the members of their column.

use crate::bytes::little;
use crate::charset::{self, Utf8};
use crate::{BrokenRule, Column};
use std::borrow::Cow;

type MemberTexts<'a> = Option<&'a [Box<[u8]>]>;

const NO_MEMBER: BrokenRule = BrokenRule::Format("an ENUM or SET has a member that its column does not have");

#[derive(Debug, Clone, Copy)]
pub struct Enum<'a> {
    /// Index of the member, from 1; 0 is the empty text of an invalid value.
    pub index: u16,
    /// Number of the collation of the member's text.
    pub collation: Option<u16>,
    members: MemberTexts<'a>,
}

impl<'a> Enum<'a> {
    pub(crate) fn new(stored: &[u8], column: &'a Column) -> Result<Self, BrokenRule> {
        let index = u16::try_from(little(stored)).map_err(|_| NO_MEMBER)?;
        let members = column.members.as_deref();
        if members.is_some_and(|members| usize::from(index) > members.len()) {
            return Err(NO_MEMBER);
        }
        Ok(Self { index, collation: column.collation, members })
    }

    /// Returns the member, in the character set of the collation; `None` if the log does not contain it.
    pub fn member(&self) -> Option<&'a [u8]> {
        let Some(index) = usize::from(self.index).checked_sub(1) else {
            return Some(&[]);
        };
        self.members?.get(index).map(AsRef::as_ref)
    }

    /// Returns the member in UTF-8; `None` if the log does not contain it.
    pub fn to_utf8(&self) -> Option<Utf8<'a>> {
        Some(charset::to_utf8(self.collation?, self.member()?))
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Set<'a> {
    /// The members that are set; the lowest bit is the first member.
    pub bits: u64,
    /// Number of the collation of the members' texts.
    pub collation: Option<u16>,
    members: MemberTexts<'a>,
}

impl<'a> Set<'a> {
    pub(crate) fn new(stored: &[u8], column: &'a Column) -> Result<Self, BrokenRule> {
        let bits = little(stored);
        let members = column.members.as_deref();
        let used = u64::BITS.saturating_sub(bits.leading_zeros());
        if members.is_some_and(|members| members.len() < usize::try_from(used).unwrap_or(usize::MAX)) {
            return Err(NO_MEMBER);
        }
        Ok(Self { bits, collation: column.collation, members })
    }

    /// Returns the members that are set, in the collation's character set; `None` if the log does not contain them.
    pub fn members(&self) -> Option<impl Iterator<Item = &'a [u8]> + use<'a>> {
        let bits = self.bits;
        let set =
            move |index: usize| u32::try_from(index).is_ok_and(|index| bits.checked_shr(index).unwrap_or(0) & 1 == 1);
        Some(self.members?.iter().enumerate().filter(move |(index, _)| set(*index)).map(|(_, member)| member.as_ref()))
    }
    /// Returns the members that are set in UTF-8, joined by commas; `None` if the log does not contain them.
    pub fn to_utf8(&self) -> Option<Utf8<'a>> {
        let collation = self.collation?;
        let mut joined = String::new();
        for (position, member) in self.members()?.enumerate() {
            let Utf8::Text(member) = charset::to_utf8(collation, member) else {
                return Some(Utf8::NeedsServer);
            };
            if position > 0 {
                joined.push(',');
            }
            joined.push_str(&member);
        }
        Some(Utf8::Text(Cow::Owned(joined)))
    }
}
