//! Connections: accepted, served as HTTP/1.1 or HTTP/2 (h2c), drained at the end.

use crate::app::App;
use crate::config::Config;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Bytes of a request's head: the longest URL that HTTP libraries read, and its headers.
const HEAD_MAX_BYTES: usize = 128 * 1024;
/// Streams of one HTTP/2 connection.
const H2_STREAMS_MAX: u32 = 256;
/// How long to wait before accepting again when the process has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop`, then lets what runs end, for as long as the configuration grants.
///
/// # Errors
/// The listener is broken.
pub async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    config: &Config,
    stop: &CancellationToken,
) -> io::Result<()> {
    let builder = protocols(config);
    let service = service_fn(move |request| {
        let answered = super::entry(Arc::clone(&app), request);
        async { Ok::<_, Infallible>(answered.await) }
    });
    let graceful = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) if is_passing(&error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
                Err(error) => return Err(error),
            },
            () = stop.cancelled() => break,
        };
        prepare(&stream);
        let connection = builder.serve_connection(TokioIo::new(stream), service.clone());
        let connection = graceful.watch(connection.into_owned());
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(config.shutdown_grace, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some requests did not end in time and were cut");
    }
    Ok(())
}

fn protocols(config: &Config) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // No `pipeline_flush`: with it hyper buffers an answer without bound, for as long as its caller does
    // not read.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_read_timeout)
        .max_buf_size(HEAD_MAX_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_MAX_BYTES).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(config.keep_alive_timeout));
    builder
}

fn prepare(stream: &TcpStream) {
    // Small answers must not wait for more to send.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
}

/// Whether accepting may work again later: the process, or the peer, ran short of something.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, OutOfMemory, WouldBlock};
    const TOO_MANY_FILES: [i32; 2] = [23, 24];
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted | OutOfMemory | WouldBlock
    ) || error
        .raw_os_error()
        .is_some_and(|code| TOO_MANY_FILES.contains(&code))
}
