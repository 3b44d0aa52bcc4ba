//! The threads on which pictures are decoded: few, of low priority, within a budget of memory, behind a
//! queue with an end.
//!
//! A codec that panics takes its picture with it, not the thread. Nothing can stop one that runs on, so all
//! bounds hold before decoding begins; whoever waits is answered in time all the same.

use super::{ImageFault, Limits, Picture, open};
use crate::media::sniff::{ImageFormat, Sniffed};
use shared::limits::{IMAGE_MEMORY_MAX_BYTES, IMAGE_QUEUE_MAX_COUNT, IMAGE_TIMEOUT_SECONDS};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How much politer than the service these threads are: requests keep their latency while pictures wait.
const NICE: i32 = 10;

/// What the pool may take.
#[derive(Clone, Copy, Debug)]
pub struct PoolSize {
    /// Threads.
    pub threads: usize,
    /// Bytes of all pictures together while they are decoded.
    pub memory_bytes: u64,
    /// Pictures that wait.
    pub waiting: usize,
    /// How long one is waited for.
    pub timeout: Duration,
}

impl Default for PoolSize {
    /// All processors but one, at least one.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: processors.saturating_sub(1).max(1),
            memory_bytes: IMAGE_MEMORY_MAX_BYTES,
            waiting: IMAGE_QUEUE_MAX_COUNT,
            timeout: Duration::from_secs(IMAGE_TIMEOUT_SECONDS),
        }
    }
}

type Job = Box<dyn FnOnce(&Budget) + Send>;

/// Examines files on threads of its own. They end when it is dropped, after what they are at.
#[derive(Debug)]
pub struct MediaPool {
    jobs: SyncSender<Job>,
    limits: Limits,
    timeout: Duration,
}

impl MediaPool {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(size: PoolSize, limits: Limits) -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel::<Job>(size.waiting);
        let queue = Arc::new(Mutex::new(queue));
        let budget = Arc::new(Budget::new(size.memory_bytes));
        for number in 0..size.threads.max(1) {
            let (queue, budget) = (Arc::clone(&queue), Arc::clone(&budget));
            std::thread::Builder::new()
                .name(format!("media-{number}"))
                .spawn(move || work(&queue, &budget))?;
        }
        Ok(Self {
            jobs,
            limits,
            timeout: size.timeout,
        })
    }

    /// Decodes a picture and makes its thumbnail. The file must stay where it is until this returns.
    ///
    /// # Errors
    /// What is wrong with the file, or that too many wait; see [`ImageFault`].
    pub async fn examine(&self, path: PathBuf, format: ImageFormat) -> Result<Picture, ImageFault> {
        let limits = self.limits;
        self.run(move |budget| {
            let opened = open(&path, format, &limits)?;
            let _share = budget.take(opened.memory_bytes);
            opened.picture()
        })
        .await?
    }

    /// The length of a video or a sound in seconds, where its file tells cheaply.
    pub async fn duration(&self, path: PathBuf, sniffed: Sniffed) -> Option<f64> {
        self.run(move |budget| {
            let _share = budget.take(crate::media::duration::MEMORY_BYTES);
            Ok(crate::media::duration::duration(&path, sniffed))
        })
        .await
        .ok()
        .and_then(Result::ok)
        .flatten()
    }

    /// Runs one job on a thread of the pool; `Ok(Err(_))` is the job's own fault.
    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Budget) -> Result<T, ImageFault> + Send + 'static,
    ) -> Result<Result<T, ImageFault>, ImageFault> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |budget| {
            // Nobody waits any more: it was its caller's, who went away.
            if answer.is_closed() {
                return;
            }
            let result =
                catch_unwind(AssertUnwindSafe(|| job(budget))).unwrap_or(Err(ImageFault::Corrupt));
            let _ = answer.send(result);
        });
        match self.jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                return Err(ImageFault::Overloaded);
            }
        }
        tokio::time::timeout(self.timeout, answered)
            .await
            .map_err(|_| ImageFault::TimedOut)?
            .map_err(|_| ImageFault::Overloaded)
    }
}

fn work(queue: &Mutex<Receiver<Job>>, budget: &Budget) {
    // Of the thread alone. Without the right to, it is as polite as the rest.
    let _ = rustix::process::nice(NICE);
    loop {
        let next = unpoisoned(queue.lock()).recv();
        match next {
            Ok(job) => job(budget),
            Err(_) => return,
        }
    }
}

/// Bytes that are shared by all threads.
struct Budget {
    total: u64,
    taken: Mutex<u64>,
    freed: Condvar,
    /// Held by the one that waits, so that those behind it do not take what it waits for.
    turn: Mutex<()>,
}

impl Budget {
    fn new(total: u64) -> Self {
        Self {
            total,
            taken: Mutex::new(0),
            freed: Condvar::new(),
            turn: Mutex::new(()),
        }
    }

    /// Waits until so many are free. Who wants more than there are gets them all.
    fn take(&self, bytes: u64) -> Share<'_> {
        let bytes = bytes.min(self.total);
        let _turn = unpoisoned(self.turn.lock());
        let mut taken = unpoisoned(self.taken.lock());
        while *taken + bytes > self.total {
            taken = unpoisoned(self.freed.wait(taken));
        }
        *taken += bytes;
        Share {
            budget: self,
            bytes,
        }
    }
}

struct Share<'b> {
    budget: &'b Budget,
    bytes: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *unpoisoned(self.budget.taken.lock()) -= self.bytes;
        self.budget.freed.notify_all();
    }
}

/// A number and a unit can't be left half-written by a panic.
fn unpoisoned<'m, T: ?Sized>(
    lock: Result<MutexGuard<'m, T>, PoisonError<MutexGuard<'m, T>>>,
) -> MutexGuard<'m, T> {
    lock.unwrap_or_else(PoisonError::into_inner)
}
