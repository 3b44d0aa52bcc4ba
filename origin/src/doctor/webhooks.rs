//! Names the webhooks whose endpoints fail.

use shared::ident::shown;

use super::Finding;
use crate::clock::now;
use crate::system::System;
use crate::webhooks::FAILING_TOLD_AFTER;

const CHECK: &str = "webhooks";

pub(super) async fn check(system: &System) -> Vec<Finding> {
    match system.admin.failing_webhooks(now().saturating_sub(FAILING_TOLD_AFTER)).await {
        Ok(failing) if failing.is_empty() => {
            vec![Finding::ok(CHECK, "no webhook's endpoint has failed for more than a day")]
        }
        Ok(failing) => failing.iter().map(|(project, name)| finding(project, name)).collect(),
        Err(error) => vec![Finding::fault(CHECK, &error)],
    }
}

fn finding(project: &str, name: &str) -> Finding {
    let name = shown(name);
    Finding::warning(
        CHECK,
        format!("the endpoint of webhook {name} of project {project} has failed for more than a day"),
        format!("see `selkie webhook deliveries {name} --project {project}`; `selkie webhook pause` stops them"),
    )
}
