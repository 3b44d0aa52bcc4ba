//! The authenticated sender of a request: a verified key or token, and its rights.

use crate::database::Lessee;
use crate::database::media::{ChangeableFiles, ReadableFiles, Uploader};
use crate::media::rights::{self, UploadRights};
use crate::query::catalog::Reference;
use crate::query::interface::MediaInterface;
use crate::query::plan::access::{CallerRole, Rights};
use crate::query::role::SqlRule;
use shared::error::Problem;
use shared::ident::{DatabaseName, FieldName, ProjectName, TableName};
use shared::key::{Access, Grant, Principal};
use shared::operation::TablePath;
use shared::policy::role_forbids;
use shared::rate::RateLimit;
use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

use super::tokens::Issuer;

/// The sender of a request, cheap to clone.
#[derive(Clone, Debug)]
pub struct Caller(Arc<CallerParts>);

#[derive(Debug)]
struct CallerParts {
    principal: Arc<Principal>,
    rights: Rights,
    credential: Credential,
}

#[derive(Debug)]
pub(super) enum Credential {
    Key,
    UserToken(Arc<Issuer>),
    /// The token of a log-in link, which may only be exchanged for a key.
    Link,
    /// None: the caller is a webhook of the project.
    Webhook,
}

impl Caller {
    pub(super) fn new(principal: Principal, rights: Rights, credential: Credential) -> Self {
        Self(Arc::new(CallerParts { principal: Arc::new(principal), rights, credential }))
    }

    pub(super) fn issuer(&self) -> Option<&Arc<Issuer>> {
        match &self.0.credential {
            Credential::UserToken(issuer) => Some(issuer),
            Credential::Key | Credential::Link | Credential::Webhook => None,
        }
    }

    /// A webhook, which reads with full access to its project.
    pub fn of_webhook(project: ProjectName, id: Uuid) -> Self {
        Self::new(Principal::of_webhook(project, id), Rights::Full, Credential::Webhook)
    }

    pub fn is_webhook(&self) -> bool {
        matches!(self.0.credential, Credential::Webhook)
    }

    pub fn has_link(&self) -> bool {
        matches!(self.0.credential, Credential::Link)
    }

    pub fn principal(&self) -> &Arc<Principal> {
        &self.0.principal
    }

    pub fn rights(&self) -> &Rights {
        &self.0.rights
    }

    pub fn project(&self) -> &ProjectName {
        self.principal().project()
    }

    pub fn grant(&self) -> &Grant {
        self.principal().grant()
    }

    pub fn key_id(&self) -> Uuid {
        self.principal().key_id()
    }

    /// Returns the time of expiry, in seconds since 1970.
    pub fn expires_at(&self) -> Option<u64> {
        self.principal().expires_at()
    }

    pub fn account(&self) -> Access {
        match self.rights() {
            Rights::Full => Access::Full,
            Rights::Read => Access::Read,
            Rights::Role(role) if role.role().only_reads() => Access::Read,
            Rights::Role(_) => Access::Full,
        }
    }

    /// The account that runs the caller's own SQL; `None` if the caller may run none.
    pub fn sql_account(&self) -> Option<Access> {
        match self.rights() {
            Rights::Full => Some(Access::Full),
            Rights::Read => None,
            Rights::Role(role) => (role.role().sql() == SqlRule::Read).then_some(Access::Read),
        }
    }

    pub fn lessee(&self) -> Lessee<'_> {
        Lessee { project: self.project(), access: self.account(), caller: self.key_id() }
    }

    pub fn rate_limit(&self) -> Option<RateLimit> {
        self.role().and_then(|role| role.role().rate_limit())
    }

    pub fn statement_timeout(&self, of_service: Duration) -> Duration {
        self.role().and_then(|role| role.role().timeout()).map_or(of_service, |of_role| of_role.min(of_service))
    }

    pub fn max_rows(&self, of_service: Option<u64>) -> Option<u64> {
        let of_role = self.role().and_then(|role| role.role().max_rows());
        of_service.into_iter().chain(of_role).min()
    }

    /// Returns what the caller may do with media: everything without a role, since `shared::policy` limits read keys.
    pub fn media(&self) -> MediaInterface {
        let upload = self.upload_rights().is_ok();
        MediaInterface {
            read: !self.readable_files().is_empty(),
            upload,
            delete: self.changeable_files() != ChangeableFiles::None,
        }
    }

    pub fn readable_files(&self) -> ReadableFiles {
        match self.role() {
            Some(role) => rights::readable(role.role().media(), role.claims(), self.as_uploader(role)),
            None => ReadableFiles::All,
        }
    }

    pub fn check_media_read(&self) -> Result<ReadableFiles, Problem> {
        Some(self.readable_files()).filter(|files| !files.is_empty()).ok_or_else(|| role_forbids("read files"))
    }

    /// Returns the rights to upload. Without a role, all: `shared::policy` has refused read keys before.
    pub fn upload_rights(&self) -> Result<UploadRights, Problem> {
        match self.role() {
            Some(role) => UploadRights::of_role(role.role().media(), role.claims(), self.as_uploader(role)),
            None => Ok(UploadRights::ALL),
        }
    }

    pub fn changeable_files(&self) -> ChangeableFiles {
        match self.role() {
            Some(role) => rights::scope_of(role.role().media(), self.as_uploader(role)),
            None => ChangeableFiles::All,
        }
    }

    pub fn uploader(&self) -> Option<Uploader> {
        self.role().map(|role| self.as_uploader(role))
    }

    fn as_uploader(&self, role: &CallerRole) -> Uploader {
        let project = self.project();
        match role.claims().text("sub") {
            // For tokens, the subject's id is used instead: another issuer may use the same `sub` for another user.
            Some(subject) if self.issuer().is_none() => Uploader::of_subject(project, &subject),
            _ => Uploader::of_key(project, &self.key_id().hyphenated().to_string()),
        }
    }

    /// Returns bytes that are equal for callers of a project with the same role, used claims and subject (a key's `sub`
    /// or id; a token's issuer and `sub`).
    pub fn identity(&self, role: &CallerRole) -> Vec<u8> {
        let mut bytes = role.identity();
        if self.issuer().is_some() || role.claims().get("sub").is_none() {
            bytes.extend_from_slice(self.key_id().as_bytes());
        }
        bytes
    }

    /// Returns whether the caller may see the target of a foreign key. `database` is that of the table with the key.
    pub fn sees(&self, database: &DatabaseName, target: &Reference) -> bool {
        let (database_name, table) = match target.table.split_once('.') {
            Some((database, table)) => (DatabaseName::parse(database).ok(), table),
            None => (Some(database.clone()), target.table.as_str()),
        };
        let path = database_name.zip(TableName::parse(table).ok());
        let Some((path, field)) = path.zip(FieldName::parse(&target.field).ok()) else {
            return false;
        };
        self.reads(&TablePath { database: path.0, table: path.1 }, &field)
    }

    pub fn reads(&self, path: &TablePath, field: &FieldName) -> bool {
        self.rights().reads(&path.database, &path.table, field)
    }

    fn role(&self) -> Option<&Arc<CallerRole>> {
        self.rights().role()
    }
}

impl Borrow<Principal> for Caller {
    fn borrow(&self) -> &Principal {
        self.principal()
    }
}
