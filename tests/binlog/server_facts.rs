//! What the decoder knows by number and the server by name.

use binlog::charset::Charset;
use machines::logged::Logged;
use mysql_async::prelude::Queryable as _;
use std::collections::BTreeMap;

#[tokio::test]
async fn every_collation_of_the_server_has_its_character_set() {
    let server = Logged::start(&[]).await.unwrap();
    let mut conn = server.server().connect().await.unwrap();
    let query = "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability";
    let named: BTreeMap<u16, String> = conn.query::<(u16, String), _>(query).await.unwrap().into_iter().collect();
    assert!(named.len() > 300, "{}", named.len());
    for (number, name) in named {
        let charset = format!("{:?}", Charset::of(number)).to_lowercase();
        let known = ["ascii", "binary", "latin1", "ucs2", "utf16", "utf16le", "utf32", "utf8mb3", "utf8mb4"];
        let expected = if known.contains(&name.as_str()) { name.as_str() } else { "other" };
        assert_eq!(charset, expected, "collation {number}");
    }
    conn.disconnect().await.unwrap();
}
