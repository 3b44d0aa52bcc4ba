//! Tests of the upload parser: bodies in one piece, byte by byte, and in pieces of any size.

mod json;
mod multipart;
mod names;

use super::*;

type Read = Result<(ParsedUpload, Vec<Vec<u8>>), Problem>;

fn read_pieces<'a>(
    content_type: Option<&str>,
    limits: UploadLimits,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Read {
    let mut parser = Parser::new(content_type, limits)?;
    let (mut files, mut is_open): (Vec<Vec<u8>>, bool) = (Vec::new(), false);
    for piece in pieces {
        let mut feed = parser.feed(piece);
        while let Some(event) = feed.next_event()? {
            match event {
                Event::ItemBegins(at) => {
                    assert_eq!((at, is_open), (files.len(), false));
                    files.push(Vec::new());
                    is_open = true;
                }
                Event::Data(bytes) => {
                    assert!(is_open && !bytes.is_empty());
                    files.last_mut().unwrap().extend_from_slice(bytes);
                }
                Event::ItemEnds => {
                    assert!(is_open);
                    is_open = false;
                }
            }
        }
    }
    let form = parser.finish()?;
    assert_eq!((form.items().len(), is_open), (files.len(), false));
    Ok((form, files))
}

/// Parses a body in one piece and byte by byte, and checks that both give the same result.
fn read(content_type: Option<&str>, body: &[u8]) -> Read {
    let limits = UploadLimits::default();
    let whole = read_pieces(content_type, limits, [body]);
    let bytewise = read_pieces(content_type, limits, body.chunks(1));
    assert_eq!(whole, bytewise);
    whole
}

fn json(body: &str) -> Read {
    read(None, body.as_bytes())
}

fn refused(body: &str) -> (ErrorCode, String) {
    let problem = json(body).expect_err(body);
    (problem.code(), problem.message().to_owned())
}

#[test]
fn only_json_and_forms_are_read() {
    for known in [
        None,
        Some(""),
        Some("application/json; charset=utf-8"),
        Some("application/vnd.api+json"),
        Some("Multipart/Form-Data; boundary=x"),
    ] {
        assert!(Parser::new(known, UploadLimits::default()).is_ok(), "{known:?}");
    }
    for other in ["text/plain", "multipart/mixed; boundary=x", "image/png"] {
        let problem = Parser::new(Some(other), UploadLimits::default()).err().unwrap();
        assert_eq!(problem.code(), ErrorCode::UnsupportedMediaType);
    }
}

#[test]
fn a_body_past_its_limit_is_refused_where_the_limit_is() {
    let body = br#"{"type":"file","media":[{"name":"a","base64":"data:a/b;base64,YQ=="}]}  "#;
    let limits = |body_bytes| UploadLimits { body_bytes, ..UploadLimits::default() };
    let length = body.len() as u64;
    assert!(read_pieces(None, limits(length), [&body[..]]).is_ok());
    for short in [0, 1, length / 2, length - 1] {
        for size in [1, 7, body.len()] {
            let problem = read_pieces(None, limits(short), body.chunks(size)).unwrap_err();
            assert_eq!(problem.code(), ErrorCode::BodyTooLarge, "{short} {size}");
        }
    }
}

#[test]
fn a_parser_that_refused_says_so_again() {
    let mut parser = Parser::new(None, UploadLimits::default()).unwrap();
    let first = parser.feed(b"[").next_event().unwrap_err();
    assert_eq!(parser.feed(b"{}").next_event().unwrap_err(), first);
    assert_eq!(parser.finish().unwrap_err(), first);
}
