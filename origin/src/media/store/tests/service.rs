//! An S3 service for tests, with real HTTP and signatures, and files in a directory. A test can make it fail.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

pub(super) const BUCKET: &str = "media";
pub(super) const ACCESS_KEY: &str = "AKIDTESTONLY";
pub(super) const SECRET_KEY: &str = "secret-of-the-tests";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Well,
    /// The service answers every request with this status and body.
    Refuses(StatusCode, &'static str),
    /// The service accepts requests and never answers.
    Silent,
    /// The service refuses only the part with this number.
    RefusesPart(u8),
    /// The service does not answer the request that completes a multipart upload.
    SilentAtTheEnd,
}

type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

pub(super) struct Service {
    address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
    seen: Arc<Mutex<Vec<String>>>,
    root: tempfile::TempDir,
    running: JoinHandle<()>,
}

impl Service {
    pub(super) async fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let s3 = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mood, seen) = (Arc::new(Mutex::new(Mood::Well)), Arc::default());
        let running = tokio::spawn(serve(listener, s3, Arc::clone(&mood), Arc::clone(&seen)));
        Self { address, mood, seen, root, running }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn bucket(&self) -> PathBuf {
        self.root.path().join(BUCKET)
    }

    pub(super) fn be(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Returns the requests that the service has received, as method and query.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns all files in the service's directory, including the parts of incomplete uploads.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.root.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path);
                }
            }
        }
        files
    }

    pub(super) async fn stop(&mut self) {
        self.running.abort();
        let _ = (&mut self.running).await;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn serve(listener: TcpListener, s3: S3Service, mood: Arc<Mutex<Mood>>, seen: Arc<Mutex<Vec<String>>>) {
    // Dropped with this task, which closes all connections.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (s3, mood, seen) = (s3.clone(), Arc::clone(&mood), Arc::clone(&seen));
        connections.spawn(async move {
            let answer = service_fn(move |request| {
                let query = request.uri().query().unwrap_or_default();
                seen.lock().unwrap().push(format!("{} {query}", request.method()));
                let mood = *mood.lock().unwrap();
                answer(s3.clone(), mood, request)
            });
            let builder = Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

async fn answer(s3: S3Service, mood: Mood, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let query = request.uri().query().unwrap_or_default();
    match mood {
        Mood::Refuses(status, body) => return Ok(refusal(status, body)),
        Mood::Silent => std::future::pending().await,
        Mood::RefusesPart(number) if query.contains(&format!("partNumber={number}&")) => {
            return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, ""));
        }
        Mood::SilentAtTheEnd if request.method() == Method::POST && query.starts_with("uploadId") => {
            std::future::pending::<()>().await;
        }
        _ => {}
    }
    let answer = s3.call(request.map(s3s::Body::from)).await.unwrap();
    Ok(answer.map(|body| BodyExt::map_err(body, Into::into).boxed_unsync()))
}

fn refusal(status: StatusCode, body: &'static str) -> Response<Body> {
    let body = Full::new(Bytes::from_static(body.as_bytes()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}
