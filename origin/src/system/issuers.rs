//! Sets, lists and removes issuers: services whose tokens are accepted for the users of a project.

use sha2::{Digest as _, Sha256};
use shared::fingerprint::hex;
use shared::ident::{ProjectName, RoleName};
use shared::key::{EdgeIssuer, EdgeIssuers, EdgeIssuersFault, JwkSetFault, KeyFault, UnusableKey, VerificationKeys};
use shared::limits::{
    ISSUER_MAX_BYTES, ISSUER_ROLES_MAX_COUNT, ISSUERS_PER_PROJECT_MAX_COUNT, SIGN_IN_ISSUERS_MAX_COUNT,
    SIGN_IN_ISSUERS_PER_PROJECT_MAX_COUNT,
};

use crate::database::admin::{Admin, AdminError, IssuerKeys, IssuerRow, KeyGrant};
use crate::system::keys::tokens::remote::{FetchFault, Reach, UrlFault, fetch, parse_public_url, parse_url};
use crate::system::projects::{ProjectError, Projects};

#[derive(Clone, Debug)]
pub struct Issuers {
    admin: Admin,
    projects: Projects,
}

#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error("the project {0} has no issuer {1}")]
    Unknown(ProjectName, String),
    #[error("{0} is wrong: {1}")]
    Url(&'static str, UrlFault),
    #[error("{0} must have 1 to {ISSUER_MAX_BYTES} {1}")]
    Text(&'static str, &'static str),
    #[error("no token would have a role")]
    NoRoles,
    #[error("more than {ISSUER_ROLES_MAX_COUNT} values are mapped to roles")]
    TooManyRoles,
    #[error("a project has at most {ISSUERS_PER_PROJECT_MAX_COUNT} issuers")]
    TooMany,
    #[error(
        "users sign in to the console by at most {SIGN_IN_ISSUERS_MAX_COUNT} issuers, \
         {SIGN_IN_ISSUERS_PER_PROJECT_MAX_COUNT} of one project"
    )]
    TooManyClients,
    #[error("another project has this issuer, so that only the operator may add it or change its audience")]
    Elsewhere,
    #[error("a key that expires can't give tokens full or read access, since they would outlive it")]
    Outlives,
    #[error("the project {0} has no role {1}")]
    NoRole(ProjectName, RoleName),
    #[error("the project {0} has the same issuer with the same audience")]
    Taken(ProjectName),
    #[error("the JWK set is wrong: {0}")]
    Set(#[from] JwkSetFault),
    #[error("the key {} of the JWK set is wrong: {}", .0.name, .0.fault)]
    Key(UnusableKey),
    #[error("the JWK set has no key")]
    NoKey,
    #[error("the edge can't have these issuers: {0}")]
    Edge(#[from] EdgeIssuersFault),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysFault {
    #[error("its keys can't be fetched from here: {0}")]
    Fetch(#[from] FetchFault),
    #[error("its stored keys are wrong: {0}")]
    Stored(#[from] JwkSetFault),
    #[error("it has no key that can verify tokens (RS256, ES256 or EdDSA)")]
    NoKey,
}

impl IssuerError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Admin(error) => error.hint().map(str::to_owned),
            Self::Project(error) => error.hint(),
            Self::Unknown(project, _) => Some(format!("`selkie issuer list --project {project}` shows the issuers")),
            Self::NoRoles => Some(
                "name the claim that holds the role with --role-claim, or a role for all tokens with --role".to_owned(),
            ),
            Self::NoRole(project, _) => Some(format!("`selkie role list --project {project}` shows the roles")),
            Self::Taken(_) => Some("a token could be meant for either project: give each its own audience".to_owned()),
            Self::Key(UnusableKey { fault: KeyFault::Secret, .. }) => {
                Some("only public keys belong here; replace a private key that others could read".to_owned())
            }
            Self::Key(_) | Self::NoKey | Self::Set(_) => {
                Some("nothing was changed; a JWK set is {\"keys\": [{\"kty\": \"RSA\", \"kid\": …, …}]}".to_owned())
            }
            Self::Edge(_) => {
                Some("name one project with --project: the edge forwards tokens of other issuers".to_owned())
            }
            Self::Elsewhere => {
                Some("the operator gives an issuer to several projects with `selkie issuer add`".to_owned())
            }
            Self::Outlives => Some("map a role, or use a key that does not expire".to_owned()),
            Self::Url(..) | Self::Text(..) | Self::TooManyRoles | Self::TooMany | Self::TooManyClients => None,
        }
    }
}

impl Issuers {
    pub fn new(admin: Admin, projects: Projects) -> Self {
        Self { admin, projects }
    }

    /// Stores an issuer for a caller of the API, whose key expires at `expires_at`. Another project's issuer is refused:
    /// its tokens could be meant for either project. A URL of keys must be public, unless the operator has set it.
    pub async fn set_for(&self, mut new: IssuerRow, expires_at: Option<u64>) -> Result<Vec<UnusableKey>, IssuerError> {
        if expires_at.is_some() && new.role_map.values().any(|grant| matches!(grant, KeyGrant::Access(_))) {
            return Err(IssuerError::Outlives);
        }
        let rows = self.admin.issuers(None).await?;
        let (own, others): (Vec<_>, Vec<_>) =
            rows.iter().filter(|row| row.issuer == new.issuer).partition(|row| row.project == new.project);
        // With the same or a wider audience, tokens of the others could be meant for this project too.
        if !others.is_empty() && !own.iter().any(|row| row.audience == new.audience) {
            return Err(IssuerError::Elsewhere);
        }
        if let IssuerKeys::Url(url) = &new.keys
            && !own.iter().any(|row| row.keys == new.keys)
        {
            parse_public_url(url).map_err(|fault| IssuerError::Url("the URL of the keys", fault))?;
            new.keys = IssuerKeys::PublicUrl(url.clone());
        }
        self.set(new).await
    }

    /// Stores an issuer. Returns the keys of its JWK set that can't verify tokens, but fetches no JWK set from a URL.
    pub async fn set(&self, new: IssuerRow) -> Result<Vec<UnusableKey>, IssuerError> {
        let unusable = check(&new)?;
        self.projects.require(&new.project).await?;
        let mapped = new.role_map.values().filter_map(|grant| match grant {
            KeyGrant::Role(role) => Some(role),
            KeyGrant::Access(_) => None,
        });
        for role in mapped.chain(&new.role) {
            if self.admin.role(&new.project, role).await?.is_none() {
                return Err(IssuerError::NoRole(new.project, role.clone()));
            }
        }
        let is_same = |row: &IssuerRow| row.project == new.project && row.issuer == new.issuer;
        let rows = self.admin.issuers(None).await?;
        let others = rows.iter().filter(|row| !is_same(row));
        if let Some(taken) = others.clone().find(|row| row.issuer == new.issuer && row.audience == new.audience) {
            return Err(IssuerError::Taken(taken.project.clone()));
        }
        let signing_in = others.clone().filter(|row| row.client_id.is_some());
        let of_project = signing_in.clone().filter(|row| row.project == new.project);
        if new.client_id.is_some()
            && (signing_in.count() >= SIGN_IN_ISSUERS_MAX_COUNT
                || of_project.count() >= SIGN_IN_ISSUERS_PER_PROJECT_MAX_COUNT)
        {
            return Err(IssuerError::TooManyClients);
        }
        if others.filter(|row| row.project == new.project).count() >= ISSUERS_PER_PROJECT_MAX_COUNT {
            return Err(IssuerError::TooMany);
        }
        self.admin.set_issuer(&new).await?;
        Ok(unusable)
    }

    pub async fn list(&self, of: Option<&ProjectName>) -> Result<Vec<IssuerRow>, IssuerError> {
        if let Some(project) = of {
            self.projects.require(project).await?;
        }
        Ok(self.admin.issuers(of).await?)
    }

    /// Removes an issuer. Origins refuse the issuer's tokens within about a second.
    pub async fn remove(&self, project: &ProjectName, issuer: &str) -> Result<(), IssuerError> {
        let rows = self.list(Some(project)).await?;
        if !rows.iter().any(|row| row.issuer == issuer) {
            return Err(IssuerError::Unknown(project.clone(), issuer.to_owned()));
        }
        Ok(self.admin.remove_issuer(project, issuer).await?)
    }
}

/// Returns the path of the console to which the issuer sends users back. `console/src/oidc.ts` computes it too.
pub fn sign_in_path(issuer: &str) -> String {
    const ID_BYTES: usize = 8;
    format!("/console/sign-in-{}", hex(&Sha256::digest(issuer)[..ID_BYTES]))
}

/// Returns the edge's variable `ISSUERS`, and the issuers that must be left out of it.
pub async fn for_edge(rows: &[IssuerRow]) -> Result<(EdgeIssuers, Vec<(&IssuerRow, KeysFault)>), IssuerError> {
    let (mut issuers, mut left_out) = (Vec::new(), Vec::new());
    for row in rows {
        match keys_of(row).await {
            Ok(keys) => {
                issuers.push(EdgeIssuer { issuer: row.issuer.clone(), audience: row.audience.clone(), keys });
            }
            Err(fault) => left_out.push((row, fault)),
        }
    }
    Ok((EdgeIssuers::new(issuers)?, left_out))
}

async fn keys_of(row: &IssuerRow) -> Result<VerificationKeys, KeysFault> {
    let (keys, _) = match &row.keys {
        IssuerKeys::Url(url) => fetch_from(url, Reach::Any).await?,
        IssuerKeys::PublicUrl(url) => fetch_from(url, Reach::Public).await?,
        IssuerKeys::Set(text) => VerificationKeys::parse(text)?,
    };
    if keys.is_empty() { Err(KeysFault::NoKey) } else { Ok(keys) }
}

pub async fn try_url(url: &str) -> Result<usize, FetchFault> {
    Ok(fetch_from(url, Reach::Any).await?.0.len())
}

async fn fetch_from(url: &str, reach: Reach) -> Result<(VerificationKeys, Vec<UnusableKey>), FetchFault> {
    let url = parse_url(url).map_err(|fault| FetchFault::Unreachable(fault.to_string()))?;
    fetch(&url, reach).await
}

fn check(new: &IssuerRow) -> Result<Vec<UnusableKey>, IssuerError> {
    parse_url(&new.issuer).map_err(|fault| IssuerError::Url("the issuer's URL", fault))?;
    if new.issuer.len() > ISSUER_MAX_BYTES || !new.issuer.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(IssuerError::Text("the issuer's URL", "ASCII characters"));
    }
    let texts = [
        ("the audience", Some(&new.audience)),
        ("the role's claim", new.role_claim.as_ref()),
        ("the client id", new.client_id.as_ref()),
    ];
    for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        let is_well_formed = (1..=ISSUER_MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
        if !is_well_formed {
            return Err(IssuerError::Text(name, "bytes and no control character"));
        }
    }
    if new.role.is_none() && new.role_claim.is_none() {
        return Err(IssuerError::NoRoles);
    }
    if new.role_map.len() > ISSUER_ROLES_MAX_COUNT {
        return Err(IssuerError::TooManyRoles);
    }
    if !new.role_map.keys().all(|value| (1..=ISSUER_MAX_BYTES).contains(&value.len())) {
        return Err(IssuerError::Text("each value that is mapped", "bytes"));
    }
    match &new.keys {
        IssuerKeys::Url(url) | IssuerKeys::PublicUrl(url) => {
            parse_url(url).map_err(|fault| IssuerError::Url("the URL of the keys", fault))?;
            Ok(Vec::new())
        }
        IssuerKeys::Set(text) => {
            let (keys, unusable) = VerificationKeys::parse(text)?;
            let wrong = unusable.iter().find(|key| keys.is_empty() || key.fault == KeyFault::Secret);
            match wrong {
                Some(wrong) => Err(IssuerError::Key(wrong.clone())),
                None if keys.is_empty() => Err(IssuerError::NoKey),
                None => Ok(unusable),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const ED25519: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a",
        "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    fn new() -> IssuerRow {
        IssuerRow {
            project: ProjectName::parse("shop").unwrap(),
            issuer: "https://id.example".to_owned(),
            audience: "shop".to_owned(),
            keys: IssuerKeys::Set(ED25519.to_owned()),
            role_claim: Some("role".to_owned()),
            role: None,
            role_map: BTreeMap::new(),
            client_id: None,
            created_at: 0,
        }
    }

    fn fault(change: impl FnOnce(&mut IssuerRow)) -> String {
        let mut changed = new();
        change(&mut changed);
        check(&changed).unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_setting_is_named() {
        assert!(check(&new()).unwrap().is_empty());
        let set = |text: &str| IssuerKeys::Set(text.to_owned());
        for (message, expected) in [
            (fault(|new| new.issuer = "selkie".to_owned()), "the issuer's URL is wrong: it is no URL"),
            (fault(|new| new.issuer = "http://id.example".to_owned()), "does not begin with https://"),
            (fault(|new| new.issuer = format!("https://id.example/{}", "x".repeat(255))), "must have 1 to 255 ASCII"),
            (fault(|new| new.audience = String::new()), "the audience must have 1 to 255"),
            (fault(|new| new.role_claim = Some("\n".to_owned())), "the role's claim must have"),
            (fault(|new| new.role_claim = None), "no token would have a role"),
            (fault(|new| new.keys = IssuerKeys::Url("http://id.example".to_owned())), "the URL of the keys is wrong"),
            (fault(|new| new.keys = set("[]")), "it is no JWK set"),
            (fault(|new| new.keys = set(r#"{"keys":[]}"#)), "has no key"),
            (fault(|new| new.keys = set(&ED25519.replace("\"x\"", "\"d\":\"A\",\"x\""))), "it is private or symmetric"),
            (
                fault(|new| new.keys = set(&ED25519.replace("Ed25519", "X25519"))),
                "the key \"a\" of the JWK set is wrong",
            ),
        ] {
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_key_that_is_of_no_use_is_told_unless_it_is_secret() {
        let with =
            |other: &str| IssuerRow { keys: IssuerKeys::Set(ED25519.replace("]}", &format!(",{other}]}}"))), ..new() };
        let unusable = check(&with(r#"{"kty":"EC","crv":"P-384","kid":"b"}"#)).unwrap();
        assert_eq!(unusable, [UnusableKey { name: "\"b\"".to_owned(), fault: KeyFault::Type }]);
        assert!(check(&with(r#"{"kty":"oct","k":"AAAA"}"#)).is_err());
    }
}
