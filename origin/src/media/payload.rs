//! JSON payloads of media operations, for the API and for commands.

use super::sign::Signature;
use super::url::{FilePlace, Links, signed};
use crate::clock::utc;
use crate::database::media::MediaRow;
use serde::Serialize;
use shared::error::Problem;
use shared::fingerprint::hex;
use shared::media::MediaKind;

/// The response to uploads of `shared::upload::Shape::Named` and `Multipart`; a part of [`Whole`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Brief<'a> {
    id: u64,
    name: &'a str,
    folder: &'a str,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    thumbnail_url: Option<Option<String>>,
}

impl<'a> Brief<'a> {
    pub fn of(row: &'a MediaRow, links: &Links) -> Self {
        Self {
            id: row.id.get(),
            name: row.name.as_str(),
            folder: row.folder.as_str(),
            url: url(row, links),
            thumbnail_url: thumbnail_of_image(row, links),
        }
    }
}

#[derive(Serialize)]
pub struct Urls {
    media_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_thumbnail_url: Option<Option<String>>,
}

impl Urls {
    pub fn of(row: &MediaRow, links: &Links) -> Self {
        Self { media_url: url(row, links), media_thumbnail_url: thumbnail_of_image(row, links) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Whole<'a> {
    #[serde(flatten)]
    brief: Brief<'a>,
    #[serde(rename = "type")]
    kind: &'static str,
    mime: &'a str,
    size: u64,
    width: Option<u32>,
    height: Option<u32>,
    private: bool,
    sha256: String,
    created_at: String,
    updated_at: String,
}

impl<'a> Whole<'a> {
    pub fn of(row: &'a MediaRow, links: &Links) -> Self {
        Self {
            brief: Brief::of(row, links),
            kind: row.kind.as_str(),
            mime: &row.original.mime,
            size: row.original.size,
            width: row.width,
            height: row.height,
            private: row.private,
            sha256: hex(&row.original.sha256),
            created_at: utc(row.created_at),
            updated_at: utc(row.updated_at),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Signed {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    thumbnail_url: Option<String>,
    pub expires_at: String,
}

impl Signed {
    pub fn of(row: &MediaRow, links: &Links, signature: &Signature) -> Self {
        Self {
            url: signed(&url(row, links), signature),
            thumbnail_url: thumbnail_url(row, links).map(|url| signed(&url, signature)),
            expires_at: utc(signature.expires_at),
        }
    }
}

pub fn text(payload: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(payload)
        .map_err(|error| Problem::internal("The answer could not be written.", error.to_string()))
}

pub fn url(row: &MediaRow, links: &Links) -> String {
    links.file(place(row), &row.original.sha256)
}

pub fn thumbnail_url(row: &MediaRow, links: &Links) -> Option<String> {
    let thumbnail = row.thumbnail.as_ref()?;
    Some(links.thumbnail(place(row), &thumbnail.sha256))
}

/// Returns null (`Some(None)`) for an image without a thumbnail; absent (`None`) for other media.
fn thumbnail_of_image(row: &MediaRow, links: &Links) -> Option<Option<String>> {
    (row.kind == MediaKind::Image).then(|| thumbnail_url(row, links))
}

fn place(row: &MediaRow) -> FilePlace<'_> {
    FilePlace { project: row.project.as_str(), folder: row.folder.as_str(), name: row.name.as_str() }
}
