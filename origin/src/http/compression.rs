//! Compresses API responses, except media and errors. Not a tower layer, because a layer boxes the body of
//! every response, compressed or not.

use axum::body::{Body, HttpBody as _};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, Version};
use axum::response::Response;
use shared::format::Format;
use shared::operation::ApiForm;
use std::convert::Infallible;
use std::future::ready;
use tower::{Service as _, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::Compression;
use tower_http::compression::predicate::SizeAbove;

/// Minimum size to compress: a smaller response fits into one packet.
const COMPRESSED_MIN_BYTES: u64 = 1_024;

/// Compresses the response if the client accepts that. While a stream waits for its next row, the rows so far are sent.
pub(super) async fn compress(request: &Parts, response: Response) -> Response {
    match request.headers.get(ACCEPT_ENCODING) {
        Some(accepted) if accepted != "identity" && may_be_compressed(request, &response) => {
            Box::pin(encode(accepted.clone(), response)).await
        }
        _ => response,
    }
}

fn may_be_compressed(request: &Parts, response: &Response) -> bool {
    let is_long = response.body().size_hint().exact().is_none_or(|bytes| bytes >= COMPRESSED_MIN_BYTES);
    let is_form = |found: &HeaderValue| {
        [Format::Envelope, Format::Csv, Format::NdJson].iter().any(|form| found == form.content_type())
            || ApiForm::ALL.iter().any(|form| found == form.content_type())
    };
    // An HTTP/1.0 client can't tell the end of a compressed response from a broken connection.
    is_long
        && response.headers().get(CONTENT_TYPE).is_some_and(is_form)
        && request.method != Method::HEAD
        && request.version > Version::HTTP_10
}

async fn encode(accepted: HeaderValue, mut response: Response) -> Response {
    let mut request = Request::new(());
    request.headers_mut().insert(ACCEPT_ENCODING, accepted);
    let answer = service_fn(move |_| ready(Ok::<_, Infallible>(std::mem::take(&mut response))));
    // Higher levels take more CPU time than reading the rows did.
    let mut compression = Compression::new(answer).quality(CompressionLevel::Fastest).compress_when(SizeAbove::new(0));
    let Ok(mut response) = compression.call(request).await;
    // The bytes differ between codings, so the common entity tag must be weak (RFC 9110, section 8.8.3.3).
    if response.headers().contains_key(CONTENT_ENCODING)
        && let Some(tag) = response.headers_mut().get_mut(ETAG)
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat())
    {
        *tag = weak;
    }
    response.map(Body::new)
}
