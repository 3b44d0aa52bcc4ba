//! Reports the state of this process to the service manager (systemd, `Type=notify`). Does nothing without a service
//! manager.

use std::time::Duration;

use sd_notify::NotifyState;

/// Reports that the process is ready, and starts the watchdog's task, which shows that the runtime still runs tasks and
/// timers. The task runs until the process ends, since a shutdown may take longer than the watchdog's time.
pub fn ready() {
    send(&NotifyState::Ready);
    if let Some(time) = sd_notify::watchdog_enabled().filter(|time| !time.is_zero()) {
        tokio::spawn(report_alive(time / 3));
    }
}

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
        tracing::warn!(%error, %state, "the state could not be reported to the service manager");
    }
}
