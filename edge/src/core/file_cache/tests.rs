//! What is kept of files and what of it is given, without a cache.

use super::*;

const V: &str = "0123456789abcdef0123456789abcdef";
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const FOR_EVER: &str = "public, max-age=31536000, immutable";

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

fn asked(query: &str) -> Option<CachedFile> {
    CachedFile::requested(&path("/media/default/a/b.png"), Some(query), "i")
}

fn file() -> CachedFile {
    asked(&format!("v={V}")).unwrap()
}

#[test]
fn only_a_url_of_nothing_but_a_version_may_be_answered_from_what_is_kept() {
    let thumbnail = asked(&format!("thumbnail=true&v={V}")).unwrap();
    assert_eq!(asked(&format!("v={V}&thumbnail=true")).unwrap(), thumbnail);
    assert_ne!(thumbnail.cache_key(), file().cache_key());
    assert_eq!(CachedFile::requested(&path("/media/default/a"), None, "i"), None);
    for query in [
        String::new(),
        "thumbnail=true".to_owned(),
        format!("v={}", &V[1..]),
        format!("v={}", V.to_uppercase()),
        format!("v={V}0"),
        format!("v=%30{}", &V[1..]),
        format!("v={V}&v={V}"),
        format!("v={V}&"),
        format!("v={V}&download=true"),
        format!("v={V}&thumbnail=false"),
        format!("v={V}&thumbnail=true&thumbnail=true"),
        format!("v={V}&expires=9999999999&signature=x"),
        format!("v={V}&utm=x"),
    ] {
        assert_eq!(asked(&query), None, "{query}");
    }
}

#[test]
fn a_file_has_one_place_whatever_its_version_or_spelling() {
    let at = |text: &str, v: char| {
        let query = format!("v={}", v.to_string().repeat(32));
        CachedFile::requested(&path(text), Some(&query), "i").unwrap()
    };
    let (a, b) = (at("/media/default/a%62.png", 'a'), at("/media/default/ab.png", 'b'));
    assert_eq!(a.cache_key(), b.cache_key());
    assert_ne!(a.tag(), b.tag());
    assert_ne!(a.cache_key(), at("/media/other/ab.png", 'a').cache_key());
    assert!(!cache_keys(a.name(), "j").contains(&a.cache_key().to_owned()));
    assert!(cache_keys(a.name(), "i").contains(&a.cache_key().to_owned()));
}

#[test]
fn only_what_the_origin_calls_everybodys_for_ever_is_kept() {
    let tag = file().tag().to_owned();
    let good = FileHead {
        status: 200,
        etag: Some(&tag),
        last_modified: Some(DATE),
        cache_control: Some(FOR_EVER),
        content_length: Some("17"),
        content_range: None,
    };
    let filling = |head: FileHead<'_>| file().fill_mode(&head);
    assert_eq!(filling(good), FillMode::WithAnswer);
    for cache_control in [
        None,
        Some("public, no-cache"),
        Some("private, max-age=60"),
        Some("private, no-cache"),
        Some("private, max-age=31536000, immutable"),
        Some("no-store"),
        Some("public, max-age=31536000"),
    ] {
        let head = FileHead { cache_control, ..good };
        assert_eq!(filling(head), FillMode::None, "{cache_control:?}");
    }
    for head in [
        FileHead { etag: Some("\"other\""), ..good },
        FileHead { etag: None, ..good },
        FileHead { last_modified: None, ..good },
        FileHead { last_modified: Some("soon"), ..good },
        FileHead { content_length: None, ..good },
        FileHead { status: 304, ..good },
        FileHead { status: 404, ..good },
    ] {
        assert_eq!(filling(head), FillMode::None, "{head:?}");
    }
}

#[test]
fn large_files_and_parts_are_kept_behind_the_answer_and_huge_ones_not_at_all() {
    let tag = file().tag().to_owned();
    let filling = |status, length: u64| {
        let (length, range) = (length.to_string(), format!("bytes 0-1/{length}"));
        file().fill_mode(&FileHead {
            status,
            etag: Some(&tag),
            last_modified: Some(DATE),
            cache_control: Some(FOR_EVER),
            content_length: (status == 200).then_some(length.as_str()),
            content_range: (status == 206).then_some(range.as_str()),
        })
    };
    for (status, length, expected) in [
        (200, 0, FillMode::WithAnswer),
        (200, WITH_ANSWER_MAX_BYTES, FillMode::WithAnswer),
        (200, WITH_ANSWER_MAX_BYTES + 1, FillMode::Separately),
        (200, CACHED_MAX_BYTES, FillMode::Separately),
        (200, CACHED_MAX_BYTES + 1, FillMode::None),
        (206, 10, FillMode::Separately),
        (206, CACHED_MAX_BYTES + 1, FillMode::None),
    ] {
        assert_eq!(filling(status, length), expected, "{status} {length}");
    }
}

#[test]
fn a_check_lasts_for_its_time_and_is_told_as_it_was() {
    let check = Check::confirmed(1_000, 60);
    assert!(check.lasts(1_059) && !check.lasts(1_060));
    assert_eq!((check.age(1_030), check.lifetime(1_030)), (30, "max-age=30".to_owned()));
    assert_eq!(Check::read(&check.to_string()), Some(check));
    let prolonged = check.prolonged(2_000);
    assert!(prolonged.lasts(2_009) && !prolonged.lasts(2_010));
    assert_eq!(prolonged.age(2_000), 1_000);
    assert_eq!(check.or(Some(prolonged)), prolonged);
    assert_eq!(prolonged.or(Some(check)), prolonged);
    assert_eq!(check.or(None), check);
    for odd in ["", "1", "1-", "-1", "a-b"] {
        assert_eq!(Check::read(odd), None, "{odd}");
    }
}

#[test]
fn only_an_origin_that_can_speak_has_a_file_forgotten() {
    for (status, expected) in [
        (304, Revalidated::Unchanged),
        (200, Revalidated::Changed),
        (404, Revalidated::Changed),
        (401, Revalidated::Changed),
        (429, Revalidated::Unknown),
        (500, Revalidated::Unknown),
        (503, Revalidated::Unknown),
    ] {
        assert_eq!(Revalidated::of(status), expected, "{status}");
    }
}

#[test]
fn conditions_and_ranges_are_answered_as_the_origin_answers_them() {
    let tag = file().tag().to_owned();
    let entry = Entry { tag: &tag, last_modified: DATE, size: 10 };
    let serve = |is_head, if_none_match: Option<&str>, if_range: Option<&str>, range| {
        let conditions = Conditions {
            if_none_match: if_none_match.map(Into::into),
            if_range: if_range.map(Into::into),
            ..Conditions::default()
        };
        entry.serve(is_head, &conditions, range).unwrap()
    };
    assert_eq!(serve(false, None, None, None), Serving::Whole);
    assert_eq!(serve(false, Some(&tag), None, None), Serving::NotModified);
    assert_eq!(serve(false, Some("\"x\""), None, Some("bytes=2-4")), Serving::Part(2..5));
    assert_eq!(serve(false, None, Some(&tag), Some("bytes=-4")), Serving::Part(6..10));
    assert_eq!(serve(false, None, Some("\"x\""), Some("bytes=-4")), Serving::Whole);
    assert_eq!(serve(false, None, None, Some("bytes=0-1,3-4")), Serving::Whole);
    assert_eq!(serve(false, None, None, Some("bytes=10-")), Serving::Beyond);
    assert_eq!(serve(true, None, None, Some("bytes=2-4")), Serving::Whole);
    let failing = Conditions { if_match: Some("\"x\"".into()), ..Conditions::default() };
    assert_eq!(entry.serve(false, &failing, None), Some(Serving::Failed));
    let dateless = Entry { last_modified: "", ..entry };
    assert_eq!(dateless.serve(false, &Conditions::default(), None), None);
    assert_eq!(
        (range_header(&(2..5)), content_range(&(2..5), 10)),
        ("bytes=2-4".to_owned(), "bytes 2-4/10".to_owned())
    );
}

#[test]
fn a_check_from_before_a_folder_became_private_does_not_count() {
    let made_private = Some(Check::made_private(100));
    for (asked_at, counts) in [(0, false), (99, false), (100, false), (104, false), (105, true)] {
        let check = Check::confirmed(asked_at, 60);
        assert_eq!(check.counts_after(made_private), counts, "{asked_at}");
        // However long what it says is used in cache_key of a fresh one.
        assert_eq!(check.prolonged(200).counts_after(made_private), counts);
        assert!(check.counts_after(None));
    }
}

#[test]
fn a_projects_mark_lies_where_no_file_does() {
    // A project may be called like the name of a file.
    let name = KeptName::of(&FilePath::parse("/media/default/a").unwrap());
    let project = ProjectName::parse(&format!("a{}", &name.as_str()[1..])).unwrap();
    let cache_key = private_mark_key(&project, "i");
    let file = CachedFile::requested(
        &FilePath::parse(&format!("/media/{project}/a")).unwrap(),
        Some(&format!("v={}", "0".repeat(32))),
        "i",
    );
    let file = file.unwrap();
    assert_eq!(file.private_mark_key(), cache_key);
    for taken in [file.cache_key().to_owned(), file.check_key()] {
        assert_ne!(taken, cache_key);
    }
}
