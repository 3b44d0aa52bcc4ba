//! How work on projects and databases fails. For operators: names are told, passwords never.

use shared::error::{ErrorCode, Problem};
use shared::ident::{DatabaseName, ProjectName, shown};

use crate::database::admin::AdminError;

/// Why it failed.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// MariaDB, or the way to it.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The admin account may not make or grant the project's accounts.
    #[error("the admin account \"{user}\" may not set up the MariaDB accounts of project {project}: {message}")]
    MayNotMakeAccounts {
        /// The project.
        project: ProjectName,
        /// The admin account.
        user: String,
        /// What MariaDB said.
        message: String,
    },
    /// An account of the configuration does not fit.
    #[error("the account \"{account}\" under [accounts.{project}] can't be used: {faults}")]
    ReadyMade {
        /// The project.
        project: ProjectName,
        /// Its user name.
        account: String,
        /// What is wrong, in words.
        faults: String,
    },
    /// A project name that is not for use.
    #[error("{0} is reserved and can't be a project's name")]
    Reserved(ProjectName),
    /// No such project.
    #[error("there is no project {name}")]
    UnknownProject {
        /// The name.
        name: ProjectName,
        /// One like it.
        nearest: Option<String>,
    },
    /// A new project's pattern covers a database that is there.
    #[error("project {project} would own the database {}, which is there already", shown(database.as_str()))]
    Covers {
        /// The project.
        project: ProjectName,
        /// The database.
        database: DatabaseName,
    },
    /// MariaDB's own schema, or ours.
    #[error("{} is a system schema: no project can own it", shown(.0.as_str()))]
    System(DatabaseName),
    /// Another project's.
    #[error("the database {} belongs to project {owner}", shown(database.as_str()))]
    Owned {
        /// The database.
        database: DatabaseName,
        /// Its owner.
        owner: ProjectName,
    },
    /// Nobody's.
    #[error("the database {} does not belong to project {project}", shown(database.as_str()))]
    NotOwned {
        /// The project.
        project: ProjectName,
        /// The database.
        database: DatabaseName,
    },
    /// It was adopted, and is not to be dropped.
    #[error("the database {} was adopted by project {project}: it can be released, not dropped", shown(database.as_str()))]
    Adopted {
        /// The project.
        project: ProjectName,
        /// The database.
        database: DatabaseName,
    },
    /// It can't be released: its name makes it the project's.
    #[error("the database {} belongs to project {project} by its name, which begins with {project}_", shown(database.as_str()))]
    OwnedByName {
        /// The project.
        project: ProjectName,
        /// The database.
        database: DatabaseName,
    },
    /// The project that is always there.
    #[error("project {0} is always there and can't be removed")]
    Default(ProjectName),
    /// The project owns databases.
    #[error("project {project} owns databases: {}", databases.join(", "))]
    OwnsDatabases {
        /// The project.
        project: ProjectName,
        /// Their names.
        databases: Vec<String>,
    },
    /// Something refers to a project that is being removed.
    #[error("something was added to project {0} while it was removed")]
    StillUsed(ProjectName),
    /// The project owns files.
    #[error("project {project} owns files: {count}")]
    OwnsFiles {
        /// The project.
        project: ProjectName,
        /// How many.
        count: u64,
    },
    /// It is there already.
    #[error("the database {} is there already", shown(.0.as_str()))]
    Exists(DatabaseName),
    /// It is not there.
    #[error("there is no database {}", shown(.0.as_str()))]
    NotThere(DatabaseName),
    /// A GRANT can't name it alone.
    #[error(
        "the name {} is too long to be granted by itself: 64 characters, of which _, % and \\ count twice",
        shown(.0.as_str())
    )]
    NameTooLong(DatabaseName),
}

impl ProjectError {
    /// The problem that a caller is shown. Logs the cause.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        tracing::warn!(error = %self, "a project could not be looked up");
        Problem::new(ErrorCode::DatabaseUnavailable, "The project can't be looked up at the moment.")
    }

    /// How to mend it, if that can be said.
    #[must_use]
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
            Self::StillUsed(_) => "remove it again: what is done already is not done twice",
            Self::OwnsFiles { .. } => "add --delete-media to delete them",
            Self::NotThere(_) => "`selkie database create` makes it",
            Self::NotOwned { .. } => "`selkie database list` shows what each project owns",
            Self::Reserved(_) | Self::System(_) | Self::Owned { .. } | Self::NameTooLong(_) => "choose another name",
        };
        Some(hint.to_owned())
    }
}
