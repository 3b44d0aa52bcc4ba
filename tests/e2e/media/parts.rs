//! Ranges of files, conditional requests, and answers without a body.

use super::serving::{LARGE, large, put_large, put_text, tag};
use super::test_folder::TestFolder;
use crate::host::{Call, Host};
use reqwest::Method;
use shared::error::ErrorCode;

cases! {
    Both: [
        a_part_is_exactly_that_part,
        a_range_that_is_none_is_answered_whole,
        a_range_behind_the_end_is_refused_with_the_length,
        a_range_is_for_one_version,
        what_the_caller_has_is_not_sent_again,
        a_condition_for_another_version_fails,
        the_head_of_a_file_is_that_of_its_answer,
        an_empty_file_has_no_bytes_and_no_parts,
    ],
}

async fn a_part_is_exactly_that_part(host: Host) {
    let shelf = TestFolder::new(host);
    let (bytes, call) = put_large(&shelf).await;
    let end = LARGE - 1;
    for (range, first, last) in [
        ("bytes=0-0".to_owned(), 0, 0),
        ("bytes=0-".to_owned(), 0, end),
        (format!("bytes={end}-"), end, end),
        ("bytes=-1".to_owned(), end, end),
        (format!("bytes=-{}", LARGE + 5), 0, end),
        ("bytes=131071-131072".to_owned(), 131_071, 131_072),
        ("bytes=1000-2000000".to_owned(), 1_000, 2_000_000),
        (format!("bytes=5-{}", LARGE * 2), 5, end),
        ("BYTES=7-8".to_owned(), 7, 8),
    ] {
        let answer = call.clone().header("range", &range).send().await;
        assert_eq!(answer.status, 206, "{range}: {answer}");
        assert!(answer.body == bytes[first..=last], "{range}: other bytes");
        assert_eq!(answer.header("content-range"), Some(format!("bytes {first}-{last}/{LARGE}").as_str()));
        let length = (last - first + 1).to_string();
        assert_eq!(answer.header("content-length"), Some(length.as_str()));
    }
}

async fn a_range_that_is_none_is_answered_whole(host: Host) {
    let shelf = TestFolder::new(host);
    let call = put_text(&shelf, "a.txt", b"0123456789").await;
    for range in ["bytes=0-1,3-4", "bytes=4-2", "bytes=a-b", "lines=0-1", "bytes", "0-1"] {
        let answer = call.clone().header("range", range).send().await;
        assert_eq!(answer.status, 200, "{range}: {answer}");
        assert_eq!(answer.text(), "0123456789", "{range}");
        assert_eq!(answer.header("content-range"), None);
    }
}

async fn a_range_behind_the_end_is_refused_with_the_length(host: Host) {
    let shelf = TestFolder::new(host);
    let call = put_text(&shelf, "a.txt", b"0123456789").await;
    for range in ["bytes=10-", "bytes=10-20", "bytes=-0"] {
        let answer = call.clone().header("range", range).send().await;
        answer.refused(ErrorCode::RangeNotSatisfiable);
        assert_eq!(answer.header("content-range"), Some("bytes */10"));
    }
}

async fn a_range_is_for_one_version(host: Host) {
    let shelf = TestFolder::new(host);
    let call = put_text(&shelf, "a.txt", b"0123456789").await;
    let first = call.clone().send().await;
    let date = first.header("last-modified").unwrap().to_owned();
    let tag = tag(&first);
    for (condition, status) in [
        (tag.clone(), 206),
        (date, 206),
        (format!("W/{tag}"), 200),
        ("\"other\"".to_owned(), 200),
        ("Sun, 06 Nov 1994 08:49:37 GMT".to_owned(), 200),
        ("nonsense".to_owned(), 200),
    ] {
        let call = call.clone().header("range", "bytes=0-1");
        let answer = call.header("if-range", &condition).send().await;
        assert_eq!(answer.status, status, "{condition}: {answer}");
        let expected = if status == 206 { "01" } else { "0123456789" };
        assert_eq!(answer.text(), expected);
    }
}

async fn what_the_caller_has_is_not_sent_again(host: Host) {
    let shelf = TestFolder::new(host);
    let call = put_text(&shelf, "a.txt", b"x").await;
    let first = call.clone().send().await;
    let date = first.header("last-modified").unwrap().to_owned();
    let tag = tag(&first);
    for (name, known) in [
        ("if-none-match", tag.clone()),
        ("if-none-match", format!("\"other\", W/{tag}")),
        ("if-none-match", "*".to_owned()),
        ("if-modified-since", date),
        ("if-modified-since", "Fri, 31 Dec 2100 23:59:59 GMT".to_owned()),
    ] {
        let call = call.clone().header("range", "bytes=0-0");
        let answer = call.header(name, &known).send().await;
        assert_eq!(answer.status, 304, "{name}: {known}: {answer}");
        assert!(answer.body.is_empty());
        for name in ["etag", "cache-control", "last-modified"] {
            assert_eq!(answer.header(name), first.header(name), "{name}");
        }
    }
    for (name, known) in [
        ("if-none-match", "\"other\""),
        ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("if-modified-since", "yesterday"),
    ] {
        let answer = call.clone().header(name, known).send().await;
        assert_eq!(answer.text(), "x", "{name}: {known}");
    }
}

async fn a_condition_for_another_version_fails(host: Host) {
    let shelf = TestFolder::new(host);
    let call = put_text(&shelf, "a.txt", b"x").await;
    let tag = tag(&call.clone().send().await);
    for (name, value) in [
        ("if-match", "\"other\""),
        ("if-match", &format!("W/{tag}")),
        ("if-unmodified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ] {
        let answer = call.clone().header(name, value).send().await;
        answer.refused(ErrorCode::PreconditionFailed);
    }
    for (name, value) in
        [("if-match", tag.as_str()), ("if-match", "*"), ("if-unmodified-since", "Fri, 31 Dec 2100 23:59:59 GMT")]
    {
        let answer = call.clone().header(name, value).send().await;
        assert_eq!(answer.text(), "x", "{name}: {value}");
    }
}

async fn the_head_of_a_file_is_that_of_its_answer(host: Host) {
    let shelf = TestFolder::new(host);
    let bytes = large(3);
    let file = shelf.put("large.bin", "file", "application/octet-stream", &bytes).await;
    let path = file["url"].as_str().unwrap().strip_prefix(host.url()).unwrap();
    let head = |path: &str| Call::new(host.url(), Method::HEAD, path);
    let whole = shelf.fetch(&file["url"]).await;
    let own = head(path).header("range", "bytes=0-1").send().await;
    assert_eq!(own.status, 200, "{own}");
    assert!(own.body.is_empty());
    let passing = ["x-request-id", "server-timing", "date"];
    for (name, value) in &whole.headers {
        if !passing.contains(&name.as_str()) {
            assert_eq!(own.headers.get(name), Some(value), "{name}");
        }
    }
    let known = head(path).header("if-none-match", "*").send().await;
    assert_eq!(known.status, 304);
    let absent = head("/media/default/absent").send().await;
    assert_eq!(absent.status, 404);
    assert!(absent.body.is_empty());
}

async fn an_empty_file_has_no_bytes_and_no_parts(host: Host) {
    let shelf = TestFolder::new(host);
    let upload = shelf.upload("empty.txt", "file", "text/plain", b"").send().await;
    if upload.status != 200 {
        upload.refused(ErrorCode::InvalidMedia);
        return;
    }
    let call = shelf.at(&upload.payload()[0]["url"]);
    let answer = call.clone().send().await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
    let part = call.clone().header("range", "bytes=0-").send().await;
    part.refused(ErrorCode::RangeNotSatisfiable);
    assert_eq!(part.header("content-range"), Some("bytes */0"));
}
