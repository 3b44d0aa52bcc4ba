//! Decodes images on threads of low priority and within a memory budget. Projects take turns, and so do the callers of
//! a project. A decoder that hangs can't be stopped, so size and estimated memory are checked before decoding.

use super::{ImageFault, Limits, Picture, open};
use crate::media::sniff::ImageFormat;
use crate::project_quota::ProjectQuota;
use shared::ident::ProjectName;
use shared::limits::{
    IMAGE_DECODE_MAX_SECONDS, IMAGE_QUEUE_MAX_COUNT, IMAGE_QUEUE_PROJECT_MAX_COUNT, IMAGE_WAIT_MAX_SECONDS,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

/// The memory of one permit of the semaphore, which counts up to 2³² permits of one image.
const MEMORY_UNIT_BYTES: u64 = 1024;

/// The priority of the decoding threads, lower than that of the threads that serve requests.
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

pub struct MediaPool {
    images: ProjectQuota,
    threads: ProjectQuota,
    memory: Arc<Semaphore>,
    limits: Limits,
    size: PoolSize,
}

impl MediaPool {
    pub fn new(size: PoolSize, limits: Limits) -> Self {
        let threads = size.threads as u64;
        Self {
            images: ProjectQuota::with_callers(size.images as u64, size.project_images as u64),
            threads: ProjectQuota::with_callers(threads, threads),
            memory: Arc::new(Semaphore::new(units(limits.memory_bytes) as usize)),
            limits,
            size,
        }
    }

    /// Decodes a file on a thread of the pool. The file must exist until this call returns.
    pub async fn examine(
        &self,
        project: &ProjectName,
        caller: Uuid,
        path: PathBuf,
        format: ImageFormat,
    ) -> Result<Picture, ImageFault> {
        let (limits, memory, runtime) = (self.limits, Arc::clone(&self.memory), Handle::current());
        self.run(project, caller, move |begins| {
            let opened = open(&path, format, &limits)?;
            let memory = memory.acquire_many(units(opened.memory_bytes));
            let _memory = runtime.block_on(memory).map_err(|_| ImageFault::Overloaded)?;
            let _ = begins.send(());
            opened.picture()
        })
        .await
    }

    /// Returns the numbers of images that wait for a thread and that have a thread (and may still wait for memory).
    pub fn load(&self) -> (usize, usize) {
        (self.threads.waiting(), self.threads.taken() as usize)
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        project: &ProjectName,
        caller: Uuid,
        job: impl FnOnce(oneshot::Sender<()>) -> Result<T, ImageFault> + Send + 'static,
    ) -> Result<T, ImageFault> {
        let image = self.images.try_take_as(project, caller, 1).map_err(ImageFault::Refused)?;
        let begun = async {
            let thread = self.threads.take_as(project, caller, 1).await;
            let (begins, begun) = oneshot::channel();
            let (answer, answered) = oneshot::channel();
            let work = move || {
                let _ = rustix::process::nice(NICE);
                let result = catch_unwind(AssertUnwindSafe(|| job(begins))).unwrap_or(Err(ImageFault::Corrupt));
                drop((image, thread));
                let _ = answer.send(result);
            };
            std::thread::Builder::new().name("media".to_owned()).spawn(work).map_err(|_| ImageFault::Overloaded)?;
            // Also resolves if the job ends without having begun to decode.
            let _ = begun.await;
            Ok::<_, ImageFault>(answered)
        };
        let answered = timeout(self.size.wait_max, begun).await.map_err(|_| ImageFault::Overloaded)??;
        timeout(self.size.decode_max, answered)
            .await
            .map_err(|_| ImageFault::TooSlow)?
            .map_err(|_| ImageFault::Overloaded)?
    }
}

/// Converts bytes to permits, rounded up: an image that `open` allowed never needs more than all permits.
fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(MEMORY_UNIT_BYTES)).unwrap_or(u32::MAX)
}
