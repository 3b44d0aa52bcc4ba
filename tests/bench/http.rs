//! A keep-alive HTTP/1.1 connection with minimal work per request: the load shares the machine with the server and the
//! database, so its own cost would lower the measured throughput.
//!
//! Reads answers with a length or in chunks; anything else is an error. Not for general use.

use std::{io, net::SocketAddr, time::Instant};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Size of the read buffer and maximum size of an answer's head. Large, so that a long answer takes few reads.
const BUFFER_BYTES: usize = 64 * 1024;
const HEADERS: usize = 64;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
}

enum Length {
    Known(u64),
    Chunked,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            return Err(io::Error::other(format!("{address} is not on this machine")));
        }
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0 })
    }

    pub(crate) async fn call(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.exchange(request, &mut |_| {}).await
    }

    pub(crate) async fn fetch(&mut self, request: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let mut body = Vec::new();
        let answer = self.exchange(request, &mut |bytes| body.extend_from_slice(bytes)).await?;
        Ok((answer.status, body))
    }

    /// Also passes each part of the body on as it comes.
    pub(crate) async fn exchange(&mut self, request: &[u8], keep: &mut impl FnMut(&[u8])) -> io::Result<Answer> {
        self.stream.write_all(request).await?;
        let (status, length) = self.head().await?;
        let began = Instant::now();
        let (bytes, ended) = match length {
            // A small answer was read together with its head, so the clock is not read a second time.
            Length::Known(bytes) if bytes <= (self.end - self.start) as u64 => {
                self.body(bytes, keep).await?;
                (bytes, began)
            }
            Length::Known(bytes) => {
                self.body(bytes, keep).await?;
                (bytes, Instant::now())
            }
            Length::Chunked => (self.chunks(keep).await?, Instant::now()),
        };
        Ok(Answer { status, bytes, began, ended })
    }

    async fn head(&mut self) -> io::Result<(u16, Length)> {
        loop {
            if self.start < self.end {
                let mut headers = [httparse::EMPTY_HEADER; HEADERS];
                let mut response = httparse::Response::new(&mut headers);
                let parsed = response.parse(&self.buffer[self.start..self.end]).map_err(io::Error::other)?;
                if let httparse::Status::Complete(head_bytes) = parsed {
                    let status = response.code.unwrap_or(0);
                    let length = length_of(response.headers)?;
                    self.start += head_bytes;
                    return Ok((status, length));
                }
            }
            self.fill().await?;
        }
    }

    async fn body(&mut self, bytes: u64, keep: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            if self.start == self.end {
                self.fill().await?;
            }
            let ready = (self.end - self.start).min(usize::try_from(left).unwrap_or(usize::MAX));
            keep(&self.buffer[self.start..self.start + ready]);
            self.start += ready;
            left -= ready as u64;
        }
        Ok(())
    }

    async fn chunks(&mut self, keep: &mut impl FnMut(&[u8])) -> io::Result<u64> {
        let mut total = 0;
        loop {
            let size = self.chunk_size().await?;
            self.body(size, keep).await?;
            // Reads the line end after a chunk. Trailers are not supported.
            self.body(2, &mut |_| {}).await?;
            if size == 0 {
                return Ok(total);
            }
            total += size;
        }
    }

    async fn chunk_size(&mut self) -> io::Result<u64> {
        loop {
            let ready = &self.buffer[self.start..self.end];
            if let httparse::Status::Complete((line_bytes, size)) =
                httparse::parse_chunk_size(ready).map_err(|_| io::Error::other("a chunk without a size"))?
            {
                self.start += line_bytes;
                return Ok(size);
            }
            self.fill().await?;
        }
    }

    /// Appends more bytes from the socket to the buffer.
    async fn fill(&mut self) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            if self.start == 0 {
                return Err(io::Error::other("the head of an answer is too long"));
            }
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        match self.stream.read(&mut self.buffer[self.end..]).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => {
                self.end += bytes;
                Ok(())
            }
        }
    }
}

fn length_of(headers: &[httparse::Header<'_>]) -> io::Result<Length> {
    for header in headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            let text = std::str::from_utf8(header.value).map_err(io::Error::other)?;
            return text.trim().parse().map(Length::Known).map_err(io::Error::other);
        }
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Ok(Length::Chunked);
        }
    }
    Err(io::Error::other("an answer without a length"))
}
