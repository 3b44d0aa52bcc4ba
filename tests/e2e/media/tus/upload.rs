//! A resumable upload and its requests, for test cases.

use crate::host::{Answer, Call, Host};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;

/// Path at which resumable uploads are created.
pub(super) const TUS: &str = "/api/v1/media/tus";

pub(super) struct Upload {
    pub(super) host: Host,
    pub(super) path: String,
}

impl Upload {
    /// Builds the request that creates an upload of `length` bytes.
    pub(super) fn creation(host: Host, length: usize, metadata: &str) -> Call {
        host.call(Method::POST, TUS)
            .header("tus-resumable", "1.0.0")
            .header("upload-length", &length.to_string())
            .header("upload-metadata", metadata)
    }

    /// Creates an upload of `length` bytes.
    pub(super) async fn begin(host: Host, length: usize, metadata: &str) -> Self {
        let created = Self::creation(host, length, metadata).send().await;
        assert_eq!(created.status, 201, "{created}");
        assert_eq!(created.header("tus-resumable"), Some("1.0.0"));
        assert!(created.header("upload-expires").is_some());
        Self::of(host, &created)
    }

    pub(super) fn of(host: Host, created: &Answer) -> Self {
        let path = created.header("location").expect("a location").to_owned();
        assert!(path.starts_with(TUS), "{path}");
        Self { host, path }
    }

    pub(super) fn call(&self, method: Method) -> Call {
        let call = self.host.call(method, &self.path);
        call.header("tus-resumable", "1.0.0")
    }

    pub(super) async fn head(&self) -> Answer {
        self.call(Method::HEAD).send().await
    }

    /// Returns the number of bytes that the server has received.
    pub(super) async fn offset(&self) -> usize {
        let far = self.head().await;
        assert_eq!(far.status, 200, "{far}");
        let offset = far.header("upload-offset").expect("an offset");
        offset.parse().expect("a number")
    }

    /// Builds a PATCH that sends `bytes` at `offset`.
    pub(super) fn part(&self, offset: usize, bytes: &[u8]) -> Call {
        self.call(Method::PATCH)
            .header("upload-offset", &offset.to_string())
            .header("content-type", "application/offset+octet-stream")
            .bytes(bytes)
    }

    pub(super) async fn patch(&self, offset: usize, bytes: &[u8]) -> Answer {
        self.part(offset, bytes).send().await
    }
}

pub(super) fn metadata(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(key, value)| format!("{key} {}", STANDARD.encode(value)));
    pairs.collect::<Vec<_>>().join(",")
}

/// Returns bytes of no known format, in which no part repeats.
pub(super) fn bytes(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = b"\x01\x02\x03\x04".to_vec();
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}
