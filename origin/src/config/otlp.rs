//! The settings of traces: where they are sent, with which headers, and which requests are traced.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::{ConfigError, Layers, optional, required};

#[derive(Clone, Debug)]
pub struct OtlpConfig {
    endpoint: Url,
    /// Headers for the collector, which may contain an API key.
    headers: Option<SecretString>,
    /// The share of requests without a `traceparent` that are traced, from 0 to 1.
    share: f64,
}

impl OtlpConfig {
    /// Returns the URL for traces, with the path `/v1/traces` that OpenTelemetry specifies.
    pub fn traces_url(&self) -> String {
        format!("{}/v1/traces", self.endpoint.as_str().trim_end_matches('/'))
    }

    pub fn headers(&self) -> HashMap<String, String> {
        let text = self.headers.as_ref().map_or("", |headers| headers.expose_secret());
        headers(text).unwrap_or_default()
    }

    /// Returns the share, scaled from 0–1 to 0–`u64::MAX`.
    pub fn share_of_max(&self) -> u64 {
        (self.share * u64::MAX as f64) as u64
    }
}

pub(super) fn read(layers: &Layers) -> Result<Option<OtlpConfig>, ConfigError> {
    let share = required(layers, "otlp_share", share)?;
    let headers = optional(layers, "otlp_headers", |text| headers(text).map(|_| SecretString::from(text)))?;
    let endpoint = optional(layers, "otlp_endpoint", endpoint)?;
    Ok(endpoint.map(|endpoint| OtlpConfig { endpoint, headers, share }))
}

fn endpoint(text: &str) -> Result<Url, String> {
    let expected = "a URL without a user, such as http://127.0.0.1:4318";
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.filter(|url| url.username().is_empty() && url.password().is_none());
    url.filter(|url| url.query().is_none() && url.fragment().is_none()).ok_or_else(|| expected.to_owned())
}

/// Parses the form of `OTEL_EXPORTER_OTLP_HEADERS`: `name=value,other=value` with percent-encoded values.
fn headers(text: &str) -> Result<HashMap<String, String>, String> {
    let header = |item: &str| {
        let (name, value) = item.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?.into_owned();
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        HeaderValue::from_str(&value).ok()?;
        Some((name.to_string(), value))
    };
    let items = text.split(',').filter(|item| !item.trim().is_empty());
    let headers: Option<_> = items.map(header).collect();
    headers.ok_or_else(|| "headers such as name=value,other=value".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a number from 0 to 1, such as 0.05".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_plain_url() {
        for (text, url) in [
            ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318/v1/traces")),
            ("https://collector.example/otlp/", Some("https://collector.example/otlp/v1/traces")),
            ("collector:4318", None),
            ("grpc://collector:4317", None),
            ("https://key@collector.example", None),
            ("https://collector.example?key=x", None),
        ] {
            let config = endpoint(text).map(|endpoint| OtlpConfig { endpoint, headers: None, share: 1.0 });
            assert_eq!(config.ok().map(|config| config.traces_url()).as_deref(), url, "{text}");
        }
    }

    #[test]
    fn headers_are_decoded_and_a_wrong_one_is_not_repeated() {
        let read = headers("authorization=Basic%20abc, x-scope=a=b,").unwrap();
        assert_eq!((read["authorization"].as_str(), read["x-scope"].as_str()), ("Basic abc", "a=b"));
        for wrong in ["secret", "a b=secret", "a=secret%0a"] {
            assert!(!headers(wrong).unwrap_err().contains("secret"), "{wrong}");
        }
    }

    #[test]
    fn a_share_is_a_part_of_all_requests() {
        let config = |text| {
            let endpoint = endpoint("http://c:1").unwrap();
            share(text).map(|share| OtlpConfig { endpoint, headers: None, share }.share_of_max())
        };
        assert_eq!((config("0"), config("1"), config("0.5")), (Ok(0), Ok(u64::MAX), Ok(1 << 63)));
        for wrong in ["", "-1", "1.1", "NaN", "half"] {
            assert!(config(wrong).is_err(), "{wrong}");
        }
    }
}
