//! The access that each action needs. For actions on databases, MariaDB's grants enforce read-only or full access a
//! second time.

use crate::error::{ErrorCode, Problem};
use crate::key::{Access, Grant};
use crate::operation::{route, tus};

/// The action that a request's head asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Read,
    /// Read records, with the options in a POST body.
    Query,
    ReadOne,
    /// Return MariaDB's plan of a read (`explain`).
    Explain,
    Insert,
    Update,
    Delete,
    Describe,
    ListDatabases,
    ListTables,
    /// Describe what the caller may do: the OpenAPI document, or the types of the tables.
    DescribeApi,
    Sql,
    /// Run several operations in one transaction.
    Batch,
    /// Send a message of the Model Context Protocol. Each API request that the message causes is authorized separately.
    Mcp,
    Upload,
    ListMedia,
    /// Read a file's metadata.
    DescribeMedia,
    /// Create a signed URL of a private file.
    SignMedia,
    DeleteMedia,
    /// List the server's tus capabilities.
    DescribeUploads,
    /// Create a resumable upload.
    BeginUpload,
    /// Append to, query or cancel a resumable upload.
    ResumeUpload,
    ListKeys,
    CreateKey,
    RevokeKey,
    /// List roles, or read one.
    ListRoles,
    SetRole,
    RemoveRole,
    /// Read the project's statistics (`/status`), or its last requests (`/requests`).
    Observe,
}

impl Action {
    pub const ALL: [Self; 29] = [
        Self::Read,
        Self::Query,
        Self::ReadOne,
        Self::Explain,
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Describe,
        Self::ListDatabases,
        Self::ListTables,
        Self::DescribeApi,
        Self::Sql,
        Self::Batch,
        Self::Mcp,
        Self::Upload,
        Self::ListMedia,
        Self::DescribeMedia,
        Self::SignMedia,
        Self::DeleteMedia,
        Self::DescribeUploads,
        Self::BeginUpload,
        Self::ResumeUpload,
        Self::ListKeys,
        Self::CreateKey,
        Self::RevokeKey,
        Self::ListRoles,
        Self::SetRole,
        Self::RemoveRole,
        Self::Observe,
    ];

    /// Returns whether no role can allow the action, so that only full keys may do it.
    const fn is_never_of_roles(self) -> bool {
        matches!(
            self,
            Self::Sql
                | Self::Explain
                | Self::ListKeys
                | Self::CreateKey
                | Self::RevokeKey
                | Self::ListRoles
                | Self::SetRole
                | Self::RemoveRole
                | Self::Observe
        )
    }

    /// Returns the least access that an API key without a role needs for the action.
    #[must_use]
    pub const fn needs(self) -> Access {
        match self {
            Self::Read
            | Self::Query
            | Self::ReadOne
            | Self::Describe
            | Self::ListDatabases
            | Self::ListTables
            | Self::DescribeApi
            | Self::Mcp
            | Self::ListMedia
            | Self::DescribeMedia
            | Self::DescribeUploads => Access::Read,
            Self::Explain
            | Self::Insert
            | Self::Update
            | Self::Delete
            | Self::Sql
            | Self::Batch
            | Self::Upload
            | Self::SignMedia
            | Self::DeleteMedia
            | Self::BeginUpload
            | Self::ResumeUpload
            | Self::ListKeys
            | Self::CreateKey
            | Self::RevokeKey
            | Self::ListRoles
            | Self::SetRole
            | Self::RemoveRole
            | Self::Observe => Access::Full,
        }
    }

    /// Returns the pattern of the action's route, a label of bounded cardinality for logs and metrics. An action with
    /// several routes has the pattern of one of them.
    #[must_use]
    pub const fn route(self) -> &'static str {
        match self {
            Self::Read | Self::Explain | Self::Insert | Self::Describe => "/api/v1/crud/{db}/{table}",
            Self::ListDatabases => "/api/v1/crud",
            Self::ListTables => "/api/v1/crud/{db}",
            Self::DescribeApi => "/api/v1/openapi.json",
            Self::Query => "/api/v1/crud/{db}/{table}/query",
            Self::ReadOne => "/api/v1/crud/{db}/{table}/{id}",
            Self::Update | Self::Delete => "/api/v1/crud/{db}/{table}[/{id}]",
            Self::Sql => "/api/v1/sql",
            Self::Batch => "/api/v1/batch",
            Self::Mcp => route::MCP,
            Self::Upload | Self::ListMedia => "/api/v1/media",
            Self::DescribeMedia | Self::DeleteMedia => "/api/v1/media/{id}",
            Self::SignMedia => "/api/v1/media/{id}/sign",
            Self::DescribeUploads => "/api/v1/media/tus[/{id}]",
            Self::BeginUpload => tus::PATH,
            Self::ResumeUpload => "/api/v1/media/tus/{id}",
            Self::ListKeys | Self::CreateKey => "/api/v1/keys",
            Self::RevokeKey => "/api/v1/keys/{id}",
            Self::ListRoles | Self::SetRole | Self::RemoveRole => "/api/v1/roles[/{name}]",
            Self::Observe => "/api/v1/status",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Read | Self::Query | Self::ReadOne => "read records",
            Self::Explain => "ask how records are found",
            Self::Insert => "insert records",
            Self::Update => "update records",
            Self::Delete => "delete records",
            Self::Describe => "read a schema",
            Self::ListDatabases => "list databases",
            Self::ListTables => "list tables",
            Self::DescribeApi => "read the description of the API",
            Self::Sql => "run SQL",
            Self::Batch => "run a batch",
            Self::Mcp => "use MCP",
            Self::Upload | Self::BeginUpload | Self::ResumeUpload => "upload files",
            Self::DescribeUploads => "ask about uploads",
            Self::ListMedia | Self::DescribeMedia => "read what is known of files",
            Self::SignMedia => "sign URLs",
            Self::DeleteMedia => "delete files",
            Self::ListKeys | Self::CreateKey | Self::RevokeKey => "manage keys",
            Self::ListRoles | Self::SetRole | Self::RemoveRole => "manage roles",
            Self::Observe => "see the project's requests",
        }
    }
}

/// Returns the method, or `OTHER` for an unknown method: a label of bounded cardinality, for logs and metrics.
#[must_use]
pub fn method_label(method: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let known = KNOWN.into_iter().find(|known| *known == method);
    known.unwrap_or("OTHER")
}

/// Checks that an API key with this access may do an action. For a key with a role, refuses only the actions that no
/// role can allow: the origin checks the role's own rules.
///
/// # Errors
/// `full_access_required` for a read-only key; `role_forbids` for a key with a role.
pub fn permit(action: Action, grant: &Grant) -> Result<(), Problem> {
    match (grant, action.needs()) {
        (Grant::Full, _) | (Grant::Read, Access::Read) => Ok(()),
        (Grant::Role(_), _) if !action.is_never_of_roles() => Ok(()),
        (Grant::Role(_), _) => Err(role_forbids(action.description())),
        (Grant::Read, Access::Full) => Err(Problem::new(
            ErrorCode::FullAccessRequired,
            format!("A read-only key may not {}.", action.description()),
        )
        .with_hint("Use a key issued with full access.")),
    }
}

/// Returns the `role_forbids` problem of a caller whose role does not allow `what`, such as "run SQL".
#[must_use]
pub fn role_forbids(what: &str) -> Problem {
    Problem::new(ErrorCode::RoleForbids, format!("The key's role may not {what}."))
        .with_hint("Ask whoever manages the project to allow it in the role, or for a key with another role.")
}

/// The methods that never change data.
pub const READ_METHODS: &[&str] = &["GET", "HEAD", "OPTIONS"];

/// Returns the HTTP methods of the actions on a table for which `may` returns true, as the table's metadata lists them.
#[must_use]
pub fn table_methods(may: impl Fn(Action) -> bool) -> Vec<&'static str> {
    let by_action: [(Action, &[&str]); 4] = [
        (Action::Read, READ_METHODS),
        (Action::Insert, &["POST"]),
        (Action::Update, &["PUT", "PATCH"]),
        (Action::Delete, &["DELETE"]),
    ];
    let allowed = by_action.into_iter().filter(|(action, _)| may(*action));
    allowed.flat_map(|(_, methods)| methods).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_key_may_do_everything() {
        assert!(Action::ALL.iter().all(|action| permit(*action, &Grant::Full).is_ok()));
    }

    #[test]
    fn a_role_never_reaches_what_is_for_full_keys() {
        let claims = crate::key::RoleClaims::new();
        let role = crate::ident::RoleName::parse("author").unwrap();
        let grant = Grant::Role(std::sync::Arc::new(crate::key::RoleGrant { role, claims }));
        let refused: Vec<_> = Action::ALL.into_iter().filter(|action| permit(*action, &grant).is_err()).collect();
        let managing = [
            Action::ListKeys,
            Action::CreateKey,
            Action::RevokeKey,
            Action::ListRoles,
            Action::SetRole,
            Action::RemoveRole,
            Action::Observe,
        ];
        assert_eq!(refused, [&[Action::Explain, Action::Sql][..], &managing].concat());
    }

    #[test]
    fn a_read_key_may_only_read() {
        let allowed: Vec<_> = Action::ALL.into_iter().filter(|action| permit(*action, &Grant::Read).is_ok()).collect();
        assert_eq!(
            allowed,
            [
                Action::Read,
                Action::Query,
                Action::ReadOne,
                Action::Describe,
                Action::ListDatabases,
                Action::ListTables,
                Action::DescribeApi,
                Action::Mcp,
                Action::ListMedia,
                Action::DescribeMedia,
                Action::DescribeUploads
            ]
        );
        let refused = permit(Action::Sql, &Grant::Read).unwrap_err();
        assert_eq!(refused.message(), "A read-only key may not run SQL.");
        let methods =
            [Grant::Full, Grant::Read].map(|grant| table_methods(|action| permit(action, &grant).is_ok()).join(" "));
        assert_eq!(methods, ["GET HEAD OPTIONS POST PUT PATCH DELETE", "GET HEAD OPTIONS"]);
    }
}
