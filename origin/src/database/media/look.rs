//! Looks up single media files.

use crate::database::typed_rows;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row};
use shared::ident::ProjectName;
use shared::media::{FilePath, FolderPath, MediaName};
use shared::operation::media::MediaId;

use super::error::TableError;
use super::row::{COLUMNS, MediaRow, read};
use super::{MediaTable, marks};

impl MediaTable {
    pub async fn lookup(&self, path: &FilePath) -> Result<Option<MediaRow>, TableError> {
        let values = (path.project.as_str(), path.folder.as_str(), path.name.as_str());
        let condition = "project = ? AND folder = ? AND name = ?";
        self.first(&path.project, condition, values.into()).await
    }

    /// Returns the file with this id; `None` if there is none or if it belongs to another project.
    pub async fn get(&self, project: &ProjectName, id: MediaId) -> Result<Option<MediaRow>, TableError> {
        let values = (id.get(), project.as_str());
        self.first(project, "id = ? AND project = ?", values.into()).await
    }

    /// Returns one of `names` that a file in the folder has; `None` if no file has any of them. Only a hint: a
    /// concurrent upload may change the result.
    pub async fn taken(
        &self,
        project: &ProjectName,
        folder: &FolderPath,
        names: &[MediaName],
    ) -> Result<Option<MediaName>, TableError> {
        if names.is_empty() {
            return Ok(None);
        }
        let statement = format!(
            "SELECT name FROM selkie.media WHERE project = ? AND folder = ? AND name IN ({}) LIMIT 1",
            marks(names.len())
        );
        let values = [project.as_str(), folder.as_str()]
            .into_iter()
            .chain(names.iter().map(MediaName::as_str))
            .map(Into::into)
            .collect();
        let found: Option<String> = self
            .within(async {
                let mut lent = self.lookup_conn(project).await?;
                Ok::<_, TableError>(
                    typed_rows::first(lent.conn.exec_iter(statement, Params::Positional(values))).await?,
                )
            })
            .await?;
        Ok(found.and_then(|found| names.iter().find(|name| name.as_str() == found).cloned()))
    }

    async fn first(
        &self,
        project: &ProjectName,
        condition: &'static str,
        values: Params,
    ) -> Result<Option<MediaRow>, TableError> {
        let statement = format!("SELECT {COLUMNS} FROM selkie.media WHERE {condition}");
        let row: Option<Row> = self
            .within(async {
                let mut lent = self.lookup_conn(project).await?;
                Ok::<_, TableError>(typed_rows::first(lent.conn.exec_iter(statement, values)).await?)
            })
            .await?;
        row.map(read).transpose()
    }
}
