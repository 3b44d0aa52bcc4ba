//! Tests of uploads as JSON.

use super::{json, read_pieces, refused};
use crate::error::ErrorCode::{InvalidBody, InvalidJson, InvalidMedia};
use crate::limits::{UPLOAD_CHUNK_BYTES, UPLOAD_LABEL_MAX_BYTES, UPLOAD_MAX_ITEMS, UPLOAD_TEXT_MAX_BYTES};
use crate::media::MediaKind;
use crate::upload::{Existing, Given, Label, UploadLimits, UploadShape, Visibility};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

fn one(base64: &str) -> String {
    format!(r#"{{"type":"file","media":{{"name":"a","base64":"data:a/b;base64,{base64}"}}}}"#)
}

#[test]
fn the_first_shape_is_read_with_all_that_it_may_say() {
    let (form, files) = json(
        r#"{"media":[{"name":"cat.png","base64":"data:image/PNG;name=x;base64,Y2F0"},
        {"base64":"data:image/gif;base64,ZG9n","name":"dog.gif"}],
        "folder":"pets/mine","type":"image","update":true,"private":true}"#,
    )
    .unwrap();
    assert_eq!((form.shape(), form.kind()), (UploadShape::Named, MediaKind::Image));
    assert_eq!(form.folder().as_str(), "pets/mine");
    assert_eq!(form.existing(), Existing::IsReplaced);
    assert_eq!(files, [b"cat", b"dog"]);
    let [cat, dog] = form.items() else { panic!() };
    assert_eq!((cat.name().as_str(), dog.name().as_str()), ("cat.png", "dog.gif"));
    assert_eq!(cat.label(), Some(&Label::Mime("image/png".into())));
    assert_eq!(dog.visibility(), Visibility::Private);
}

#[test]
fn the_second_shape_is_read_as_one_object_and_as_a_list() {
    let item = r#"{"imageName":"My Cat","imageBase64":"Y2F0","imageType":"jpg"}"#;
    let (form, files) = json(&format!(r#"{{"media":{item},"type":"image"}}"#)).unwrap();
    assert_eq!(form.shape(), UploadShape::Typed(Given::One));
    assert_eq!(form.items()[0].name().as_str(), "my-cat.jpg");
    assert_eq!(form.items()[0].label(), Some(&Label::Extension("jpg".into())));
    assert_eq!((form.existing(), files), (Existing::Stays, vec![b"cat".to_vec()]));

    let other = r#"{"fileName":"a.pdf","fileBase64":"data:application/pdf;base64,cGRm","fileType":"pdf",
        "private":true,"privateFolder":null}"#;
    let (form, _) = json(&format!(r#"{{"type":"image","media":[{item},{other}]}}"#)).unwrap();
    assert_eq!(form.shape(), UploadShape::Typed(Given::List));
    let [image, file] = form.items() else { panic!() };
    assert_eq!((image.kind(), file.kind()), (MediaKind::Image, MediaKind::File));
    assert_eq!(file.label(), Some(&Label::Mime("application/pdf".into())));
    assert_eq!(image.visibility(), Visibility::Undeclared);
    assert_eq!(file.visibility(), Visibility::Private);
}

#[test]
fn what_an_item_says_of_its_privacy_goes_before_what_the_upload_says() {
    let item = |name: &str, said: &str| format!(r#"{{"fileName":"{name}","fileBase64":"YQ","fileType":"txt"{said}}}"#);
    let items =
        [item("a", ""), item("b", r#","private":false"#), item("c", r#","private":false,"privateFolder":true"#)];
    let (form, _) = json(&format!(r#"{{"media":[{}],"type":"file","private":true}}"#, items.join(","))).unwrap();
    let said: Vec<_> = form.items().iter().map(super::UploadItem::visibility).collect();
    assert_eq!(said, [Visibility::Private, Visibility::Public, Visibility::PrivateFolder]);
}

#[test]
fn base64_is_taken_in_either_alphabet_with_escapes_and_line_breaks() {
    let bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    let text = STANDARD.encode(&bytes);
    let broken: Vec<_> = text.as_bytes().chunks(76).map(|line| str::from_utf8(line).unwrap()).collect();
    for written in [
        text.clone(),
        text.trim_end_matches('=').to_owned(),
        URL_SAFE_NO_PAD.encode(&bytes),
        text.replace('/', "\\/"),
        text.replace('A', "\\u0041"),
        text.replace('+', "-"),
        broken.join("\\r\\n"),
        broken.join(" "),
        broken.join("\\t\\u000a"),
        format!("{text}\\n"),
    ] {
        let (_, files) = json(&one(&written)).unwrap();
        assert!(files[0] == bytes, "{}", &written[..80]);
    }
}

#[test]
fn a_byte_order_mark_and_white_space_change_nothing() {
    let body = "\u{feff} {\n\"type\"\t:\r\"file\" , \"media\" : [ { \"name\" : \"a\" , \"base64\" : \"data:a/b;base64,YQ\" } ] } \n";
    assert!(json(body).is_ok());
    assert_eq!(refused(&format!(" {body}")).0, InvalidJson);
}

#[test]
fn what_is_no_base64_is_refused_with_its_place() {
    for (written, said) in [
        ("YQ=", "its last group is cut"),
        ("Y", "its last group is cut"),
        ("YQ===", "a padding ="),
        ("=", "a padding ="),
        ("Y=Q=", "a padding ="),
        ("YQ==YQ==", "it holds Y"),
        ("YR==", "unused bits that are set"),
        ("YWJ", "unused bits that are set"),
        ("YW*j", "it holds *"),
        ("YWé", "it holds 0xc3"),
        ("YW\\u00e9", "a character that base64 does not have"),
        ("YW\\\\", "it holds \\"),
        ("YW\\b", "it holds 0x08"),
        ("YW\\f", "it holds 0x0c"),
        ("", "is empty"),
        (" ", "is empty"),
    ] {
        let (code, message) = refused(&one(written));
        assert_eq!(code, InvalidMedia, "{written}");
        assert!(message.starts_with("media (\"a\") ") && message.contains(said), "{message}");
    }
    let body = one("YW*j");
    let place = format!("(byte {} of the body).", body.find('*').unwrap());
    assert!(refused(&body).1.ends_with(&place));
    let nameless = r#"{"media":[{"base64":"data:a/b;base64,*"#;
    assert!(refused(nameless).1.starts_with("media[0] is not base64"));
}

#[test]
fn heads_of_data_urls_are_checked() {
    let item = |written: &str| format!(r#"{{"type":"file","media":{{"name":"a","base64":"{written}"}}}}"#);
    for written in [
        "",
        "YQ==",
        " data:a/b;base64,YQ",
        "data:a/b,YQ",
        "data:;base64,YQ",
        "data:a/b;base64",
        "data:a;base64,YQ",
        "data:a/b;base64;x,YQ",
        "data:a/b;\\n;base64,YQ",
        "dat",
        "data:\\u00e9/b;base64,YQ",
    ] {
        assert_eq!(refused(&item(written)).0, InvalidMedia, "{written}");
    }
    let padding = UPLOAD_LABEL_MAX_BYTES - "data:a/b;name=;base64".len();
    let longest = format!("data:a/b;name={};base64", "x".repeat(padding));
    assert!(json(&item(&format!("{longest},YQ"))).is_ok());
    assert!(refused(&item(&format!("{longest} ,YQ"))).1.contains("without a comma in its first 1024"));
    for written in ["data:a/b;base64,YQ", "DATA:a/b; charset=utf-8; BASE64,YQ", "d\\u0061ta:a\\/b;base64\\u002cYQ"] {
        assert!(json(&item(written)).is_ok(), "{written}");
    }
    // In `fileBase64`, text that is no data URL is base64, even if it begins with `data`.
    let bare = r#"{"type":"file","media":{"fileName":"a","fileType":"txt","fileBase64":"data"}}"#;
    assert_eq!(json(bare).unwrap().1, [STANDARD.decode("data").unwrap()]);
}

#[test]
fn malformed_json_is_refused_with_its_place() {
    let whole = one("YQ==");
    for end in 1..whole.len() {
        let (code, message) = refused(&whole[..end]);
        assert_eq!(code, InvalidJson, "{}", &whole[..end]);
        assert!(message.contains(&format!("ended early, at byte {end}")), "{message}");
    }
    assert_eq!(refused("").1, "The body is empty.");
    for (body, said) in [
        ("{x", "x stands at byte 1"),
        ("\u{feff}{x", "x stands at byte 4"),
        ("{\n\n  x", "x stands at byte 5 (line 3, column 3)"),
        ("{\"folder\":\n \"a\\\"b\",]", "] stands at byte 19 (line 2, column 9), where a key is expected"),
        ("{\"type\" \"file\"}", "a text stands at byte 8, where a colon is expected"),
        ("{,", ", stands at byte 1, where a key or } is expected"),
        ("{\"update\":tru}", "an unknown word stands at byte 10"),
        ("{\"type\":\"\\x\"}", "invalid escape in the text at byte 8"),
        ("{\"type\":\"\\ud800\"}", "in the text at byte 8"),
        ("{\"type\":\"a\nb\"}", "in the text at byte 8"),
        ("{\"media\":[,", "an object or ] is expected"),
        ("{\"media\":[{]", "a key or } is expected"),
        ("{\"media\":{\"name\":\"a\",}}", "a key is expected"),
    ] {
        let (code, message) = refused(body);
        assert_eq!(code, InvalidJson, "{message}");
        assert!(message.contains(said), "{message}");
    }
    assert!(refused(&format!("{whole} {{")).1.contains("where the end is expected"));
    assert_eq!(refused(&format!("{whole}nul")).0, InvalidJson);
    assert_eq!(refused(&one("YQ\\x")).0, InvalidJson);
    assert_eq!(refused(&one("YQ\n")).0, InvalidJson);
    let half_a_mark = [b"\xef", whole.as_bytes()].concat();
    let broken = super::read(None, &half_a_mark).unwrap_err();
    assert_eq!(broken.code(), InvalidJson);
    let broken = super::read(None, b"{\"type\":\"\xff\"}").unwrap_err();
    assert_eq!(broken.code(), InvalidJson);
}

#[test]
fn faults_of_shape_name_the_key() {
    for (body, said) in [
        ("[]", "not a list"),
        ("1", "not a number"),
        ("{}", "no file"),
        (r#"{"media":[],"type":"file"}"#, "no file"),
        (r#"{"media":null}"#, "media must be a list of items, not null"),
        (r#"{"media":[1]}"#, "media[0] must be an object, not a number"),
        (r#"{"media":[{}]}"#, "media[0] holds no file"),
        (r#"{"media":[{"private":true}]}"#, "media[0] holds no file"),
        (r#"{"media":[{"name":"a"}]}"#, "media[0].base64 is missing"),
        (r#"{"media":{"imageName":"a","imageType":"b"}}"#, "media.imageBase64 is missing"),
        (r#"{"media":[{"name":1}]}"#, "media[0].name must be a text, not a number"),
        (r#"{"media":[{"name":"a","base64":[]}]}"#, "media[0].base64 must be a text of base64, not a list"),
        (r#"{"media":[{"name":"a","name":"b"}]}"#, "media[0].name is repeated"),
        (r#"{"media":[{"nam":"a"}]}"#, "\"nam\" is no key of media[0]"),
        (r#"{"medai":[]}"#, "\"medai\" is no key of an upload"),
        (r#"{"type":"file","type":"file"}"#, "type is repeated"),
        (r#"{"type":null}"#, "type must be a text, not null"),
        (r#"{"type":"picture"}"#, "not \"picture\""),
        (r#"{"update":"true"}"#, "update must be true or false, not a text"),
        (r#"{"folder":"a//b"}"#, "empty part"),
        (r#"{"media":[{"name":"a","imageName":"b"}]}"#, "media[0].imageName does not go with"),
        (r#"{"media":[{"fileName":"a","imageType":"b"}]}"#, "media[0].imageType does not go with"),
        (
            r#"{"media":[{"name":"a","base64":"data:a/b;base64,YQ"},{"fileName":"a"}]}"#,
            "media[1].fileName is of another shape",
        ),
        (r#"{"type":"video","media":[{"fileName":"a"}]}"#, "type must be image or file"),
        (
            r#"{"media":[{"name":"a/b","base64":"data:a/b;base64,YQ"}]}"#,
            "media[0].name: The name \"a/b\" holds a slash",
        ),
        (
            r#"{"media":[{"name":"a","base64":"data:a/b;base64,YQ"},{"base64":"data:a/b;base64,YQ","name":"a"}]}"#,
            "would be called \"a\"",
        ),
        (r#"{"media":{"name":"a","base64":"data:a/b;base64,YQ"}}"#, "type is missing"),
    ] {
        let (code, message) = refused(body);
        assert_eq!(code, InvalidBody, "{message}");
        assert!(message.contains(said), "{message}");
    }
    let near = json(r#"{"medai":[]}"#).unwrap_err();
    assert_eq!(near.hint(), Some("Did you mean media?"));
}

#[test]
fn items_and_texts_are_bounded() {
    let items = |count: usize| {
        let items: Vec<_> =
            (0..count).map(|at| format!(r#"{{"name":"{at}","base64":"data:a/b;base64,YQ"}}"#)).collect();
        format!(r#"{{"type":"file","media":[{}]}}"#, items.join(","))
    };
    assert!(json(&items(UPLOAD_MAX_ITEMS)).is_ok());
    assert_eq!(refused(&items(UPLOAD_MAX_ITEMS + 1)).0, InvalidBody);
    // The opening quote counts towards the limit.
    let longest = "x".repeat(UPLOAD_TEXT_MAX_BYTES - 1);
    for (more, key, folder) in [("", "is no key of", "is longer than 255 bytes of"), ("x", "A key is", "folder is")] {
        let (in_key, in_folder) = (format!(r#"{{"{longest}{more}""#), format!(r#"{{"folder":"{longest}{more}""#));
        assert!(refused(&in_key).1.contains(key));
        assert!(refused(&in_folder).1.contains(folder));
    }
    let escaped = "\\u0061".repeat(255);
    let body = one("YQ").replace("\"a\"", &format!("\"{escaped}\""));
    assert_eq!(json(&body).unwrap().0.items()[0].name().as_str(), "a".repeat(255));
}

#[test]
fn a_fault_behind_many_escapes_is_found_where_it_is() {
    for (between, count) in [("\\t", 100_000), ("\\/A", 30_000)] {
        let body = one(&format!("{}*", between.repeat(count)));
        let place = format!("(byte {} of the body).", body.find('*').unwrap());
        assert!(refused(&body).1.ends_with(&place));
    }
}

#[test]
fn large_files_come_in_chunks_of_one_size() {
    let bytes: Vec<u8> = (0..UPLOAD_CHUNK_BYTES * 3 + 100).map(|at| (at % 251) as u8).collect();
    let body = one(&STANDARD.encode(&bytes));
    for size in [1_000, 65_536, body.len()] {
        let pieces = body.as_bytes().chunks(size);
        let (_, files) = read_pieces(None, UploadLimits::default(), pieces).unwrap();
        assert!(files[0] == bytes);
    }
}
