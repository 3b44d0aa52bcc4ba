//! Decides to which addresses the origin sends requests for callers, such as webhooks: public addresses, and those of
//! networks that the operator allows.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Debug, Default)]
pub struct Networks {
    allowed: Vec<IpNet>,
}

const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), prefix)
}

const fn v6(a: u16, b: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), prefix)
}

/// The networks of IANA's registry of special-purpose IPv4 addresses, with multicast.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 8),
    v4(10, 0, 0, 8),
    v4(100, 64, 0, 10),
    v4(127, 0, 0, 8),
    v4(169, 254, 0, 16),
    v4(172, 16, 0, 12),
    v4(192, 0, 0, 24),
    v4(192, 0, 2, 24),
    v4(192, 88, 99, 24),
    v4(192, 168, 0, 16),
    v4(198, 18, 0, 15),
    v4(198, 51, 100, 24),
    v4(203, 0, 113, 24),
    v4(224, 0, 0, 4),
    v4(240, 0, 0, 4),
];
/// Of IPv6, only these addresses are public, without [`SPECIAL_V6`].
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);
/// Protocol assignments with Teredo, documentation, and 6to4, whose addresses contain IPv4 addresses.
const SPECIAL_V6: [Ipv6Net; 4] = [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x2002, 0, 16), v6(0x3fff, 0, 20)];

impl Networks {
    pub fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed }
    }

    /// Whether the operator allows any network.
    pub fn allows_some(&self) -> bool {
        !self.allowed.is_empty()
    }

    pub fn is_allowed(&self, address: IpAddr) -> bool {
        self.is_named(address) || is_public(address.to_canonical())
    }

    /// Whether the operator allows the address, as plain HTTP needs.
    pub fn is_named(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.contains(&address.to_canonical()))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !SPECIAL_V6.iter().any(|network| network.contains(&address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_and_named_addresses_are_allowed() {
        let networks = Networks::new(vec!["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        for (text, allowed, named) in [
            ("93.184.216.34", true, false),
            ("2606:2800:220:1:248:1893:25c8:1946", true, false),
            ("10.1.2.3", true, true),
            ("::ffff:10.1.2.3", true, true),
            ("fd12::1", true, true),
            ("10.2.0.1", false, false),
            ("127.0.0.1", false, false),
            ("0.0.0.0", false, false),
            ("169.254.169.254", false, false),
            ("172.31.255.255", false, false),
            ("192.168.0.1", false, false),
            ("100.64.0.1", false, false),
            ("224.0.0.1", false, false),
            ("255.255.255.255", false, false),
            ("::1", false, false),
            ("::", false, false),
            ("::ffff:127.0.0.1", false, false),
            ("::ffff:169.254.169.254", false, false),
            ("::127.0.0.1", false, false),
            ("64:ff9b::7f00:1", false, false),
            ("2002:7f00:1::", false, false),
            ("fe80::1", false, false),
            ("fc00::1", false, false),
            ("ff02::1", false, false),
            ("2001:db8::1", false, false),
        ] {
            let address = text.parse().unwrap();
            assert_eq!((networks.is_allowed(address), networks.is_named(address)), (allowed, named), "{text}");
        }
    }
}
