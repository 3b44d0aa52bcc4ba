//! What the decoder knows by number and the server by name.

use binlog::charset::{Charset, Utf8, to_utf8};
use machines::logged::Logged;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use std::collections::BTreeMap;

#[tokio::test]
async fn character_sets_are_the_servers() {
    let server = Logged::start(&[]).await.unwrap();
    let mut conn = server.server().connect().await.unwrap();
    every_collation_has_its_character_set(&mut conn).await;
    every_character_is_converted_as_the_server_does(&mut conn).await;
    conn.disconnect().await.unwrap();
}

async fn every_collation_has_its_character_set(conn: &mut Conn) {
    let query = "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability";
    let named: BTreeMap<u16, String> = conn.query::<(u16, String), _>(query).await.unwrap().into_iter().collect();
    assert!(named.len() > 300, "{}", named.len());
    for (number, name) in named {
        let charset = format!("{:?}", Charset::of(number)).to_lowercase();
        let known = ["ascii", "binary", "latin1", "ucs2", "utf16", "utf16le", "utf32", "utf8mb3", "utf8mb4"];
        let expected = if known.contains(&name.as_str()) { name.as_str() } else { "other" };
        assert_eq!(charset, expected, "collation {number}");
    }
}

async fn every_character_is_converted_as_the_server_does(conn: &mut Conn) {
    let plane: String = (0..=0xFFFF).filter_map(char::from_u32).collect();
    // All planes, but not all their characters.
    let all: String = plane.chars().chain((0x1_0000..=0x10_FFFF).step_by(97).filter_map(char::from_u32)).collect();
    let units = |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let cases = [
        ("latin1", 8, (0..=255).collect()),
        ("ascii", 11, (0..=127).collect()),
        ("utf8mb3", 33, plane.clone().into_bytes()),
        ("utf8mb4", 45, all.clone().into_bytes()),
        ("ucs2", 35, units(&plane, u16::to_be_bytes)),
        ("utf16", 54, units(&all, u16::to_be_bytes)),
        ("utf16le", 56, units(&all, u16::to_le_bytes)),
        ("utf32", 60, all.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()),
    ];
    for (name, collation, bytes) in cases {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        let query = format!("SELECT CAST(CONVERT(_{name} X'{hex}' USING utf8mb4) AS BINARY)");
        let expected: Vec<u8> = conn.query_first(query).await.unwrap().unwrap();
        let Utf8::Text(text) = to_utf8(collation, &bytes) else { panic!("{name} is not converted") };
        let differs = text.bytes().zip(&expected).position(|(one, other)| one != *other);
        assert_eq!((differs, text.len()), (None, expected.len()), "{name}");
    }
}
