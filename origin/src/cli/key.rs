//! `selkie key`: issues, lists and revokes keys; rotates the signing key; prints the public keys for the edge.

use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde::Serialize;
use shared::ident::{ProjectName, RoleName, shown};
use shared::key::{Access, Grant, KeySet, RoleGrant};
use uuid::Uuid;

use super::role::role;
use super::system::{Consent, Opened, ProjectFilter, confirm, note, project, time, time_or_dash};
use super::{CliError, Context, TextTable};
use crate::clock::now;
use crate::database::admin::{KeyRow, KeyStatus};
use crate::system::keys::{Keys, Rotation, state};

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Issue a key; it is printed once and stored nowhere
    Create(CreateArgs),
    /// List keys: id, name, access, when they were created and used, whether they are valid
    List(ProjectFilter),
    /// Revoke a key: the origins refuse it within a second
    Revoke(RevokeArgs),
    /// Create a new signing key; of older ones only the last stays valid, and keys signed by others end
    Rotate(RotateArgs),
    /// Print the public keys as a JWK set, for the edge
    Jwks,
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// What the key may do: everything, or only read
    #[arg(long, value_parser = PossibleValuesParser::new(["full", "read"]).try_map(|text| text.parse::<Access>()))]
    #[arg(required_unless_present = "role")]
    access: Option<Access>,
    /// The role of the project that says what the key may do
    #[arg(long, value_name = "ROLE", conflicts_with = "access", value_parser = role)]
    role: Option<RoleName>,
    /// A claim that the role's rules may compare with; VALUE is JSON, or else a text; may be repeated
    #[arg(long = "claim", value_name = "NAME=VALUE", requires = "role", conflicts_with = "access", value_parser = claim)]
    claims: Vec<(String, serde_json::Value)>,
    /// The project of the key
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
    /// A description of the key, shown in lists
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,
    /// How long the key is valid, as 90d or 12h [default: forever]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    expires: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// The key's id, as `selkie key list` shows it, or the beginning of one id only
    #[arg(value_name = "ID", value_parser = id_or_beginning)]
    id: String,
    /// Also revoke the keys that this key has created over HTTP, and those that they have created, and so on
    #[arg(long)]
    with_created: bool,
}

#[derive(Debug, Args)]
pub struct RotateArgs {
    /// Don't ask for confirmation, even if valid keys end
    #[arg(long)]
    yes: bool,
}

impl KeyCommand {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let opened = Opened::migrated(context).await?;
        let keys = &opened.system.keys;
        let outcome = match self {
            Self::Create(args) => args.run(context, keys).await,
            Self::List(filter) => list(filter, context, keys).await,
            Self::Revoke(args) => args.run(context, keys).await,
            Self::Rotate(args) => args.run(context, keys).await,
            Self::Jwks => jwks(context, keys).await,
        };
        opened.close(outcome).await
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IssuedAnswer<'a> {
    id: Uuid,
    key: &'a str,
    project: &'a str,
    access: &'a str,
    name: &'a str,
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<[String; 1]>,
}

/// Parses `NAME=VALUE`. A value that is not valid JSON is a text.
fn claim(text: &str) -> Result<(String, serde_json::Value), String> {
    let (name, value) = text.split_once('=').ok_or("it must be a name and a value, such as sub=7")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
}

fn id_or_beginning(text: &str) -> Result<String, String> {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    match Uuid::parse_str(text) {
        Ok(id) => Ok(id.to_string()),
        Err(_) if !text.is_empty() && text.chars().all(is_part) => Ok(text.to_ascii_lowercase()),
        Err(_) => Err("an id has the digits 0 to 9 and a to f, and hyphens".to_owned()),
    }
}

impl CreateArgs {
    fn grant(&self) -> Grant {
        match (&self.role, self.access) {
            (Some(role), _) => {
                let claims = self.claims.iter().cloned().collect();
                Grant::Role(Arc::new(RoleGrant { role: role.clone(), claims }))
            }
            (None, Some(Access::Full)) => Grant::Full,
            (None, _) => Grant::Read,
        }
    }

    async fn run(self, context: &Context, keys: &Keys) -> Result<(), CliError> {
        let grant = self.grant();
        let access = grant.as_str().to_owned();
        let issued = keys.issue(&self.project, grant, &self.name, self.expires).await?;
        let answer = IssuedAnswer {
            id: issued.id,
            key: &issued.token,
            project: self.project.as_str(),
            access: &access,
            name: &self.name,
            expires_at: issued.expires_at.map(time),
            warnings: issued.warning().map(|warning| [warning]),
        };
        for warning in answer.warnings.iter().flatten() {
            note(&format!("selkie: warning: {warning}"));
        }
        let end =
            answer.expires_at.as_deref().map_or_else(|| "never expires".to_owned(), |end| format!("expires at {end}"));
        note(&format!("key {} of project {}, access {}, {end}; it is shown only now", issued.id, self.project, access));
        // Only the key goes to standard output, so that the output can be piped.
        context.output.answer(&answer, |answer| answer.key.to_owned())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyLine {
    id: Uuid,
    name: String,
    project: String,
    access: String,
    state: &'static str,
    created_at: String,
    last_used_at: Option<String>,
    expires_at: Option<String>,
    revoked_at: Option<String>,
}

async fn list(filter: ProjectFilter, context: &Context, keys: &Keys) -> Result<(), CliError> {
    let now = now();
    let rows = keys.list(filter.project.as_ref()).await?;
    let signing = match rows.is_empty() {
        true => return context.output.answer(&Vec::<KeyLine>::new(), |lines| table(lines)),
        false => keys.public_keys().await?,
    };
    let lines: Vec<KeyLine> = rows.iter().map(|row| line(row, &signing, now)).collect();
    context.output.answer(&lines, |lines| table(lines))
}

fn line(row: &KeyRow, signing: &KeySet, now: u64) -> KeyLine {
    KeyLine {
        id: row.id,
        name: row.name.clone(),
        project: row.project.to_string(),
        access: row.grant.as_str().to_owned(),
        state: state(row, signing, now),
        created_at: time(row.created_at),
        last_used_at: row.last_used_at.map(time),
        expires_at: row.expires_at.map(time),
        revoked_at: row.revoked_at.map(time),
    }
}

fn table(lines: &[KeyLine]) -> String {
    let dash = |time: &Option<String>| time.clone().unwrap_or_else(|| "-".to_owned());
    let mut table = TextTable::new(["id", "name", "project", "access", "state", "created", "last used", "expires"]);
    for line in lines {
        table.row([
            line.id.to_string(),
            line.name.clone(),
            line.project.clone(),
            line.access.clone(),
            line.state.to_owned(),
            line.created_at.clone(),
            dash(&line.last_used_at),
            dash(&line.expires_at),
        ]);
    }
    table.to_string()
}

#[derive(Serialize)]
struct RevokedAnswer {
    id: Uuid,
    revoked: bool,
    /// The keys that the revoked key has created, directly or indirectly.
    created: Vec<MadeKey>,
}

#[derive(Serialize)]
struct MadeKey {
    id: Uuid,
    name: String,
    access: String,
    revoked: bool,
}

impl RevokeArgs {
    async fn run(self, context: &Context, keys: &Keys) -> Result<(), CliError> {
        let id = keys.id_beginning_with(&self.id).await?;
        let before = keys.revoke(id, None).await?;
        let revoked = self.with_created;
        let made = if revoked { keys.revoke_made_by(id).await? } else { keys.made_by(id).await? };
        let entry = |key: &KeyRow| MadeKey {
            id: key.id,
            name: key.name.clone(),
            access: key.grant.as_str().to_owned(),
            revoked,
        };
        let answer = RevokedAnswer { id, revoked: true, created: made.iter().map(entry).collect() };
        context.output.answer(&answer, |answer| {
            let mut text = match before {
                KeyStatus::Live => format!("key {} is revoked; origins refuse it within a second", answer.id),
                _ => format!("key {} was revoked before", answer.id),
            };
            if !answer.created.is_empty() {
                text += if revoked {
                    "; so are the keys that it created:"
                } else {
                    "; the keys that it created stay valid:"
                };
                for MadeKey { id, name, access, .. } in &answer.created {
                    text += &format!("\n  {id} {} ({access})", shown(name));
                }
                if !revoked {
                    text += &format!("\nto revoke them too: selkie key revoke {} --with-created", answer.id);
                }
            }
            text
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RotatedAnswer {
    retired_signing_keys: Vec<String>,
    ended_keys: Vec<Uuid>,
}

impl RotateArgs {
    async fn run(self, context: &Context, keys: &Keys) -> Result<(), CliError> {
        let plan = keys.plan_rotation().await?;
        if !plan.lost.is_empty() {
            confirm(Consent::of(self.yes), &losses(&plan), "rotate")?;
        }
        let done = keys.rotate().await?;
        note(
            "give the edge the new set before you issue keys: `selkie key jwks` prints it; \
             origins know it within a second",
        );
        let answer = RotatedAnswer {
            ended_keys: done.lost.iter().map(|key| key.id).collect(),
            retired_signing_keys: done.retired,
        };
        context.output.answer(&answer, |answer| {
            format!(
                "a new signing key signs from now on; {} retired, {} keys ended",
                answer.retired_signing_keys.len(),
                answer.ended_keys.len()
            )
        })
    }
}

fn losses(plan: &Rotation) -> String {
    let keys: Vec<String> = plan
        .lost
        .iter()
        .map(|key| {
            let used = time_or_dash(key.last_used_at);
            format!("  {} {} of {} (last used {used})", key.id, shown(&key.name), key.project)
        })
        .collect();
    format!(
        "{} keys that still work were signed by the signing key that retires, and end with it:\n{}",
        keys.len(),
        keys.join("\n")
    )
}

async fn jwks(context: &Context, keys: &Keys) -> Result<(), CliError> {
    keys.prepare().await?;
    let set = keys.public_keys().await?.to_jwks();
    let value = serde_json::from_str::<serde_json::Value>(&set).map_err(|error| CliError::Output(error.into()))?;
    // A JWK set on one line can be the value of an environment variable.
    context.output.answer(&value, |_| set.clone())
}
