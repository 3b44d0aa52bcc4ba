//! Tells the service manager (systemd, `Type=notify`) about this process: that it is ready, alive, or stopping. Does
//! nothing without a service manager. Doesn't know what runs in this process.

use std::time::Duration;

use sd_notify::NotifyState;

/// Tells the service manager that requests are answered. If the manager has a watchdog (`WatchdogSec=`), starts a task
/// that reports every third of its time that the runtime still runs tasks and timers, until the process ends: a stop may
/// take longer than the watchdog's time.
pub fn ready() {
    send(&NotifyState::Ready);
    if let Some(time) = sd_notify::watchdog_enabled().filter(|time| !time.is_zero()) {
        tokio::spawn(report_alive(time / 3));
    }
}

/// Tells the service manager that the process stops.
pub fn stopping() {
    send(&NotifyState::Stopping);
}

async fn report_alive(interval: Duration) {
    loop {
        send(&NotifyState::Watchdog);
        tokio::time::sleep(interval).await;
    }
}

fn send(state: &NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        tracing::warn!(%error, %state, "the service manager could not be told");
    }
}
