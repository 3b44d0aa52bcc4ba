//! Checks that the keys of issuers can be fetched.

use super::Finding;
use crate::database::admin::{AdminError, IssuerKeys};
use crate::system::System;
use crate::system::issuers::try_url;

const CHECK: &str = "issuers";

pub(super) async fn check(system: &System) -> Vec<Finding> {
    match examine(system).await {
        Ok(findings) if findings.is_empty() => vec![Finding::ok(CHECK, "the keys of all issuers can be fetched")],
        Ok(findings) => findings,
        Err(error) => vec![Finding::fault(CHECK, &error)],
    }
}

async fn examine(system: &System) -> Result<Vec<Finding>, AdminError> {
    let mut urls: Vec<String> = Vec::new();
    for row in system.admin.issuers(None).await? {
        if let IssuerKeys::Url(url) | IssuerKeys::PublicUrl(url) = row.keys
            && !urls.contains(&url)
        {
            urls.push(url);
        }
    }
    let mut findings = Vec::new();
    for url in urls {
        let hint = "tokens are verified with the keys that origins have fetched before; others are refused with 503";
        match try_url(&url).await {
            Ok(0) => findings.push(Finding::warning(CHECK, format!("{url} has no key that can verify tokens"), hint)),
            Ok(_) => {}
            Err(error) => findings.push(Finding::warning(CHECK, format!("{url}: {error}"), hint)),
        }
    }
    Ok(findings)
}
