//! Compressed answers: lists and records in every format, sent row by row. Nothing else is compressed.

use crate::case::eventually;
use crate::host::{Call, Host};
use crate::media::test_folder::TestFolder;
use crate::raw::{exchange, request};
use crate::service::shared;
use crate::streaming::thread_of;
use crate::test_db::TestDb;
use crate::worker::Worker;
use futures_util::StreamExt as _;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

cases! {
    Both: [
        answers_are_compressed_in_every_form,
        the_coding_is_the_one_that_the_client_prefers,
        the_tag_of_a_compressed_record_is_weak,
        rows_that_are_ready_do_not_wait_for_later_ones,
    ],
    // These cases are only for the origin: Miniflare, like Cloudflare, compresses answers that the worker does not. A
    // local workerd hides that an answer is incomplete (see `streaming.rs`), and speaks HTTP/1.1 to the origin.
    Origin: [
        what_is_small_or_refused_is_sent_as_it_is,
        a_head_is_that_of_the_answer_without_a_coding,
        files_are_sent_as_they_are,
        a_compressed_answer_that_fails_midway_is_cut,
        a_client_of_http_1_0_gets_the_answer_as_it_is,
    ],
    Own: [the_edge_passes_the_origins_coding_on, a_compressed_page_is_whole_beside_a_body_that_nobody_reads],
}

const CODINGS: [&str; 3] = ["gzip", "br", "zstd"];

/// Creates a table of 5,000 rows, the last of which is long.
async fn rows(host: Host) -> TestDb {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, name TEXT NOT NULL)"]).await;
    db.exec("INSERT INTO t SELECT seq, CONCAT('row number ', seq, REPEAT('x', 60)) FROM seq_1_to_5000").await;
    let long = "a long text of a record. ".repeat(200);
    db.put("t/5000", &json!({"name": long})).await.payload();
    db
}

async fn send(call: Call, accepted: &str) -> Response {
    call.header("accept-encoding", accepted).request().send().await.expect("an answer")
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    let value = response.headers().get(name)?;
    Some(value.to_str().expect("a readable header"))
}

enum Decoder {
    Gzip(flate2::write::GzDecoder<Vec<u8>>),
    Brotli(Box<brotli::DecompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Decoder<'static, Vec<u8>>),
}

impl Decoder {
    fn new(coding: &str) -> Self {
        match coding {
            "gzip" => Self::Gzip(flate2::write::GzDecoder::new(Vec::new())),
            // The decoder's buffer must be large, since each write produces at most one buffer of output.
            "br" => Self::Brotli(Box::new(brotli::DecompressorWriter::new(Vec::new(), 1 << 20))),
            "zstd" => Self::Zstd(zstd::stream::write::Decoder::new(Vec::new()).expect("a decoder")),
            other => panic!("no coding that was accepted: {other}"),
        }
    }

    /// Returns all that was decoded so far.
    fn decode(&mut self, bytes: &[u8]) -> &[u8] {
        let decoder: &mut dyn Write = match self {
            Self::Gzip(decoder) => decoder,
            Self::Brotli(decoder) => decoder,
            Self::Zstd(decoder) => decoder,
        };
        decoder.write_all(bytes).and_then(|()| decoder.flush()).expect("a sound body");
        match self {
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Brotli(decoder) => decoder.get_ref(),
            Self::Zstd(decoder) => decoder.get_ref(),
        }
    }
}

async fn answers_are_compressed_in_every_form(host: Host) {
    let db = rows(host).await;
    for form in ["application/json", "text/csv", "application/x-ndjson"] {
        for rest in ["t?order[field]=id", "t/5000"] {
            let call = db.call(Method::GET, rest).header("accept", form);
            let plain = call.clone().send().await;
            assert_eq!(plain.header("content-encoding"), None);
            for coding in CODINGS {
                let response = send(call.clone(), coding).await;
                assert_eq!(header(&response, "content-encoding"), Some(coding));
                assert_eq!(header(&response, "content-type"), plain.header("content-type"));
                assert_eq!(header(&response, "vary"), plain.header("vary"));
                assert_eq!(header(&response, "vary"), Some("Accept, Accept-Encoding"));
                let body = response.bytes().await.expect("a whole body");
                assert!(body.len() < plain.body.len() / 2, "{coding}: {}", body.len());
                assert!(Decoder::new(coding).decode(&body) == plain.body, "{coding} {form} {rest}");
            }
        }
    }
}

async fn the_coding_is_the_one_that_the_client_prefers(host: Host) {
    let db = rows(host).await;
    for (accepted, expected) in [
        ("gzip;q=0.5, br", Some("br")),
        ("gzip, br;q=0", Some("gzip")),
        ("br, gzip, zstd", Some("zstd")),
        ("deflate, compress", None),
        ("identity", None),
        ("nonsense;q=x", None),
    ] {
        let response = send(db.call(Method::GET, "t"), accepted).await;
        assert_eq!(header(&response, "content-encoding"), expected, "{accepted}");
    }
}

async fn what_is_small_or_refused_is_sent_as_it_is(host: Host) {
    let db = rows(host).await;
    let unknown = format!("t?{}=1", "a".repeat(2_000));
    for (rest, status) in [("t/1", 200), ("t/0", 404), (&unknown, 400)] {
        let response = send(db.call(Method::GET, rest), "gzip").await;
        assert_eq!(response.status(), status);
        assert_eq!(header(&response, "content-encoding"), None);
        let body: Value = response.json().await.expect("an envelope");
        assert_eq!(body["success"], status == 200);
    }
}

async fn the_tag_of_a_compressed_record_is_weak(host: Host) {
    let db = rows(host).await;
    let strong = db.get("t/5000").await.header("etag").expect("a tag").to_owned();
    assert!(strong.starts_with('"'), "{strong}");
    let weak = format!("W/{strong}");
    for coding in CODINGS {
        let response = send(db.call(Method::GET, "t/5000"), coding).await;
        assert_eq!(header(&response, "etag"), Some(weak.as_str()), "{coding}");
    }
    // A 304 has the same tag as the answer would have.
    for (accepted, expected) in [("gzip", &weak), ("identity", &strong)] {
        for known in [&weak, &strong] {
            let call = db.call(Method::GET, "t/5000").header("if-none-match", known);
            let response = send(call, accepted).await;
            assert_eq!(response.status(), 304, "{accepted} {known}");
            assert_eq!(header(&response, "etag"), Some(expected.as_str()), "{accepted} {known}");
            if host == Host::Origin {
                // Miniflare adds this header to the edge's answer.
                assert_eq!(header(&response, "content-encoding"), None);
            }
            assert_eq!(header(&response, "vary"), Some("Accept, Accept-Encoding"));
            assert!(response.bytes().await.expect("no body").is_empty());
        }
    }
}

async fn a_head_is_that_of_the_answer_without_a_coding(host: Host) {
    let db = rows(host).await;
    for rest in ["t?order[field]=id", "t/5000"] {
        let plain = db.call(Method::HEAD, rest).send().await;
        let accepting = send(db.call(Method::HEAD, rest), "gzip").await;
        for name in ["etag", "content-length", "content-encoding", "content-type", "vary"] {
            assert_eq!(header(&accepting, name), plain.header(name), "{name} of {rest}");
        }
        assert_eq!(header(&accepting, "content-encoding"), None);
    }
}

async fn rows_that_are_ready_do_not_wait_for_later_ones(host: Host) {
    let db = rows(host).await;
    for coding in CODINGS {
        let mark = format!("{coding}_{}", db.name);
        // The last row is computed only when the others have been read.
        let query = format!("SELECT id, name, IF(id = 5000, SLEEP(600), 0) AS x FROM t ORDER BY id /* {mark} */");
        // Waits until a stream is free, since other cases may have taken all streams of the project. Repeats the request if
        // the proxy before the edge closed an idle connection, or if a busy machine took the whole time of the statement.
        let begun = eventually("the rows that are ready have come", Duration::from_secs(180), || async {
            let call = db.sql(&query).header("accept-encoding", coding);
            let response = call.request().send().await.ok().filter(|response| response.status() == 200)?;
            assert_eq!(header(&response, "content-encoding"), Some(coding));
            let (mut chunks, mut decoder) = (response.bytes_stream(), Decoder::new(coding));
            while let Some(Ok(chunk)) = chunks.next().await {
                if String::from_utf8_lossy(decoder.decode(&chunk)).contains("row number 4000x") {
                    return Some(chunks);
                }
            }
            None
        });
        let mut chunks = begun.await;
        let thread = eventually("the statement runs", Duration::from_secs(10), || async { thread_of(&mark) }).await;
        shared().root_sql(&format!("KILL QUERY {thread}")).expect("the kill");
        // Reads the answer to its end, or the origin might kill the next statement of the connection instead.
        while let Some(Ok(_)) = chunks.next().await {}
    }
}

async fn files_are_sent_as_they_are(host: Host) {
    let shelf = TestFolder::new(host);
    let text = "id,name\r\n".repeat(1_000);
    for (name, mime) in [("a.csv", "text/csv"), ("a.txt", "text/plain")] {
        let file = shelf.put(name, "file", mime, text.as_bytes()).await;
        let plain = shelf.at(&file["url"]).send().await;
        let response = send(shelf.at(&file["url"]), "gzip").await;
        assert_eq!(header(&response, "content-encoding"), None);
        assert_eq!(header(&response, "etag"), plain.header("etag"));
        assert!(response.bytes().await.expect("a whole body") == text.as_bytes());
        let response = send(shelf.at(&file["url"]).header("range", "bytes=0-1999"), "gzip").await;
        assert_eq!(response.status(), 206);
        assert_eq!(header(&response, "content-encoding"), None);
        assert!(response.bytes().await.expect("a whole body") == text.as_bytes()[..2_000]);
    }
}

async fn a_compressed_answer_that_fails_midway_is_cut(host: Host) {
    let db = rows(host).await;
    let query = "SELECT id, name, IF(id = 4900, (SELECT id FROM t WHERE id < 3), 1) AS x FROM t ORDER BY id";
    db.exec(&format!("CREATE VIEW failing AS {query}")).await;
    for form in ["application/json", "text/csv", "application/x-ndjson"] {
        for call in [db.sql(query), db.call(Method::GET, "failing")] {
            for coding in CODINGS {
                let response = send(call.clone().header("accept", form), coding).await;
                assert_eq!((response.status().as_u16(), header(&response, "content-encoding")), (200, Some(coding)));
                assert!(response.bytes().await.is_err(), "{coding} {form}: a cut answer came to a proper end");
            }
        }
    }
    assert_eq!(db.exec("SELECT 1 AS v").await, json!([{"v": 1}]));
}

async fn a_client_of_http_1_0_gets_the_answer_as_it_is(host: Host) {
    let headers = format!("Authorization: Bearer {}\r\nAccept-Encoding: gzip\r\n", shared().read_key);
    let newer = request("GET", b"/api/v1/crud/demo/posts?limit=50", &headers, b"");
    let older = String::from_utf8(newer.clone()).expect("text").replace("HTTP/1.1", "HTTP/1.0");
    for (request, is_compressed) in [(newer, true), (older.into_bytes(), false)] {
        let answer = exchange(host.url(), &request).await.expect("an answer");
        assert_eq!(answer.head.contains("content-encoding: gzip"), is_compressed, "{}", answer.head);
    }
}

async fn the_edge_passes_the_origins_coding_on(_: Host) {
    let db = rows(Host::Origin).await;
    let file =
        TestFolder::new(Host::Origin).put("a.txt", "file", "text/plain", "a text ".repeat(1_000).as_bytes()).await;
    let file = TestFolder::new(Host::Origin).at(&file["url"]);
    let worker = Worker::start(&[("ORIGINS", &shared().origin)]);
    for (call, accepted, expected) in [
        (db.call(Method::GET, "t/5000"), "gzip", Some("gzip")),
        (db.call(Method::GET, "t/5000"), "br", Some("br")),
        (db.call(Method::GET, "t/5000"), "zstd", Some("zstd")),
        (db.call(Method::GET, "t/5000"), "identity", None),
        (db.call(Method::GET, "t/5000"), "", None),
        (db.call(Method::GET, "t/1"), "gzip", None),
        (db.call(Method::GET, "t/0"), "gzip", None),
        (db.call(Method::HEAD, "t/5000"), "gzip", None),
        (file.clone(), "gzip", None),
        (file.header("range", "bytes=0-2999"), "gzip", None),
    ] {
        let (direct, passed) = (send(call.clone(), accepted).await, send(call.clone().at(&worker.url), accepted).await);
        assert_eq!(header(&passed, "content-encoding"), expected, "{call} {accepted}");
        assert_eq!((passed.status(), header(&passed, "etag")), (direct.status(), header(&direct, "etag")), "{call}");
        if direct.status().is_success() {
            let (direct, passed) = (direct.bytes().await.expect("a body"), passed.bytes().await.expect("a body"));
            assert!(direct == passed, "{call} {accepted}: other bytes");
        }
    }
    let unasked = db.call(Method::GET, "t").at(&worker.url).send().await;
    assert_eq!(unasked.header("content-encoding"), None);
    assert_eq!(unasked.payload().as_array().map(Vec::len), Some(5_000));
}

async fn a_compressed_page_is_whole_beside_a_body_that_nobody_reads(_: Host) {
    let worker = Worker::start(&[("ORIGINS", &shared().origin)]);
    for path in ["/docs", "/console", "/docs/swagger-ui-bundle.js"] {
        let page = Call::new(&shared().origin, Method::GET, path);
        let plain = page.clone().send().await;
        for url in [&shared().origin, &worker.url] {
            let answer = send(page.clone().at(url).bytes("x".repeat(100_000)), "gzip").await;
            assert_eq!(header(&answer, "content-encoding"), Some("gzip"), "{url}{path}");
            let body = answer.bytes().await.expect("a whole body");
            assert!(Decoder::new("gzip").decode(&body) == plain.body, "{url}{path}: other bytes");
        }
    }
}
