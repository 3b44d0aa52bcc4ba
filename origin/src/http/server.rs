//! Accepts connections, plain or with TLS, serves them as HTTP/1.1 or HTTP/2, and drains them at shutdown.

mod send_buffer;
mod stall;

use super::body::{DRAIN_MAX_BYTES, DRAIN_TIMEOUT};
use super::{HttpService, Transport};
use crate::config::Config;
use crate::service_state::ServiceState;
use crate::tls::{Handshake, Tls};
use futures_util::FutureExt as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use send_buffer::SendBuffer;
use stall::StallTimeout;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

const HEAD_MAX_BYTES: usize = 128 * 1024;
const H2_STREAMS_MAX: u32 = 256;
/// The first bytes of an HTTP/2 connection (RFC 9113, section 3.4).
const H2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A new connection must send enough bytes to tell HTTP/1 from HTTP/2 within this time.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause before checking for the rest of a partial HTTP/2 preface.
const PREFACE_PAUSE: Duration = Duration::from_millis(20);
/// The pause after a temporary error, such as no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const ONLY_HTTPS: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n\
    This port accepts only HTTPS: use a URL that begins with https://.\n";

pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    app: Arc<ServiceState>,
    config: &Config,
    stop: &CancellationToken,
) -> io::Result<()> {
    let tls = tls.map(Arc::new);
    let builder = Arc::new(protocols(config));
    let http = Arc::new(HttpService::new(app, config));
    let graceful = GracefulShutdown::new();
    let stall_max = config.write_timeout;
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) if !is_fatal(&error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
                Err(error) => return Err(error),
            },
            () = stop.cancelled() => break,
        };
        prepare(&stream);
        let (http, builder) = (Arc::clone(&http), Arc::clone(&builder));
        let (watcher, stop, tls) = (graceful.watcher(), stop.clone(), tls.clone());
        tokio::spawn(async move {
            let buffer = SendBuffer::default();
            let watched = |stream| StallTimeout::new(stream, stall_max, buffer.clone());
            let opened = tokio::select! {
                opened = open(stream, peer, tls.as_deref(), watched) => opened,
                () = stop.cancelled() => None,
            };
            let Some(stream) = opened else {
                return;
            };
            let transport = match &stream {
                Either::Left(_) => Transport::Plain,
                Either::Right(_) => Transport::Tls,
            };
            let service = service_fn(move |request| {
                let answered = Arc::clone(&http).answer(request, peer.ip(), transport);
                let buffer = buffer.clone();
                let answered = answered.inspect(move |response| buffer.prepare_for(response));
                // The future is boxed: hyper moves it several times and reserves space for it in each connection.
                Box::pin(answered.map(Ok::<_, Infallible>))
            });
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            if let Err(error) = watcher.watch(connection.into_owned()).await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(config.shutdown_grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time and were cut");
    }
    Ok(())
}

fn protocols(config: &Config) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // `pipeline_flush` stays off: with it, hyper buffers without limit while the client does not read.
    builder
        .http1()
        .timer(TokioTimer::new())
        // hyper starts this timeout at the end of the last response, so it limits the idle time of a connection
        // together with the arrival of the next head. The default is longer than a proxy's usual minute, so that no
        // proxy sends a request on a connection that is being closed.
        .header_read_timeout(config.keep_alive_timeout)
        // For small responses, one buffer is faster than vectored writes.
        .writev(false)
        .max_buf_size(HEAD_MAX_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_MAX_BYTES).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(config.keep_alive_timeout));
    builder
}

type Connection = Either<StallTimeout, Box<TlsStream<StallTimeout>>>;

/// Waits for a connection's first bytes, after TLS if any. Sends an error in plain HTTP to a client that must use TLS.
async fn open(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<&Tls>,
    watched: impl Fn(TcpStream) -> StallTimeout,
) -> Option<Connection> {
    let Some(tls) = tls else {
        return has_begun(&stream).await.then(|| Either::Left(watched(stream)));
    };
    match Box::pin(tls.accept(stream, watched)).await {
        Handshake::Done(mut stream) => {
            let first = tokio::time::timeout(FIRST_BYTES_TIMEOUT, stream.fill_buf()).await.ok()?.ok()?;
            (!first.is_empty()).then_some(Either::Right(stream))
        }
        Handshake::NotTls(stream) => {
            tracing::warn!(peer = %peer.ip(), "a client sent plain HTTP to the HTTPS port: its URL must begin with https://");
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, refuse_http(stream)).await;
            None
        }
        Handshake::Failed => None,
    }
}

/// Sends the error, then reads and discards the request: closing the connection earlier could discard the error.
async fn refuse_http(mut stream: TcpStream) -> io::Result<u64> {
    stream.write_all(ONLY_HTTPS).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(DRAIN_MAX_BYTES as u64), &mut tokio::io::sink()).await
}

/// Returns false if the client sends nothing in time: hyper would wait forever, and hold the file descriptor.
async fn has_begun(stream: &TcpStream) -> bool {
    let begun = tokio::time::timeout(FIRST_BYTES_TIMEOUT, async {
        let mut head = [0; H2_PREFACE.len()];
        loop {
            match stream.peek(&mut head).await {
                Ok(0) | Err(_) => return false,
                Ok(read) if read < head.len() && head[..read] == H2_PREFACE[..read] => {
                    tokio::time::sleep(PREFACE_PAUSE).await;
                }
                Ok(_) => return true,
            }
        }
    });
    begun.await.unwrap_or(false)
}

fn prepare(stream: &TcpStream) {
    // Disables Nagle's algorithm: a small response must not wait for more data.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
}

/// Whether the listening socket failed (EBADF, EFAULT, EINVAL, ENOTSOCK or EOPNOTSUPP), and not just one connection.
fn is_fatal(error: &io::Error) -> bool {
    const OF_THE_SOCKET: [i32; 5] = [9, 14, 22, 88, 95];
    error.raw_os_error().is_some_and(|code| OF_THE_SOCKET.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn only_errors_of_the_socket_itself_end_the_origin() {
        for (error, expected) in [
            (Errno::NETDOWN, false),
            (Errno::HOSTUNREACH, false),
            (Errno::PROTO, false),
            (Errno::CONNABORTED, false),
            (Errno::MFILE, false),
            (Errno::NOBUFS, false),
            (Errno::BADF, true),
            (Errno::INVAL, true),
            (Errno::NOTSOCK, true),
        ] {
            assert_eq!(is_fatal(&error.into()), expected, "{error:?}");
        }
    }
}
