//! The caller for whom a request counts, where callers share a limited resource such as slots or memory.

use super::incoming_request::IncomingRequest;
use super::origin_health::READINESS_PATH;
use shared::policy::Action;
use shared::request_log::{RequestLog, UserCaller};
use std::net::Ipv6Addr;

/// A class of callers. Each class has resources of its own, so that a flood in one does not affect the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Class {
    /// Callers with a key of a project, or with a user's token that the edge has verified.
    Verified,
    /// Callers with a user's token that only the origin can verify.
    Unverified,
    /// Callers without a valid key: public media, and the pages for browsers.
    #[default]
    Public,
    /// Checks of the origin's readiness.
    Health,
    /// Verified callers who ask for changes.
    Changes,
    /// Unverified callers who ask for changes.
    UnverifiedChanges,
}

impl Class {
    pub(super) const ALL: [Self; 6] =
        [Self::Verified, Self::Unverified, Self::Public, Self::Health, Self::Changes, Self::UnverifiedChanges];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unverified => "unverified",
            Self::Public => "public",
            Self::Health => "health",
            Self::Changes => "changes",
            Self::UnverifiedChanges => "unverified changes",
        }
    }

    pub(super) fn group_name(self) -> &'static str {
        match self {
            Self::Verified | Self::Changes => "this project",
            Self::Unverified | Self::Public | Self::Health | Self::UnverifiedChanges => "this client address",
        }
    }
}

/// The class, group and member for which a request counts. A group is a project, an issuer's users or a client address.
/// A member of a group is a key, a user or a token; requests without a token are one member together.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    class: Class,
    group: Box<str>,
    member: Box<str>,
}

impl Caller {
    /// Returns the caller of a request. [`super::Gateway::decide`] must have written `log`. `address` is called only if
    /// the request counts for its client address.
    pub fn of(log: &RequestLog, request: &IncomingRequest, address: impl FnOnce() -> Box<str>) -> Self {
        let (class, group) = match (log.project(), log.token()) {
            (Some(project), _) => (Class::Verified, project.into()),
            (None, Some(UserCaller::Verified(user))) => (Class::Verified, user.issuer.to_string().into()),
            (None, Some(UserCaller::Unverified(_))) => (Class::Unverified, address()),
            (None, None) if request.path == READINESS_PATH => (Class::Health, address()),
            (None, None) => (Class::Public, address()),
        };
        let class = match class {
            Class::Verified if log.is_of(Action::Follow) => Class::Changes,
            Class::Unverified if log.is_of(Action::Follow) => Class::UnverifiedChanges,
            class => class,
        };
        Self { class, group, member: log.rate_limited_as().unwrap_or_default().into() }
    }

    #[cfg(test)]
    pub(super) fn in_class(class: Class, group: &str, member: &str) -> Self {
        Self { class, group: group.into(), member: member.into() }
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    /// Returns whether an origin may let the request wait for a change.
    pub fn may_wait(&self) -> bool {
        matches!(self.class, Class::Changes | Class::UnverifiedChanges)
    }

    pub(super) fn group(&self) -> &str {
        &self.group
    }

    pub(super) fn member(&self) -> &str {
        &self.member
    }
}

/// Returns the name of the group of a client address: the address, or the first 64 bits of an IPv6 address, since one
/// client has all addresses that begin with them.
pub fn address_group(address: Option<&str>) -> Box<str> {
    let address = address.unwrap_or_default();
    match address.parse::<Ipv6Addr>() {
        Ok(parsed) if parsed.to_ipv4_mapped().is_none() => {
            let [a, b, c, d, ..] = parsed.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}").into()
        }
        _ => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_client_are_one_group() {
        for (address, group) in [
            (Some("192.0.2.1"), "192.0.2.1"),
            (Some("2001:db8::1"), "2001:db8:0:0"),
            (Some("2001:db8:0:0:ffff::9"), "2001:db8:0:0"),
            (Some("2001:db8:0:1::9"), "2001:db8:0:1"),
            (Some("::ffff:192.0.2.1"), "::ffff:192.0.2.1"),
            (None, ""),
        ] {
            assert_eq!(&*address_group(address), group);
        }
    }
}
