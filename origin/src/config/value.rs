//! Parses settings. Errors complete the sentence "`name` must be …" and never repeat the setting's text, which may be
//! secret.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shared::cors::CorsOrigins;
use shared::rate::RateLimit;

use super::BaseUrl;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Pretty,
    /// Logs readable text on a terminal, else JSON.
    Auto,
}

/// The maximum of a timeout. A longer timeout is probably a mistake in the unit.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

const LIFETIME_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

type Parsed<T> = Result<T, String>;

pub(super) fn address(text: &str) -> Parsed<SocketAddr> {
    let text = text.replace("localhost:", "127.0.0.1:");
    text.parse().map_err(|_| "an IP address and a port, such as 127.0.0.1:8080".to_owned())
}

/// Parses the path of a file. A relative path is resolved from `base`.
pub(super) fn file(text: &str, base: &Path) -> Parsed<PathBuf> {
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err("the path of a file".to_owned());
    }
    Ok(base.join(text))
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

pub(super) fn lifetime(text: &str) -> Parsed<Duration> {
    let time = humantime::parse_duration(text).ok();
    time.filter(|time| (Duration::from_secs(1)..=LIFETIME_MAX).contains(time))
        .ok_or_else(|| "a time from 1s to 30d with its unit, such as 2h or 7d".to_owned())
}

pub(super) fn whole(text: &str, least: usize, most: usize) -> Parsed<usize> {
    let number = text.replace('_', "").parse::<usize>().ok();
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("a whole number from {least} to {most}"))
}

pub(super) fn max_rows(text: &str) -> Parsed<Option<u64>> {
    match text {
        "off" => Ok(None),
        text => match whole(text, 1, usize::MAX) {
            Ok(rows) => Ok(Some(rows as u64)),
            Err(_) => Err("a whole number of at least 1, or off".to_owned()),
        },
    }
}

pub(super) fn switch<T>(text: &str, on: T, off: T) -> Parsed<T> {
    match text {
        "on" => Ok(on),
        "off" => Ok(off),
        _ => Err("on or off".to_owned()),
    }
}

pub(super) fn rate_limit(text: &str) -> Parsed<Option<RateLimit>> {
    match text {
        "off" => Ok(None),
        text => RateLimit::parse(text).map(Some).ok_or_else(|| RateLimit::EXPECTED.to_owned()),
    }
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
    text.parse().map_err(|_| "error, warn, info, debug or trace".to_owned())
}

pub(super) fn cors_origins(text: &str) -> Parsed<CorsOrigins> {
    CorsOrigins::parse(text).map_err(|_| "* or a comma list of origins such as https://app.example.org".to_owned())
}

pub(super) fn base_url(text: &str) -> Parsed<BaseUrl> {
    BaseUrl::parse(text).ok_or_else(|| "a URL without a path, such as https://api.example.com".to_owned())
}
