//! `selkie doctor`: checks the installation and says how to fix it. The exit code is 1 if a check fails.

use serde::Serialize;

use super::system::Opened;
use super::{CliError, Context};
use crate::doctor::{Finding, Severity, examine};

#[derive(Serialize)]
struct DoctorReport {
    healthy: bool,
    findings: Vec<Finding>,
}

pub async fn run(context: &Context) -> Result<(), CliError> {
    let opened = Opened::plain(context).await?;
    let findings = examine(&opened.system, &context.config).await;
    opened.close(Ok(())).await?;
    let wrong = findings.iter().filter(|finding| finding.verdict == Severity::Wrong).count();
    let report = DoctorReport { healthy: wrong == 0, findings };
    context.output.answer(&report, text)?;
    if wrong == 0 {
        return Ok(());
    }
    Err(CliError::Failed {
        message: format!("{wrong} of {} checks found something to mend", report.findings.len()),
        hint: None,
    })
}

fn text(report: &DoctorReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let mark = match finding.verdict {
            Severity::Ok => "ok     ",
            Severity::Warning => "warning",
            Severity::Wrong => "WRONG  ",
        };
        text.push_str(&format!("{mark}  {:<11}  {}\n", finding.check, finding.message));
        if let Some(hint) = &finding.hint {
            text.push_str(&format!("                      {hint}\n"));
        }
    }
    text
}
