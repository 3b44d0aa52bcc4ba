//! Measures how fast the bytes of an upload become a staged file with its hash. `make bench-micro` runs it.
//!
//! The aim is 600 MB/s per core for reading and parsing the body and staging its bytes. This measures only the staging,
//! without fsync, whose time depends only on the disk.
#![allow(missing_docs, clippy::expect_used, reason = "a program, not an interface")]

use divan::Bencher;
use divan::counter::BytesCount;
use origin::config::StoreAddress;
use origin::media::store::{Staged, Store, StoreError};
use sha2::{Digest, Sha256};

fn main() {
    divan::main();
}

/// Bytes of a large upload.
const FILE_BYTES: usize = 1 << 30;

/// Bytes of a small upload: a picture for the web.
const PICTURE_BYTES: usize = 100 * 1024;

const KIB: usize = 1024;

/// Sizes in bytes of the pieces that are written to the staged file.
const PUSHES: [usize; 3] = [16 * KIB, 64 * KIB, 256 * KIB];

async fn stage(store: &Store, push: &[u8], length: usize) -> Result<Staged, StoreError> {
    let mut staging = store.stage();
    let mut left = length;
    while left > 0 {
        let now = push.len().min(left);
        staging.write(&push[..now]).await?;
        left -= now;
    }
    staging.finish().await
}

fn run(bencher: Bencher<'_, '_>, push: usize, length: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let address = StoreAddress::Directory(directory.path().join("media"));
    let store = Store::open(&address, directory.path()).expect("a store");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let push = vec![0x5a_u8; push];
    bencher
        .counter(BytesCount::new(length))
        .bench_local(|| runtime.block_on(stage(&store, &push, length)).expect("staged"));
}

#[divan::bench(args = PUSHES, sample_count = 3, sample_size = 1)]
fn a_gibibyte_in_pushes_of(bencher: Bencher<'_, '_>, push: usize) {
    run(bencher, push, FILE_BYTES);
}

#[divan::bench(args = PUSHES)]
fn a_picture_in_pushes_of(bencher: Bencher<'_, '_>, push: usize) {
    run(bencher, push, PICTURE_BYTES);
}

/// Measures only the hash: far above 1 GB/s if the processor has instructions for SHA-256.
#[divan::bench]
fn the_hash_alone(bencher: Bencher<'_, '_>) {
    let bytes = vec![0x5a_u8; 256 * KIB];
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| Sha256::digest(divan::black_box(&bytes)));
}
