//! A folder of the media library for each case, so that cases can run in parallel.

use super::fixtures::data_url;
use crate::host::{Answer, Call, Host, enc};
use crate::service::shared;
use crate::test_db::unique;
use reqwest::Method;
use serde_json::{Value, json};

/// Path of the media routes for uploads and lists.
pub(crate) const MEDIA: &str = "/api/v1/media";

pub(crate) struct TestFolder {
    pub(crate) host: Host,
    pub(crate) folder: String,
}

impl TestFolder {
    pub(crate) fn new(host: Host) -> Self {
        Self { host, folder: unique("shelf") }
    }

    pub(crate) async fn send(&self, body: &Value) -> Answer {
        self.host.post(MEDIA, body).send().await
    }

    /// Builds an upload of one file as `{name, base64}`.
    pub(crate) fn upload(&self, name: &str, kind: &str, mime: &str, bytes: &[u8]) -> Call {
        self.host.post(MEDIA, &self.body(name, kind, mime, bytes))
    }

    /// Returns the body of an upload of one file as `{name, base64}`.
    pub(crate) fn body(&self, name: &str, kind: &str, mime: &str, bytes: &[u8]) -> Value {
        json!({
            "media": [{"name": name, "base64": data_url(mime, bytes)}],
            "folder": self.folder,
            "type": kind,
        })
    }

    /// Uploads one file and returns its description from the answer.
    pub(crate) async fn put(&self, name: &str, kind: &str, mime: &str, bytes: &[u8]) -> Value {
        let payload = self.upload(name, kind, mime, bytes).send().await.payload();
        assert_eq!(payload.as_array().map(Vec::len), Some(1), "{payload}");
        payload[0].clone()
    }

    pub(crate) async fn list(&self, options: &str) -> Answer {
        let path = format!("{MEDIA}?folder={}{options}", enc(&self.folder));
        self.host.get(&path).send().await
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        let files = self.list("&order[field]=name").await.payload();
        let names = files.as_array().expect("a list").iter();
        names.map(|file| file["name"].as_str().expect("a name").to_owned()).collect()
    }

    pub(crate) async fn describe(&self, id: &Value) -> Answer {
        self.host.get(&format!("{MEDIA}/{id}")).send().await
    }

    pub(crate) async fn delete(&self, id: &Value) -> Answer {
        let path = format!("{MEDIA}/{id}");
        self.host.call(Method::DELETE, &path).send().await
    }

    /// Gets a URL from an answer, without a key.
    pub(crate) async fn fetch(&self, url: &Value) -> Answer {
        self.at(url).send().await
    }

    /// Builds a GET of a URL from an answer, which must name this host, without a key.
    pub(crate) fn at(&self, url: &Value) -> Call {
        let url = url.as_str().expect("a URL");
        let path = url.strip_prefix(self.host.url()).unwrap_or_else(|| panic!("{url} is not of {}", self.host.url()));
        Call::new(self.host.url(), Method::GET, path)
    }
}

pub(crate) fn read_key() -> &'static str {
    &shared().read_key
}
