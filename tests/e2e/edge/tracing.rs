//! Tests traces: `traceparent` in the logs of edge and origin and in forwarded requests, and the
//! spans that a collector gets.

use super::recording_proxy::RecordingProxy;
use crate::case::eventually;
use crate::host::{Call, Host};
use crate::ledger::NEVER_LOGGED;
use crate::second_origin::SecondOrigin;
use crate::service::{free_port, shared};
use crate::test_db::unique;
use crate::worker::Worker;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

cases! {
    Own: [
        a_trace_is_continued_by_the_edge_and_the_origin,
        spans_of_requests_reach_the_collector_without_values,
        spans_that_nobody_takes_are_counted,
    ],
}

const RECORD: &str = "/api/v1/crud/demo/posts/1";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Waits until the log has the line of the request with this id, and returns it.
async fn line(id: &str, log: impl Fn() -> String) -> Value {
    eventually(&format!("a line of {id}"), Duration::from_secs(10), || async {
        let log = log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(&line[line.find('{')?..]).ok());
        lines.into_iter().find(|line| line["id"] == id && line["message"] == "request")
    })
    .await
}

async fn a_trace_is_continued_by_the_edge_and_the_origin(_: Host) {
    let tap = RecordingProxy::before(&shared().origin).await;
    let worker = Worker::start(&[("ORIGINS", &tap.url)]);
    for (at, caller, is_valid) in [
        ("valid", Some(CALLER), true),
        ("later", Some(&*format!("cc{}-x", &CALLER[2..])), true),
        ("zeros", Some("00-00000000000000000000000000000000-b7ad6b7169203331-01"), false),
        ("upper", Some(&*CALLER.to_uppercase()), false),
        ("none", None, false),
    ] {
        let id = unique(&format!("trace-{at}-"));
        let mut call = Call::new(&worker.url, Method::GET, RECORD).key(&shared().read_key);
        call = call.header("x-request-id", &id).header("tracestate", "vendor=1,other=2");
        if let Some(caller) = caller {
            call = call.header("traceparent", caller);
        }
        call.send().await.payload();
        let (edge, origin) = (line(&id, || worker.log()).await, line(&id, || shared().log()).await);
        let seen = tap.requests();
        let seen = seen.iter().find(|seen| seen.header("x-request-id") == Some(&id)).expect("the request");
        if !is_valid {
            assert_eq!((seen.header("traceparent"), seen.header("tracestate")), (None, None), "{at}");
            for line in [edge, origin] {
                assert!(line.get("trace").is_none() && line.get("span").is_none(), "{at} {line}");
            }
            continue;
        }
        assert_eq!((&edge["trace"], &origin["trace"]), (&json!(TRACE), &json!(TRACE)), "{at}");
        let span = edge["span"].as_str().unwrap();
        assert!(span != "b7ad6b7169203331" && origin["span"] != *span && origin["span"].is_string(), "{at}");
        assert_eq!(seen.header("traceparent"), Some(&*format!("00-{TRACE}-{span}-01")), "{at}");
        assert_eq!(seen.header("tracestate"), Some("vendor=1,other=2"), "{at}");
    }
    // If the origin refuses a request, the edge's log line has the code of the error too.
    let id = unique("trace-code-");
    let call = Call::new(&worker.url, Method::GET, "/api/v1/crud/demo/no_such_table").key(&shared().read_key);
    call.header("x-request-id", &id).send().await.refused(ErrorCode::TableNotFound);
    for line in [line(&id, || worker.log()).await, line(&id, || shared().log()).await] {
        assert_eq!(line["code"], "table_not_found");
    }
}

/// A collector that keeps the requests by which origins send spans.
#[derive(Clone, Default)]
struct Collector {
    requests: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

impl Collector {
    /// Starts a collector and returns its URL.
    async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let take = async |State(collector): State<Self>, headers: HeaderMap, body: Bytes| {
            collector.requests.lock().unwrap().push((headers, body));
        };
        let router = Router::new().route("/v1/traces", post(take)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    fn bodies(&self) -> Vec<ExportTraceServiceRequest> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(_, body)| ExportTraceServiceRequest::decode(&**body).expect("a request")).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let resources = self.bodies().into_iter().flat_map(|body| body.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// Waits for the span of the request with this id, and returns it and its child spans.
    async fn of_request(&self, id: &str) -> (Span, Vec<Span>) {
        eventually(&format!("spans of {id}"), Duration::from_secs(20), || async {
            let spans = self.spans();
            let whole = spans.iter().find(|span| attribute(span, "selkie.request_id") == Some(json!(id)))?.clone();
            let parts = spans.into_iter().filter(|span| span.parent_span_id == whole.span_id).collect();
            Some((whole, parts))
        })
        .await
    }
}

fn attribute(span: &Span, key: &str) -> Option<Value> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => Some(json!(text)),
        Any::IntValue(number) => Some(json!(number)),
        other => panic!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Starts a second origin that sends its spans to this URL.
async fn traced(url: &str) -> SecondOrigin {
    let url = url.to_owned();
    let start = move || {
        let headers = "authorization=Bearer%20of-the-collector";
        let settings = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*url), ("SELKIE_OTLP_HEADERS", headers)];
        let mut second = SecondOrigin::launch(shared(), &settings)?;
        second.wait_until_ready()?;
        Ok::<_, String>(second)
    };
    tokio::task::spawn_blocking(start).await.unwrap().expect("a second origin")
}

async fn spans_of_requests_reach_the_collector_without_values(_: Host) {
    let collector = Collector::default();
    let origin = traced(&collector.start().await).await;
    let full = &shared().full_key;
    let call =
        |method, path: &str, id: &str| Call::new(&origin.origin, method, path).key(full).header("x-request-id", id);

    call(Method::GET, RECORD, "continued").header("traceparent", CALLER).send().await.payload();
    let (whole, parts) = collector.of_request("continued").await;
    let logged = line("continued", || origin.log()).await;
    assert_eq!((hex(&whole.trace_id), hex(&whole.parent_span_id)), (TRACE.to_owned(), "b7ad6b7169203331".to_owned()));
    assert_eq!((&logged["trace"], &logged["span"]), (&json!(TRACE), &json!(hex(&whole.span_id))));
    assert_eq!(whole.name, "GET /api/v1/crud/{db}/{table}/{id}");
    assert_eq!(attribute(&whole, "http.response.status_code"), Some(json!(200)));
    assert!(whole.start_time_unix_nano < whole.end_time_unix_nano);
    let [select] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!(select.name, "SELECT posts");
    assert_eq!(attribute(select, "db.namespace"), Some(json!("demo")));
    assert_eq!(hex(&select.trace_id), TRACE);
    assert!(whole.start_time_unix_nano <= select.start_time_unix_nano);

    // If the caller's trace is not sampled, the origin sends no span, as checked below.
    let unsampled = CALLER.replace("-01", "-00");
    call(Method::GET, RECORD, "unsampled").header("traceparent", &unsampled).send().await.payload();

    // Without `traceparent`, the origin begins a trace. It sends neither SQL text nor values.
    let sql = call(Method::POST, "/api/v1/sql", "sql").json(&json!({"query": format!("SELECT '{NEVER_LOGGED}' AS v")}));
    sql.send().await.payload();
    let (whole, parts) = collector.of_request("sql").await;
    assert!(whole.parent_span_id.is_empty() && whole.trace_id.len() == 16);
    assert_eq!(line("sql", || origin.log()).await["trace"], hex(&whole.trace_id));
    assert_eq!(parts.iter().map(|part| &*part.name).collect::<Vec<_>>(), ["SQL"]);

    let filter = format!("/api/v1/crud/demo/posts?query={{\"title\":\"{NEVER_LOGGED}\"}}");
    call(Method::GET, &filter, "filter").send().await.payload();
    collector.of_request("filter").await;

    let lost = call(Method::GET, "/api/v1/crud/demo/no_such_table", "refused");
    lost.send().await.refused(ErrorCode::TableNotFound);
    let (whole, _) = collector.of_request("refused").await;
    assert_eq!(attribute(&whole, "error.type"), Some(json!("table_not_found")));

    let list = call(Method::GET, "/api/v1/media?limit=1", "media");
    list.send().await.payload();
    let (_, parts) = collector.of_request("media").await;
    assert_eq!(parts.iter().map(|part| &*part.name).collect::<Vec<_>>(), ["media.list"]);

    let requests = collector.requests.lock().unwrap().clone();
    for (headers, body) in &requests {
        assert_eq!(headers["authorization"], "Bearer of-the-collector");
        assert_eq!(headers["content-type"], "application/x-protobuf");
        let text = String::from_utf8_lossy(body);
        assert!(!text.contains(NEVER_LOGGED) && !text.contains(full.as_str()));
    }
    let resources = collector.bodies().into_iter().flat_map(|body| body.resource_spans);
    for resource in resources.map(|resource| resource.resource.expect("a resource")) {
        assert!(resource.attributes.iter().any(|attribute| attribute.key == "service.name"), "{resource:?}");
    }
    assert!(!collector.spans().iter().any(|span| attribute(span, "selkie.request_id") == Some(json!("unsampled"))));
    let log = origin.log();
    assert!(!log.contains("of-the-collector"), "{log}");
    let started = log.lines().find(|line| line.contains("the origin serves")).expect("a line about the start");
    let started: Value = serde_json::from_str(started).expect("JSON");
    assert_eq!(started["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(started["media"], "directory");
    assert!(!started.to_string().contains("second-admin"), "{started}");
}

async fn spans_that_nobody_takes_are_counted(_: Host) {
    let origin = traced(&format!("http://127.0.0.1:{}", free_port())).await;
    Call::new(&origin.origin, Method::GET, RECORD).key(&shared().read_key).send().await.payload();
    eventually("dropped spans are counted", Duration::from_secs(30), || async {
        let text = Call::new(&origin.origin, Method::GET, "/metrics").send().await.text();
        let dropped = text.lines().find_map(|line| line.strip_prefix("selkie_trace_spans_dropped_total "))?;
        (dropped.parse::<u64>().unwrap() >= 2).then_some(())
    })
    .await;
    // The line may be written after the counter has changed.
    eventually("the loss is logged", Duration::from_secs(30), || async {
        origin.log().contains("the collector did not take the spans").then_some(())
    })
    .await;
}
