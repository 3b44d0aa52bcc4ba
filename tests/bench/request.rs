//! The requests of each workload, as bytes to send. Both kinds of servers get the same requests, except for the filter
//! of W2, which the hand-written server takes as plain parameters.

use std::{io::Write as _, sync::LazyLock};

use crate::{
    data::{CATEGORIES, POSTS},
    workload::{AGGREGATE, BATCH_ROWS, Random, Workload},
};

/// The rows of a batch, built once: building them for each request would cost as much as a hand-written server does.
static BATCH: LazyLock<String> = LazyLock::new(|| {
    let rows: Vec<String> = (1..=BATCH_ROWS).map(new_post).collect();
    format!(r#"{{"batchData":[{}]}}"#, rows.join(","))
});

#[derive(Debug, Clone)]
pub(crate) struct Requests {
    pub(crate) dialect: Dialect,
    pub(crate) host: String,
    /// The key's text; the hand-written server ignores it.
    pub(crate) key: String,
    pub(crate) database: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Selkie,
    Handwritten,
    Xmysql,
}

impl Requests {
    pub(crate) fn write(&self, workload: Workload, random: &mut Random, buffer: &mut Vec<u8>) {
        let (root, database) = match self.dialect {
            Dialect::Xmysql => ("/api", ""),
            Dialect::Selkie | Dialect::Handwritten => ("/api/v1/crud/", self.database.as_str()),
        };
        let tables = format_args!("{root}{database}");
        match workload.next(random) {
            Workload::W1 | Workload::Lone | Workload::Mixed | Workload::Storm => {
                self.get(format_args!("{tables}/posts/{}", random.up_to(POSTS)), buffer);
            }
            Workload::W2 => {
                let category = random.up_to(CATEGORIES) - 1;
                match self.dialect {
                    Dialect::Handwritten => {
                        self.get(format_args!("{tables}/posts?category=c{category}&limit=20"), buffer);
                    }
                    Dialect::Xmysql => self.get(
                        format_args!(
                            "{tables}/posts?_where=(is_published,eq,1)~and(category,eq,c{category})&_sort=-id&_size=20"
                        ),
                        buffer,
                    ),
                    // The query string below decodes to {"is_published":1,"category":"c…"} and
                    // {"field":"id","strategy":"DESC"}.
                    Dialect::Selkie => self.get(
                        format_args!(
                            "{tables}/posts?limit=20&query=%7B%22is_published%22%3A1%2C%22category%22%3A%22c{category}%22%7D\
                             &order=%7B%22field%22%3A%22id%22%2C%22strategy%22%3A%22DESC%22%7D"
                        ),
                        buffer,
                    ),
                }
            }
            Workload::Stories => self.get(format_args!("{tables}/stories?limit=20&order=-id"), buffer),
            // The option `include` below decodes to [{"relation":"replies","limit":5,"order":"-id"}, "writer"].
            Workload::Related => self.get(
                format_args!(
                    "{tables}/stories?limit=20&order=-id&include=%5B%7B%22relation%22%3A%22replies%22%2C%22limit%22%3A5%2C\
                     %22order%22%3A%22-id%22%7D%2C%22writer%22%5D"
                ),
                buffer,
            ),
            Workload::W3 => self.post(format_args!("{tables}/inbox"), &new_post(random.up_to(POSTS)), buffer),
            Workload::Batch => self.post(format_args!("{tables}/inbox"), &BATCH, buffer),
            Workload::W4 => self.get(format_args!("{tables}/posts"), buffer),
            Workload::Million => self.get(format_args!("{tables}/million"), buffer),
            Workload::Sql => self.sql(AGGREGATE, buffer),
        }
    }

    pub(crate) fn sql(&self, query: &str, buffer: &mut Vec<u8>) {
        let body = serde_json::json!({"query": query, "database": self.database});
        self.post(format_args!("/api/v1/sql"), &body.to_string(), buffer);
    }

    pub(crate) fn create_database(&self, buffer: &mut Vec<u8>) {
        let body = serde_json::json!({"query": format!("CREATE DATABASE `{}`", self.database)});
        self.post(format_args!("/api/v1/sql"), &body.to_string(), buffer);
    }

    pub(crate) fn get(&self, path: std::fmt::Arguments<'_>, buffer: &mut Vec<u8>) {
        buffer.clear();
        // Writing to a vector can't fail.
        let _ = write!(
            buffer,
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: application/json\r\n\r\n",
            self.host, self.key
        );
    }

    fn post(&self, path: std::fmt::Arguments<'_>, body: &str, buffer: &mut Vec<u8>) {
        buffer.clear();
        let _ = write!(
            buffer,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: application/json\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            self.key,
            body.len()
        );
    }
}

/// Returns a record as large as the records of `posts`.
fn new_post(number: u64) -> String {
    format!(
        r#"{{"title":"Letter no. {number}","body":"{BODY}","category":"c{}","price":"{}.50","is_published":1,"views":{number},"published_at":"2026-01-02 03:04:05"}}"#,
        number % CATEGORIES,
        number % 100
    )
}

/// A text of 500 bytes.
pub(crate) const BODY: &str = "The tide was out and the boats lay still in the mud of the inner harbour. Wait for the evening, \
said the old man on the bench, and went on mending his net. Nobody asked him how long he had been waiting himself. \
The bell of the ferry rang twice, as it does when there is fog, and the gulls rose and settled again on the same posts. \
By noon the sun had come through and the first of the visitors walked down the steps with their shoes in their hands, \
careful, because the stones are wet there in any season.....";
