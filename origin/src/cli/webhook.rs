//! `selkie webhook`: makes, lists, shows, changes, tests and removes the webhooks of a project, and sends deliveries again.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use shared::ident::{WebhookName, shown};
use shared::operation::webhook::ChangeType;

use super::export::json as json_argument;
use super::system::{note, read};
use super::target::{ApiTarget, TargetArgs};
use super::{CliError, Context, TextTable};
use crate::transfer::{Api, Delivery, TableRef, Webhook};

const RESPONSE_SHOWN_MAX_CHARS: usize = 60;

#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// List webhooks: name, URL, whether they deliver, when they delivered last
    List(ListArgs),
    /// Print a webhook's definition, as `set --file` takes it
    Show(NamedArgs),
    /// Create a webhook, and print its secret; or change one, which keeps its position and its secret
    Set(Box<SetArgs>),
    /// Stop a webhook's deliveries; its changes wait in MariaDB's log
    Pause(NamedArgs),
    /// Deliver again, from where the webhook was paused
    Resume(NamedArgs),
    /// Print a new secret; for a day, deliveries are signed with the old one too
    RenewSecret(NamedArgs),
    /// Remove a webhook and its list of deliveries
    Remove(NamedArgs),
    /// Send a delivery without changes, once
    Test(NamedArgs),
    /// List the last deliveries, and all that failed or wait for another attempt
    Deliveries(NamedArgs),
    /// Send a delivery once more, with the same webhook-id
    SendAgain(SendAgainArgs),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Args)]
pub struct NamedArgs {
    /// The webhook
    #[arg(value_name = "NAME", value_parser = name)]
    name: WebhookName,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Args)]
pub struct SendAgainArgs {
    #[command(flatten)]
    named: NamedArgs,
    /// The delivery, by its number in `selkie webhook deliveries`
    #[arg(value_name = "ID")]
    id: u64,
}

#[derive(Debug, Args)]
pub struct SetArgs {
    #[command(flatten)]
    named: NamedArgs,
    /// The definition as JSON, as the API takes it, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["endpoint", "table"])]
    file: Option<PathBuf>,
    /// The URL to which changes are sent
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// A table whose changes are sent, such as shop.orders; may be repeated
    #[arg(long, value_name = "DATABASE.TABLE")]
    table: Vec<TableRef>,
    /// The types of changes: insert, update, delete [default: all]
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', requires = "table", value_parser = types())]
    types: Vec<String>,
    /// Only records that fulfil these conditions, as the option `query` of the API: '{"category": "sea"}'
    #[arg(long, value_name = "JSON", requires = "table", value_parser = json_argument)]
    query: Option<Value>,
    /// The fields [default: all]
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',', requires = "table")]
    select: Vec<String>,
}

fn name(text: &str) -> Result<WebhookName, String> {
    WebhookName::parse(text).map_err(|problem| problem.message().to_owned())
}

fn types() -> impl clap::builder::TypedValueParser<Value = String> {
    PossibleValuesParser::new(ChangeType::ALL.map(ChangeType::as_str)).map(|text| text)
}

impl WebhookCommand {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::List(args) => {
                args.target.run(context, async |target: ApiTarget| list(context, &target.api).await).await
            }
            Self::Show(args) => args.call(context, show).await,
            Self::Set(args) => args.run(context).await,
            Self::Pause(args) => {
                args.call(context, async |context, api, name| pause(context, api, name, true).await).await
            }
            Self::Resume(args) => {
                args.call(context, async |context, api, name| pause(context, api, name, false).await).await
            }
            Self::RenewSecret(args) => args.call(context, renew_secret).await,
            Self::Remove(args) => args.call(context, remove).await,
            Self::Test(args) => args.call(context, test).await,
            Self::Deliveries(args) => args.call(context, deliveries).await,
            Self::SendAgain(SendAgainArgs { named, id }) => {
                named.call(context, async |context, api, name| send_again(context, api, name, id).await).await
            }
        }
    }
}

impl NamedArgs {
    async fn call(
        &self,
        context: &Context,
        work: impl AsyncFnOnce(&Context, &Api, &WebhookName) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        self.target.run(context, async |target: ApiTarget| work(context, &target.api, &self.name).await).await
    }
}

async fn list(context: &Context, api: &Api) -> Result<(), CliError> {
    context.output.answer(&api.webhooks().await?, |webhooks| {
        let mut table = TextTable::new(["name", "url", "state", "delivered"]);
        for webhook in webhooks {
            table.row([webhook.name.clone(), webhook.url.clone(), state(webhook), or_dash(&webhook.delivered_at)]);
        }
        table.to_string()
    })
}

fn state(webhook: &Webhook) -> String {
    match webhook {
        Webhook { paused: true, pause_reason: Some(reason), .. } => format!("paused: {reason}"),
        Webhook { paused: true, .. } => "paused".to_owned(),
        Webhook { failing_since: Some(time), .. } => format!("failing since {time}"),
        _ => "delivers".to_owned(),
    }
}

fn or_dash(text: &Option<String>) -> String {
    text.clone().unwrap_or_else(|| "-".to_owned())
}

async fn find(api: &Api, name: &WebhookName) -> Result<Webhook, CliError> {
    api.webhook(name).await?.ok_or_else(|| {
        CliError::failed(
            format!("the project has no webhook {}", shown(name.as_str())),
            "`selkie webhook list` lists them",
        )
    })
}

#[derive(Serialize)]
struct Definition<'a> {
    name: &'a str,
    url: &'a str,
    subscriptions: &'a RawValue,
    paused: bool,
}

async fn show(context: &Context, api: &Api, name: &WebhookName) -> Result<(), CliError> {
    let webhook = find(api, name).await?;
    let Webhook { name, url, subscriptions, paused, .. } = &webhook;
    let definition = Definition { name, url, subscriptions, paused: *paused };
    let definition = serde_json::to_string_pretty(&definition).map_err(|error| CliError::Output(error.into()))?;
    context.output.answer(&webhook, |_| definition)
}

impl SetArgs {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let file =
            self.file.as_deref().map(|path| definition(&read("definition", path)?, &self.named.name)).transpose()?;
        if file.is_none() && self.endpoint.is_none() && self.table.is_empty() {
            let message = "nothing is to be set".to_owned();
            return Err(CliError::Usage { message, hint: Some("give --endpoint, --table or --file".to_owned()) });
        }
        let named = &self.named;
        named.call(context, async |context, api, name| self.set(context, api, name, file).await).await
    }

    async fn set(
        &self,
        context: &Context,
        api: &Api,
        name: &WebhookName,
        file: Option<Map<String, Value>>,
    ) -> Result<(), CliError> {
        let before = api.webhook(name).await?;
        let definition = match file {
            Some(definition) => Value::Object(definition),
            None => self.definition(name, before.as_ref())?,
        };
        if before.is_some() {
            let webhook = api.change_webhook(name, definition.to_string()).await?;
            return context.output.answer(&webhook, |webhook| format!("webhook {} is changed", webhook.name));
        }
        let webhook = api.create_webhook(definition.to_string()).await?;
        tell_secret(context, &webhook, "is made, and delivers what is changed from now on")
    }

    fn definition(&self, name: &WebhookName, before: Option<&Webhook>) -> Result<Value, CliError> {
        let url = self.endpoint.as_deref().or(before.map(|webhook| webhook.url.as_str()));
        let subscriptions = match before {
            Some(webhook) if self.table.is_empty() => Some(parsed(&webhook.subscriptions)?),
            _ => Some(self.subscriptions()).filter(|_| !self.table.is_empty()),
        };
        let (Some(url), Some(subscriptions)) = (url, subscriptions) else {
            let message = format!("the project has no webhook {} yet", shown(name.as_str()));
            let hint = Some("a new one needs --endpoint and --table, or --file".to_owned());
            return Err(CliError::Usage { message, hint });
        };
        let paused = before.is_some_and(|webhook| webhook.paused);
        Ok(json!({"name": name.as_str(), "url": url, "subscriptions": subscriptions, "paused": paused}))
    }

    fn subscriptions(&self) -> Value {
        let of_table = |table: &TableRef| {
            let mut subscription = json!({"database": table.database.as_str(), "table": table.table.as_str()});
            if let Some(query) = &self.query {
                subscription["query"] = query.clone();
            }
            if !self.select.is_empty() {
                subscription["selectFields"] = json!(self.select);
            }
            if !self.types.is_empty() {
                subscription["types"] = json!(self.types);
            }
            subscription
        };
        self.table.iter().map(of_table).collect()
    }
}

/// Parses a definition, which may lack the webhook's name.
fn definition(text: &str, name: &WebhookName) -> Result<Map<String, Value>, CliError> {
    let wrong = |message| CliError::Usage { message, hint: None };
    let mut definition: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| wrong(format!("the definition is no JSON object: {error}")))?;
    let given = definition.insert("name".to_owned(), name.as_str().into());
    match given {
        Some(given) if given != name.as_str() => Err(wrong(format!("the definition has the name {given}"))),
        _ => Ok(definition),
    }
}

fn parsed(json: &RawValue) -> Result<Value, CliError> {
    serde_json::from_str(json.get()).map_err(|error| CliError::Output(error.into()))
}

/// Prints the secret alone to standard output, so that it can be piped.
fn tell_secret(context: &Context, webhook: &Webhook, what: &str) -> Result<(), CliError> {
    note(&format!("webhook {} {what}; its secret is shown only now", webhook.name));
    context.output.answer(webhook, |webhook| webhook.secret.clone().unwrap_or_default())
}

async fn pause(context: &Context, api: &Api, name: &WebhookName, paused: bool) -> Result<(), CliError> {
    let Webhook { name: text, url, subscriptions, .. } = find(api, name).await?;
    let definition = Definition { name: &text, url: &url, subscriptions: &subscriptions, paused };
    let definition = serde_json::to_string(&definition).map_err(|error| CliError::Output(error.into()))?;
    let webhook = api.change_webhook(name, definition).await?;
    let what = if paused { "is paused" } else { "delivers again" };
    context.output.answer(&webhook, |webhook| format!("webhook {} {what}", webhook.name))
}

async fn renew_secret(context: &Context, api: &Api, name: &WebhookName) -> Result<(), CliError> {
    tell_secret(context, &api.renew_webhook_secret(name).await?, "has a new secret")
}

async fn remove(context: &Context, api: &Api, name: &WebhookName) -> Result<(), CliError> {
    api.remove_webhook(name).await?;
    context.output.answer(&json!({"name": name.as_str()}), |_| format!("webhook {} is removed", name.as_str()))
}

async fn test(context: &Context, api: &Api, name: &WebhookName) -> Result<(), CliError> {
    let tested = api.test_webhook(name).await?;
    context.output.answer(&tested, |tested| outcome(tested.status, tested.millis, &tested.response))?;
    if tested.delivered { Ok(()) } else { Err(not_taken()) }
}

async fn deliveries(context: &Context, api: &Api, name: &WebhookName) -> Result<(), CliError> {
    context.output.answer(&api.deliveries(name).await?, |deliveries| {
        let mut table =
            TextTable::new(["id", "state", "changes", "attempts", "last attempt", "next attempt", "answer"]);
        for of in deliveries {
            table.row([
                of.id.to_string(),
                of.state.clone(),
                of.changes.to_string(),
                of.attempts.to_string(),
                of.attempted_at.clone(),
                or_dash(&of.next_attempt_at),
                outcome(of.status, of.millis, &of.response),
            ]);
        }
        table.to_string()
    })
}

async fn send_again(context: &Context, api: &Api, name: &WebhookName, id: u64) -> Result<(), CliError> {
    let delivery: Delivery = api.send_again(name, id).await?;
    context.output.answer(&delivery, |of| outcome(of.status, of.millis, &of.response))?;
    // One that was delivered before stays so.
    if delivery.status.is_some_and(|status| (200..300).contains(&status)) { Ok(()) } else { Err(not_taken()) }
}

fn not_taken() -> CliError {
    CliError::Failed { message: "the endpoint has not taken the delivery".to_owned(), hint: None }
}

fn outcome(status: Option<u16>, millis: u32, response: &str) -> String {
    let status = status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    let beginning: String = response.chars().take(RESPONSE_SHOWN_MAX_CHARS).collect();
    shared::ident::printable(format!("{status} in {millis} ms {beginning}").trim_end())
}
