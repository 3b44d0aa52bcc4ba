//! Records the outcomes of attempts. Those that come while a transaction is under way share the next one, and so its
//! write to the disk.

use crate::database::admin::{Admin, AdminError, DeliveryOutcome};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of outcomes in one transaction.
const SHARED_MAX_COUNT: usize = 32;

type Recorded = Result<Option<u64>, AdminError>;

#[derive(Clone)]
pub(super) struct Recorder(mpsc::Sender<(DeliveryOutcome, oneshot::Sender<Recorded>)>);

impl Recorder {
    /// Starts a task, which ends with the last clone of the recorder.
    pub(super) fn start(admin: Admin) -> Self {
        let (sender, mut receiver) = mpsc::channel(SHARED_MAX_COUNT);
        tokio::spawn(async move {
            let mut waiting = Vec::new();
            while receiver.recv_many(&mut waiting, SHARED_MAX_COUNT).await > 0 {
                let (outcomes, callers): (Vec<_>, Vec<oneshot::Sender<Recorded>>) = waiting.drain(..).unzip();
                for (recorded, caller) in record(&admin, &outcomes).await.into_iter().zip(callers) {
                    // A caller that is gone needs no answer.
                    let _ = caller.send(recorded);
                }
            }
        });
        Self(sender)
    }

    /// Stores the outcome, and the webhook's new position if the delivery is over. Returns the number of the delivery;
    /// `None` if the webhook's position is another one, because another origin has delivered.
    pub(super) async fn record(&self, outcome: DeliveryOutcome) -> Recorded {
        let (caller, recorded) = oneshot::channel();
        // Fails only if the task has panicked.
        let _ = self.0.send((outcome, caller)).await;
        recorded.await.unwrap_or(Err(AdminError::TimedOut))
    }
}

async fn record(admin: &Admin, outcomes: &[DeliveryOutcome]) -> Vec<Recorded> {
    if let Ok(all) = admin.record_deliveries(outcomes).await {
        return all.into_iter().map(Ok).collect();
    }
    // One that can't be stored must not hold up those of other projects.
    let mut recorded = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        let alone = admin.record_deliveries(std::slice::from_ref(outcome)).await;
        recorded.push(alone.map(|ids| ids.into_iter().next().flatten()));
    }
    recorded
}
