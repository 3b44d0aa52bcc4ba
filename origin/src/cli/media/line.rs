//! A media file in the output of commands: a row of a text table, or JSON in the API's format.

use serde::Serialize;

use crate::cli::Table;
use crate::cli::system::time;
use crate::database::media::MediaRow;
use crate::media::url::{Links, Place};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileLine {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) folder: String,
    pub(super) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    thumbnail_url: Option<String>,
    #[serde(rename = "type")]
    kind: &'static str,
    mime: String,
    size: u64,
    width: Option<u32>,
    height: Option<u32>,
    private: bool,
    sha256: String,
    created_at: String,
    updated_at: String,
}

impl FileLine {
    pub(super) fn of(row: &MediaRow, links: &Links) -> Self {
        let place = place(row);
        Self {
            id: row.id.get(),
            name: row.name.to_string(),
            folder: row.folder.to_string(),
            url: links.file(place, &row.original.sha256),
            thumbnail_url: thumbnail_url(row, links),
            kind: row.kind.as_str(),
            mime: row.original.mime.clone(),
            size: row.original.size,
            width: row.width,
            height: row.height,
            private: row.private,
            sha256: hex(&row.original.sha256),
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
        }
    }

    pub(super) fn path(&self) -> String {
        path(&self.folder, &self.name)
    }
}

pub(super) fn format_table(lines: &[FileLine]) -> String {
    let mut table = Table::new(["id", "size", "type", "private", "created", "file"]);
    for line in lines {
        table.row([
            line.id.to_string(),
            indicatif::BinaryBytes(line.size).to_string(),
            line.kind.to_owned(),
            if line.private { "yes" } else { "no" }.to_owned(),
            line.created_at.clone(),
            line.path(),
        ]);
    }
    table.to_string()
}

pub(super) fn thumbnail_url(row: &MediaRow, links: &Links) -> Option<String> {
    let thumbnail = row.thumbnail.as_ref()?;
    Some(links.thumbnail(place(row), &thumbnail.sha256))
}

pub(super) fn path_of(row: &MediaRow) -> String {
    path(row.folder.as_str(), row.name.as_str())
}

fn path(folder: &str, name: &str) -> String {
    // The commands would take a name that consists of digits for an id, so the name gets a leading slash.
    match folder {
        "" if name.bytes().all(|byte| byte.is_ascii_digit()) => format!("/{name}"),
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

pub(super) fn place(row: &MediaRow) -> Place<'_> {
    Place { project: row.project.as_str(), folder: row.folder.as_str(), name: row.name.as_str() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
