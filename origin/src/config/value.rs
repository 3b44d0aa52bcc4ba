//! From a setting's text to its value. Each function answers with what the value must be, a clause
//! that completes "`name` must be …"; none repeats the text, which may be secret.

use std::net::SocketAddr;
use std::time::Duration;

/// Which web origins browsers may call from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigins {
    /// Any: keys are bearer tokens, so that a foreign page gains nothing.
    Any,
    /// These, each as `scheme://host[:port]`.
    Only(Vec<String>),
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Pretty,
    /// Pretty on a terminal, else JSON.
    Auto,
}

/// Longest time that a setting may name: a mistaken unit should be told, not waited for.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

type Parsed<T> = Result<T, String>;

pub(super) fn address(text: &str) -> Parsed<SocketAddr> {
    let text = text.replace("localhost:", "127.0.0.1:");
    text.parse()
        .map_err(|_| "an IP address and a port, such as 127.0.0.1:8080".to_owned())
}

pub(super) fn time(text: &str) -> Parsed<Duration> {
    let hint = || "a time from 1ms to 24h with its unit, such as 500ms, 30s or 2m".to_owned();
    let time = humantime::parse_duration(text).map_err(|_| hint())?;
    match time {
        Duration::ZERO => Err(hint()),
        time if time > TIME_MAX => Err(hint()),
        time => Ok(time),
    }
}

pub(super) fn whole(text: &str, least: usize, most: usize) -> Parsed<usize> {
    let number = text.replace('_', "").parse::<usize>().ok();
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("a whole number from {least} to {most}"))
}

pub(super) fn log_format(text: &str) -> Parsed<LogFormat> {
    match text {
        "json" => Ok(LogFormat::Json),
        "pretty" => Ok(LogFormat::Pretty),
        "auto" => Ok(LogFormat::Auto),
        _ => Err("json, pretty or auto".to_owned()),
    }
}

pub(super) fn log_level(text: &str) -> Parsed<tracing::Level> {
    text.parse()
        .map_err(|_| "error, warn, info, debug or trace".to_owned())
}

pub(super) fn cors_origins(text: &str) -> Parsed<CorsOrigins> {
    let hint = || "* or a comma list of origins such as https://app.example.org".to_owned();
    if text.trim() == "*" {
        return Ok(CorsOrigins::Any);
    }
    let origins: Option<Vec<String>> = text.split(',').map(web_origin).collect();
    origins.map(CorsOrigins::Only).ok_or_else(hint)
}

/// As a browser writes it in `Origin`: scheme, host, a port that isn't the scheme's own; no path.
fn web_origin(text: &str) -> Option<String> {
    let url = url::Url::parse(text.trim()).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    let web = matches!(url.scheme(), "http" | "https");
    (bare && web).then(|| url.origin().ascii_serialization())
}
