//! `selkie init`: creates an installation. A second run only migrates an older schema and creates what is missing.

use serde::Serialize;

use super::system::{Opened, note};
use super::{CliError, Context};
use crate::system::Initialised;
use crate::system::installation::{Installation, Purpose};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitAnswer {
    created: bool,
    data_dir: String,
    database: String,
}

pub async fn run(context: &Context) -> Result<(), CliError> {
    let installation = Installation::open(&context.config, Purpose::Init).await?;
    let opened = Opened::of(installation, context);
    let outcome = opened.system.init().await.map_err(CliError::from);
    let database = opened.system.hosts.address().endpoint.to_string();
    let outcome = opened.close(outcome).await?;
    let answer = InitAnswer {
        created: outcome == Initialised::New,
        data_dir: context.config.data_dir.display().to_string(),
        database,
    };
    if answer.created {
        note("`selkie key create` issues keys; `selkie serve` runs the origin");
    }
    context.output.answer(&answer, |answer| {
        let state = if answer.created {
            "a new installation is created"
        } else {
            "the installation exists; nothing was changed"
        };
        format!("{state}: data directory {}, MariaDB at {}", answer.data_dir, answer.database)
    })
}
