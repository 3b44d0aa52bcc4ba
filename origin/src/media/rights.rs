//! The rights to read, upload and change files: everything for a full key, or what a role allows.

use super::sniff::{self, FileType, UNKNOWN};
use crate::database::media::{ChangeableFiles, ReadableFiles, Uploader};
use crate::query::role::{Claims, MediaDeletion, MediaReading, MediaRule, UploadRule};
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::media::{FolderPath, MediaName};
use shared::policy::role_forbids;
use shared::upload::Visibility;

#[derive(Clone, Debug)]
pub struct UploadRights {
    /// The rule of the caller's role; `None` if everything is allowed.
    rule: Option<BoundRule>,
    scope: ChangeableFiles,
    uploader: Option<Uploader>,
}

#[derive(Clone, Debug)]
struct BoundRule {
    folder: Option<FolderPath>,
    types: Vec<Box<str>>,
    max_bytes: Option<u64>,
}

impl UploadRights {
    /// The rights of full keys and of the command line.
    pub const ALL: Self = Self { rule: None, scope: ChangeableFiles::All, uploader: None };

    pub fn of_role(media: &MediaRule, claims: &Claims, uploader: Uploader) -> Result<Self, Problem> {
        let rule = media.upload.as_ref().ok_or_else(|| role_forbids("upload files"))?;
        let UploadRule { folder, types, max_bytes } = rule;
        let folder = match folder {
            Some(folder) => Some(
                filled(folder, claims)
                    .ok_or_else(|| role_forbids("upload files without a claim that gives its folder a name"))?,
            ),
            None => None,
        };
        let rule = BoundRule { folder, types: types.clone(), max_bytes: *max_bytes };
        Ok(Self { rule: Some(rule), scope: scope_of(media, uploader), uploader: Some(uploader) })
    }

    pub fn scope(&self) -> ChangeableFiles {
        self.scope
    }

    pub fn uploader(&self) -> Option<Uploader> {
        self.uploader
    }

    pub fn max_bytes(&self) -> Option<u64> {
        self.rule.as_ref().and_then(|rule| rule.max_bytes)
    }

    /// Returns the folder to use for `named`. The root stands for the folder of the caller's role, if the role has one.
    pub fn folder(&self, named: FolderPath) -> Result<FolderPath, Problem> {
        let Some(only) = self.rule.as_ref().and_then(|rule| rule.folder.as_ref()) else {
            return Ok(named);
        };
        if named == *only || named == FolderPath::root() {
            return Ok(only.clone());
        }
        let hint = match only.as_str() {
            "" => "It may upload only files without a folder: leave folder out.".to_owned(),
            only => format!("It may upload to {}, which is used if folder is left out.", shown(only)),
        };
        Err(role_forbids(&format!("upload files to the folder {}", shown(named.as_str()))).with_hint(hint))
    }

    pub fn check_visibility(&self, visibility: Visibility) -> Result<(), Problem> {
        match (&self.rule, visibility) {
            (Some(_), Visibility::PrivateFolder) => Err(role_forbids("make a folder private")
                .with_hint("Use \"private\": true, which makes the file private, or a full key.")),
            _ => Ok(()),
        }
    }

    pub fn check_size(&self, bytes: u64) -> Result<(), Problem> {
        match self.max_bytes() {
            Some(most) if bytes > most => Err(too_large(most)),
            _ => Ok(()),
        }
    }

    pub(super) fn check_type(&self, name: &MediaName, verdict: &FileType) -> Result<(), Problem> {
        let Some(rule) = &self.rule else {
            return Ok(());
        };
        let found = match verdict.sniffed {
            Some(found) => found.mime,
            None => UNKNOWN,
        };
        // A declared image, audio or video type alone does not allow a file whose content is something else or unknown.
        let is_claimed = is_audible_or_visible(&verdict.mime) && !is_audible_or_visible(found);
        if rule.allows(&verdict.mime) && (!is_claimed || rule.allows(found)) {
            return Ok(());
        }
        let mime = if rule.allows(&verdict.mime) { found } else { &verdict.mime };
        Err(role_forbids(&format!("upload {}, which is of the type {mime}", shown(name.as_str())))
            .with_hint(format!("It may upload files of these types: {}.", rule.types.join(", "))))
    }
}

impl BoundRule {
    fn allows(&self, mime: &str) -> bool {
        let fits = |pattern: &str| match pattern.split_once('/') {
            Some(("*", "*")) => true,
            Some((top, "*")) => mime.split_once('/').is_some_and(|(of, _)| of == top),
            _ => sniff::canonical(pattern) == mime,
        };
        self.types.is_empty() || self.types.iter().any(|pattern| fits(pattern))
    }
}

fn filled(folder: &str, claims: &Claims) -> Option<FolderPath> {
    FolderPath::parse(&claims.fill_path(folder)?).ok()
}

/// Returns which files a role may read. Leaves out a folder for which the claims give no valid name.
pub fn readable(media: &MediaRule, claims: &Claims, uploader: Uploader) -> ReadableFiles {
    match &media.read {
        MediaReading::All => ReadableFiles::All,
        MediaReading::Some { own, folders } => {
            let folders = folders.iter().filter_map(|folder| filled(folder, claims));
            // A claim may fill a folder with characters that the path drops: the root would be every file.
            let folders = folders.filter(|folder| *folder != FolderPath::root()).collect();
            ReadableFiles::Some { own: own.then_some(uploader), folders }
        }
    }
}

pub fn scope_of(media: &MediaRule, uploader: Uploader) -> ChangeableFiles {
    match media.delete {
        MediaDeletion::None => ChangeableFiles::None,
        MediaDeletion::Own => ChangeableFiles::Own(uploader),
        MediaDeletion::All => ChangeableFiles::All,
    }
}

pub fn too_large(most: u64) -> Problem {
    Problem::new(ErrorCode::BodyTooLarge, format!("A file is larger than the {most} bytes that the key's role allows."))
}

fn is_audible_or_visible(mime: &str) -> bool {
    ["image/", "video/", "audio/"].iter().any(|top| mime.starts_with(top))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::role::Role;
    use serde_json::{Value, json};
    use shared::ident::ProjectName;
    use shared::media::MediaKind;

    fn rights(media: &Value, claims: Value) -> Result<UploadRights, Problem> {
        let role = Role::parse(&json!({"media": media}).to_string()).unwrap();
        let claims = Claims::new(&serde_json::from_value(claims).unwrap());
        let uploader = Uploader::of_subject(&ProjectName::parse("shop").unwrap(), "7");
        UploadRights::of_role(role.media(), &claims, uploader)
    }

    fn refused<T: std::fmt::Debug>(outcome: Result<T, Problem>) -> ErrorCode {
        outcome.unwrap_err().code()
    }

    #[test]
    fn a_role_without_a_rule_uploads_nothing() {
        for media in [json!({}), json!({"read": true, "delete": "all"}), json!({"upload": false})] {
            assert_eq!(refused(rights(&media, json!({}))), ErrorCode::RoleForbids);
        }
    }

    #[test]
    fn the_only_folder_is_used_if_none_is_named_and_another_is_refused() {
        let media = json!({"upload": {"folder": "avatars/{sub}"}});
        let folder = |named: &str| FolderPath::parse(named).unwrap();
        let own = rights(&media, json!({"sub": 7})).unwrap();
        for named in ["", "avatars/7", "/avatars/7/"] {
            assert_eq!(own.folder(folder(named)).unwrap(), folder("avatars/7"), "{named}");
        }
        for named in ["avatars", "avatars/8", "avatars/7/x", "Avatars/7", "avatars/77"] {
            assert_eq!(refused(own.folder(folder(named))), ErrorCode::RoleForbids, "{named}");
        }
        for claims in
            [json!({}), json!({"sub": "a/b"}), json!({"sub": ".."}), json!({"sub": "a\\b"}), json!({"sub": "\n"})]
        {
            assert_eq!(refused(rights(&media, claims)), ErrorCode::RoleForbids);
        }
        let root = rights(&json!({"upload": {"folder": ""}}), json!({})).unwrap();
        assert_eq!(root.folder(FolderPath::root()).unwrap(), FolderPath::root());
        assert_eq!(refused(root.folder(folder("a"))), ErrorCode::RoleForbids);
        let any = rights(&json!({"upload": true}), json!({})).unwrap();
        assert_eq!(any.folder(folder("a")).unwrap(), folder("a"));
    }

    #[test]
    fn types_are_those_of_the_bytes() {
        let name = MediaName::parse("x").unwrap();
        let html = b"<!doctype html><script>".as_slice();
        let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".as_slice();
        let png = b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR".as_slice();
        for (types, label, head, allowed) in [
            (json!(["image/*"]), None, png, true),
            (json!(["image/png"]), Some("application/octet-stream"), png, true),
            (json!(["IMAGE/JPG"]), None, b"\xFF\xD8\xFF\xE0".as_slice(), true),
            (json!(["image/jpeg"]), None, png, false),
            (json!(["image/*"]), None, html, false),
            (json!(["image/*"]), Some("image/svg+xml"), svg, true),
            (json!(["image/*"]), Some("image/svg+xml"), html, false),
            (json!(["image/*"]), Some("image/x-something"), b"\x01\x02\x03\xFE".as_slice(), false),
            (json!(["image/*", "application/octet-stream"]), Some("image/x-something"), b"\x01\x02\x03\xFE", true),
            (json!(["text/*"]), Some("text/csv"), b"a,b\n1,2\n", true),
            (json!(["*/*"]), None, html, true),
            (json!([]), None, html, true),
        ] {
            let rights = rights(&json!({"upload": {"types": types}}), json!({})).unwrap();
            let verdict = sniff::judge(label, MediaKind::File, "x", head).unwrap();
            let outcome = rights.check_type(&name, &verdict);
            assert_eq!(outcome.is_ok(), allowed, "{types} {label:?} {verdict:?}");
            assert!(outcome.is_ok() || refused(outcome) == ErrorCode::RoleForbids);
        }
    }

    #[test]
    fn a_file_is_at_most_as_large_as_the_role_allows() {
        let small = rights(&json!({"upload": {"maxBytes": 10}}), json!({})).unwrap();
        assert!(small.check_size(10).is_ok());
        let problem = small.check_size(11).unwrap_err();
        assert_eq!(problem.code(), ErrorCode::BodyTooLarge);
        assert!(problem.message().contains("10 bytes"));
        assert!(UploadRights::ALL.check_size(u64::MAX).is_ok());
    }

    #[test]
    fn a_role_makes_files_private_but_no_folder() {
        let role = rights(&json!({"upload": true}), json!({})).unwrap();
        for visibility in [Visibility::Undeclared, Visibility::Public, Visibility::Private] {
            assert!(role.check_visibility(visibility).is_ok());
        }
        assert_eq!(refused(role.check_visibility(Visibility::PrivateFolder)), ErrorCode::RoleForbids);
        assert!(UploadRights::ALL.check_visibility(Visibility::PrivateFolder).is_ok());
    }

    #[test]
    fn replacing_a_file_needs_the_right_to_delete_it() {
        let scope = |delete: Value| rights(&json!({"upload": true, "delete": delete}), json!({})).unwrap().scope();
        let own = Uploader::of_subject(&ProjectName::parse("shop").unwrap(), "7");
        assert_eq!(scope(json!(false)), ChangeableFiles::None);
        assert_eq!(scope(json!("own")), ChangeableFiles::Own(own));
        assert_eq!(scope(json!("all")), ChangeableFiles::All);
    }
}
