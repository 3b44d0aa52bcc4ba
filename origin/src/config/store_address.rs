//! The location of the media store, parsed from `media_store` and `media_s3_…`. Doesn't check that it exists.

use std::path::PathBuf;

use secrecy::SecretString;
use url::Url;

/// The maximum length of a bucket's name, which is S3's limit.
const BUCKET_MAX_BYTES: usize = 63;

/// The maximum length of a prefix. S3 allows a key 1,024 bytes, of which Selkie's own part takes about 50.
const PREFIX_MAX_BYTES: usize = 512;

#[derive(Debug, Clone)]
pub enum StoreAddress {
    Directory(PathBuf),
    Bucket(Box<BucketAddress>),
}

impl StoreAddress {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Directory(_) => "directory",
            Self::Bucket(_) => "bucket",
        }
    }
}

#[derive(Debug, Clone)]
pub struct BucketAddress {
    pub bucket: String,
    /// The beginning of all keys, without `/` at either end; may be empty.
    pub prefix: String,
    /// The service's URL; `None` for Amazon's endpoint for `region`.
    pub endpoint: Option<Url>,
    pub region: String,
    pub access_key: Option<SecretString>,
    pub secret_key: Option<SecretString>,
    pub addressing: Addressing,
}

impl BucketAddress {
    pub fn at(&self, bucket: String, prefix: String) -> Self {
        Self { bucket, prefix, ..self.clone() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// `https://host/bucket/key`
    Path,
    /// `https://bucket.host/key`
    Host,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreName {
    /// `file:///absolute/path`
    Directory(PathBuf),
    /// `s3://bucket/prefix`
    Bucket {
        bucket: String,
        /// The beginning of all keys, without `/` at either end; may be empty.
        prefix: String,
    },
}

impl StoreName {
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = || "file:///absolute/path or s3://bucket/prefix".to_owned();
        let url = Url::parse(text).map_err(|_| form())?;
        let is_bare = url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
            && url.port().is_none();
        match url.scheme() {
            "file" if is_bare => match url.to_file_path() {
                Ok(path) if path.parent().is_some() => Ok(Self::Directory(path)),
                _ => Err(form()),
            },
            "s3" if is_bare => {
                Ok(Self::Bucket { bucket: bucket(url.host_str().unwrap_or_default())?, prefix: prefix(url.path())? })
            }
            _ => Err(form()),
        }
    }
}

fn bucket(name: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let fits = (1..=BUCKET_MAX_BYTES).contains(&name.len()) && name.bytes().all(plain);
    fits.then(|| name.to_owned()).ok_or_else(|| "s3:// with a bucket's name of letters, digits, - and .".to_owned())
}

fn prefix(path: &str) -> Result<String, String> {
    let prefix = path.trim_matches('/');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(plain);
    let fits = prefix.len() <= PREFIX_MAX_BYTES && (prefix.is_empty() || prefix.split('/').all(is_part));
    fits.then(|| prefix.to_owned())
        .ok_or_else(|| "s3://bucket/prefix with a prefix of letters, digits, -, _ and . between slashes".to_owned())
}

pub fn endpoint(text: &str) -> Result<Url, String> {
    let form = || "a URL such as https://s3.example.org, without a bucket or a path".to_owned();
    let url = Url::parse(text).map_err(|_| form())?;
    let is_bare = matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    is_bare.then_some(url).ok_or_else(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bucket: &str, prefix: &str) -> StoreName {
        StoreName::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() }
    }

    #[test]
    fn directories_and_buckets_are_read() {
        let cases = [
            ("file:///srv/media", StoreName::Directory("/srv/media".into())),
            ("file:///srv/a%20b/", StoreName::Directory("/srv/a b/".into())),
            ("s3://bucket", at("bucket", "")),
            ("s3://my.bucket-1/", at("my.bucket-1", "")),
            ("s3://bucket/one/two/", at("bucket", "one/two")),
        ];
        for (text, expected) in cases {
            assert_eq!(StoreName::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_refused_is_never_repeated() {
        let refused = [
            "hunter2",
            "/hunter2",
            "file://hunter2",
            "file://host/hunter2",
            "file:///",
            "s3://",
            "s3://hunter2:key@bucket",
            "s3://bucket:9000/hunter2",
            "s3://bucket/hunter2?region=x",
            "s3://bucket/a//hunter2",
            "s3://bucket/%2e%2e%2fhunter2",
            "https://hunter2.example.org",
        ];
        for text in refused {
            let expected = StoreName::parse(text).unwrap_err();
            assert!(!expected.contains("hunter2"), "{expected}");
        }
    }

    #[test]
    fn an_endpoint_is_a_host_and_nothing_more() {
        assert!(endpoint("http://127.0.0.1:9000").is_ok());
        assert!(endpoint("https://abc.r2.example.com/").is_ok());
        for text in ["s3.example.org", "ftp://h", "https://h/bucket", "https://u:p@h", "https://h?x"] {
            assert!(endpoint(text).is_err(), "{text}");
        }
    }
}
