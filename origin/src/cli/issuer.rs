//! `selkie issuer`: adds, lists and removes the issuers whose tokens sign in the users of projects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use shared::ident::{ProjectName, RoleName};

use super::role::role;
use super::system::{Opened, ProjectFilter, note, project, time};
use super::{CliError, Context, TextTable};
use crate::clock::now;
use crate::database::admin::{IssuerKeys, IssuerRow, KeyGrant};
use crate::system::issuers::{Issuers, for_edge, sign_in_path, try_url};

#[derive(Debug, Subcommand)]
pub enum IssuerCommand {
    /// Accept the tokens of an issuer for a project, or replace its settings; origins follow within a second
    Add(AddArgs),
    /// List issuers: whose tokens are accepted, and which roles they have
    List(ProjectFilter),
    /// Print the issuers with their public keys, fetched now, as the edge's variable ISSUERS
    Keys(ProjectFilter),
    /// Remove an issuer; its tokens are refused from then on
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
pub struct AddArgs {
    /// The project whose data the tokens open
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
    /// The issuer as its tokens name it in iss, such as `https://id.example.com`
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// What the claim aud of the tokens contains; a token for another audience is refused
    #[arg(long, value_name = "AUDIENCE")]
    audience: String,
    /// The HTTPS address of the issuer's public keys, a JWK set
    #[arg(long, value_name = "URL", conflicts_with = "jwks", required_unless_present = "jwks")]
    jwks_url: Option<String>,
    /// A file with the issuer's public keys, a JWK set
    #[arg(long, value_name = "FILE")]
    jwks: Option<PathBuf>,
    /// The claim that names the role, or is a list of values for --map; app_metadata.role means role within the object app_metadata
    #[arg(long, value_name = "CLAIM")]
    role_claim: Option<String>,
    /// The role of tokens without that claim
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Option<RoleName>,
    /// What a value of the claim stands for: a role, full or read; may be repeated. A text that is not mapped names a
    /// role itself, never full or read; of a list only mapped values count
    #[arg(long = "map", value_name = "VALUE=ROLE", requires = "role_claim", value_parser = mapping)]
    map: Vec<(String, KeyGrant)>,
    /// The client id by which the issuer knows the console, so that users sign in to it; everybody can see it
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
}

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The issuer, as `selkie issuer list` shows it
    #[arg(value_name = "URL")]
    issuer: String,
    /// The project of the issuer
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
}

/// Parses `VALUE=ROLE`. The value may contain `=`, a role can't.
fn mapping(text: &str) -> Result<(String, KeyGrant), String> {
    let (value, name) = text.rsplit_once('=').ok_or("it must be a value and a role, such as admin=editor")?;
    let grant = match name.parse() {
        Ok(access) => KeyGrant::Access(access),
        Err(_) => KeyGrant::Role(role(name)?),
    };
    Ok((value.to_owned(), grant))
}

impl IssuerCommand {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let opened = Opened::migrated(context).await?;
        let issuers = Issuers::new(opened.system.admin.clone(), opened.system.projects.clone());
        let outcome = match self {
            Self::Add(args) => args.run(context, &issuers).await,
            Self::List(filter) => list(filter, context, &issuers).await,
            Self::Keys(filter) => keys(filter, context, &issuers).await,
            Self::Remove(args) => args.run(context, &issuers).await,
        };
        opened.close(outcome).await
    }
}

#[derive(Serialize)]
struct NamedAnswer<'a> {
    project: &'a str,
    issuer: &'a str,
}

impl AddArgs {
    async fn run(self, context: &Context, issuers: &Issuers) -> Result<(), CliError> {
        let keys = match (self.jwks_url, &self.jwks) {
            (None, Some(path)) => IssuerKeys::Set(read(path)?),
            (url, _) => IssuerKeys::Url(url.unwrap_or_default()),
        };
        let mut role_map = BTreeMap::new();
        for (value, grant) in self.map {
            if role_map.insert(value.clone(), grant).is_some() {
                return Err(CliError::Usage { message: format!("--map names the value {value} twice"), hint: None });
            }
        }
        let (project, issuer) = (self.project.clone(), self.issuer.clone());
        if self.client_id.is_some() {
            note(&format!("selkie: at the issuer, register the redirect URI https://…{}", sign_in_path(&issuer)));
        }
        let new = IssuerRow {
            project: self.project,
            issuer: self.issuer,
            audience: self.audience,
            keys: keys.clone(),
            role_claim: self.role_claim,
            role: self.role,
            role_map,
            client_id: self.client_id,
            created_at: now(),
        };
        for key in issuers.set(new).await? {
            note(&format!("selkie: warning: the key {} can't verify tokens: {}", key.name, key.fault));
        }
        if let IssuerKeys::Url(url) = &keys {
            warn_of(url).await;
        }
        let answer = NamedAnswer { project: project.as_str(), issuer: &issuer };
        context.output.answer(&answer, |answer| {
            format!("tokens of {} are accepted for project {} within a second", answer.issuer, answer.project)
        })
    }
}

/// Warns if the URL can't be read. That is no error, because the origins may be able to reach the URL.
async fn warn_of(url: &str) {
    match try_url(url).await {
        Ok(0) => note(&format!("selkie: warning: {url} has no key that can verify tokens (RS256, ES256 or EdDSA)")),
        Ok(_) => {}
        Err(error) => note(&format!("selkie: warning: the keys under {url} can't be fetched from here: {error}")),
    }
}

fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|error| CliError::Failed {
        message: format!("the JWK set {} can't be read: {error}", path.display()),
        hint: None,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IssuerLine {
    project: String,
    issuer: String,
    audience: String,
    jwks_url: Option<String>,
    role_claim: Option<String>,
    role: Option<String>,
    map: BTreeMap<String, String>,
    client_id: Option<String>,
    created_at: String,
}

impl IssuerLine {
    fn of(row: &IssuerRow) -> Self {
        Self {
            project: row.project.to_string(),
            issuer: row.issuer.clone(),
            audience: row.audience.clone(),
            jwks_url: match &row.keys {
                IssuerKeys::Url(url) | IssuerKeys::PublicUrl(url) => Some(url.clone()),
                IssuerKeys::Set(_) => None,
            },
            role_claim: row.role_claim.clone(),
            role: row.role.as_ref().map(ToString::to_string),
            map: row.role_map.iter().map(|(value, grant)| (value.clone(), grant.as_str().to_owned())).collect(),
            client_id: row.client_id.clone(),
            created_at: time(row.created_at),
        }
    }

    fn roles(&self) -> String {
        let map: Vec<_> = self.map.iter().map(|(value, role)| format!("{value}={role}")).collect();
        let map = if map.is_empty() { String::new() } else { format!(" ({})", map.join(", ")) };
        match (&self.role_claim, &self.role) {
            (Some(claim), Some(role)) => format!("claim {claim}{map}, else {role}"),
            (Some(claim), None) => format!("claim {claim}{map}"),
            (None, role) => role.clone().unwrap_or_default(),
        }
    }
}

async fn list(filter: ProjectFilter, context: &Context, issuers: &Issuers) -> Result<(), CliError> {
    let rows = issuers.list(filter.project.as_ref()).await?;
    let lines: Vec<_> = rows.iter().map(IssuerLine::of).collect();
    context.output.answer(&lines, |lines| {
        let mut table = TextTable::new(["project", "issuer", "audience", "keys", "role", "created"]);
        for line in lines {
            let keys = line.jwks_url.clone().unwrap_or_else(|| "stored".to_owned());
            let IssuerLine { project, issuer, audience, created_at, .. } = line;
            let [project, issuer, audience, created_at] = [project, issuer, audience, created_at].map(String::clone);
            table.row([project, issuer, audience, keys, line.roles(), created_at]);
        }
        table.to_string()
    })
}

async fn keys(filter: ProjectFilter, context: &Context, issuers: &Issuers) -> Result<(), CliError> {
    let rows = issuers.list(filter.project.as_ref()).await?;
    let (listed, left_out) = for_edge(&rows).await?;
    for (row, fault) in left_out {
        note(&format!("selkie: warning: {} is left out, so the edge would refuse its tokens: {fault}", row.issuer));
    }
    context.output.answer(&listed.to_json(), ToString::to_string)
}

impl RemoveArgs {
    async fn run(self, context: &Context, issuers: &Issuers) -> Result<(), CliError> {
        issuers.remove(&self.project, &self.issuer).await?;
        let answer = NamedAnswer { project: self.project.as_str(), issuer: &self.issuer };
        context.output.answer(&answer, |answer| {
            format!("tokens of {} are refused for project {} within a second", answer.issuer, answer.project)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::key::Access;

    #[test]
    fn a_mapping_reaches_full_only_by_that_word() {
        assert_eq!(mapping("admin=full"), Ok(("admin".to_owned(), KeyGrant::Access(Access::Full))));
        assert_eq!(mapping("a=b=read"), Ok(("a=b".to_owned(), KeyGrant::Access(Access::Read))));
        let editor = KeyGrant::Role(RoleName::parse("editor").unwrap());
        assert_eq!(mapping("admin=editor"), Ok(("admin".to_owned(), editor)));
        for text in ["admin", "admin=", "admin=FULL", "admin=a b"] {
            assert!(mapping(text).is_err(), "{text}");
        }
    }
}
