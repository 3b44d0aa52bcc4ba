//! A media file named on the command line: by its id, or as `folder/name`.

use std::fmt;
use std::str::FromStr;

use shared::ident::{ProjectName, shown};
use shared::media::{FilePath, FolderPath, MediaName};
use shared::operation::media::MediaId;

use super::MediaContext;
use crate::cli::CliError;
use crate::database::media::MediaRow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileArgument {
    Id(MediaId),
    Path(FolderPath, MediaName),
}

impl FromStr for FileArgument {
    type Err = String;

    /// Parses an id or a path. A name of digits needs a slash before it.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(id) = MediaId::parse(text) {
            return Ok(Self::Id(id));
        }
        // `FolderPath` would silently drop a slash at the end of the folder.
        if text.contains("//") {
            return Err(format!("The path {} has an empty part.", shown(text)));
        }
        let (folder, name) = text.rsplit_once('/').unwrap_or(("", text));
        let parsed = FolderPath::parse(folder).and_then(|folder| Ok(Self::Path(folder, MediaName::parse(name)?)));
        parsed.map_err(|problem| problem.message().to_owned())
    }
}

impl fmt::Display for FileArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "with the id {id}"),
            Self::Path(folder, name) if folder.as_str().is_empty() => write!(f, "{name}"),
            Self::Path(folder, name) => write!(f, "{folder}/{name}"),
        }
    }
}

impl MediaContext<'_> {
    pub(super) async fn find(&self, project: &ProjectName, target: &FileArgument) -> Result<MediaRow, CliError> {
        let found = match target {
            FileArgument::Id(id) => self.table.get(project, *id).await,
            FileArgument::Path(folder, name) => {
                let path = FilePath { project: project.clone(), folder: folder.clone(), name: name.clone() };
                self.table.lookup(&path).await
            }
        };
        if let Some(row) = found? {
            return Ok(row);
        }
        self.system.projects.require(project).await?;
        Err(CliError::failed(format!("project {project} has no file {target}"), "`selkie media ls` lists the files"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> FileArgument {
        text.parse().unwrap()
    }

    fn path(folder: &str, name: &str) -> FileArgument {
        let folder = FolderPath::parse(folder).unwrap();
        FileArgument::Path(folder, MediaName::parse(name).unwrap())
    }

    #[test]
    fn digits_are_an_id_and_all_else_is_a_path() {
        assert_eq!(read("12"), FileArgument::Id(12.into()));
        assert_eq!(read("/12"), path("", "12"));
        assert_eq!(read("12.png"), path("", "12.png"));
        assert_eq!(read("a/b/ü.png"), path("a/b", "ü.png"));
        assert_eq!(read("/a/12"), path("a", "12"));
    }

    #[test]
    fn paths_that_no_file_has_are_refused() {
        for text in ["", "/", "a/", "a//b", "../b", "a\\b", "a/.."] {
            assert!(text.parse::<FileArgument>().is_err(), "{text:?}");
        }
    }
}
