//! A program that is killed, halted and started again while the load runs.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use machines::process::Started;
use reqwest::Client;
use rustix::process::Signal;
use tokio::time::sleep;

const START_MAX: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);

type Start = Box<dyn Fn() -> Result<Started> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// A status of 200 to 299.
    Success,
    Answer,
}

pub(crate) struct Program {
    pub(crate) name: String,
    start: Start,
    /// URL that is requested to find out whether the program is ready.
    probe: String,
    ready: Ready,
    process: Option<Started>,
}

impl Program {
    pub(crate) fn new(name: String, probe: String, ready: Ready, start: Start) -> Self {
        Self { name, start, probe, ready, process: None }
    }

    /// Starts the program, after killing it if it runs. Does not wait until it is ready.
    pub(crate) fn launch(&mut self) -> Result<()> {
        self.process = None;
        self.process = Some((self.start)()?);
        Ok(())
    }

    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// Returns the process id; `None` if the program was not started, or was killed.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Started::pid)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// Waits until the program is ready. Returns an error if it has ended, or after [`START_MAX`].
    pub(crate) async fn wait_until_ready(&mut self) -> Result<()> {
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
        let deadline = Instant::now() + START_MAX;
        loop {
            let answer = client.get(&self.probe).send().await;
            if answer.is_ok_and(|answer| self.ready == Ready::Answer || answer.status().is_success()) {
                return Ok(());
            }
            if !self.process.as_mut().is_some_and(Started::is_running) {
                bail!("{} has ended", self.name);
            }
            if Instant::now() > deadline {
                bail!("{} is not ready after {START_MAX:?}", self.name);
            }
            sleep(PAUSE).await;
        }
    }
}
