//! Tests of uploads as multipart forms.

use super::{Read, read};
use crate::error::ErrorCode::{self, InvalidBody, InvalidMedia};
use crate::limits::{UPLOAD_PART_HEAD_MAX_BYTES, UPLOAD_TEXT_MAX_BYTES};
use crate::upload::{Existing, Label, UploadShape, Visibility};

const TYPE: &str = "multipart/form-data; boundary=xyz";

fn form(body: &str) -> Read {
    read(Some(TYPE), body.replace('\n', "\r\n").as_bytes())
}

fn part(head: &str, content: &str) -> String {
    format!("--xyz\nContent-Disposition: form-data; {head}\n\n{content}\n")
}

fn refused(body: &str) -> (ErrorCode, String) {
    let problem = form(body).expect_err(body);
    (problem.code(), problem.message().to_owned())
}

#[test]
fn files_and_fields_are_read_in_any_order() {
    let body = format!(
        "preamble --xyz\n{}--xyz \t\nContent-Type: image/PNG; x=y\ncontent-disposition: FORM-DATA; Filename=\"cat.png\"; name=a\n\ncat\n{}{}{}--xyz--\nepilogue --xyz",
        part("name=\"folder\"", "pets/mine"),
        part("name=b; filename=dog.gif", "d\n-\n--xy\n\n--\nog"),
        part("name=type", "image"),
        part("name=update", "1") + &part("name=private", "true"),
    );
    let (form, files) = form(&body).unwrap();
    assert_eq!((form.shape(), form.kind().as_str()), (UploadShape::Multipart, "image"));
    assert_eq!(form.folder().as_str(), "pets/mine");
    assert_eq!(form.existing(), Existing::IsReplaced);
    assert_eq!(files, [&b"cat"[..], b"d\r\n-\r\n--xy\r\n\r\n--\r\nog"]);
    let [cat, dog] = form.items() else { panic!() };
    assert_eq!((cat.name().as_str(), dog.name().as_str()), ("cat.png", "dog.gif"));
    assert_eq!(cat.label(), Some(&Label::Mime("image/png".into())));
    assert_eq!((dog.label(), dog.visibility()), (None, Visibility::Private));
}

#[test]
fn names_of_files_are_read_as_clients_write_them() {
    for (written, name) in [
        (r#"filename="a b.png""#, "a b.png"),
        (r#"filename="a\"b\\c;d.png""#, "c;d.png"),
        (r#"filename="a%22b%25.png""#, "a\"b%25.png"),
        (r#"filename="C:\Users\me\cat.png""#, "cat.png"),
        (r#"filename="../../etc/passwd""#, "passwd"),
        (r#"filename="a\b.txt""#, "b.txt"),
        (r#"filename="cat.png\""#, "cat.png"),
        (r#"filename="cat.png\\""#, "cat.png"),
        (r#"filename="a\"b\"""#, "a\"b\""),
        (r#"filename="写真.png""#, "写真.png"),
        (r#"filename="x"; filename*=UTF-8''na%C3%AFve%20caf%C3%A9.txt"#, "naïve café.txt"),
        (r#"filename*=iso-8859-1'en'%E9.txt"#, "é.txt"),
    ] {
        let body = part(&format!("name=a; {written}"), "x") + &part("name=type", "file") + "--xyz--";
        assert_eq!(form(&body).unwrap().0.items()[0].name().as_str(), name);
    }
}

#[test]
fn every_boundary_that_is_allowed_is_found() {
    let long = "-".repeat(69) + "x";
    for (written, boundary) in
        [("xyz", "xyz"), ("\"x y z\"", "x y z"), ("\"a'()+_,-./:=?\"; charset=utf-8", "a'()+_,-./:=?"), (&long, &long)]
    {
        let body = part("filename=a", "\n--") + &part("name=type", "file") + "--xyz--";
        let body = body.replace('\n', "\r\n").replace("xyz", boundary);
        let kind = format!("multipart/form-data; boundary={written}");
        let (_, files) = read(Some(&kind), body.as_bytes()).unwrap();
        assert_eq!(files, [b"\r\n--"]);
    }
    for written in [
        "",
        "boundary=",
        "boundary=\"a ",
        "boundary=\"a \"",
        "boundary=é",
        "boundary=a; boundary=b",
        &format!("boundary=x{long}"),
    ] {
        let problem = read(Some(&format!("multipart/form-data; {written}")), b"").unwrap_err();
        assert_eq!(problem.code(), InvalidBody, "{written}");
    }
}

#[test]
fn forms_of_browsers_are_read() {
    // File fields for which no file was chosen, and checked boxes.
    let unchosen = part("name=\"second\"; filename=\"\"\nContent-Type: application/octet-stream", "");
    let body =
        unchosen.clone() + &part("name=\"first\"; filename=\"a.txt\"", "x") + &unchosen + &part("name=type", "file");
    for (word, existing) in [
        ("on", Existing::IsReplaced),
        ("true", Existing::IsReplaced),
        ("True", Existing::IsReplaced),
        ("1", Existing::IsReplaced),
        ("off", Existing::Stays),
        ("False", Existing::Stays),
        ("0", Existing::Stays),
    ] {
        let flags = part("name=update", word) + &part("name=private", word);
        let (form, files) = form(&(body.clone() + &flags + "--xyz--")).unwrap();
        assert_eq!(files, [b"x"]);
        assert_eq!(form.items()[0].name().as_str(), "a.txt");
        assert_eq!(form.existing(), existing, "{word}");
        let is_private = form.items()[0].visibility().is_private();
        assert_eq!(is_private, existing == Existing::IsReplaced, "{word}");
    }
}

#[test]
fn a_form_that_stops_is_refused() {
    let body = (part("filename=a", "x") + &part("name=type", "file") + "--xyz--").replace('\n', "\r\n");
    for end in 0..body.len() {
        let problem = read(Some(TYPE), &body.as_bytes()[..end]).unwrap_err();
        assert_eq!(problem.code(), InvalidBody);
        assert!(end == 0 || problem.message().contains("ended early"), "{problem}");
    }
    assert!(read(Some(TYPE), body.as_bytes()).is_ok());
}

#[test]
fn faults_of_forms_are_named() {
    let file = part("filename=a", "x");
    let end = "--xyz--";
    for (body, said) in [
        (String::new(), "no file"),
        (part("name=type", "file"), "no file"),
        (file.clone(), "type is missing"),
        (part("name=typ", "file"), "\"typ\" is no field"),
        (part("name=type", "file") + &part("name=type", "file"), "type is repeated"),
        (part("name=type", "picture"), "not \"picture\""),
        (part("name=update", "yes"), "update must be true or false"),
        (part("name=folder", "a/../b"), "is . or .."),
        (part("name=folder", &"x".repeat(3_000)), "folder is longer than"),
        (file.clone() + &file, "would be called \"a\""),
        (part("filename=\"\"", ""), "no file"),
        (part("filename=\"\"", "x"), "A file has no name"),
        (part("filename=\"/\"", ""), "A file has no name"),
        (part("filename=\"a\u{1}\"", ""), "File 0: "),
        (part("x=y", ""), "neither a name nor a filename"),
        (part("name=\"a", ""), "no sound line Content-Disposition"),
        ("--xyz\n\nx\n--xyz--".to_owned(), "no sound line Content-Disposition"),
        ("--xyz\nContent-Disposition: attachment; filename=a\n\nx".to_owned(), "no sound line"),
        ("--xyz\nno colon\n\nx".to_owned(), "is malformed"),
        (part("filename=a\nContent-Transfer-Encoding: base64", "x"), "is not read here"),
        ("--xyzx\n\n".to_owned(), "behind the boundary, at byte 5"),
        ("--xyz-x".to_owned(), "behind the boundary, at byte 6"),
        (format!("--xyz\nX: {}", "x".repeat(9_000)), "header lines"),
    ] {
        let (code, message) = refused(&(body + end));
        assert_eq!(code, InvalidBody, "{message}");
        assert!(message.contains(said), "{message}");
    }
    let line = "--xyz\nContent-Disposition: form-data; name=x; x=";
    let longest = |more: usize| {
        let value = UPLOAD_PART_HEAD_MAX_BYTES + "--xyz\r\n".len() - line.len() - 1 - "\r\n\r\n".len();
        format!("{line}{}\n\n", "x".repeat(value + more))
    };
    let field = |more: usize| part("name=folder", &"x".repeat(UPLOAD_TEXT_MAX_BYTES + more));
    for (body, said) in [
        (longest(0), "\"x\" is no field"),
        (longest(1), "more than 8192 bytes of header lines"),
        (field(0), "is longer than 255 bytes of"),
        (field(1), "folder is longer than 2048 bytes"),
    ] {
        let (_, message) = refused(&(body + end));
        assert!(message.contains(said), "{message}");
    }
    for empty in [part("filename=a", ""), "--xyz\nContent-Disposition: form-data; filename=a\n\n--xyz".to_owned()] {
        let (code, message) = refused(&(empty + "--xyz--"));
        assert_eq!((code, message.as_str()), (InvalidMedia, "File 0 (\"a\") is empty."));
    }
}
