//! Tests of the store. The tests in this file run on a directory and on buckets.

mod broken;
mod full;
mod place;
mod service;

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use self::place::{Place, everywhere, files_in};
use super::*;

/// Returns `length` pseudo-random bytes, so that a misplaced piece makes a comparison fail.
fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ length as u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

async fn staged(store: &Store, bytes: &[u8], push: usize) -> Staged {
    let mut staging = store.stage();
    for piece in bytes.chunks(push) {
        staging.write(piece).await.unwrap();
    }
    staging.finish().await.unwrap()
}

async fn published(store: &Store, bytes: &[u8]) -> ObjectKey {
    let key = ObjectKey::new();
    let staged = staged(store, bytes, 64 * 1024).await;
    store.publish(staged, key).await.unwrap();
    key
}

async fn read(store: &Store, key: ObjectKey, range: Option<std::ops::Range<u64>>) -> Vec<u8> {
    let pieces: Vec<Bytes> = store.read(key, range).await.unwrap().try_collect().await.unwrap();
    pieces.concat()
}

async fn is_absent(store: &Store, key: ObjectKey) -> bool {
    matches!(store.read(key, None).await, Err(StoreError::NotFound))
}

/// Waits until `holds` returns true, for effects of dropping a value on another thread.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_published_is_read_back_whole() {
    everywhere(async |place: &Place| {
        const MIB: usize = 1024 * 1024;
        for length in [0, 1, PIECE_BYTES, MIB - 1, MIB, MIB + 1, 20 * MIB] {
            let bytes = pattern(length);
            let staged = staged(&place.store, &bytes, 64 * 1024).await;
            assert_eq!(staged.size(), length as u64);
            assert_eq!(staged.sha256(), <[u8; 32]>::from(Sha256::digest(&bytes)));
            assert_eq!(staged.head(), &bytes[..length.min(HEAD_BYTES)]);
            assert_eq!(std::fs::read(staged.path()).unwrap(), bytes);
            let key = ObjectKey::new();
            assert!(is_absent(&place.store, key).await);
            place.store.publish(staged, key).await.unwrap();
            assert!(read(&place.store, key, None).await == bytes, "{length}");
        }
        until("staging is empty", || files_in(&place.staging).is_empty()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_of_any_size_give_the_same_file() {
    everywhere(async |place: &Place| {
        let bytes = pattern(3 * PIECE_BYTES + 17);
        let expected = <[u8; 32]>::from(Sha256::digest(&bytes));
        for push in [1_000, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, bytes.len()] {
            let staged = staged(&place.store, &bytes, push).await;
            assert_eq!(staged.sha256(), expected, "{push}");
            assert!(std::fs::read(staged.path()).unwrap() == bytes, "{push}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_give_their_bytes() {
    everywhere(async |place: &Place| {
        let bytes = pattern(1_000_000);
        let key = published(&place.store, &bytes).await;
        let ranges = [0..1, 0..1_000_000, 1..999_999, 131_071..131_073, 999_999..1_000_000];
        for range in ranges {
            let expected = &bytes[range.start as usize..range.end as usize];
            let got = read(&place.store, key, Some(range.clone())).await;
            assert!(got == expected, "{range:?}");
        }
        let got = read(&place.store, key, Some(999_998..u64::MAX)).await;
        assert_eq!(got, &bytes[999_998..], "a range is cut to the object");
        for nothing in [7..7, 1_000_000..1_000_001, 2_000_000..3_000_000] {
            let got = read(&place.store, key, Some(nothing.clone())).await;
            assert!(got.is_empty(), "{nothing:?}");
        }
        let gone = place.store.read(ObjectKey::new(), Some(0..5)).await;
        assert!(matches!(gone, Err(StoreError::NotFound)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thumbnail_is_put_and_read() {
    everywhere(async |place: &Place| {
        let key = ObjectKey::new();
        let bytes = Bytes::from(pattern(12_345));
        place.store.put(key, bytes.clone()).await.unwrap();
        assert_eq!(read(&place.store, key, None).await, bytes);
        assert!(files_in(&place.staging).is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_twice_is_fine() {
    everywhere(async |place: &Place| {
        let keys = [published(&place.store, b"one").await, published(&place.store, b"two").await, ObjectKey::new()];
        let kept = published(&place.store, b"kept").await;
        place.store.delete(&keys).await.unwrap();
        place.store.delete(&keys).await.unwrap();
        place.store.delete(&[]).await.unwrap();
        for key in keys {
            assert!(is_absent(&place.store, key).await);
        }
        assert_eq!(read(&place.store, kept, None).await, b"kept");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_tells_objects_from_strangers() {
    everywhere(async |place: &Place| {
        let one = published(&place.store, b"one").await;
        let two = published(&place.store, b"four").await;
        let stranger = place.objects.join("objects/zz/stranger.txt");
        std::fs::create_dir_all(stranger.parent().unwrap()).unwrap();
        std::fs::write(&stranger, "stranger").unwrap();
        let listed: Vec<Listed> = place.store.list().try_collect().await.unwrap();
        let mut found: Vec<_> = listed.iter().map(|listed| (listed.key, listed.path.clone(), listed.size)).collect();
        found.sort_unstable();
        let mut expected =
            [(None, "objects/zz/stranger.txt".to_owned(), 8), (Some(one), one.path(), 3), (Some(two), two.path(), 4)];
        expected.sort_unstable();
        assert_eq!(found, expected);
        let hour = Duration::from_secs(3_600);
        let now = SystemTime::now();
        assert!(listed.iter().all(|listed| listed.modified > now - hour));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_nothing_or_all() {
    everywhere(async |place: &Place| {
        let bytes = pattern(9 * 1024 * 1024);
        for _ in 0..5 {
            let key = ObjectKey::new();
            let staged = staged(&place.store, &bytes, 1 << 20).await;
            let publishing = tokio::spawn({
                let store = place.store.clone();
                async move { store.publish(staged, key).await }
            });
            loop {
                let ended = publishing.is_finished();
                if !is_absent(&place.store, key).await {
                    assert!(read(&place.store, key, None).await == bytes);
                }
                if ended {
                    break;
                }
            }
            publishing.await.unwrap().unwrap();
            assert!(read(&place.store, key, None).await == bytes);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dropped_is_gone() {
    everywhere(async |place: &Place| {
        let gone = || files_in(&place.staging).is_empty();
        drop(place.store.stage());
        let mut staging = place.store.stage();
        staging.write(b"little").await.unwrap();
        drop(staging);
        // Dropped while a piece is being written.
        let mut staging = place.store.stage();
        staging.write(&pattern(3 * PIECE_BYTES)).await.unwrap();
        assert!(!gone());
        drop(staging);
        until("the file of a dropped staging is gone", gone).await;
        let finished = staged(&place.store, b"whole", 5).await;
        assert!(!gone());
        drop(finished);
        until("the file of a dropped staged is gone", gone).await;
        let mut staging = place.store.stage();
        staging.write(b"nameless").await.unwrap();
        staging.suspend().await.unwrap();
        until("a suspended file without a name is gone", gone).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn staged_files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    everywhere(async |place: &Place| {
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let staged = staged(&place.store, b"private", 3).await;
        assert_eq!(mode(staged.path()), 0o600);
        assert_eq!(mode(&place.staging), 0o700);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_on_where_it_was_suspended() {
    everywhere(async |place: &Place| {
        let (id, bytes) = (Uuid::now_v7(), pattern(2 * PIECE_BYTES + 5));
        let (first, rest) = bytes.split_at(PIECE_BYTES + 1);
        let (second, third) = rest.split_at(10);
        let mut staging = place.store.stage_named(id).await.unwrap();
        staging.write(first).await.unwrap();
        assert_eq!(staging.suspend().await.unwrap(), first.len() as u64);
        let offset = first.len() as u64;
        let mut staging = place.store.resume(id, offset).await.unwrap();
        assert_eq!(staging.size(), offset);
        assert_eq!(staging.head(), &bytes[..HEAD_BYTES]);
        staging.write(second).await.unwrap();
        let offset = staging.suspend().await.unwrap();
        let mut staging = place.store.resume(id, offset).await.unwrap();
        staging.write(third).await.unwrap();
        let staged = staging.finish().await.unwrap();
        assert_eq!(staged.size(), bytes.len() as u64);
        assert_eq!(staged.sha256(), <[u8; 32]>::from(Sha256::digest(&bytes)));
        assert_eq!(staged.head(), &bytes[..HEAD_BYTES]);
        let key = ObjectKey::new();
        place.store.publish(staged, key).await.unwrap();
        assert!(read(&place.store, key, None).await == bytes);
        // If the object is deleted again, the upload is still complete and can be published again.
        let length = bytes.len() as u64;
        assert_eq!(place.store.resume(id, length).await.unwrap().size(), length);
        place.store.delete(&[key]).await.unwrap();
        let again = place.store.resume(id, length).await.unwrap();
        let (staged, key) = (again.finish().await.unwrap(), ObjectKey::new());
        place.store.publish(staged, key).await.unwrap();
        place.store.discard(id).await.unwrap();
        assert!(files_in(&place.staging.join("tus")).is_empty());
        assert!(matches!(place.store.resume(id, 0).await, Err(StoreError::NotFound)));
        assert!(read(&place.store, key, None).await == bytes);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_behind_the_recorded_end_is_cut_off() {
    everywhere(async |place: &Place| {
        let (id, bytes) = (Uuid::now_v7(), pattern(20_000));
        let mut staging = place.store.stage_named(id).await.unwrap();
        staging.write(&bytes[..15_000]).await.unwrap();
        staging.suspend().await.unwrap();
        // Only 3,000 bytes were recorded, so the file is truncated to 3,000 bytes.
        let mut staging = place.store.resume(id, 3_000).await.unwrap();
        assert_eq!(staging.head(), &bytes[..3_000]);
        staging.write(&bytes[3_000..]).await.unwrap();
        let staged = staging.finish().await.unwrap();
        assert_eq!(staged.sha256(), <[u8; 32]>::from(Sha256::digest(&bytes)));
        assert_eq!(staged.head(), &bytes[..HEAD_BYTES]);
        drop(staged);
        // More bytes were recorded than the file has.
        let longer = place.store.resume(id, 20_001).await;
        assert!(matches!(longer, Err(StoreError::Other(_))));
        assert!(place.store.stage_named(id).await.is_err());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_to_be_resumed_stays_until_it_is_discarded() {
    everywhere(async |place: &Place| {
        let id = Uuid::now_v7();
        let mut staging = place.store.stage_named(id).await.unwrap();
        staging.write(b"some").await.unwrap();
        let offset = staging.suspend().await.unwrap();
        drop(place.store.resume(id, offset).await.unwrap());
        // A finished file that was not published can be finished again.
        let staging = place.store.resume(id, offset).await.unwrap();
        drop(staging.finish().await.unwrap());
        assert_eq!(place.store.sweep_staging(Effect::Deletes).await.unwrap(), 0);
        assert_eq!(place.store.resume(id, offset).await.unwrap().size(), 4);
        place.store.discard(id).await.unwrap();
        place.store.discard(id).await.unwrap();
        assert!(place.store.resume(id, offset).await.is_err());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_to_be_resumed_is_held_by_one_at_a_time() {
    everywhere(async |place: &Place| {
        let id = Uuid::now_v7();
        assert!(matches!(place.store.hold(id).await, Err(StoreError::NotFound)));
        let mut staging = place.store.stage_named(id).await.unwrap();
        staging.write(b"some").await.unwrap();
        staging.suspend().await.unwrap();
        let held = place.store.hold(id).await.unwrap().unwrap();
        assert_eq!(held.length(), 4);
        assert!(place.store.hold(id).await.unwrap().is_none());
        drop(held);
        let held = place.store.hold(id).await.unwrap();
        place.store.discard(id).await.unwrap();
        drop(held);
        assert!(matches!(place.store.hold(id).await, Err(StoreError::NotFound)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sweeping_removes_what_is_left_over_and_nothing_else() {
    everywhere(async |place: &Place| {
        std::fs::write(place.staging.join("left-by-a-crash"), "x").unwrap();
        let kept = published(&place.store, b"kept").await;
        let hour = Duration::from_secs(3_600);
        let arriving = staged(&place.store, b"arriving", 3).await;
        assert_eq!(place.store.sweep_staging(Effect::Deletes).await.unwrap(), 1);
        assert_eq!(place.store.sweep_staging(Effect::Deletes).await.unwrap(), 0);
        assert!(arriving.path().exists());
        let id = Uuid::now_v7();
        place.store.stage_named(id).await.unwrap();
        assert_eq!(place.store.sweep_kept(hour).await.unwrap(), 0);
        assert_eq!(place.store.sweep_kept(Duration::ZERO).await.unwrap(), 1);
        assert_eq!(read(&place.store, kept, None).await, b"kept");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_works_says_so_and_leaves_nothing() {
    everywhere(async |place: &Place| {
        place.store.check().await.unwrap();
        until("nothing is left", || files_in(&place.staging).is_empty()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_is_set_once_unless_it_is_taken_over() {
    everywhere(async |place: &Place| {
        let store = &place.store;
        assert_eq!(store.owner().await.unwrap(), None);
        store.put_named("owner", String::new()).await.unwrap();
        assert_eq!(store.owner().await.unwrap(), None);
        store.claim("one".to_owned()).await.unwrap();
        store.claim("two".to_owned()).await.unwrap();
        assert_eq!(store.owner().await.unwrap().as_deref(), Some("one"));
        store.take_over("two".to_owned()).await.unwrap();
        assert_eq!(store.owner().await.unwrap().as_deref(), Some("two"));
        let listed: Vec<_> = store.list().try_collect().await.unwrap();
        assert_eq!(listed, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_told_from_what_is_not() {
    everywhere(async |place: &Place| {
        let mut keys = Vec::new();
        for _ in 0..10 {
            keys.extend([published(&place.store, b"x").await, ObjectKey::new()]);
        }
        let existing = place.store.existing(&keys).await.unwrap();
        let expected: Vec<_> = keys.iter().step_by(2).copied().collect();
        assert_eq!(existing, expected);
    })
    .await;
}
