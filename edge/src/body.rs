//! The caller's body on its way to the origin, as the worker's streams have it: taken piece by piece, passed
//! on piece by piece, at most three pieces of it in memory. What is right in a body is [`gateway`]'s to say.
//!
//! [`gateway`]: mod@crate::gateway

use crate::gateway::{BodyLength, Inspector};
use futures_util::future::{Either, select};
use shared::error::{ErrorCode, Problem};
use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;
use worker::js_sys::{self, BigInt, Date, Function, Reflect, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{ReadableStream, Request, Response, ResponseInit, TransformStream};
use worker::web_sys::{ReadableStreamByobReader, ReadableStreamReadResult};
use worker::web_sys::{StreamPipeOptions, WritableStreamDefaultWriter};
use worker::worker_sys::FixedLengthStream;
use worker::{Context, Delay};

/// Bytes that are taken at once. The runtime's own default, 4 kB, takes more than three times as long.
const PIECE_BYTES: u32 = 64 * 1024;

/// How long a body may lie still on its way, and how long a caller may take to send one that is checked whole.
/// The origin's own patience (`body_read_timeout`, 30 s) ends before, and its answer then says so.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Bytes of a refused body that are still taken; beyond, the connection is closed. As at the origin.
const REFUSED_BODY_MAX_BYTES: u32 = 64 * 1024 * 1024;

/// How long a refused body is taken. As at the origin.
const REFUSED_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// The body of a caller, taken piece by piece.
pub(crate) struct Inlet {
    reader: ReadableStreamByobReader,
    /// The read that is under way: the runtime knows one at a time, and it outlives who waits for it.
    reading: Option<JsFuture>,
    /// Pieces that were passed on, to be filled again.
    spare: Vec<Uint8Array>,
    is_open: bool,
}

impl Inlet {
    /// Takes hold of a body.
    pub(crate) fn open(body: &ReadableStream) -> Result<Self, JsValue> {
        Ok(Self {
            reader: ReadableStreamByobReader::new(body)?,
            reading: None,
            spare: Vec::new(),
            is_open: true,
        })
    }

    /// Whether there may be more to take.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Asks for the next piece, if none is asked for. The runtime takes a body for unread until then.
    fn read_ahead(&mut self) -> &mut JsFuture {
        self.reading.get_or_insert_with(|| {
            let spare = self.spare.pop();
            let buffer = spare.unwrap_or_else(|| Uint8Array::new_with_length(PIECE_BYTES));
            JsFuture::from(self.reader.read_with_array_buffer_view(&buffer))
        })
    }

    /// The next piece, never empty; none at the end. An error says that the caller is gone.
    async fn next(&mut self) -> Result<Option<Uint8Array>, JsValue> {
        let outcome = self.read_ahead().await;
        self.reading = None;
        let result: ReadableStreamReadResult = match outcome {
            Ok(result) => result.unchecked_into(),
            Err(error) => {
                self.is_open = false;
                return Err(error);
            }
        };
        if result.get_done() == Some(true) {
            self.is_open = false;
            return Ok(None);
        }
        Ok(result.get_value().dyn_into().ok())
    }

    /// Takes back a piece that is no longer looked at.
    fn reuse(&mut self, piece: &Uint8Array) {
        let buffer = piece.buffer();
        if buffer.byte_length() == PIECE_BYTES {
            self.spare.push(Uint8Array::new(&buffer));
        }
    }

    /// Takes the beginning of a body that is inspected: as many bytes as the inspector asks for, or all of
    /// a shorter one. Of one that is sure to be refused, all of it is read and nothing kept.
    pub(crate) async fn begin(&mut self, inspector: Inspector) -> Result<Beginning, Problem> {
        let pace = Pace::new();
        let taking = pin!(self.take_beginning(inspector, &pace));
        match select(taking, pin!(pace.lost())).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(paused()),
        }
    }

    async fn take_beginning(
        &mut self,
        mut inspector: Inspector,
        pace: &Pace,
    ) -> Result<Beginning, Problem> {
        let mut copy = vec![0; PIECE_BYTES as usize];
        let mut kept: Vec<u8> = Vec::new();
        while kept.len() < inspector.first_bytes() {
            pace.waits_for(Side::Caller);
            let Some(piece) = self.next().await.map_err(|_| broken_off())? else {
                inspector.finish_held(&kept)?;
                return Ok(Beginning::Whole(match kept.is_empty() {
                    true => JsValue::UNDEFINED,
                    false => Uint8Array::from(kept.as_slice()).into(),
                }));
            };
            let copy = &mut copy[..piece.length() as usize];
            piece.copy_to(copy);
            self.reuse(&piece);
            inspector.check(copy)?;
            if inspector.is_refused_in_the_end() {
                kept.clear();
            } else {
                kept.extend_from_slice(copy);
            }
        }
        Ok(Beginning::Part(
            Uint8Array::from(kept.as_slice()),
            inspector,
        ))
    }

    /// Takes what is left of a body that nobody wants, so that the caller, who is busy sending, gets to read
    /// the answer. What is beyond the bounds is left, and with it the connection is closed.
    pub(crate) async fn drain(mut self) {
        let mut left = REFUSED_BODY_MAX_BYTES;
        let taking = async {
            while let Ok(Some(piece)) = self.next().await {
                match left.checked_sub(piece.length()) {
                    Some(rest) => left = rest,
                    None => break,
                }
                self.reuse(&piece);
            }
        };
        // Whether it was taken whole makes no difference to the answer.
        select(pin!(taking), Delay::from(REFUSED_BODY_TIMEOUT)).await;
    }
}

/// What was read of a body before the origin is asked.
pub(crate) enum Beginning {
    /// All of it, found right; undefined if that is nothing.
    Whole(JsValue),
    /// The first bytes, and who looks at the rest.
    Part(Uint8Array, Inspector),
}

/// A stream of that length, or of any.
fn pipe(length: BodyLength) -> Result<TransformStream, JsValue> {
    match length {
        BodyLength::Known(bytes) => {
            FixedLengthStream::new_big_int(BigInt::from(bytes)).map(JsCast::unchecked_into)
        }
        // The runtime's own, which moves bytes without a copy; the standard's runs in JavaScript.
        BodyLength::Unknown => {
            let class = Reflect::get(&js_sys::global(), &"IdentityTransformStream".into())?;
            let class: Function = class.dyn_into()?;
            Reflect::construct(&class, &js_sys::Array::new()).map(JsCast::unchecked_into)
        }
    }
}

/// The way of one body to the origin. Dropped before all was moved, it breaks the origin's side off: the
/// origin never takes a part for the whole.
pub(crate) struct Passage<'a> {
    inlet: &'a mut Inlet,
    outlet: WritableStreamDefaultWriter,
    readable: ReadableStream,
    /// What was taken off the inlet before.
    first: Option<Uint8Array>,
    is_done: bool,
}

impl<'a> Passage<'a> {
    /// A way for a body of that length, of which the first bytes were taken off the inlet already.
    pub(crate) fn new(
        inlet: &'a mut Inlet,
        first: Option<Uint8Array>,
        length: BodyLength,
    ) -> Result<Self, JsValue> {
        let pipe = pipe(length)?;
        Ok(Self {
            inlet,
            outlet: pipe.writable().get_writer()?,
            readable: pipe.readable(),
            first,
            is_done: false,
        })
    }

    /// What the request to the origin has as its body.
    pub(crate) fn readable(&self) -> &ReadableStream {
        &self.readable
    }

    /// Moves the body. The last piece goes on only after `inspector` found the whole to be right: what it
    /// refuses, the origin never sees complete. `Ok` too if the origin takes no more: its answer tells why.
    pub(crate) async fn run(mut self, inspector: Option<Inspector>) -> Result<(), Stop> {
        let pace = Pace::new();
        let flow = {
            let moving = pin!(self.move_all(inspector, &pace));
            match select(moving, pin!(pace.lost())).await {
                Either::Left((flow, _)) => flow?,
                Either::Right((stop, _)) => return Err(stop),
            }
        };
        self.is_done = flow == Flow::Whole;
        Ok(())
    }

    async fn move_all(
        &mut self,
        mut inspector: Option<Inspector>,
        pace: &Pace,
    ) -> Result<Flow, Stop> {
        let mut copy = vec![0; PIECE_BYTES as usize];
        let mut held = self.first.take();
        let mut on_its_way: Option<(Uint8Array, JsFuture)> = None;
        loop {
            pace.waits_for(Side::Caller);
            let piece = self.inlet.next().await.map_err(|_| broken_off())?;
            pace.waits_for(Side::Origin);
            if let (Some(inspector), Some(piece)) = (&mut inspector, &piece) {
                let copy = &mut copy[..piece.length() as usize];
                piece.copy_to(copy);
                inspector.check(copy)?;
            }
            if let Some((piece, written)) = on_its_way.take() {
                if written.await.is_err() {
                    return Ok(Flow::Untaken);
                }
                self.inlet.reuse(&piece);
            }
            let is_last = piece.is_none();
            if is_last && let Some(inspector) = inspector.take() {
                inspector.finish()?;
            }
            if let Some(held) = std::mem::replace(&mut held, piece) {
                let written = JsFuture::from(self.outlet.write_with_chunk(&held));
                on_its_way = Some((held, written));
            }
            if is_last {
                // Behind the last write, in the stream's own order.
                let closed = JsFuture::from(self.outlet.close()).await;
                return Ok(closed.map_or(Flow::Untaken, |_| Flow::Whole));
            }
        }
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // Nobody waits for it.
            drop(JsFuture::from(self.outlet.abort()));
        }
    }
}

/// How far the origin took what it was given.
#[derive(PartialEq, Eq)]
enum Flow {
    Whole,
    Untaken,
}

/// Why a body was given up.
pub(crate) enum Stop {
    /// The body is at fault, or its caller.
    Refused(Problem),
    /// The origin leaves a piece untaken.
    Stalled,
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

/// Who is to move a body on.
#[derive(Clone, Copy)]
enum Side {
    Caller,
    Origin,
}

/// When a body last moved. One timer watches all its pieces: one for each would cost more than they do.
struct Pace {
    moved_at: Cell<f64>,
    waits_for: Cell<Side>,
}

impl Pace {
    fn new() -> Self {
        Self {
            moved_at: Cell::new(Date::now()),
            waits_for: Cell::new(Side::Caller),
        }
    }

    fn waits_for(&self, side: Side) {
        self.moved_at.set(Date::now());
        self.waits_for.set(side);
    }

    /// Ends once nothing moved for [`PAUSE_MAX`].
    async fn lost(&self) -> Stop {
        let limit = PAUSE_MAX.as_millis() as f64;
        loop {
            let left = self.moved_at.get() + limit - Date::now();
            if left <= 0.0 {
                break;
            }
            Delay::from(Duration::from_millis(left.ceil() as u64)).await;
        }
        match self.waits_for.get() {
            Side::Caller => Stop::Refused(paused()),
            Side::Origin => Stop::Stalled,
        }
    }
}

/// A body that is checked whole.
pub(crate) async fn whole(request: &Request) -> Result<(JsValue, Vec<u8>), Problem> {
    let reading = async { JsFuture::from(request.array_buffer()?).await };
    match select(pin!(reading), Delay::from(PAUSE_MAX)).await {
        Either::Left((outcome, _)) => {
            let buffer = outcome.map_err(|_| broken_off())?;
            let bytes = Uint8Array::new(&buffer).to_vec();
            Ok((buffer, bytes))
        }
        Either::Right(_) => Err(paused()),
    }
}

fn broken_off() -> Problem {
    Problem::new(
        ErrorCode::InvalidBody,
        "The body ended before its announced length.",
    )
}

fn paused() -> Problem {
    Problem::new(
        ErrorCode::InvalidBody,
        format!("Nothing of the body arrived for {} s.", PAUSE_MAX.as_secs()),
    )
}

/// An answer to a caller who is still sending: all of it goes out at once, but it ends only when what is
/// left of the body was taken. The runtime closes the connection of a body that is left behind, and who
/// sends into a closed connection often loses the answer.
pub(crate) fn answer_early(
    response: Response,
    length: BodyLength,
    mut rest: Inlet,
    context: &Context,
) -> Result<Response, JsValue> {
    let Some(answer) = response.body() else {
        return Ok(response);
    };
    rest.read_ahead();
    let pipe = pipe(length)?;
    let writable = pipe.writable();
    let options = StreamPipeOptions::new();
    options.set_prevent_close(true);
    let written = JsFuture::from(answer.pipe_to_with_options(&writable, &options));
    context.wait_until(async move {
        if written.await.is_ok() {
            rest.drain().await;
            // A caller who left needs no end.
            let _ = JsFuture::from(writable.close()).await;
        }
    });
    let init = ResponseInit::new();
    init.set_status(response.status());
    init.set_headers(&response.headers());
    Response::new_with_opt_readable_stream_and_init(Some(&pipe.readable()), &init)
}
