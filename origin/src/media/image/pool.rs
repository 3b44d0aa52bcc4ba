//! Threads that decode images, with low priority and within a memory budget, for the projects in turn, and for the
//! callers of a project. A decoder that
//! hangs can't be stopped, so size and estimated memory are checked before decoding.

use super::{ImageFault, Limits, Picture, open};
use crate::media::sniff::ImageFormat;
use crate::project_quota::ProjectQuota;
use shared::ident::ProjectName;
use shared::limits::{
    IMAGE_DECODE_MAX_SECONDS, IMAGE_QUEUE_MAX_COUNT, IMAGE_QUEUE_PROJECT_MAX_COUNT, IMAGE_WAIT_MAX_SECONDS,
};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

/// The threads that serve requests have a higher priority.
const NICE: i32 = 10;

#[derive(Clone, Copy, Debug)]
pub struct PoolSize {
    pub threads: usize,
    pub images: usize,
    pub project_images: usize,
    pub wait_max: Duration,
    pub decode_max: Duration,
}

impl Default for PoolSize {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: processors.saturating_sub(1).max(1),
            images: IMAGE_QUEUE_MAX_COUNT,
            project_images: IMAGE_QUEUE_PROJECT_MAX_COUNT,
            wait_max: Duration::from_secs(IMAGE_WAIT_MAX_SECONDS),
            decode_max: Duration::from_secs(IMAGE_DECODE_MAX_SECONDS),
        }
    }
}

pub(super) type Job = Box<dyn FnOnce(&Budget) + Send>;

/// When the pool is dropped, the threads end once the queue is empty.
pub struct MediaPool {
    queue: Arc<Queue>,
    shares: ProjectQuota,
    limits: Limits,
    size: PoolSize,
}

impl MediaPool {
    pub fn start(size: PoolSize, limits: Limits) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let budget = Arc::new(Budget::new(limits.memory_bytes));
        for number in 0..size.threads.max(1) {
            let (queue, budget) = (Arc::clone(&queue), Arc::clone(&budget));
            std::thread::Builder::new().name(format!("media-{number}")).spawn(move || work(&queue, &budget))?;
        }
        Ok(Self {
            queue,
            shares: ProjectQuota::with_callers(size.images as u64, size.project_images as u64),
            limits,
            size,
        })
    }

    /// The file must exist until this call returns.
    pub async fn examine(
        &self,
        project: &ProjectName,
        caller: Uuid,
        path: PathBuf,
        format: ImageFormat,
    ) -> Result<Picture, ImageFault> {
        let limits = self.limits;
        self.run(project, caller, move |budget, begins| {
            let opened = open(&path, format, &limits)?;
            let _memory = budget.take(opened.memory_bytes)?;
            let _ = begins.send(());
            opened.picture()
        })
        .await
    }

    /// Images that wait for a thread, and images that a thread has taken (which may still wait for memory).
    pub fn load(&self) -> (usize, usize) {
        self.queue.load()
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        project: &ProjectName,
        caller: Uuid,
        job: impl FnOnce(&Budget, oneshot::Sender<()>) -> Result<T, ImageFault> + Send + 'static,
    ) -> Result<T, ImageFault> {
        let slot = self.shares.try_take_as(project, caller, 1);
        let slot = slot.map_err(ImageFault::Refused)?;
        let (begins, begun) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |budget| {
            if answer.is_closed() {
                return;
            }
            let result = catch_unwind(AssertUnwindSafe(|| job(budget, begins))).unwrap_or(Err(ImageFault::Corrupt));
            drop(slot);
            let _ = answer.send(result);
        });
        self.queue.add(project, caller, job);
        // `begun` also resolves if the job ends without having begun to decode.
        let _ = timeout(self.size.wait_max, begun).await.map_err(|_| ImageFault::Overloaded)?;
        timeout(self.size.decode_max, answered)
            .await
            .map_err(|_| ImageFault::TooSlow)?
            .map_err(|_| ImageFault::Overloaded)?
    }
}

impl Drop for MediaPool {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn work(queue: &Queue, budget: &Budget) {
    let _ = rustix::process::nice(NICE);
    while let Some(job) = queue.next() {
        job(budget);
        queue.ended();
    }
}

#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

struct Queued {
    caller: Uuid,
    /// The number of the caller's jobs that waited when this one came.
    before: usize,
    job: Job,
}

#[derive(Default)]
struct Waiting {
    /// Projects without jobs are absent.
    projects: VecDeque<(ProjectName, VecDeque<Queued>)>,
    is_closed: bool,
    running: usize,
}

impl Queue {
    /// A job comes before the jobs of callers that had more waiting.
    pub(super) fn add(&self, project: &ProjectName, caller: Uuid, job: Job) {
        let mut waiting = unpoisoned(self.waiting.lock());
        let mut projects = waiting.projects.iter_mut();
        match projects.find(|(name, _)| name == project) {
            Some((_, jobs)) => {
                let before = jobs.iter().filter(|queued| queued.caller == caller).count();
                let at = jobs.iter().position(|queued| queued.before > before).unwrap_or(jobs.len());
                jobs.insert(at, Queued { caller, before, job });
            }
            None => {
                let jobs = VecDeque::from([Queued { caller, before: 0, job }]);
                waiting.projects.push_back((project.clone(), jobs));
            }
        }
        drop(waiting);
        self.changed.notify_one();
    }

    pub(super) fn next(&self) -> Option<Job> {
        let mut waiting = unpoisoned(self.waiting.lock());
        loop {
            if let Some((project, mut jobs)) = waiting.projects.pop_front() {
                let job = jobs.pop_front();
                if !jobs.is_empty() {
                    waiting.projects.push_back((project, jobs));
                }
                waiting.running += usize::from(job.is_some());
                return job.map(|queued| queued.job);
            }
            if waiting.is_closed {
                return None;
            }
            waiting = unpoisoned(self.changed.wait(waiting));
        }
    }

    fn ended(&self) {
        unpoisoned(self.waiting.lock()).running -= 1;
    }

    fn load(&self) -> (usize, usize) {
        let waiting = unpoisoned(self.waiting.lock());
        (waiting.projects.iter().map(|(_, jobs)| jobs.len()).sum(), waiting.running)
    }

    pub(super) fn close(&self) {
        unpoisoned(self.waiting.lock()).is_closed = true;
        self.changed.notify_all();
    }
}

pub(super) struct Budget {
    total: u64,
    taken: Mutex<u64>,
    freed: Condvar,
    /// Held by the thread that waits for memory, so that later threads can't overtake it and take freed memory.
    turn: Mutex<()>,
}

impl Budget {
    pub(super) fn new(total: u64) -> Self {
        Self { total, taken: Mutex::new(0), freed: Condvar::new(), turn: Mutex::new(()) }
    }

    /// Waits until `bytes` of memory are free.
    pub(super) fn take(&self, bytes: u64) -> Result<Share<'_>, ImageFault> {
        if bytes > self.total {
            return Err(ImageFault::TooMuchMemory { needed_bytes: bytes, max_bytes: self.total });
        }
        let _turn = unpoisoned(self.turn.lock());
        let mut taken = unpoisoned(self.taken.lock());
        while *taken + bytes > self.total {
            taken = unpoisoned(self.freed.wait(taken));
        }
        *taken += bytes;
        Ok(Share { budget: self, bytes })
    }
}

pub(super) struct Share<'b> {
    budget: &'b Budget,
    bytes: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *unpoisoned(self.budget.taken.lock()) -= self.bytes;
        self.budget.freed.notify_all();
    }
}

/// No panic can leave the protected data half-changed.
fn unpoisoned<'m, T: ?Sized>(lock: Result<MutexGuard<'m, T>, PoisonError<MutexGuard<'m, T>>>) -> MutexGuard<'m, T> {
    lock.unwrap_or_else(PoisonError::into_inner)
}
