//! When requests are sent: each when the last is answered, or so many a second. The floor and the HTTP callers are paced by
//! the same clock, so that their latencies can be compared.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    time::{Duration, Instant},
};

use anyhow::Result;
use rustix::{
    fs::Timespec,
    time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime},
};
use tokio::{net::unix::pipe, sync::Mutex};

/// How requests follow each other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// The next one when the answer to the last is there.
    Closed,
    /// So many a second, whatever the answers do; latency counts from the moment at which a request was due.
    Open { per_second: u32 },
}

/// Tells all callers of one load when to send, from when the load began.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    duration: Duration,
    /// None where the answers are the clock.
    schedule: Option<Mutex<Schedule>>,
}

/// Whoever holds it waits for the next moment, the others for it, in the order in which they came.
#[derive(Debug)]
struct Schedule {
    per_second: u32,
    next: u64,
    /// The kernel's: tokio's own timers come in whole milliseconds, in which a hundred requests would be due at once. It is
    /// read like a pipe, and to wait for it as for one takes no `unsafe`.
    timer: pipe::Receiver,
}

impl Clock {
    /// Begins now; needs a runtime with I/O.
    pub(crate) fn start(pace: Pace, duration: Duration) -> Result<Self> {
        let schedule = match pace {
            Pace::Closed => None,
            Pace::Open { per_second } => Some(Mutex::new(Schedule::new(per_second)?)),
        };
        Ok(Self { began: Instant::now(), duration, schedule })
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The moment from which the next request's latency counts, when it is there; none when the load has ended.
    pub(crate) async fn next(&self) -> Result<Option<Instant>> {
        let end = self.began + self.duration;
        let Some(schedule) = &self.schedule else {
            return Ok(Some(Instant::now()).filter(|now| *now < end));
        };
        let mut schedule = schedule.lock().await;
        let due = self.began + due(schedule.next, schedule.per_second);
        if due >= end {
            return Ok(None);
        }
        schedule.next += 1;
        schedule.wait_until(due).await?;
        Ok(Some(due))
    }
}

impl Schedule {
    fn new(per_second: u32) -> Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer: OwnedFd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { per_second, next: 0, timer: pipe::Receiver::from_owned_fd_unchecked(timer)? })
    }

    /// Returns at once if that has passed.
    async fn wait_until(&mut self, due: Instant) -> Result<()> {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let once = Itimerspec {
                it_interval: Timespec::default(),
                it_value: Timespec { tv_sec: i64::try_from(left.as_secs())?, tv_nsec: left.subsec_nanos().into() },
            };
            timerfd_settime(self.timer.as_fd(), TimerfdTimerFlags::empty(), &once)?;
            self.timer.readable().await?;
            match self.timer.try_read(&mut [0_u8; 8]) {
                Ok(_) => {}
                // What was ready was an earlier alarm.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// When the request with this number is due, after the first.
fn due(index: u64, per_second: u32) -> Duration {
    Duration::from_secs_f64(index as f64 / f64::from(per_second))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Clock, Pace, due};

    #[test]
    fn requests_are_due_evenly() {
        assert_eq!(due(0, 500), Duration::ZERO);
        assert_eq!(due(1, 500), Duration::from_millis(2));
        assert_eq!(due(1_000_000, 500), Duration::from_secs(2_000));
    }

    #[tokio::test]
    async fn an_open_loop_sends_all_that_is_due_however_late_and_then_ends() {
        let pace = Pace::Open { per_second: 1_000 };
        let clock = Clock::start(pace, Duration::from_millis(50)).unwrap();
        let mut moments = Vec::new();
        while let Some(from) = clock.next().await.unwrap() {
            if moments.is_empty() {
                std::thread::sleep(Duration::from_millis(20));
            }
            moments.push(from);
        }
        assert_eq!(moments.len(), 50);
        for pair in moments.windows(2) {
            assert_eq!(pair[1] - pair[0], Duration::from_millis(1));
        }
    }
}
