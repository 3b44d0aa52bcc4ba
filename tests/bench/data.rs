//! The tables that all contenders read: `posts` (100,000 rows of some 600 bytes), `inbox` (an empty table like `posts`,
//! for inserts), `million` (short rows), and `stories` with their
//! `writers` and `replies` (six for each).

use anyhow::Result;
use mysql_async::{Conn, prelude::Queryable as _};

/// Name of the benchmark's database; the prefix makes it one of project `default`.
pub(crate) const DATABASE: &str = "default_bench";
pub(crate) const POSTS: u64 = 100_000;
pub(crate) const CATEGORIES: u64 = 10;

/// Statements that create and fill the tables in the selected database. MariaDB's sequence engine generates the rows,
/// so that the statements can also be run as SQL calls of a running installation.
pub(crate) const STATEMENTS: [&str; 13] = [
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
    // About 500 bytes of typical text: quotes, line ends and non-ASCII letters.
    "INSERT INTO posts
     SELECT seq, CONCAT('Notes from the harbour, no. ', seq),
       LEFT(REPEAT(CONCAT('The tide was out & the boats lay still. \"Wait for the evening\", said Zoë, number ', MD5(seq),
         ' on the list.\\n'), 5), 500),
       CONCAT('c', seq % 10), (seq * 37 % 99999) / 100, seq % 5 <> 0, seq * 7919 % 100003,
       '2020-01-01' + INTERVAL seq MINUTE
     FROM seq_1_to_100000",
    "INSERT INTO million SELECT seq, CONCAT('label ', MD5(seq)), (seq % 99999) / 100 FROM seq_1_to_1000000",
    "CREATE TABLE writers (id INT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(80) NOT NULL, bio VARCHAR(200) NOT NULL)
     ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    "CREATE TABLE stories (
       id INT UNSIGNED NOT NULL PRIMARY KEY,
       writer_id INT UNSIGNED NOT NULL,
       title VARCHAR(200) NOT NULL,
       body TEXT NOT NULL,
       FOREIGN KEY (writer_id) REFERENCES writers (id)
     ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    "CREATE TABLE replies (
       id INT UNSIGNED NOT NULL PRIMARY KEY,
       story_id INT UNSIGNED NOT NULL,
       body VARCHAR(200) NOT NULL,
       FOREIGN KEY (story_id) REFERENCES stories (id)
     ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    "INSERT INTO writers SELECT seq, CONCAT('Writer no. ', seq), REPEAT('Lives by the sea. ', 5) FROM seq_1_to_500",
    "INSERT INTO stories SELECT id, id % 500 + 1, title, body FROM posts WHERE id <= 10000",
    "INSERT INTO replies SELECT seq, seq % 10000 + 1, REPEAT('Good to read. ', 5) FROM seq_1_to_60000",
    "ANALYZE TABLE posts, million, writers, stories, replies",
    "SELECT COUNT(*) FROM posts",
];

/// Empties the table of inserts before each measurement.
pub(crate) const EMPTY_INBOX: &str = "TRUNCATE TABLE inbox";

pub(crate) async fn fill(connection: &mut Conn) -> Result<()> {
    connection.query_drop(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}")).await?;
    connection.query_drop(format!("USE {DATABASE}")).await?;
    for statement in STATEMENTS {
        connection.query_drop(statement).await?;
    }
    Ok(())
}
