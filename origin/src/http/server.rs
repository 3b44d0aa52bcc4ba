//! Accepts connections, plain or with TLS, serves them as HTTP/1.1 or HTTP/2, and drains them at shutdown.

use super::unparsed::{Exchange, ExchangeBody, ExchangeStream, Refused};
use super::{HttpService, Transport};
use crate::config::Config;
use crate::service_state::ServiceState;
use crate::tls::{self, Handshake, Tls};
use axum::response::Response;
use futures_util::FutureExt as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use shared::error::{ErrorCode, Problem};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncBufReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

const HEAD_MAX_BYTES: usize = 128 * 1024;
const H2_STREAMS_MAX: u32 = 256;
/// See RFC 9113, section 3.4.
const H2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A new connection must send enough bytes to tell HTTP/1 from HTTP/2 within this time.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause before checking for the rest of a partial HTTP/2 preface.
const PREFACE_PAUSE: Duration = Duration::from_millis(20);
/// The pause after a temporary error, such as no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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
            let opened = tokio::select! {
                opened = open(stream, peer, tls.as_deref(), &http) => opened,
                () = stop.cancelled() => None,
            };
            let Some((stream, protocol)) = opened else {
                return;
            };
            let exchange = match protocol {
                Protocol::Http1 => Some(Arc::new(Exchange::default())),
                Protocol::Http2 => None,
            };
            let transport = match &stream {
                Either::Left(_) => Transport::Plain,
                Either::Right(_) => Transport::Tls,
            };
            let service = {
                let (http, exchange) = (Arc::clone(&http), exchange.clone());
                service_fn(move |request| {
                    let exchange = exchange.clone();
                    if let Some(exchange) = &exchange {
                        exchange.begin();
                    }
                    let answered = Arc::clone(&http).answer(request, peer.ip(), transport);
                    let watched = |response: Response| response.map(|body| ExchangeBody::new(body, exchange));
                    // The future is boxed: hyper moves it several times and reserves space for it in each connection.
                    Box::pin(answered.map(|response| Ok::<_, Infallible>(watched(response))))
                })
            };
            let stream = TokioIo::new(ExchangeStream::new(stream, exchange.clone()));
            let connection = builder.serve_connection(stream, service);
            if let Err(error) = watcher.watch(connection.into_owned()).await {
                tracing::debug!(%error, "a connection ended early");
            }
            if let Some(refused) = exchange.and_then(|exchange| exchange.take_refused()) {
                let response = http.unparsed(&refused.problem());
                refused.answer(response).await;
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

pub(super) type Connection = Either<TcpStream, Box<TlsStream<TcpStream>>>;

enum Protocol {
    Http1,
    Http2,
}

/// A client that does not use TLS although it must gets an error response in plain HTTP.
async fn open(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<&Tls>,
    http: &HttpService,
) -> Option<(Connection, Protocol)> {
    let Some(tls) = tls else {
        let protocol = protocol(&stream).await?;
        return Some((Either::Left(stream), protocol));
    };
    match tls.accept(stream).await {
        Handshake::Done(mut stream) => {
            let first = tokio::time::timeout(FIRST_BYTES_TIMEOUT, stream.fill_buf()).await.ok()?.ok()?;
            let (is_closed, has_preface) = (first.is_empty(), first.starts_with(H2_PREFACE));
            let protocol = if tls::is_h2(&stream) || has_preface { Protocol::Http2 } else { Protocol::Http1 };
            (!is_closed).then_some((Either::Right(stream), protocol))
        }
        Handshake::NotTls(stream) => {
            tracing::warn!(peer = %peer.ip(), "a client sent plain HTTP to the HTTPS port: its URL must begin with https://");
            let problem = Problem::new(ErrorCode::InvalidRequest, "This port accepts only HTTPS.")
                .with_hint("Use a URL that begins with https://.");
            Refused::unread(Either::Left(stream)).answer(http.unparsed(&problem)).await;
            None
        }
        Handshake::Failed => None,
    }
}

/// hyper would wait forever, and thousands of silent connections would use up the file descriptors.
async fn protocol(stream: &TcpStream) -> Option<Protocol> {
    let protocol = tokio::time::timeout(FIRST_BYTES_TIMEOUT, async {
        let mut head = [0; H2_PREFACE.len()];
        loop {
            match stream.peek(&mut head).await {
                Ok(0) | Err(_) => return None,
                Ok(_) if head == *H2_PREFACE => return Some(Protocol::Http2),
                Ok(read) if read < head.len() && head[..read] == H2_PREFACE[..read] => {
                    tokio::time::sleep(PREFACE_PAUSE).await;
                }
                Ok(_) => return Some(Protocol::Http1),
            }
        }
    });
    protocol.await.ok().flatten()
}

fn prepare(stream: &TcpStream) {
    // Disables Nagle's algorithm: a small response must not wait for more data.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
}

/// EBADF, EFAULT, EINVAL, ENOTSOCK or EOPNOTSUPP: all others concern one connection or are temporary.
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
