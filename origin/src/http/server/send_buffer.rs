//! The send buffer of a connection. Linux lets it grow to some megabytes, which the events of a stream would fill while
//! its client reads nothing. Other responses need that size where the client is far away.

use crate::http::changes::EVENT_STREAM;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpStream;

/// Bytes of the send buffer of a connection with an event stream. Linux doubles the number.
const OF_EVENTS_BYTES: usize = 128 * 1024;

/// Clones share their state.
#[derive(Clone, Debug, Default)]
pub(super) struct SendBuffer {
    has_to_shrink: Arc<AtomicBool>,
}

impl SendBuffer {
    /// Shrinks the buffer before the next write if the response is an event stream.
    pub(super) fn prepare_for(&self, response: &Response) {
        if response.headers().get(CONTENT_TYPE).is_some_and(|found| found == EVENT_STREAM) {
            self.has_to_shrink.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn before_write(&self, stream: &TcpStream) {
        if self.has_to_shrink.load(Ordering::Relaxed)
            && self.has_to_shrink.swap(false, Ordering::Relaxed)
            && let Err(error) = set_socket_send_buffer_size(stream, OF_EVENTS_BYTES)
        {
            tracing::debug!(%error, "SO_SNDBUF could not be set");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stall::StallTimeout;
    use super::*;
    use axum::body::Body;
    use rustix::net::sockopt::socket_send_buffer_size;
    use std::os::fd::AsFd as _;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn an_event_stream_has_a_small_send_buffer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let socket = stream.as_fd().try_clone_to_owned().unwrap();
        let size = || socket_send_buffer_size(&socket).unwrap();
        let buffer = SendBuffer::default();
        let mut stream = StallTimeout::new(stream, Duration::MAX, buffer.clone());
        let begin = size();
        for (content_type, expected) in [("application/json", begin), (EVENT_STREAM, 2 * OF_EVENTS_BYTES)] {
            buffer.prepare_for(&Response::builder().header(CONTENT_TYPE, content_type).body(Body::empty()).unwrap());
            stream.write_all(b"x").await.unwrap();
            assert_eq!(size(), expected, "{content_type}");
        }
    }
}
