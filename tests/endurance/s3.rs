//! An S3 service that stores its objects in a directory. It is a process of its own, so that it can
//! be killed and halted.

use std::{convert::Infallible, net::SocketAddr, path::PathBuf};

use anyhow::Result;
use clap::Args;
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use s3s::{
    auth::SimpleAuth,
    service::{S3Service, S3ServiceBuilder},
};
use tokio::net::TcpListener;

pub(crate) const BUCKET: &str = "media";
pub(crate) const ACCESS_KEY: &str = "AKIDTESTONLY";
pub(crate) const SECRET_KEY: &str = "secret-of-the-tests";

#[derive(Debug, Args)]
pub(crate) struct ServeS3 {
    #[arg(long)]
    listen: SocketAddr,
    /// Directory with the buckets.
    #[arg(long)]
    directory: PathBuf,
}

/// Serves until the process is killed.
pub(crate) async fn serve(asked: &ServeS3) -> Result<()> {
    std::fs::create_dir_all(asked.directory.join(BUCKET))?;
    let files = s3s_fs::FileSystem::new(&asked.directory).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
    let service = builder.build();
    let listener = TcpListener::bind(asked.listen).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| answer(service.clone(), request));
            // An error means that the client closed the connection, which is no fault.
            let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

async fn answer(service: S3Service, request: Request<Incoming>) -> Result<hyper::Response<s3s::Body>, Infallible> {
    match service.call(request.map(s3s::Body::from)).await {
        Ok(answer) => Ok(answer),
        Err(_) => {
            let mut answer = hyper::Response::new(s3s::Body::empty());
            *answer.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
            Ok(answer)
        }
    }
}
