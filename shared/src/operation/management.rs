//! Parses the paths by which the holder of a full-access key manages its project. The origin parses the bodies.

use super::options::{self, Options};
use super::route::decode_segment;
use crate::error::{ErrorCode, Problem};
use crate::ident::{RoleName, WebhookName, shown};
use crate::json::Value;
use crate::limits::{MANAGED_PAGE_COUNT, MANAGED_PAGE_MAX_COUNT};
use crate::policy::Action;
use uuid::Uuid;

/// The keys that a request may revoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocable {
    /// All but the request's own key, since callers who revoke their own key by mistake lose their access.
    Others,
    /// All keys (option `own`).
    Own,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    Kept,
    /// Option `withCreated`: also revokes the keys that the named key has created, and those that they have created and
    /// so on.
    Revoked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub limit: u64,
    pub after: Option<T>,
}

impl<T> Page<T> {
    const FIRST: Self = Self { limit: MANAGED_PAGE_COUNT, after: None };

    fn with(self, pairs: &Options, parse: impl Fn(&str) -> Option<T>) -> Result<Self, Problem> {
        pairs.iter().try_fold(self, |page, (name, value)| match (name.as_str(), value) {
            ("limit", value) => match options::whole_number(name, value)? {
                limit @ 1..=MANAGED_PAGE_MAX_COUNT => Ok(Self { limit, ..page }),
                _ => Err(options::wrong(name, &format!("a whole number from 1 to {MANAGED_PAGE_MAX_COUNT}"), value)),
            },
            ("after", Value::Text(text)) if parse(text).is_some() => Ok(Self { after: parse(text), ..page }),
            ("after", value) => Err(options::wrong(name, "the next of the page before", value)),
            _ => Err(options::unknown(name, &["limit", "after"])),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Management {
    ListKeys(Page<Uuid>),
    CreateKey,
    RevokeKey(Uuid, Revocable, Made),
    ListRoles(Page<RoleName>),
    ShowRole(RoleName),
    SetRole(RoleName),
    RemoveRole(RoleName),
    ListIssuers,
    /// An issuer is named by its URL.
    ShowIssuer(String),
    SetIssuer(String),
    RemoveIssuer(String),
    ListWebhooks(Page<WebhookName>),
    CreateWebhook,
    Webhook(WebhookCall),
    Status,
    ListRequests,
}

/// A call for one webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookCall {
    pub name: WebhookName,
    pub deed: WebhookDeed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookDeed {
    Show,
    Set,
    Remove,
    RenewSecret,
    SendTest,
    ListDeliveries(Page<u64>),
    ShowDelivery(u64),
    SendAgain(u64),
}

impl WebhookCall {
    /// Returns the call and the path's methods; the caller must check that `method` is one of them.
    pub(super) fn resolve(
        method: &str,
        name: &str,
        part: Option<&str>,
        id: Option<&str>,
    ) -> Result<Option<(Self, &'static str)>, Problem> {
        let (deed, methods) = match (part, id, method) {
            (None, None, "PUT") => (WebhookDeed::Set, "GET, HEAD, PUT, DELETE"),
            (None, None, "DELETE") => (WebhookDeed::Remove, "GET, HEAD, PUT, DELETE"),
            (None, None, _) => (WebhookDeed::Show, "GET, HEAD, PUT, DELETE"),
            (Some("secret"), None, _) => (WebhookDeed::RenewSecret, "POST"),
            (Some("test"), None, _) => (WebhookDeed::SendTest, "POST"),
            (Some("deliveries"), None, _) => (WebhookDeed::ListDeliveries(Page::FIRST), "GET, HEAD"),
            (Some("deliveries"), Some(id), _) => {
                let number = options::parse_whole(id).ok_or_else(|| no_delivery(id))?;
                let is_sent = method == "POST";
                let deed = if is_sent { WebhookDeed::SendAgain(number) } else { WebhookDeed::ShowDelivery(number) };
                (deed, "GET, HEAD, POST")
            }
            _ => return Ok(None),
        };
        Ok(Some((Self { name: WebhookName::parse(&decode_segment(name)?)?, deed }, methods)))
    }
}

impl Management {
    /// Returns the action and the path's methods; the caller must check that `method` is one of them. Fails with
    /// `record_not_found` for an invalid key id, and with `invalid_identifier` for an invalid role.
    pub(super) fn resolve(
        method: &str,
        kind: &str,
        name: Option<&str>,
    ) -> Result<Option<(Self, &'static str)>, Problem> {
        Ok(Some(match (kind, name, method) {
            ("keys", None, "POST") => (Self::CreateKey, "GET, HEAD, POST"),
            ("keys", None, _) => (Self::ListKeys(Page::FIRST), "GET, HEAD, POST"),
            ("keys", Some(id), _) => {
                let id = Uuid::try_parse(id).map_err(|_| no_key(id))?;
                (Self::RevokeKey(id, Revocable::Others, Made::Kept), "DELETE")
            }
            ("roles", None, _) => (Self::ListRoles(Page::FIRST), "GET, HEAD"),
            ("roles", Some(name), _) => {
                let name = RoleName::parse(&decode_segment(name)?)?;
                let call = match method {
                    "PUT" => Self::SetRole(name),
                    "DELETE" => Self::RemoveRole(name),
                    _ => Self::ShowRole(name),
                };
                (call, "GET, HEAD, PUT, DELETE")
            }
            ("issuers", None, _) => (Self::ListIssuers, "GET, HEAD"),
            ("issuers", Some(issuer), _) => {
                let issuer = decode_segment(issuer)?.into_owned();
                let call = match method {
                    "PUT" => Self::SetIssuer(issuer),
                    "DELETE" => Self::RemoveIssuer(issuer),
                    _ => Self::ShowIssuer(issuer),
                };
                (call, "GET, HEAD, PUT, DELETE")
            }
            ("webhooks", None, "POST") => (Self::CreateWebhook, "GET, HEAD, POST"),
            ("webhooks", None, _) => (Self::ListWebhooks(Page::FIRST), "GET, HEAD, POST"),
            ("status", None, _) => (Self::Status, "GET, HEAD"),
            ("requests", None, _) => (Self::ListRequests, "GET, HEAD"),
            _ => return Ok(None),
        }))
    }

    pub(super) fn with_options(self, pairs: &Options) -> Result<Self, Problem> {
        match self {
            Self::RevokeKey(id, ..) => {
                let given = options::flags(pairs, &["own", "withCreated"])?;
                let whose = if given.contains(&"own") { Revocable::Own } else { Revocable::Others };
                let made = if given.contains(&"withCreated") { Made::Revoked } else { Made::Kept };
                Ok(Self::RevokeKey(id, whose, made))
            }
            Self::ListKeys(page) => page.with(pairs, |id| Uuid::try_parse(id).ok()).map(Self::ListKeys),
            Self::ListRoles(page) => page.with(pairs, |name| RoleName::parse(name).ok()).map(Self::ListRoles),
            Self::ListWebhooks(page) => page.with(pairs, |name| WebhookName::parse(name).ok()).map(Self::ListWebhooks),
            Self::Webhook(WebhookCall { name, deed: WebhookDeed::ListDeliveries(page) }) => {
                let deed = WebhookDeed::ListDeliveries(page.with(pairs, options::parse_whole)?);
                Ok(Self::Webhook(WebhookCall { name, deed }))
            }
            call => options::none(pairs).map(|()| call),
        }
    }

    pub(super) fn action(&self) -> Action {
        match self {
            Self::ListKeys(_) => Action::ListKeys,
            Self::CreateKey => Action::CreateKey,
            Self::RevokeKey(..) => Action::RevokeKey,
            Self::ListRoles(_) | Self::ShowRole(_) => Action::ListRoles,
            Self::SetRole(_) => Action::SetRole,
            Self::RemoveRole(_) => Action::RemoveRole,
            Self::ListIssuers | Self::ShowIssuer(_) => Action::ListIssuers,
            Self::SetIssuer(_) | Self::RemoveIssuer(_) => Action::ManageIssuer,
            Self::ListWebhooks(_) => Action::ListWebhooks,
            Self::Webhook(WebhookCall {
                deed: WebhookDeed::Show | WebhookDeed::ListDeliveries(_) | WebhookDeed::ShowDelivery(_),
                ..
            }) => Action::ListWebhooks,
            Self::CreateWebhook | Self::Webhook(_) => Action::ManageWebhook,
            Self::Status | Self::ListRequests => Action::Observe,
        }
    }

    pub(super) fn has_body(&self) -> bool {
        matches!(
            self,
            Self::CreateKey
                | Self::SetRole(_)
                | Self::SetIssuer(_)
                | Self::CreateWebhook
                | Self::Webhook(WebhookCall { deed: WebhookDeed::Set, .. })
        )
    }
}

pub fn no_key(id: &str) -> Problem {
    Problem::new(ErrorCode::RecordNotFound, format!("The project has no key {}.", shown(id)))
}

pub fn no_delivery(id: &str) -> Problem {
    Problem::new(ErrorCode::RecordNotFound, format!("The webhook has no delivery {}.", shown(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(method: &str, kind: &str, name: Option<&str>) -> Result<Option<Management>, ErrorCode> {
        let found = Management::resolve(method, kind, name).map_err(|problem| problem.code())?;
        Ok(found.map(|(call, _)| call))
    }

    #[test]
    fn keys_are_addressed_by_id_and_roles_by_name() {
        let id = Uuid::from_u128(7);
        let role = || RoleName::parse("author").unwrap();
        for (method, kind, name, expected) in [
            ("GET", "keys", None, Some(Management::ListKeys(Page::FIRST))),
            ("POST", "keys", None, Some(Management::CreateKey)),
            ("DELETE", "keys", Some(id.to_string()), Some(Management::RevokeKey(id, Revocable::Others, Made::Kept))),
            ("HEAD", "roles", None, Some(Management::ListRoles(Page::FIRST))),
            ("GET", "roles", Some("author".to_owned()), Some(Management::ShowRole(role()))),
            ("PUT", "roles", Some("auth%6Fr".to_owned()), Some(Management::SetRole(role()))),
            ("DELETE", "roles", Some("author".to_owned()), Some(Management::RemoveRole(role()))),
            ("GET", "issuers", None, Some(Management::ListIssuers)),
            (
                "PUT",
                "issuers",
                Some("https%3A%2F%2Fid.example".to_owned()),
                Some(Management::SetIssuer("https://id.example".to_owned())),
            ),
            ("GET", "status", None, Some(Management::Status)),
            ("GET", "requests", None, Some(Management::ListRequests)),
            ("GET", "requests", Some("x".to_owned()), None),
            ("GET", "projects", None, None),
        ] {
            assert_eq!(resolve(method, kind, name.as_deref()), Ok(expected), "{method} {kind} {name:?}");
        }
        for id in ["x", "7", "0199", ""] {
            assert_eq!(resolve("DELETE", "keys", Some(id)), Err(ErrorCode::RecordNotFound), "{id}");
        }
        for name in ["A", "full", "", "a b", "%"] {
            assert_eq!(resolve("PUT", "roles", Some(name)), Err(ErrorCode::InvalidIdentifier), "{name}");
        }
    }
}
