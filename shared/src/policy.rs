//! The access that each action needs. MariaDB's grants also enforce the difference between read-only and full access.

use crate::error::{ErrorCode, Problem};
use crate::key::{Access, Grant};
use crate::operation::{route, tus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permitted {
    /// Read-only keys, and keys with a role that allows the action.
    ReadKeys,
    Roles,
    FullKeys,
}

macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident = $permitted:ident, $route:expr, $description:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Action { $($(#[$doc])* $action,)* }

        impl Action {
            pub const ALL: &'static [Self] = &[$(Self::$action,)*];

            const fn permitted(self) -> Permitted {
                match self { $(Self::$action => Permitted::$permitted,)* }
            }

            pub const fn route(self) -> &'static str {
                match self { $(Self::$action => $route,)* }
            }

            pub const fn description(self) -> &'static str {
                match self { $(Self::$action => $description,)* }
            }
        }
    };
}

actions! {
    Read = ReadKeys, "/api/v1/crud/{db}/{table}", "read records";
    Query = ReadKeys, "/api/v1/crud/{db}/{table}/query", "read records";
    ReadOne = ReadKeys, "/api/v1/crud/{db}/{table}/{id}", "read records";
    Explain = FullKeys, "/api/v1/crud/{db}/{table}", "ask how records are found";
    Insert = Roles, "/api/v1/crud/{db}/{table}", "insert records";
    Update = Roles, "/api/v1/crud/{db}/{table}[/{id}]", "update records";
    Delete = Roles, "/api/v1/crud/{db}/{table}[/{id}]", "delete records";
    Describe = ReadKeys, "/api/v1/crud/{db}/{table}", "read a schema";
    ListDatabases = ReadKeys, "/api/v1/crud", "list databases";
    ListTables = ReadKeys, "/api/v1/crud/{db}", "list tables";
    /// Describe what the caller may do: the OpenAPI document, or the types of the tables.
    DescribeApi = ReadKeys, "/api/v1/openapi.json", "read the description of the API";
    /// Follow the changes of tables.
    Follow = ReadKeys, "/api/v1/changes[/{db}/{table}]", "follow changes";
    /// Roles may read by SQL if they limit nothing.
    Sql = Roles, "/api/v1/sql", "run SQL";
    /// Create, alter, truncate or drop a table, or read its definition.
    Schema = FullKeys, "/api/v1/schema[/{db}[/{table}]]", "change tables";
    Batch = Roles, "/api/v1/batch", "run a batch";
    /// Send a message of the Model Context Protocol. Each API request that the message causes is authorized separately.
    Mcp = ReadKeys, route::MCP, "use MCP";
    Upload = Roles, "/api/v1/media", "upload files";
    ListMedia = ReadKeys, "/api/v1/media", "read what is known of files";
    DescribeMedia = ReadKeys, "/api/v1/media/{id}", "read what is known of files";
    /// Create a signed URL, which opens a file, even a private one, without a key.
    SignMedia = Roles, "/api/v1/media/{id}/sign", "sign URLs";
    DeleteMedia = Roles, "/api/v1/media/{id}", "delete files";
    DescribeUploads = ReadKeys, "/api/v1/media/tus[/{id}]", "ask about uploads";
    BeginUpload = Roles, tus::PATH, "upload files";
    /// Append to, query or cancel a resumable upload.
    ResumeUpload = Roles, "/api/v1/media/tus/{id}", "upload files";
    ListKeys = FullKeys, "/api/v1/keys", "manage keys";
    CreateKey = FullKeys, "/api/v1/keys", "manage keys";
    RevokeKey = FullKeys, "/api/v1/keys/{id}", "manage keys";
    /// List roles, or read one.
    ListRoles = FullKeys, "/api/v1/roles[/{name}]", "manage roles";
    SetRole = FullKeys, "/api/v1/roles[/{name}]", "manage roles";
    RemoveRole = FullKeys, "/api/v1/roles[/{name}]", "manage roles";
    /// List issuers, or read one.
    ListIssuers = FullKeys, "/api/v1/issuers[/{issuer}]", "manage issuers";
    /// Set or remove an issuer.
    ManageIssuer = FullKeys, "/api/v1/issuers[/{issuer}]", "manage issuers";
    /// List webhooks or their deliveries, or read one webhook.
    ListWebhooks = FullKeys, "/api/v1/webhooks[/{name}[/deliveries]]", "manage webhooks";
    /// Make, change, test or remove a webhook, or send a delivery again.
    ManageWebhook = FullKeys, "/api/v1/webhooks[/{name}]", "manage webhooks";
    /// Read the project's statistics (`/status`), or its last requests (`/requests`).
    Observe = FullKeys, "/api/v1/status", "see the project's requests";
}

impl Action {
    pub const fn needs(self) -> Access {
        match self.permitted() {
            Permitted::ReadKeys => Access::Read,
            Permitted::Roles | Permitted::FullKeys => Access::Full,
        }
    }
}

/// Returns the method, or `OTHER` for an unknown method: a label of bounded cardinality.
pub fn method_label(method: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let known = KNOWN.into_iter().find(|known| *known == method);
    known.unwrap_or("OTHER")
}

/// Fails with `full_access_required` for a read-only key, and with `role_forbids` if no role can allow the action. The
/// origin checks the rules of the caller's role.
pub fn permit(action: Action, grant: &Grant) -> Result<(), Problem> {
    match (grant, action.needs()) {
        (Grant::Full, _) | (Grant::Read, Access::Read) => Ok(()),
        (Grant::Role(_), _) if action.permitted() != Permitted::FullKeys => Ok(()),
        (Grant::Role(_), _) => Err(role_forbids(action.description())),
        (Grant::Read, Access::Full) => Err(Problem::new(
            ErrorCode::FullAccessRequired,
            format!("A read-only key may not {}.", action.description()),
        )
        .with_hint("Use a key issued with full access.")),
    }
}

pub fn role_forbids(what: &str) -> Problem {
    Problem::new(ErrorCode::RoleForbids, format!("The key's role may not {what}."))
        .with_hint("Ask whoever manages the project to allow it in the role, or for a key with another role.")
}

pub const READ_METHODS: &[&str] = &["GET", "HEAD", "OPTIONS"];

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
        let refused: Vec<_> = Action::ALL.iter().copied().filter(|action| permit(*action, &grant).is_err()).collect();
        let managing = [
            Action::ListKeys,
            Action::CreateKey,
            Action::RevokeKey,
            Action::ListRoles,
            Action::SetRole,
            Action::RemoveRole,
            Action::ListIssuers,
            Action::ManageIssuer,
            Action::ListWebhooks,
            Action::ManageWebhook,
            Action::Observe,
        ];
        assert_eq!(refused, [&[Action::Explain, Action::Schema][..], &managing].concat());
    }

    #[test]
    fn a_read_key_may_only_read() {
        let allowed: Vec<_> =
            Action::ALL.iter().copied().filter(|action| permit(*action, &Grant::Read).is_ok()).collect();
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
                Action::Follow,
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
