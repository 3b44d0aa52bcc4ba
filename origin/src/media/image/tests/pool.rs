//! The pool: many at once, an end to its queue, and nothing that one picture does to another.

use super::super::pool::{MediaPool, PoolSize};
use super::samples::{Jpeg, encoded, photo};
use super::{ImageFault, Limits};
use crate::media::sniff::ImageFormat;
use image::DynamicImage;
use std::path::PathBuf;
use std::time::Duration;

const SMALL: PoolSize = PoolSize {
    threads: 2,
    memory_bytes: 1024 * 1024,
    waiting: 4,
    timeout: Duration::from_secs(600),
};

fn pool(size: PoolSize) -> MediaPool {
    MediaPool::start(size, Limits::default()).expect("threads")
}

fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("picture");
    std::fs::write(&path, bytes).expect("written");
    (folder, path)
}

#[tokio::test]
async fn pictures_that_take_more_than_all_memory_come_through_one_by_one() {
    let large = DynamicImage::ImageRgb8(photo(640, 480));
    let (_folder, path) = written(&encoded(&large, image::ImageFormat::Bmp));
    let pool = pool(PoolSize {
        waiting: 16,
        ..SMALL
    });
    let all = (0..8).map(|_| pool.examine(path.clone(), ImageFormat::Bmp));
    for picture in futures_util::future::join_all(all).await {
        assert_eq!(picture.expect("a picture").width, 640);
    }
}

#[tokio::test]
async fn a_full_queue_refuses_and_recovers() {
    let (_folder, path) = written(&Jpeg::default().encode(&photo(2000, 1500)));
    let pool = pool(PoolSize {
        threads: 1,
        ..SMALL
    });
    let all = (0..40).map(|_| pool.examine(path.clone(), ImageFormat::Jpeg));
    let results = futures_util::future::join_all(all).await;
    let refused = results
        .iter()
        .filter(|result| matches!(result, Err(ImageFault::Overloaded)))
        .count();
    let done = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(refused + done, 40);
    assert!(refused >= 30, "{refused} refused");
    assert!(pool.examine(path.clone(), ImageFormat::Jpeg).await.is_ok());
}

#[tokio::test]
async fn a_broken_picture_does_nothing_to_the_next() {
    let jpeg = Jpeg::default().encode(&photo(300, 200));
    let (_one, broken) = written(&jpeg[..2000]);
    let (_other, whole) = written(&jpeg);
    let pool = pool(SMALL);
    for _ in 0..5 {
        let fault = pool.examine(broken.clone(), ImageFormat::Jpeg).await;
        assert!(matches!(fault, Err(ImageFault::Cut)), "{fault:?}");
        assert!(pool.examine(whole.clone(), ImageFormat::Jpeg).await.is_ok());
    }
}

#[tokio::test]
async fn who_waits_too_long_is_answered() {
    let (_folder, path) = written(&Jpeg::default().encode(&photo(2000, 1500)));
    let pool = pool(PoolSize {
        timeout: Duration::ZERO,
        ..SMALL
    });
    let result = pool.examine(path, ImageFormat::Jpeg).await;
    assert!(matches!(result, Err(ImageFault::TimedOut)), "{result:?}");
}

#[tokio::test]
async fn lengths_are_read_on_the_pool_as_well() {
    let bytes = include_bytes!("../../../../tests/fixtures/two-seconds.webm");
    let (_folder, path) = written(bytes);
    let sniffed = crate::media::sniff::sniff(bytes).expect("a video");
    let seconds = pool(SMALL).duration(path, sniffed).await;
    assert!(seconds.is_some_and(|seconds| (1.9..2.2).contains(&seconds)));
}
