//! The caller's body: read whole so that it can be checked, moved to the origin by the runtime, or drained when
//! nobody wants it. Knows the worker's API; what is right in a body, the shared parsers know.

use crate::core::BodyLength;
use futures_util::future::{Either, select};
use shared::error::{ErrorCode, Problem};
use std::pin::pin;
use std::time::Duration;
use worker::js_sys::{self, BigInt, Function, Promise, Reflect, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{
    ReadableStream, Request, Response, ResponseInit, StreamPipeOptions, TransformStream, WritableStream,
};
use worker::worker_sys::FixedLengthStream;
use worker::{Context, Delay};

/// How long a caller may take to send a body that is checked whole.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a refused body is drained; then the connection is closed. As at the origin.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A stream of that length, or of any, that the runtime fills and empties without copies.
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

/// A body that the runtime moves to an origin by itself.
pub(crate) struct BodyPipe {
    source: ReadableStream,
    readable: ReadableStream,
    sent: Promise,
}

impl BodyPipe {
    /// Starts to move a body of that length.
    pub(crate) fn start(source: ReadableStream, length: BodyLength) -> Result<Self, JsValue> {
        let pipe = pipe(length)?;
        let options = StreamPipeOptions::new();
        // What the origin does not take is still there to be drained.
        options.set_prevent_cancel(true);
        let sent = source.pipe_to_with_options(&pipe.writable(), &options);
        Ok(Self { source, readable: pipe.readable(), sent })
    }

    /// Returns the body of the request to the origin.
    pub(crate) fn readable(&self) -> &ReadableStream {
        &self.readable
    }

    /// Ends when the origin took the whole body. An error says that it takes no more, or that the caller sends no more.
    pub(crate) fn sent(&self) -> JsFuture {
        JsFuture::from(self.sent.clone())
    }
}

/// What a caller still sends when the answer is there.
pub(crate) enum Unread {
    /// The origin may still take it.
    Piped(BodyPipe),
    /// Nobody read any of it.
    Whole(ReadableStream),
}

impl Unread {
    async fn drain(self) {
        let source = match self {
            Self::Piped(pipe) => match pipe.sent().await {
                Ok(_) => return,
                Err(_) => pipe.source,
            },
            Self::Whole(source) => source,
        };
        if let Ok(sink) = WritableStream::new() {
            // A caller who breaks off needs no draining.
            let _ = JsFuture::from(source.pipe_to(&sink)).await;
        }
    }
}

/// Reads a body that is checked whole: as the runtime holds it, and a copy to look at.
///
/// # Errors
/// `invalid_body` for one that breaks off, or takes too long.
pub(crate) async fn whole(request: &Request) -> Result<(JsValue, Vec<u8>), Problem> {
    let reading = async { JsFuture::from(request.array_buffer()?).await };
    match select(pin!(reading), Delay::from(READ_TIMEOUT)).await {
        Either::Left((Ok(buffer), _)) => {
            let bytes = Uint8Array::new(&buffer).to_vec();
            Ok((buffer, bytes))
        }
        Either::Left((Err(_), _)) => {
            Err(Problem::new(ErrorCode::InvalidBody, "The body ended before its announced length."))
        }
        Either::Right(_) => Err(Problem::new(
            ErrorCode::InvalidBody,
            format!("The body did not arrive within {} s.", READ_TIMEOUT.as_secs()),
        )),
    }
}

/// An answer to a caller who is still sending: all of it goes out at once, but it ends only when what is left of the
/// body was drained. The runtime closes the connection of a body that is left behind, and a caller who sends into a
/// closed connection often loses the answer.
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
    let written = JsFuture::from(answer.pipe_to_with_options(&writable, &options));
    context.wait_until(async move {
        let draining = pin!(unread.drain());
        let draining = select(draining, Delay::from(DRAIN_TIMEOUT));
        let (written, _) = futures_util::future::join(written, draining).await;
        if written.is_ok() {
            // The client may have disconnected.
            let _ = JsFuture::from(writable.close()).await;
        }
    });
    let init = ResponseInit::new();
    init.set_status(response.status());
    init.set_headers(&response.headers());
    Response::new_with_opt_readable_stream_and_init(Some(&pipe.readable()), &init)
}
