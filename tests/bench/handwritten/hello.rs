//! The hand-written server without a database, which always answers the same record.

use axum::{
    Router,
    body::{Body, Bytes},
    response::Response,
    routing::get,
};

/// Routes of a server whose answer is as long as the hand-written server's answer to W1.
pub(super) fn router() -> Router {
    let text = "The tide was out & the boats lay still. Wait for the evening, said Zoë. ".repeat(8);
    let record = serde_json::json!({"success": true, "payload": {
        "id": 47_110,
        "title": "Notes from the harbour, no. 47110",
        "body": &text[..521],
        "category": "c0",
        "price": "430.84",
        "is_published": 1,
        "views": 77_777,
        "published_at": "2020-02-02 17:10:00",
    }});
    let body = Bytes::from(record.to_string());
    let answer = move || {
        let body = body.clone();
        async move { answer(body) }
    };
    Router::new().route("/api/v1/crud/{database}/{table}/{id}", get(answer))
}

fn answer(body: Bytes) -> Response {
    super::json_body(Body::from(body))
}
