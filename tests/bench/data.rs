//! The tables that all contenders read: `posts` (100,000 rows of some 600 bytes), `inbox` (its empty twin, for inserts) and
//! `million` (short rows).

use anyhow::Result;
use mysql_async::{Conn, prelude::Queryable as _};

/// Named as project `default` may name its own.
pub(crate) const DATABASE: &str = "default_bench";
pub(crate) const POSTS: u64 = 100_000;
pub(crate) const CATEGORIES: u64 = 10;

/// Statements that make and fill the tables in the selected database. The rows come from MariaDB's own sequence
/// engine, so that the same list serves a connection and the SQL call of an installation that already runs.
pub(crate) const STATEMENTS: [&str; 7] = [
    "CREATE TABLE posts (
       id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
       title VARCHAR(200) NOT NULL,
       body TEXT NOT NULL,
       category VARCHAR(40) NOT NULL,
       price DECIMAL(10,2) NOT NULL,
       is_published TINYINT(1) NOT NULL,
       views INT UNSIGNED NOT NULL,
       published_at DATETIME NOT NULL,
       KEY posts_listing (is_published, category, id)
     ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    "CREATE TABLE inbox LIKE posts",
    "CREATE TABLE million (id INT UNSIGNED NOT NULL PRIMARY KEY, label VARCHAR(40) NOT NULL, amount DECIMAL(10,2) NOT NULL)
     ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    // About 500 bytes with what text has: quotes, line ends and letters beyond ASCII.
    "INSERT INTO posts
     SELECT seq, CONCAT('Notes from the harbour, no. ', seq),
       LEFT(REPEAT(CONCAT('The tide was out & the boats lay still. \"Wait for the evening\", said Zoë, number ', MD5(seq),
         ' on the list.\\n'), 5), 500),
       CONCAT('c', seq % 10), (seq * 37 % 99999) / 100, seq % 5 <> 0, seq * 7919 % 100003,
       '2020-01-01' + INTERVAL seq MINUTE
     FROM seq_1_to_100000",
    "INSERT INTO million SELECT seq, CONCAT('label ', MD5(seq)), (seq % 99999) / 100 FROM seq_1_to_1000000",
    "ANALYZE TABLE posts, million",
    "SELECT COUNT(*) FROM posts",
];

/// Statement that empties the table of inserts, so that every measurement starts alike.
pub(crate) const EMPTY_INBOX: &str = "TRUNCATE TABLE inbox";

/// Make the database over a connection with every right.
pub(crate) async fn fill(connection: &mut Conn) -> Result<()> {
    connection.query_drop(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}")).await?;
    connection.query_drop(format!("USE {DATABASE}")).await?;
    for statement in STATEMENTS {
        connection.query_drop(statement).await?;
    }
    Ok(())
}
