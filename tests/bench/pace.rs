//! Decides when requests are sent: after the last answer, or at a fixed rate. The floor and the HTTP callers use the
//! same clock, so that their latencies can be compared.

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
    Closed,
    /// Requests are due at a fixed rate, whatever the answers do; latency counts from the time when a request is due.
    Open {
        per_second: u32,
    },
}

#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    duration: Duration,
    /// Due times; `None` for a closed loop.
    schedule: Option<Mutex<Schedule>>,
}

/// Due times of requests. A caller that holds its lock waits for the next one; other callers queue for the lock.
#[derive(Debug)]
struct Schedule {
    per_second: u32,
    next: u64,
    /// A timer of the kernel: the timers of tokio have a resolution of one millisecond, in which a hundred requests
    /// would be due at once. It is read as a pipe, which needs no `unsafe`.
    timer: pipe::Receiver,
}

impl Clock {
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

    /// Waits until a request is due and returns the time from which its latency counts; `None` when the load has ended.
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

    /// Waits until `due`; returns at once if it has passed.
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
                // The timer was ready because of an earlier alarm: the loop waits again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

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
