//! Tests the pool of decoder threads: parallel jobs, a full queue, and that a hanging image affects no other image.

use super::super::pool::{MediaPool, PoolSize};
use super::samples::{Jpeg, encoded, photo};
use super::{ImageFault, Limits};
use crate::media::sniff::ImageFormat;
use crate::project_quota::Refused;
use futures_util::future::join_all;
use image::DynamicImage;
use shared::ident::ProjectName;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

const SMALL: PoolSize = PoolSize {
    threads: 2,
    images: 8,
    project_images: 4,
    wait_max: Duration::from_secs(600),
    decode_max: Duration::from_secs(600),
};

fn pool(size: PoolSize) -> MediaPool {
    MediaPool::new(size, Limits::default())
}

fn project(name: &str) -> ProjectName {
    ProjectName::parse(name).expect("a name")
}

fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("picture");
    std::fs::write(&path, bytes).expect("written");
    (folder, path)
}

#[tokio::test]
async fn images_wait_for_memory_and_one_that_needs_more_than_all_is_refused() {
    let (width, height) = (640, 480);
    let large = DynamicImage::ImageRgb8(photo(width, height));
    let (_folder, path) = written(&encoded(&large, image::ImageFormat::Bmp));
    let one = project("one");
    let start = |memory_bytes| {
        let limits = Limits { memory_bytes, ..Limits::default() };
        MediaPool::new(SMALL, limits)
    };
    let needed = match start(1).examine(&one, Uuid::nil(), path.clone(), ImageFormat::Bmp).await {
        Err(ImageFault::TooMuchMemory { needed_bytes, max_bytes: 1 }) => needed_bytes,
        other => panic!("{other:?}"),
    };
    assert!(needed >= u64::from(width * height * 3), "{needed}");
    let refused = start(needed - 1).examine(&one, Uuid::nil(), path.clone(), ImageFormat::Bmp).await;
    assert!(matches!(refused, Err(ImageFault::TooMuchMemory { .. })));
    let pool = start(needed);
    let all = (0..4).map(|_| pool.examine(&one, Uuid::nil(), path.clone(), ImageFormat::Bmp));
    for picture in join_all(all).await {
        assert_eq!(picture.expect("a picture").width, width);
    }
}

#[tokio::test]
async fn a_project_has_a_share_of_the_queue_and_leaves_the_rest_to_others() {
    let (folder, path) = written(&Jpeg::default().encode(&photo(64, 64)));
    // The pool's only thread opens a pipe, which blocks until something is written to the pipe.
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let pool = pool(PoolSize { threads: 1, ..SMALL });
    let examine = |name, path: &Path| {
        let (pool, path) = (&pool, path.to_owned());
        async move { pool.examine(&project(name), Uuid::nil(), path, ImageFormat::Jpeg).await }
    };
    let of_one = [&pipe, &path, &path, &path, &path, &path].map(|path| examine("one", path));
    let of_two = [&path, &path, &path, &path].map(|path| examine("two", path));
    let (of_one, of_two, of_three, ()) = tokio::join!(
        biased;
        join_all(of_one),
        join_all(of_two),
        examine("three", &path),
        async { std::fs::write(&pipe, [0xFF, 0xD8]).expect("written") },
    );
    assert!(matches!(of_one[0], Err(ImageFault::Cut)), "{of_one:?}");
    assert!(of_one[1..4].iter().all(Result::is_ok), "{of_one:?}");
    let share = |result: &Result<_, _>| matches!(result, Err(ImageFault::Refused(Refused::Share { limit: 4 })));
    assert!(of_one[4..].iter().all(share), "{of_one:?}");
    assert!(of_two.iter().all(Result::is_ok), "{of_two:?}");
    let whole = Refused::Whole { limit: 8 };
    assert!(matches!(&of_three, Err(ImageFault::Refused(refused)) if *refused == whole), "{of_three:?}");
    assert!(examine("three", &path).await.is_ok());
}

#[tokio::test]
async fn projects_take_turns_and_so_do_their_callers() {
    let pool = pool(PoolSize { threads: 1, ..SMALL });
    let (sender, order) = std::sync::mpsc::channel();
    let (ends, ended) = std::sync::mpsc::channel::<()>();
    let names = [("zero", 1), ("one", 1), ("one", 1), ("one", 2), ("two", 1), ("two", 1), ("three", 1)];
    let mut ended = Some(ended);
    let jobs = names.map(|(name, caller)| {
        let (pool, sender, ended) = (&pool, sender.clone(), ended.take());
        async move {
            let job = move |_| {
                // The first job keeps the only thread until all others wait.
                let _ = ended.map(|ended| ended.recv());
                let _ = sender.send((name, caller));
                Ok(())
            };
            pool.run(&project(name), Uuid::from_u128(caller), job).await.expect("a result");
        }
    });
    let _ = tokio::join!(biased; join_all(jobs), async { drop(ends) });
    let expected = [("zero", 1), ("one", 1), ("two", 1), ("three", 1), ("one", 2), ("two", 1), ("one", 1)];
    assert_eq!(order.try_iter().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_broken_picture_does_nothing_to_the_next() {
    let jpeg = Jpeg::default().encode(&photo(300, 200));
    let (_one, broken) = written(&jpeg[..2000]);
    let (_other, whole) = written(&jpeg);
    let (pool, one) = (pool(SMALL), project("one"));
    for _ in 0..5 {
        let fault = pool.examine(&one, Uuid::nil(), broken.clone(), ImageFormat::Jpeg).await;
        assert!(matches!(fault, Err(ImageFault::Cut)), "{fault:?}");
        assert!(pool.examine(&one, Uuid::nil(), whole.clone(), ImageFormat::Jpeg).await.is_ok());
    }
}

#[tokio::test]
async fn whoever_waits_too_long_is_answered() {
    let one = project("one");
    let result = |size: PoolSize, begins_at_once: Option<()>| {
        let one = &one;
        async move {
            let (ends, ended) = std::sync::mpsc::channel::<()>();
            let pool = pool(size);
            let result = pool.run(one, Uuid::nil(), move |begins| {
                let mut begins = Some(begins);
                if begins_at_once.is_some() {
                    let _ = begins.take().map(|begins| begins.send(()));
                }
                let _ = ended.recv();
                drop(begins);
                Ok(())
            });
            let result = result.await;
            drop(ends);
            result
        }
    };
    let waits = PoolSize { wait_max: Duration::ZERO, ..SMALL };
    let refused = result(waits, None).await;
    assert!(matches!(refused, Err(ImageFault::Overloaded)), "{refused:?}");
    let decodes = PoolSize { decode_max: Duration::ZERO, ..SMALL };
    let refused = result(decodes, Some(())).await;
    assert!(matches!(refused, Err(ImageFault::TooSlow)), "{refused:?}");
}
