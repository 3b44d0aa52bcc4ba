//! Creates the demo database and two keys at the first start of `selkie dev`; later starts reuse them.

use shared::ident::{DatabaseName, ProjectName};
use shared::key::{Access, Grant, KeySet, verify};

use super::environment::Environment;
use crate::clock::now;
use crate::database::admin::{AdminError, Created, Drops, KeyRow};
use crate::system::issuers::for_edge;
use crate::system::keys::is_live;
use crate::system::projects::{DEFAULT_PROJECT, Presence};
use crate::system::{System, SystemSchemaError};

const DATABASE: &str = "demo";

const KEY_NAME: &str = "selkie dev";

#[derive(Debug)]
pub(super) struct DevSetup {
    pub(super) project: ProjectName,
    pub(super) database: DatabaseName,
    pub(super) full_key: String,
    pub(super) read_key: String,
    pub(super) jwks: String,
}

pub(super) async fn prepare(system: &System, remembered: &Environment) -> Result<DevSetup, SystemSchemaError> {
    let corrupt = |what| move |_| AdminError::Corrupt(what);
    let project = ProjectName::parse(DEFAULT_PROJECT).map_err(corrupt("project name"))?;
    let database = DatabaseName::parse(DATABASE).map_err(corrupt("database name"))?;
    system.prepare().await?;
    demo(system, &project, &database).await?;
    let keys = DevKeys {
        system,
        project: &project,
        verifying: system.keys.public_keys().await?,
        issued: system.keys.list(Some(&project)).await?,
    };
    Ok(DevSetup {
        full_key: keys.reuse_or_issue(remembered.full_key.as_deref(), Access::Full).await?,
        read_key: keys.reuse_or_issue(remembered.read_key.as_deref(), Access::Read).await?,
        jwks: keys.verifying.to_jwks(),
        project,
        database,
    })
}

/// Returns the edge's list of issuers; `None` if the edge can't use one of the issuers, or not all of them together.
/// Without the list, the edge forwards users' tokens unverified; with it, the edge refuses tokens of unlisted issuers.
pub(super) async fn issuers(system: &System) -> Result<Option<String>, SystemSchemaError> {
    let rows = system.admin.issuers(None).await?;
    Ok(match for_edge(&rows).await {
        Ok((listed, left_out)) => {
            for (row, fault) in &left_out {
                tracing::warn!(issuer = row.issuer, %fault, "the edge forwards users' tokens unverified");
            }
            (left_out.is_empty() && !rows.is_empty()).then(|| listed.to_json().to_string())
        }
        Err(error) => {
            tracing::warn!(%error, "the edge forwards users' tokens unverified");
            None
        }
    })
}

/// Creates the demo database. An existing one without an owner is recorded unchanged: keys may drop only its tables.
async fn demo(system: &System, project: &ProjectName, name: &DatabaseName) -> Result<(), SystemSchemaError> {
    let owned = system.projects.databases(Some(project)).await?;
    if owned.iter().any(|owned| owned.name == *name && owned.presence == Presence::Present) {
        return Ok(());
    }
    let drops = match system.admin.create_demo(name).await? {
        Created::New => Drops::Database,
        Created::Existing => Drops::Tables,
    };
    system.projects.adopt_database(project, name, drops).await?;
    Ok(())
}

struct DevKeys<'a> {
    system: &'a System,
    project: &'a ProjectName,
    verifying: KeySet,
    issued: Vec<KeyRow>,
}

impl DevKeys<'_> {
    async fn reuse_or_issue(&self, remembered: Option<&str>, access: Access) -> Result<String, SystemSchemaError> {
        match remembered {
            Some(token) if self.works(token, access) => Ok(token.to_owned()),
            _ => {
                let keys = &self.system.keys;
                let issued = keys.issue(self.project, access, KEY_NAME, None).await?;
                Ok(issued.token)
            }
        }
    }

    fn works(&self, token: &str, access: Access) -> bool {
        let now = now();
        verify(Some(token), &self.verifying, now).is_ok_and(|principal| {
            let row = self.issued.iter().find(|row| row.id == principal.key_id());
            *principal.grant() == Grant::from(access) && row.is_some_and(|row| is_live(row, now))
        })
    }
}
