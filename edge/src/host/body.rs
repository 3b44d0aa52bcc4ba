//! Reads a request's body as a whole, pipes it to the origin, or drains it. Must not know which bodies are valid.

use super::awaited::Awaited;
use super::timer::Timer;
use crate::core::{BodyLength, Drain, NoAnswer, ReadBody};
use futures_util::future::{Either, select};
use shared::error::{ErrorCode, Problem};
use shared::limits::EDGE_DRAIN_MAX_MS;
use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;
use worker::Context;
use worker::js_sys::{self, BigInt, Date, Function, Object, Promise, Reflect, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::web_sys::{
    AbortController, ReadableStream, ReadableStreamDefaultReader, Request, Response, ResponseInit, StreamPipeOptions,
    TransformStream, WritableStream,
};
use worker::worker_sys::FixedLengthStream;

/// Interval at which [`ReadBody::check`] is called while a body is read.
const READ_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Creates a stream that the runtime fills and empties by itself, without copying bytes through wasm.
fn pipe(length: BodyLength) -> Result<TransformStream, JsValue> {
    match length {
        BodyLength::Known(bytes) => FixedLengthStream::new_big_int(BigInt::from(bytes)).map(JsCast::unchecked_into),
        BodyLength::Unknown => {
            let class = Reflect::get(&js_sys::global(), &"IdentityTransformStream".into())?;
            let class: Function = class.dyn_into()?;
            Reflect::construct(&class, &js_sys::Array::new()).map(JsCast::unchecked_into)
        }
    }
}

/// A body that the runtime pipes to an origin. Dropping it aborts the request to the origin if the body is incomplete.
pub(crate) struct BodyPipe {
    source: ReadableStream,
    /// The first bytes of the body; none if the body is empty.
    first: Option<Object>,
    started: Option<Started>,
    is_sent: Cell<bool>,
}

struct Started {
    sent: Promise,
    request: AbortController,
}

impl BodyPipe {
    /// Awaits the first bytes of the request's body, `source`. Fails as [`whole`] does.
    pub(crate) async fn begin(source: ReadableStream, read: &ReadBody<'_>) -> Result<Self, Problem> {
        let reader: ReadableStreamDefaultReader = source.get_reader().unchecked_into();
        let first = arriving(reader.read(), read).await?;
        reader.release_lock();
        let first = Reflect::get(&first, &"value".into()).ok().and_then(|bytes| bytes.dyn_into().ok());
        Ok(Self { source, first, started: None, is_sent: Cell::new(false) })
    }

    /// Starts to pipe the body to a new stream, and returns the stream. The request to the origin must use this stream
    /// as its body and [`BodyPipe::request`] as its abort controller.
    pub(crate) fn start(&mut self, length: BodyLength) -> Result<ReadableStream, JsValue> {
        let pipe = pipe(length)?;
        let request = AbortController::new()?;
        if let Some(first) = self.first.take() {
            let writer = pipe.writable().get_writer()?;
            // If this fails, the transfer of the rest fails, too.
            drop(Awaited::from(writer.write_with_chunk(&first)));
            writer.release_lock();
        }
        let options = StreamPipeOptions::new();
        // Bytes that the origin does not read stay readable, so that they can be drained.
        options.set_prevent_cancel(true);
        // If the stream were aborted after the client broke off its body, the runtime would end the request to the
        // origin like a complete one. The request must be aborted instead.
        options.set_prevent_abort(true);
        let sent = self.source.pipe_to_with_options(&pipe.writable(), &options);
        self.started = Some(Started { sent, request });
        Ok(pipe.readable())
    }

    pub(crate) fn request(&self) -> Option<&AbortController> {
        self.started.as_ref().map(|started| &started.request)
    }

    /// Returns a future that completes when the origin has read the whole body, and fails if the origin stops reading
    /// or the client stops sending; `None` if the transfer has not started.
    pub(crate) fn sent(&self) -> Option<Awaited> {
        self.started.as_ref().map(|started| Awaited::from(started.sent.clone()))
    }

    /// Records that [`BodyPipe::sent`] has completed.
    pub(crate) fn complete(&self) {
        self.is_sent.set(true);
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent.get()
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.request().is_some_and(|request| request.signal().aborted())
    }

    /// Aborts the request to the origin, unless the whole body was sent.
    pub(crate) fn abort(&self) {
        if let Some(request) = self.request()
            && !self.is_sent()
        {
            request.abort();
        }
    }

    /// Returns, after [`BodyPipe::sent`] has failed, whether the client is at fault: it broke off the body or framed it
    /// wrongly. If not, the origin stopped reading.
    pub(crate) async fn is_broken(&self) -> bool {
        let reader: ReadableStreamDefaultReader = self.source.get_reader().unchecked_into();
        let closed = select(Awaited::from(reader.closed()), Timer::from(Duration::ZERO)).await;
        reader.release_lock();
        matches!(closed, Either::Left((Err(_), _)))
    }
}

impl Drop for BodyPipe {
    fn drop(&mut self) {
        self.abort();
    }
}

pub(crate) fn broken_off() -> Problem {
    Problem::new(ErrorCode::InvalidBody, "The body ended before its announced length.")
}

/// The part of a request's body that is still unread when the response is ready.
pub(crate) enum Unread {
    /// The first bytes of the body were read, and the rest may still be piped to an origin. With a [`Drain`], bytes
    /// that the origin doesn't read are drained.
    Piped(BodyPipe, Option<Drain>),
    /// No byte of the body was read.
    Whole { source: ReadableStream, _drain: Drain },
}

impl Unread {
    async fn drain(&self) {
        let source = match self {
            Self::Piped(pipe, drain) => {
                if let Some(sent) = pipe.sent()
                    && sent.await.is_ok()
                {
                    return pipe.complete();
                }
                if drain.is_none() {
                    return;
                }
                &pipe.source
            }
            Self::Whole { source, .. } => source,
        };
        if let Ok(sink) = WritableStream::new() {
            // An error is ignored: the client may have disconnected meanwhile.
            let _ = Awaited::from(source.pipe_to(&sink)).await;
        }
    }
}

/// A body that was read as a whole.
pub(crate) struct WholeBody<'a> {
    /// The runtime's buffer; `undefined` if the body is empty.
    pub(crate) buffer: JsValue,
    _counted: ReadBody<'a>,
}

impl WholeBody<'_> {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self.buffer.is_undefined() {
            true => Vec::new(),
            false => Uint8Array::new(&self.buffer).to_vec(),
        }
    }
}

/// Reads a request's whole body. Fails with `invalid_body` if the body ended early, and as [`ReadBody::check`] does.
pub(crate) async fn whole<'a>(request: &Request, read: ReadBody<'a>) -> Result<WholeBody<'a>, Problem> {
    let buffer = request.array_buffer().map_err(|_| broken_off())?;
    let buffer = arriving(buffer, &read).await?;
    read.complete();
    let is_empty = Uint8Array::new(&buffer).length() == 0;
    Ok(WholeBody { buffer: if is_empty { JsValue::UNDEFINED } else { buffer }, _counted: read })
}

/// Awaits a part of a body. Fails as [`whole`] does.
async fn arriving(part: Promise, read: &ReadBody<'_>) -> Result<JsValue, Problem> {
    let mut part = Awaited::from(part);
    loop {
        part = match select(part, Timer::from(READ_CHECK_INTERVAL)).await {
            Either::Left((part, _)) => return part.map_err(|_| broken_off()),
            Either::Right((_, part)) => part,
        };
        read.check(Date::now() as u64)?;
    }
}

/// Reads the whole body of an origin's response into memory.
pub(crate) async fn buffer(response: &Response, timeout: Duration) -> Result<Object, Problem> {
    let reading = async { Awaited::from(response.array_buffer()?).await };
    match select(pin!(reading), Timer::from(timeout)).await {
        Either::Left((Ok(buffer), _)) => Ok(buffer.unchecked_into()),
        Either::Left((Err(_), _)) => Err(NoAnswer::Unreachable.problem()),
        Either::Right(_) => Err(NoAnswer::Timeout.problem()),
    }
}

/// Reads the first `length` bytes of a response, and returns a copy of the response with this body.
pub(crate) async fn held(response: &Response, length: u64) -> Result<Response, JsValue> {
    let mut bytes = Vec::new();
    if let Some(body) = response.body() {
        let reader: ReadableStreamDefaultReader = body.get_reader().unchecked_into();
        while (bytes.len() as u64) < length {
            let piece = Awaited::from(reader.read()).await?;
            let piece: Uint8Array = Reflect::get(&piece, &"value".into())?.dyn_into()?;
            bytes.append(&mut piece.to_vec());
        }
    }
    Response::new_with_opt_js_u8_array_and_init(Some(&Uint8Array::from(&*bytes)), response.unchecked_ref())
}

/// Returns a response whose head is sent at once, but whose body ends only after the rest of the request's body is
/// drained, or after [`EDGE_DRAIN_MAX_MS`]. If the body ended earlier, the runtime would close the connection, and a
/// client that is still sending would often lose the response. A response without a body is returned unchanged.
pub(crate) fn answer_early(
    response: Response,
    length: BodyLength,
    unread: Unread,
    context: &Context,
) -> Result<Response, JsValue> {
    let Some(answer) = response.body() else {
        return Ok(response);
    };
    let pipe = pipe(length)?;
    let writable = pipe.writable();
    let options = StreamPipeOptions::new();
    options.set_prevent_close(true);
    let written = Awaited::from(answer.pipe_to_with_options(&writable, &options));
    context.wait_until(async move {
        select(pin!(unread.drain()), Timer::from(Duration::from_millis(EDGE_DRAIN_MAX_MS))).await;
        // Aborts the request to the origin if its body was not sent completely, since its response would never end.
        drop(unread);
        if written.await.is_ok() {
            // An error is ignored: the client may have disconnected meanwhile.
            let _ = Awaited::from(writable.close()).await;
        }
    });
    let init = ResponseInit::new();
    init.set_status(response.status());
    init.set_headers(&response.headers());
    Response::new_with_opt_readable_stream_and_init(Some(&pipe.readable()), &init)
}
