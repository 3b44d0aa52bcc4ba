//! Tests that full disks give the right error and leave no partial file.

use std::process::Command;

use super::place::directory;
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_as_one() {
    let place = directory();
    let id = Uuid::now_v7();
    let file = place.staging.join("tus").join(id.to_string());
    std::os::unix::fs::symlink("/dev/full", file).unwrap();
    let mut staging = place.store.resume(id, 0).await.unwrap();
    staging.write(b"more than fits").await.unwrap();
    let failure = staging.suspend().await.unwrap_err();
    assert!(matches!(failure, StoreError::Full(_)), "{failure:?}");
    let problem = shared::error::Problem::from(failure);
    assert_eq!(problem.code().as_str(), "storage_full");
    assert!(!format!("{problem:?}").contains('/'), "{problem:?}");
}

/// Runs the test `in_a_small_room` in a process whose files may not grow beyond 1,024 blocks (`ulimit`), at most 1 MiB.
/// A quota would not apply to root.
#[test]
fn where_files_may_not_grow_nothing_half_written_stays() {
    let script = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\"";
    let inner = "media::store::tests::full::in_a_small_room";
    let ran = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", inner, "--ignored"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "in a process whose files may not grow: the test above runs it"]
async fn in_a_small_room() {
    let place = directory();
    let store = &place.store;
    let bytes = pattern(4 * 1024 * 1024);
    let is_full = |failure: &StoreError| matches!(failure, StoreError::Full(_));

    let mut staging = store.stage();
    let mut outcome = Ok(());
    for piece in bytes.chunks(64 * 1024) {
        outcome = staging.write(piece).await;
        if outcome.is_err() {
            break;
        }
    }
    assert!(is_full(&outcome.unwrap_err()));
    let again = staging.write(&bytes).await;
    assert!(again.is_err(), "a file with a hole is never finished");
    assert!(staging.finish().await.is_err());

    let mut staging = store.stage();
    let large = staging.write(&bytes).await;
    let finished = staging.finish().await;
    assert!(large.is_err() && finished.is_err());

    let key = ObjectKey::new();
    let put = store.put(key, Bytes::from(bytes.clone())).await;
    assert!(is_full(&put.unwrap_err()));
    assert!(is_absent(store, key).await);
    until("nothing is left", || files_in(&place.staging).is_empty()).await;
    let listed: Vec<Listed> = store.list().try_collect().await.unwrap();
    assert!(listed.is_empty(), "{listed:?}");

    // Recorded bytes of a resumable upload survive the error.
    let id = Uuid::now_v7();
    let mut staging = store.stage_named(id).await.unwrap();
    staging.write(&bytes[..1_000]).await.unwrap();
    let recorded = staging.suspend().await.unwrap();
    let mut staging = store.resume(id, recorded).await.unwrap();
    let _ = staging.write(&bytes[1_000..]).await;
    assert!(staging.suspend().await.is_err());
    let mut staging = store.resume(id, recorded).await.unwrap();
    staging.write(&bytes[1_000..2_000]).await.unwrap();
    let staged = staging.finish().await.unwrap();
    let expected = <[u8; 32]>::from(Sha256::digest(&bytes[..2_000]));
    assert_eq!(staged.sha256(), expected);

    // A file that fits is still accepted.
    let small = published(store, &bytes[..100_000]).await;
    assert!(read(store, small, None).await == bytes[..100_000]);
}
