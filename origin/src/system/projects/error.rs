//! Errors of project and database management, for operators. No message contains a password.

use shared::error::{ErrorCode, Problem};
use shared::ident::{DatabaseName, ProjectName, shown};

use crate::database::admin::AdminError;

#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("the admin account \"{user}\" may not set up the MariaDB accounts of project {project}: {message}")]
    MayNotMakeAccounts { project: ProjectName, user: String, message: String },
    #[error("the account \"{account}\" under [accounts.{project}] can't be used: {faults}")]
    ReadyMade { project: ProjectName, account: String, faults: String },
    #[error("{0} is reserved and can't be a project's name")]
    Reserved(ProjectName),
    #[error("there is no project {name}")]
    UnknownProject { name: ProjectName, nearest: Option<String> },
    /// The new project would own an existing database, whose name begins with `<project>_`.
    #[error("project {project} would own the database {}, which is there already", shown(database.as_str()))]
    Covers { project: ProjectName, database: DatabaseName },
    #[error("{} is a system schema: no project can own it", shown(.0.as_str()))]
    System(DatabaseName),
    #[error("the database {} belongs to project {owner}", shown(database.as_str()))]
    Owned { database: DatabaseName, owner: ProjectName },
    #[error("the database {} does not belong to project {project}", shown(database.as_str()))]
    NotOwned { project: ProjectName, database: DatabaseName },
    #[error("the database {} was adopted by project {project}: it can be released, not dropped", shown(database.as_str()))]
    Adopted { project: ProjectName, database: DatabaseName },
    #[error("the database {} belongs to project {project} by its name, which begins with {project}_", shown(database.as_str()))]
    OwnedByName { project: ProjectName, database: DatabaseName },
    #[error("project {0} is always there and can't be removed")]
    Default(ProjectName),
    #[error("project {project} owns databases: {}", databases.join(", "))]
    OwnsDatabases { project: ProjectName, databases: Vec<String> },
    #[error("something was added to project {0} during its removal")]
    StillUsed(ProjectName),
    #[error("project {project} owns files: {count}")]
    OwnsFiles { project: ProjectName, count: u64 },
    #[error("the database {} is there already", shown(.0.as_str()))]
    Exists(DatabaseName),
    #[error("there is no database {}", shown(.0.as_str()))]
    NotThere(DatabaseName),
    #[error(
        "the name {} is too long to be granted by itself: 64 characters, of which _, % and \\ count twice",
        shown(.0.as_str())
    )]
    NameTooLong(DatabaseName),
}

impl ProjectError {
    pub fn into_problem(self) -> Problem {
        tracing::warn!(error = %self, "a project could not be looked up");
        Problem::new(ErrorCode::DatabaseUnavailable, "The project can't be looked up at the moment.")
    }

    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Admin(error) => error.hint()?,
            Self::MayNotMakeAccounts { .. } => {
                "give it CREATE USER on *.* and all privileges WITH GRANT OPTION, or put ready-made accounts \
                 under [accounts.<project>] in selkie.toml (rw and ro, each with user and password)"
            }
            Self::ReadyMade { .. } => {
                "mend its grants or its password, or adopt the database that they are on \
                 (`selkie database adopt`); `selkie doctor` checks again"
            }
            Self::UnknownProject { nearest: Some(name), .. } => return Some(format!("did you mean {name}?")),
            Self::UnknownProject { .. } => "`selkie project list` shows the projects",
            Self::Covers { .. } => "choose another name, or --claim to make such databases the project's",
            Self::Exists(_) => "`selkie database adopt` gives it to a project",
            Self::Adopted { project, database } => {
                return Some(format!(
                    "`selkie database release {database} --project {project}` takes it from the project and \
                     leaves its data; `selkie database adopt {database} --project {project} --allow-drop database` \
                     allows to drop it"
                ));
            }
            Self::OwnedByName { .. } => {
                "the project that has a name owns the databases that begin with it; rename the database, or \
                 remove the project"
            }
            Self::Default(_) => "release or drop its databases, and revoke its keys, one by one",
            Self::OwnsDatabases { .. } => {
                "add --databases release to leave them as they are, or --databases drop to drop those that \
                 were not adopted"
            }
            Self::StillUsed(_) => "run the removal again: it continues where it stopped",
            Self::OwnsFiles { .. } => "add --delete-media to delete them",
            Self::NotThere(_) => "`selkie database create` makes it",
            Self::NotOwned { .. } => "`selkie database list` shows what each project owns",
            Self::Reserved(_) | Self::System(_) | Self::Owned { .. } | Self::NameTooLong(_) => "choose another name",
        };
        Some(hint.to_owned())
    }
}
