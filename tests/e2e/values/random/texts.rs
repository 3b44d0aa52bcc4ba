//! Random texts of many character sets, members of ENUM and SET, UUIDs and addresses.

use super::{Equal, Samples, come_back, quoted};
use crate::host::Host;
use proptest::prelude::*;
use proptest::sample::select;
use std::net::{Ipv4Addr, Ipv6Addr};

cases! {
    Both: [random_texts_come_back_and_are_found],
}

/// Returns texts that don't end in NUL: in a NOPAD collation, MariaDB's `ORDER BY` treats `a` and `a\0` as equal, but
/// its comparisons don't.
fn texts(alphabet: &'static str) -> Samples {
    prop::collection::vec(select(alphabet.chars().collect::<Vec<_>>()), 0..20)
        .prop_map(|chars| {
            let text = quoted(String::from_iter(chars).trim_end_matches('\0'));
            (text.clone(), text)
        })
        .boxed()
}

async fn random_texts_come_back_and_are_found(host: Host) {
    for (kind, alphabet) in [
        ("VARCHAR(20) COLLATE utf8mb4_nopad_bin", "aA\"'\\`%_\0\u{1}\n\t é日🦭\u{10ffff}"),
        ("TEXT CHARACTER SET latin1 COLLATE latin1_nopad_bin", "aA\"\\%_\0\t éß€ÿŒ\u{81}"),
        ("VARCHAR(20) CHARACTER SET utf8mb3 COLLATE utf8mb3_nopad_bin", "aA\\ é日\u{fffd}"),
        ("VARCHAR(20) CHARACTER SET ucs2 COLLATE ucs2_nopad_bin", "aA\\ é日"),
        ("LONGTEXT CHARACTER SET utf16 COLLATE utf16_nopad_bin", "aA\\ é日🦭"),
        ("VARCHAR(20) CHARACTER SET utf32 COLLATE utf32_nopad_bin", "aA\\ é日🦭"),
        ("VARCHAR(20) CHARACTER SET sjis COLLATE sjis_nopad_bin", "aA\\ 日本表ソｱ"),
        ("VARCHAR(20) CHARACTER SET cp932 COLLATE cp932_nopad_bin", "aA\\ 日本①表"),
        ("VARCHAR(20) CHARACTER SET gbk COLLATE gbk_nopad_bin", "aA\\ 中文誠乗"),
        ("VARCHAR(20) CHARACTER SET big5 COLLATE big5_nopad_bin", "aA\\ 中文功許"),
        ("VARCHAR(20) CHARACTER SET euckr COLLATE euckr_nopad_bin", "aA\\ 한글"),
        ("VARCHAR(20) CHARACTER SET koi8r COLLATE koi8r_nopad_bin", "aA\\ жЯ─"),
        ("VARCHAR(20) CHARACTER SET ascii COLLATE ascii_nopad_bin", "aA\\\0\u{7f} ~"),
    ] {
        come_back(host, kind, Equal::Exactly, &texts(alphabet)).await;
    }
    let member = select(&["a", "b c", "d'e", "", "3", "é"][..]).prop_map(|text| (quoted(text), quoted(text)));
    come_back(host, "ENUM('a','b c','d''e','','3','é')", Equal::Exactly, &member.boxed()).await;
    let members = prop::sample::subsequence(vec!["z", "y", "x w", "1"], 0..=4).prop_shuffle();
    let set = members.prop_map(|sent| {
        let all = ["z", "y", "x w", "1"];
        let kept: Vec<&str> = all.into_iter().filter(|member| sent.contains(member)).collect();
        (quoted(&sent.join(",")), quoted(&kept.join(",")))
    });
    come_back(host, "SET('z','y','x w','1')", Equal::Exactly, &set.boxed()).await;
    let uuids = (any::<u128>(), any::<bool>()).prop_map(|(bits, simple)| {
        // Sets version 4 and the variant of RFC 9562, since MariaDB does not store all other bits.
        let bits = bits & !(0xF << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
        let uuid = uuid::Uuid::from_u128(bits);
        let sent = if simple { uuid.simple().to_string().to_uppercase() } else { uuid.to_string() };
        (quoted(&sent), quoted(&uuid.to_string()))
    });
    come_back(host, "UUID", Equal::Exactly, &uuids.boxed()).await;
    let sparse = prop::collection::vec(prop_oneof![Just(0), any::<u16>()], 8).prop_map(|parts| {
        let parts: [u16; 8] = parts.try_into().expect("eight");
        let address = quoted(&Ipv6Addr::from(parts).to_string());
        (address.clone(), address)
    });
    come_back(host, "INET6", Equal::AsAddresses, &sparse.boxed()).await;
    let v4 = any::<u32>().prop_map(|bits| quoted(&Ipv4Addr::from(bits).to_string()));
    come_back(host, "INET4", Equal::Exactly, &v4.prop_map(|text| (text.clone(), text)).boxed()).await;
}
