//! A TCP connection that fails when its client takes no byte for too long. Must not know what is sent.

use super::send_buffer::SendBuffer;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// Fails writes that stall for `stall_max`. Wraps the socket below TLS, because TLS has buffers of its own.
pub(super) struct StallTimeout {
    stream: TcpStream,
    stall_max: Duration,
    buffer: SendBuffer,
    is_stalled: bool,
    /// Expires when the stall has lasted for `stall_max`; `None` if the connection has never stalled.
    timer: Option<Pin<Box<Sleep>>>,
}

impl StallTimeout {
    pub(super) fn new(stream: TcpStream, stall_max: Duration, buffer: SendBuffer) -> Self {
        Self { stream, stall_max, buffer, is_stalled: false, timer: None }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_stalled = false;
            return written;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.stall_max)));
        if !self.is_stalled {
            self.is_stalled = true;
            timer.as_mut().reset(Instant::now() + self.stall_max);
        }
        std::task::ready!(timer.as_mut().poll(context));
        // A reset, so that the system does not keep the unsent bytes until it gives up.
        self.stream.set_zero_linger()?;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client read nothing for too long")))
    }
}

impl AsyncRead for StallTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for StallTimeout {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.buffer.before_write(&self.stream);
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.buffer.before_write(&self.stream);
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Not watched: a flush of a TCP stream does nothing, so its success does not show that the client reads.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
