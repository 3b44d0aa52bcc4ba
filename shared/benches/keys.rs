//! Benchmarks of authentication: a token whose signature is verified, and a cached token. Run by `make bench-micro`.
#![allow(clippy::expect_used, reason = "what is measured here is known to be right")]

use divan::{AllocProfiler, Bencher, black_box};
use shared::ident::ProjectName;
use shared::key::{Access, KeyClaims, KeySet, SigningKey, Token, TokenCache, verify};
use uuid::Builder;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const NOW: u64 = 1_790_000_000;

fn main() {
    divan::main();
}

fn key() -> (KeySet, String) {
    let signing = SigningKey::from_seed("k1", &[7; 32]);
    let project = ProjectName::parse("default").expect("a name");
    let id = Builder::from_unix_timestamp_millis(NOW * 1000, &[1; 10]).into_uuid();
    let claims = KeyClaims::new(id, &project, Access::Full, NOW, None);
    let keys = KeySet::new(vec![signing.public()]).expect("a key");
    (keys, format!("Bearer {}", signing.sign(&claims).expect("a token")))
}

#[divan::bench]
fn a_new_token(bencher: Bencher<'_, '_>) {
    let (keys, header) = key();
    bencher.bench(|| verify(Some(black_box(&header)), &keys, NOW).expect("our key"));
}

#[divan::bench]
fn a_known_token(bencher: Bencher<'_, '_>) {
    let (keys, header) = key();
    let mut known = TokenCache::new(keys, 10);
    bencher.bench_local(|| known.verify(Some(black_box(&header)), NOW).expect("our key"));
}

#[divan::bench]
fn the_digest_of_a_token(bencher: Bencher<'_, '_>) {
    let (_, header) = key();
    bencher.bench(|| {
        let token = Token::from_header(Some(black_box(&header))).expect("a token");
        token.digest()
    });
}
