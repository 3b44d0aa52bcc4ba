//! Parses the definition of a webhook: `POST /api/v1/webhooks` and `PUT /api/v1/webhooks/{name}`.

use super::changes::{Subscription, subscriptions};
use super::options;
use super::read::Draft;
use crate::error::Problem;
use crate::ident::WebhookName;
use crate::json::Value;
use crate::limits::{WEBHOOK_SUBSCRIPTIONS_MAX_BYTES, WEBHOOK_URL_MAX_BYTES};

#[derive(Clone, Debug, PartialEq)]
pub struct WebhookDefinition {
    pub name: WebhookName,
    /// Any text of at most [`WEBHOOK_URL_MAX_BYTES`].
    pub url: Box<str>,
    /// What `subscriptions` was parsed from.
    pub subscriptions_json: Box<str>,
    pub subscriptions: Vec<WebhookSubscription>,
    pub is_paused: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WebhookSubscription {
    pub subscription: Subscription,
    /// The types of changes that are delivered. Not empty.
    pub types: Vec<ChangeType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeType {
    Insert,
    Update,
    Delete,
}

impl ChangeType {
    pub const ALL: [Self; 3] = [Self::Insert, Self::Update, Self::Delete];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

const OPTIONS: [&str; 4] = ["name", "url", "subscriptions", "paused"];
const SUBSCRIPTION_OPTIONS: [&str; 8] =
    ["id", "database", "table", "query", "searchOperator", "selectFields", "omitFields", "types"];
const TYPES: &str = "a list of insert, update and delete";

impl WebhookDefinition {
    /// Parses a definition. `name` is the name in the path, if the path has one; the body may then repeat it.
    pub fn parse(name: Option<WebhookName>, body: &[u8]) -> Result<Self, Problem> {
        let draft = Draft::collect(options::members(body)?, &OPTIONS)?;
        let given = match draft.get("name") {
            Some(Value::Text(text)) => Some(WebhookName::parse(text)?),
            Some(other) => return Err(options::wrong("name", "a string", other)),
            None => None,
        };
        let name = match (name, given) {
            (Some(name), Some(given)) if name != given => {
                return Err(options::invalid("The webhook's name can't be changed.")
                    .with_hint("Make a new webhook, and delete this one."));
            }
            (Some(name), _) | (None, Some(name)) => name,
            (None, None) => return Err(options::invalid("The option name is missing.")),
        };
        let url = match draft.get("url") {
            Some(Value::Text(url)) if (1..=WEBHOOK_URL_MAX_BYTES).contains(&url.len()) => url.clone(),
            Some(other) => {
                return Err(options::wrong("url", &format!("a URL of {WEBHOOK_URL_MAX_BYTES} bytes at most"), other));
            }
            None => return Err(options::invalid("The option url is missing.")),
        };
        let list = draft.get("subscriptions");
        let subscriptions_json = list.map(|list| list.to_json().into()).unwrap_or_default();
        if list.is_some_and(|list| list.to_json().len() > WEBHOOK_SUBSCRIPTIONS_MAX_BYTES) {
            let message = format!("The option subscriptions has more than {WEBHOOK_SUBSCRIPTIONS_MAX_BYTES} bytes.");
            return Err(options::invalid(message));
        }
        let is_paused = draft.get("paused").map(|value| options::flag("paused", value)).transpose()?;
        let subscriptions = parse_subscriptions(list)?;
        Ok(Self { name, url, subscriptions_json, subscriptions, is_paused: is_paused.unwrap_or_default() })
    }
}

/// Parses the subscriptions of a webhook that was parsed before.
pub fn stored_subscriptions(json: &str) -> Result<Vec<WebhookSubscription>, Problem> {
    parse_subscriptions(Some(&Value::List(json.into())))
}

fn parse_subscriptions(list: Option<&Value>) -> Result<Vec<WebhookSubscription>, Problem> {
    let of_type = |(subscription, others): (_, Draft)| {
        let types = others.get("types").map_or(Ok(ChangeType::ALL.to_vec()), types)?;
        Ok(WebhookSubscription { subscription, types })
    };
    subscriptions(list, &SUBSCRIPTION_OPTIONS)?.into_iter().map(of_type).collect()
}

fn types(value: &Value) -> Result<Vec<ChangeType>, Problem> {
    let Value::List(list) = value else {
        return Err(options::wrong("types", TYPES, value));
    };
    let of_name = |item: &Value| match item {
        Value::Text(name) => ChangeType::ALL.into_iter().find(|of| of.as_str() == &**name),
        _ => None,
    };
    let list = options::items("types", list, ChangeType::ALL.len())?;
    let given = list.iter().map(of_name).collect::<Option<Vec<_>>>();
    let given = given.filter(|given| !given.is_empty()).ok_or_else(|| options::wrong("types", TYPES, value))?;
    Ok(ChangeType::ALL.into_iter().filter(|kind| given.contains(kind)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: Option<&str>, body: &str) -> Result<WebhookDefinition, String> {
        let name = name.map(|name| WebhookName::parse(name).unwrap());
        WebhookDefinition::parse(name, body.as_bytes()).map_err(|problem| problem.message().to_owned())
    }

    #[test]
    fn a_definition_has_a_name_a_url_and_subscriptions() {
        let of = r#""url":"https://x.example","subscriptions":[{"database":"d","table":"t","types":["insert","insert"]},{"database":"d","table":"u"}]"#;
        let made = parse(None, &format!("{{\"name\":\"a b\",{of}}}")).unwrap();
        assert_eq!((made.name.as_str(), &*made.url, made.is_paused), ("a b", "https://x.example", false));
        let types: Vec<_> = made.subscriptions.iter().map(|of| of.types.len()).collect();
        assert_eq!(types, [1, 3]);
        assert_eq!(stored_subscriptions(&made.subscriptions_json).unwrap(), made.subscriptions);
        assert!(parse(Some("a b"), &format!("{{\"paused\":true,{of}}}")).unwrap().is_paused);
        for (name, body, message) in [
            (None, format!("{{{of}}}"), "The option name is missing."),
            (Some("a"), format!("{{\"name\":\"b\",{of}}}"), "The webhook's name can't be changed."),
            (Some("a"), r#"{"url":5}"#.to_owned(), "The option url must be a URL of 2048 bytes at most, not 5."),
            (Some("a"), r#"{"url":"https://x.example"}"#.to_owned(), "The option subscriptions is missing"),
            (Some("a"), format!("{{\"secret\":1,{of}}}"), "There is no option \"secret\" here."),
            (
                Some("a"),
                r#"{"url":"u","subscriptions":[{"database":"d","table":"t","types":[]}]}"#.to_owned(),
                "The option types must be a list of insert, update and delete, not a list.",
            ),
        ] {
            let found = parse(name, &body).unwrap_err();
            assert!(found.contains(message), "{body}: {found}");
        }
    }
}
