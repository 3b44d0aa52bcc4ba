//! Serves the pages for browsers, which need no key: `/`, `/docs` and (unless it is turned off) `/console`.
//! `tools/pages.mjs` makes their files, which a release build embeds.

use super::respond::ETag;
use crate::config::ConsoleConfig;
use crate::database::admin::IssuerRow;
use crate::system::keys::tokens::remote::parse_url;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use flate2::read::GzDecoder;
use rust_embed::Embed;
use serde::Serialize;
use shared::conditional;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::sync::{LazyLock, OnceLock};

#[derive(Embed)]
#[folder = "../pages/build"]
#[allow_missing = true]
struct Files;

/// The files by their names, each read when it is first requested. All responses share a file's bytes, so that slow
/// clients take no memory.
static PAGES: LazyLock<HashMap<String, OnceLock<Result<PageFile, String>>>> =
    LazyLock::new(|| Files::iter().map(|name| (name.into_owned(), OnceLock::new())).collect());

struct PageFile {
    compressed: Bytes,
    plain: Bytes,
    /// A weak entity tag, since the compressed and the decompressed file share it.
    tag: String,
}

impl PageFile {
    fn read(name: &str) -> Result<Self, String> {
        let compressed = match Files::get(&format!("{name}.gz")).ok_or("it is gone")?.data {
            Cow::Borrowed(data) => Bytes::from_static(data),
            Cow::Owned(data) => Bytes::from(data),
        };
        let (plain, tag) = (decompressed(&compressed)?.into(), format!("W/{}", ETag::of(&compressed).as_str()));
        Ok(Self { compressed, plain, tag })
    }
}

/// Maximum size of a decompressed file. A test checks the embedded files.
const FILE_MAX_BYTES: u64 = 32 * 1024 * 1024;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
                      media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Allows scripts and styles only from the page's own folder (`/` uses `/docs/`), not from callers' files in `/media/`.
/// `'self'` can't have a path, and this host's public name is unknown here. A browser loads what both policies allow.
const DOCS_POLICY: &str = "script-src http://*:*/docs/ https://*:*/docs/; style-src http://*:*/docs/ https://*:*/docs/; \
                           img-src data:";
const CONSOLE_POLICY: &str =
    "script-src http://*:*/console/ https://*:*/console/; style-src http://*:*/console/ https://*:*/console/";

/// The page that signs in, which exchanges the code of an issuer for its tokens.
const CONSOLE: &str = "console/index.html";

/// The issuers that the console offers for signing in.
const ISSUERS: &str = "console/issuers.json";

/// An issuer as everybody sees it who opens the console.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignInIssuer<'a> {
    project: &'a str,
    issuer: &'a str,
    audience: &'a str,
    client_id: &'a str,
}

const HEADERS: [(header::HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::CACHE_CONTROL, "public, no-cache"),
    (header::VARY, "Accept-Encoding"),
];

pub(super) fn file(
    path: &str,
    console: ConsoleConfig,
    headers: &HeaderMap,
    issuers: impl Fn() -> Vec<IssuerRow>,
) -> Result<Response, Problem> {
    let name = match (path.trim_matches('/'), console) {
        ("", ConsoleConfig::Served) => "home/index.html",
        ("", ConsoleConfig::Off) => "home/without-console.html",
        ("docs", ConsoleConfig::Served) => "docs/index.html",
        ("docs", ConsoleConfig::Off) => "docs/without-console.html",
        ("console", _) => CONSOLE,
        // Issuers send users back to it.
        (name, _) if name.starts_with("console/sign-in-") => CONSOLE,
        (name, _) => name,
    };
    if name == ISSUERS {
        return list(&issuers());
    }
    let file = PAGES.get(&format!("{name}.gz")).ok_or_else(|| missing(path))?;
    let file = file
        .get_or_init(|| PageFile::read(name))
        .as_ref()
        .map_err(|reason| Problem::internal("The page's file can't be read.", format!("{name}: {reason}")))?;
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_compressed = text(header::ACCEPT_ENCODING).is_some_and(accepts_gzip);
    let content = if is_compressed { &file.compressed } else { &file.plain };
    let origins = if name == CONSOLE { origins(&issuers()) } else { String::new() };
    // The policy changes with the issuers, the file does not.
    let is_known =
        origins.is_empty() && text(header::IF_NONE_MATCH).is_some_and(|known| conditional::names(known, &file.tag));
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(content.clone()) });
    let answer = response.headers_mut();
    for (header, value) in HEADERS {
        answer.insert(header, HeaderValue::from_static(value));
    }
    let own = if name.starts_with("console/") { CONSOLE_POLICY } else { DOCS_POLICY };
    let policy = POLICY.replace("connect-src 'self'", &format!("connect-src 'self'{origins}"));
    let policies = HeaderValue::try_from(format!("{policy}, {own}"));
    answer.extend(policies.ok().map(|policies| (header::CONTENT_SECURITY_POLICY, policies)));
    answer.extend(HeaderValue::try_from(&file.tag).ok().map(|tag| (header::ETAG, tag)));
    if is_known {
        *response.status_mut() = axum::http::StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    if is_compressed {
        answer.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

fn list(issuers: &[IssuerRow]) -> Result<Response, Problem> {
    let shown = issuers.iter().filter_map(|row| {
        let IssuerRow { project, issuer, audience, client_id, .. } = row;
        Some(SignInIssuer { project: project.as_str(), issuer, audience, client_id: client_id.as_deref()? })
    });
    let text = serde_json::to_vec(&shown.collect::<Vec<_>>())
        .map_err(|error| Problem::internal("The issuers can't be listed.", error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    let answer = response.headers_mut();
    for (header, value) in HEADERS {
        answer.insert(header, HeaderValue::from_static(value));
    }
    answer.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'"));
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Returns the web origins of the issuers, each after a space.
fn origins(issuers: &[IssuerRow]) -> String {
    let urls = issuers.iter().filter_map(|row| parse_url(&row.issuer).ok());
    let origins: BTreeSet<_> = urls.map(|url| format!(" {}", url.origin().ascii_serialization())).collect();
    origins.into_iter().collect()
}

fn accepts_gzip(accepted: &str) -> bool {
    let mut codings = accepted.split(',').map(|coding| coding.split(';').map(str::trim));
    codings.any(|mut coding| {
        coding.next() == Some("gzip") && !coding.any(|weight| weight.trim_end_matches('0') == "q=0." || weight == "q=0")
    })
}

fn decompressed(content: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    let read = GzDecoder::new(content).take(FILE_MAX_BYTES + 1).read_to_end(&mut plain);
    match read.map_err(|error| error.to_string())? as u64 {
        0..=FILE_MAX_BYTES => Ok(plain),
        _ => Err(format!("it has more than {FILE_MAX_BYTES} bytes")),
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("css") => "text/css; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}

fn missing(path: &str) -> Problem {
    let problem = Problem::new(ErrorCode::RouteNotFound, format!("There is nothing at {}.", shown(path)));
    match Files::iter().next() {
        Some(_) => problem.with_hint("The documentation of the API is at /docs."),
        None => problem.with_hint(
            "This program was built without pages: `node tools/pages.mjs` makes them for the next build. \
             The OpenAPI document is at /api/v1/openapi.json.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_never_cut() {
        for name in Files::iter() {
            assert!(decompressed(&Files::get(&name).unwrap().data).is_ok(), "{name}");
        }
        let zeros = std::io::repeat(0).take(FILE_MAX_BYTES + 1);
        let mut long = Vec::new();
        flate2::read::GzEncoder::new(zeros, flate2::Compression::fast()).read_to_end(&mut long).unwrap();
        assert!(decompressed(&long).is_err());
    }

    #[test]
    fn gzip_is_sent_to_who_accepts_it() {
        for (accepted, expected) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("br;q=1.0, gzip;q=0.000", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(accepted), expected, "{accepted}");
        }
    }
}
