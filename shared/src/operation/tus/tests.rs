//! Tests of parsing requests of the tus protocol.

use super::*;
use crate::key::Access;
use crate::media::{FolderPath, MediaKind};
use crate::operation::{BodyUse, Operation, Pending, parse_head};
use crate::policy::Action;
use crate::upload::{Existing, Label, Visibility};

const ID: &str = "0192f3a1-7c1e-7d3a-9d55-0b6c6a1f0e11";

fn pending(method: &str, path: &str, content_type: Option<&str>, headers: &[(&str, &str)]) -> Result<Pending, Problem> {
    let path = format!("{PATH}{path}");
    let content_type = content_type.map(|value| ("content-type", value));
    let headers = headers.iter().copied().chain(content_type);
    let headers = headers.map(|(name, value)| (name, value.as_bytes()));
    parse_head(&RequestHead::read(method, &path, None, headers))
}

fn call(method: &str, path: &str, headers: &[(&str, &str)]) -> Result<TusCall, Problem> {
    let content_type = (!path.is_empty()).then_some(BYTES_TYPE);
    match pending(method, path, content_type, headers)?.finish(b"")? {
        Operation::Tus(call) => Ok(call),
        other => panic!("{other:?}"),
    }
}

fn file(metadata: &str) -> TusFile {
    TusFile::from_metadata(metadata).unwrap()
}

fn pairs(pairs: &[(&str, &str)]) -> String {
    use base64::Engine as _;
    let pairs = pairs.iter().map(|(key, value)| {
        let value = base64::engine::general_purpose::STANDARD.encode(value);
        format!("{key} {value}")
    });
    pairs.collect::<Vec<_>>().join(",")
}

const V1: (&str, &str) = ("tus-resumable", "1.0.0");

#[test]
fn each_request_of_the_protocol_is_known() {
    let id = TusId::parse(ID).unwrap();
    let below = format!("/{ID}");
    let at_7 = [V1, ("upload-offset", "7")];
    assert_eq!(call("OPTIONS", "", &[]).unwrap(), TusCall::Describe);
    assert_eq!(call("OPTIONS", &below, &[]).unwrap(), TusCall::Describe);
    assert_eq!(call("HEAD", &below, &[V1]).unwrap(), TusCall::Status(id));
    assert_eq!(call("DELETE", &below, &[V1]).unwrap(), TusCall::Terminate(id));
    assert_eq!(call("PATCH", &below, &at_7).unwrap(), TusCall::Append { id, offset: 7 });
    let [version, offset] = at_7;
    let overridden = [version, offset, ("x-http-method-override", "PATCH")];
    assert_eq!(call("POST", &below, &overridden).unwrap(), TusCall::Append { id, offset: 7 });
    let metadata = pairs(&[("filename", "a.bin")]);
    let created = call("POST", "", &[V1, ("upload-length", "9"), ("upload-metadata", &metadata)]);
    let TusCall::Create(new) = created.unwrap() else {
        panic!("no creation");
    };
    assert_eq!((new.length, &*new.metadata), (9, metadata.as_str()));
    assert_eq!(new.first_bytes, FirstBytes::Later);
    assert_eq!(id.to_url_path(), format!("/api/v1/media/tus/{ID}"));
    assert_eq!(TusId::from(id.get()), id);
}

#[test]
fn bodies_are_taken_as_bytes_under_their_own_type_alone() {
    let below = format!("/{ID}");
    let offset = [V1, ("upload-offset", "0")];
    let bytes = pending("PATCH", &below, Some(BYTES_TYPE), &offset).unwrap();
    assert_eq!(bytes.body(), BodyUse::Bytes);
    assert_eq!(bytes.action(), Action::ResumeUpload);
    assert!(bytes.check_body_type().is_ok());
    for other in [None, Some("application/octet-stream"), Some("")] {
        let refused = pending("PATCH", &below, other, &offset).unwrap();
        assert_eq!(refused.check_body_type().unwrap_err().code(), ErrorCode::UnsupportedMediaType);
    }
    let metadata = pairs(&[("filename", "a")]);
    let new = [V1, ("upload-length", "1"), ("upload-metadata", &metadata)];
    let with_bytes = pending("POST", "", Some(BYTES_TYPE), &new).unwrap();
    assert_eq!(with_bytes.body(), BodyUse::Bytes);
    let without = pending("POST", "", Some("application/json"), &new).unwrap();
    assert_eq!(without.body(), BodyUse::None);
    assert_eq!(without.action(), Action::BeginUpload);
    assert_eq!(without.action().needs(), Access::Full);
}

#[test]
fn another_version_is_told_which_one_is_spoken() {
    let below = format!("/{ID}");
    for version in [vec![], vec![("tus-resumable", "0.2.2")]] {
        for (method, path) in [("POST", ""), ("HEAD", below.as_str()), ("PATCH", &below), ("DELETE", &below)] {
            let refused = call(method, path, &version).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::PreconditionFailed, "{method}");
        }
    }
    let told: Vec<_> = answer_headers(PATH, 412).collect();
    assert_eq!(told, [("tus-resumable", "1.0.0"), ("tus-version", "1.0.0")]);
    assert_eq!(answer_headers(&format!("{PATH}/{ID}"), 204).count(), 1);
    for path in ["/api/v1/media", "/api/v1/media/tusk", "/api/v1/media/7"] {
        assert_eq!(answer_headers(path, 412).count(), 0, "{path}");
    }
}

#[test]
fn headers_that_can_not_be_meant_are_refused() {
    let below = format!("/{ID}");
    let metadata = pairs(&[("filename", "a")]);
    let meant = ("upload-metadata", metadata.as_str());
    let query = ErrorCode::InvalidQueryOption;
    let (length, offset) = ("upload-length", "upload-offset");
    for (method, path, header, code) in [
        ("POST", "", None, query),
        ("POST", "", Some((length, "-1")), query),
        ("POST", "", Some((length, "+1")), query),
        ("POST", "", Some((length, "1e3")), query),
        ("POST", "", Some((length, "99999999999999999999")), query),
        ("POST", "", Some((length, "0")), ErrorCode::InvalidMedia),
        ("POST", "", Some(("upload-defer-length", "1")), query),
        ("POST", "", Some(("upload-concat", "partial")), query),
        ("PATCH", &below, None, query),
        ("PATCH", &below, Some((offset, "")), query),
        ("PATCH", &below, Some(("upload-checksum", "sha1 x")), query),
    ] {
        let headers: Vec<_> = [V1, meant].into_iter().chain(header).collect();
        let refused = call(method, path, &headers).unwrap_err();
        assert_eq!(refused.code(), code, "{method} {header:?}");
    }
    for (method, path, code) in [
        ("GET", "", ErrorCode::MethodNotAllowed),
        ("PATCH", "", ErrorCode::MethodNotAllowed),
        ("GET", below.as_str(), ErrorCode::MethodNotAllowed),
        ("POST", &below, ErrorCode::MethodNotAllowed),
        ("HEAD", "/7", ErrorCode::MediaNotFound),
        ("HEAD", "/0192f3a17c1e7d3a9d550b6c6a1f0e11", ErrorCode::MediaNotFound),
        ("HEAD", "//", ErrorCode::RouteNotFound),
        ("HEAD", "/", ErrorCode::MethodNotAllowed),
        ("HEAD", &format!("{below}/x"), ErrorCode::RouteNotFound),
    ] {
        assert_eq!(call(method, path, &[V1]).unwrap_err().code(), code, "{method} {path}");
    }
}

#[test]
fn metadata_say_what_the_file_will_be() {
    let plain = file(&pairs(&[("filename", "写真.JPG")]));
    assert_eq!(plain.name.as_str(), "写真.JPG");
    assert_eq!((plain.kind, plain.label), (MediaKind::File, None));
    assert_eq!(plain.existing, Existing::Stays);
    assert_eq!(plain.visibility, Visibility::Undeclared);
    let whole = file(&pairs(&[
        ("relativePath", "null"),
        ("name", "b"),
        ("filename", "a.png"),
        ("filetype", "image/PNG"),
        ("folder", "/x/y/"),
        ("private", "true"),
        ("update", "1"),
    ]));
    assert_eq!(whole.name.as_str(), "a.png");
    assert_eq!(whole.kind, MediaKind::Image);
    assert_eq!(whole.label, Some(Label::Mime("image/png".into())));
    assert_eq!(whole.folder, FolderPath::parse("x/y").unwrap());
    assert_eq!(whole.existing, Existing::IsReplaced);
    assert_eq!(whole.visibility, Visibility::Private);
    let flags = file("filename YQ==, privateFolder,private ZmFsc2U=");
    assert_eq!(flags.visibility, Visibility::PrivateFolder);
    let made_public = file(&pairs(&[("filename", "a"), ("private", "false")]));
    assert_eq!(made_public.visibility, Visibility::Public);
}

#[test]
fn a_type_is_a_kind_or_a_label() {
    for (given, kind, label) in [
        (vec![("type", "image")], MediaKind::Image, None),
        (vec![("type", "video/mp4")], MediaKind::Video, Some("video/mp4")),
        (vec![("type", "file"), ("filetype", "image/png")], MediaKind::File, Some("image/png")),
        (vec![("type", "audio/mpeg"), ("kind", "file")], MediaKind::File, Some("audio/mpeg")),
        (vec![("filetype", "image/svg+xml")], MediaKind::File, Some("image/svg+xml")),
        (vec![("filetype", "")], MediaKind::File, None),
    ] {
        let mut all = vec![("name", "a")];
        all.extend(&given);
        let file = file(&pairs(&all));
        assert_eq!(file.kind, kind, "{given:?}");
        let label = label.map(|mime| Label::Mime(mime.into()));
        assert_eq!(file.label, label, "{given:?}");
    }
}

#[test]
fn metadata_that_can_not_be_meant_are_refused() {
    let long = format!("filename YQ==,x {}", "A".repeat(4096));
    for metadata in [
        "",
        " ",
        "filename",
        "filename ",
        "filename YQ",
        "filename YQ=",
        "filename Y Q==",
        "filename _-8=",
        "filename /w==",
        "filename YQ==,filename YQ==",
        "filename YQ==,,x YQ==",
        "filename YQ==,",
        "filename YQ==,unknown !",
        &pairs(&[("filename", "../a")]),
        &pairs(&[("filename", "a/b")]),
        &pairs(&[("filename", "a"), ("folder", "../b")]),
        &pairs(&[("filename", "a"), ("private", "yes")]),
        &pairs(&[("filename", "a"), ("kind", "picture")]),
        &pairs(&[("filename", "a"), ("type", "no type!")]),
        &long,
    ] {
        let refused = TusFile::from_metadata(metadata).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidBody, "{metadata}");
    }
}

#[test]
fn an_upload_that_names_no_folder_gets_one() {
    let folder = FolderPath::parse("avatars/ü").unwrap();
    for given in [
        vec![("filename", "a.png"), ("filetype", "image/png")],
        vec![("filename", "a.png"), ("folder", ""), ("filetype", "image/png")],
        vec![("folder", "other"), ("filename", "a.png"), ("filetype", "image/png")],
    ] {
        let metadata = pairs(&given);
        let headers = [V1, ("upload-length", "5"), ("upload-metadata", metadata.as_str())];
        let TusCall::Create(mut new) = call("POST", "", &headers).unwrap() else {
            panic!("no creation");
        };
        new.set_folder(folder.clone()).unwrap();
        let read = file(&new.metadata);
        assert_eq!(read, new.file);
        assert_eq!((read.folder, read.name.as_str()), (folder.clone(), "a.png"));
    }
}
