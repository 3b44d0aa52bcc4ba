//! Manages webhooks through the API, which judges their URLs and finds their first position in the log.

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use shared::ident::WebhookName;
use shared::limits::MANAGED_PAGE_MAX_COUNT;
use url::Url;

use super::api::{ATTEMPTS_MAX_COUNT, NoAnswer, json_headers};
use super::{Api, TransferError};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub name: String,
    pub url: String,
    /// The text that was given, so that a webhook which is set again is found unchanged.
    pub subscriptions: Box<RawValue>,
    pub paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<String>,
    pub created_at: String,
    pub updated_at: String,
    pub delivered_at: Option<String>,
    pub failing_since: Option<String>,
    /// Only of a webhook that was made, or whose secret was renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    pub id: u64,
    pub message_id: String,
    pub state: String,
    pub changes: u32,
    pub attempts: u32,
    pub status: Option<u16>,
    pub response: String,
    pub millis: u32,
    pub created_at: String,
    pub attempted_at: String,
    pub next_attempt_at: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Tested {
    pub delivered: bool,
    pub status: Option<u16>,
    pub response: String,
    pub millis: u32,
}

impl Api {
    pub async fn webhooks(&self) -> Result<Vec<Webhook>, TransferError> {
        self.list(&[]).await
    }

    /// Returns `None` if there is no such webhook.
    pub async fn webhook(&self, name: &WebhookName) -> Result<Option<Webhook>, TransferError> {
        match self.manage(Method::GET, &[name.as_str()], None).await {
            Err(NoAnswer::Refused(refusal)) if refusal.code == "record_not_found" => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    pub async fn create_webhook(&self, definition: String) -> Result<Webhook, TransferError> {
        Ok(self.manage(Method::POST, &[], Some(definition)).await?)
    }

    pub async fn change_webhook(&self, name: &WebhookName, definition: String) -> Result<Webhook, TransferError> {
        Ok(self.manage(Method::PUT, &[name.as_str()], Some(definition)).await?)
    }

    pub async fn renew_webhook_secret(&self, name: &WebhookName) -> Result<Webhook, TransferError> {
        Ok(self.manage(Method::POST, &[name.as_str(), "secret"], None).await?)
    }

    pub async fn remove_webhook(&self, name: &WebhookName) -> Result<(), TransferError> {
        let _: Box<RawValue> = self.manage(Method::DELETE, &[name.as_str()], None).await?;
        Ok(())
    }

    pub async fn test_webhook(&self, name: &WebhookName) -> Result<Tested, TransferError> {
        Ok(self.manage(Method::POST, &[name.as_str(), "test"], None).await?)
    }

    pub async fn deliveries(&self, name: &WebhookName) -> Result<Vec<Delivery>, TransferError> {
        self.list(&[name.as_str(), "deliveries"]).await
    }

    pub async fn send_again(&self, name: &WebhookName, delivery: u64) -> Result<Delivery, TransferError> {
        Ok(self.manage(Method::POST, &[name.as_str(), "deliveries", &delivery.to_string()], None).await?)
    }

    async fn manage<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<String>,
    ) -> Result<T, NoAnswer> {
        let url = self.api_url(&[&["webhooks"], path].concat());
        self.manage_url(method, url, body).await
    }

    /// Returns the first page of a list, as long as a page may be.
    async fn list<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Vec<T>, TransferError> {
        let mut url = self.api_url(&[&["webhooks"], path].concat());
        url.query_pairs_mut().append_pair("limit", &MANAGED_PAGE_MAX_COUNT.to_string());
        Ok(self.manage_url(Method::GET, url, None).await?)
    }

    async fn manage_url<T: DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        body: Option<String>,
    ) -> Result<T, NoAnswer> {
        // A POST makes something each time.
        let attempts_max_count = if method == Method::POST { 1 } else { ATTEMPTS_MAX_COUNT };
        let headers = if body.is_some() { json_headers() } else { HeaderMap::new() };
        let body = body.map(Bytes::from).unwrap_or_default();
        let payload = self.call_up_to(attempts_max_count, method, url, &headers, body).await?;
        serde_json::from_str(payload.get()).map_err(|error| NoAnswer::Failed(self.strange(&error.to_string())))
    }
}
